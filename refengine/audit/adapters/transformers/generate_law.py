"""One cell of generation, measured in a child: the same library with speculation on and off."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import msgspec
import torch
import transformers

from refengine.audit.adapters.transformers.generate_cells import CELLS, Cell
from refengine.audit.adapters.transformers.tiny_models import WAYS, Subject, Words
from refengine.audit.interception.intercept import Raised, Unmodelled, intercepted
from refengine.audit.magnitude import excess
from refengine.audit.sandbox.child import SubjectRaised, subject_code
from refengine.exact.chance import Decision, Replay, Site, runs
from refengine.exact.law import Law, Tokens, tv

# Both sides compute rows in float32 from float64 logits that agree, so what may differ is the rounding of a softmax,
# of p / q and of the residual (a few 2^-24 each) and the 24-bit grid of each accept, over three tokens: below 1e-6.
TOLERANCE = 1e-6
# Stop strings are text, so they need a tokenizer; the library looks for the prefix "abcdef" in what it decodes.
STOP_VOCABULARY = {"w0": 0, "w1": 1, "w2": 2, "abcdef": 3}
RUNS = 4000  # a cell has at most a few hundred; more means that the enumeration does not end
Trace: TypeAlias = list[tuple[list[str | int], int]]


class Witness(msgspec.Struct, kw_only=True):
    """The smallest run that shows a violation; `decisions` replay it (empty where nothing is random).

    off, on are the probabilities of `tokens` with speculation off and on; instead is what greedy gives with it off.
    """

    prompt: list[int]
    new_tokens: int
    decisions: Trace
    tokens: list[int]
    off: float = 0.0
    on: float = 0.0
    instead: list[int] | None = None


class Measured(msgspec.Struct, kw_only=True):
    """What one cell shows. Distances are exact fractions of the enumerated laws, as floats."""

    runs_off: int = 0
    runs_on: int = 0
    distance: float = 0.0  # TV from what is promised, see `excess`; greedy: the share of prompts whose outputs differ
    bias: float = 0.0  # from the target's law, where something else is promised
    outside: float = 0.0  # mass on outputs that are impossible with speculation off
    raised: float = 0.0
    raised_by: str = ""
    unmodelled: str = ""  # why the random calls could not be followed
    effect: float | None = None  # how far the policy moves the law; a policy that does nothing shows nothing
    blocks: dict[int, float] = {}  # probability that a run's longest block has this many tokens (greedy: share)
    margin: float | None = None  # greedy: smallest gap between the two best logits
    law: Witness | None = None
    mask: Witness | None = None
    plot: dict[str, list[Any]] = {}


class Blocks:
    """A streamer that writes down how many tokens each round commits: what the library shows to any user."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def put(self, tokens: Any) -> None:
        self.sizes.append(int(tokens.numel()))

    def end(self) -> None:
        """Nothing to flush; part of the streamer's interface."""

    def longest(self) -> int:
        return max(self.sizes[1:], default=0)  # the first piece is the prompt


def serve() -> Callable[[str], Any]:
    """The child's side: cell name in, measurements out."""
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.set_num_threads(1)
    return lambda name: msgspec.to_builtins(measure(CELLS[name]))


def measure(cell: Cell) -> Measured:
    """Build the cell's models and compare."""
    subject = WAYS[cell.way](cell.vocabulary)
    with subject_code():
        generate(cell, subject, cell.prompt, 2, on=True)  # translators and caches are set up by the first call
    if not cell.sampling:
        return _measure_greedy(cell, subject)
    try:
        return _measure_sampling(cell, subject)
    except Unmodelled as unmodelled:
        return Measured(unmodelled=str(unmodelled))


def _measure_sampling(cell: Cell, subject: Subject) -> Measured:
    """The law at full length; where it is violated, the witness of the shortest generation that shows it."""
    if cell.mixture is not None:
        return _measure_mixture(cell, subject, cell.mixture)
    found = _measure_law(cell, subject, cell.new_tokens)
    if cell.policy:
        bare = _enumerate(replace(cell, policy={}), subject, cell.new_tokens, on=False)[0]
        found.effect = float(tv(bare, _enumerate(cell, subject, cell.new_tokens, on=False)[0]))
    for fewer in range(1, cell.new_tokens):
        if found.law is None and found.mask is None:
            break
        smaller = _measure_law(cell, subject, fewer)
        found.law, found.mask = (smaller.law if found.law else None) or found.law, smaller.mask or found.mask
        if smaller.law is not None or (found.law is None and smaller.mask is not None):
            break
    return found


def generate(cell: Cell, subject: Subject, prompt: Tokens, new_tokens: int, on: bool) -> tuple[Tokens, int]:
    """One call of the library: the new tokens, and the longest block that was committed at once."""
    target, speculation = subject
    ids, blocks = torch.tensor([prompt]), Blocks()
    words = {"tokenizer": Words(STOP_VOCABULARY)} if "stop_strings" in cell.policy else {}
    output = target.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=cell.sampling,
        max_new_tokens=new_tokens,
        **words,
        **{"top_k": 0, **cell.policy} if cell.sampling else cell.policy,
        **{**speculation, **cell.settings, "streamer": blocks} if on else {},
    )
    return tuple(output[0, len(prompt) :].tolist()), blocks.longest()


# --- sampling: exact laws --------------------------------------------------------------------------------------------


def _measure_law(cell: Cell, subject: Subject, new_tokens: int) -> Measured:
    off, _, _, runs_off, refused = _enumerate(cell, subject, new_tokens, on=False)
    if refused:
        raise SubjectRaised(f"{refused} (with speculation off)")
    on, traces, blocks, runs_on, raised_by = _enumerate(cell, subject, new_tokens, on=True)
    outside = {t: w for t, w in on.items() if t not in off}
    found = Measured(
        runs_off=runs_off,
        runs_on=runs_on,
        distance=float(excess(on, off)),
        outside=float(sum(outside.values())),
        raised=float(1 - sum(on.values())),
        raised_by=raised_by,
        blocks={size: float(mass) for size, mass in sorted(blocks.items())},
        plot=_plot(off, on),
    )
    if found.distance > TOLERANCE:
        tokens = max(on, key=lambda t: (on[t] - off.get(t, 0), t))
        found.law = _witness(cell.prompt, tokens, traces[tokens], new_tokens, off, on)
    if outside:
        tokens = max(outside, key=lambda t: (outside[t], t))
        found.mask = _witness(cell.prompt, tokens, traces[tokens], new_tokens, off, on)
    return found


def _measure_mixture(cell: Cell, subject: Subject, w: float) -> Measured:
    """The first token against w p + (1 - w) q, both rows enumerated without speculation."""
    found = _measure_law(cell, subject, cell.new_tokens)
    p = _enumerate(cell, subject, 1, on=False)[0]
    q = _enumerate(cell, (subject[1]["assistant_model"], {}), 1, on=False)[0]
    expected = {t: Fraction(w) * p.get(t, 0) + (1 - Fraction(w)) * q.get(t, 0) for t in p.keys() | q.keys()}
    on, traces, *_ = _enumerate(cell, subject, cell.new_tokens, on=True)
    first: Law[Tokens] = {}
    for tokens, weight in on.items():
        first[tokens[:1]] = first.get(tokens[:1], Fraction(0)) + weight
    found.bias, found.distance, found.law, found.mask = found.distance, float(excess(first, expected)), None, None
    if found.distance > TOLERANCE:
        token = max(first, key=lambda t: (first[t] - expected.get(t, 0), t))
        trace = next(trace for tokens, trace in traces.items() if tokens[:1] == token)
        found.law = _witness(cell.prompt, token, trace, cell.new_tokens, expected, first)
    return found


def _enumerate(
    cell: Cell, subject: Subject, new_tokens: int, on: bool
) -> tuple[Law[Tokens], dict[Tokens, list[Decision]], Law[int], int, str]:
    """Law of the new tokens, a run for each outcome, law of the longest block, number of runs, first exception."""
    law: Law[Tokens] = {}
    traces: dict[Tokens, list[Decision]] = {}
    blocks: Law[int] = {}
    count, raised_by = 0, ""
    program = intercepted(lambda: generate(cell, subject, cell.prompt, new_tokens, on))
    for outcome, weight, trace in runs(program):
        count += 1
        if count > RUNS:
            raise RuntimeError(f"more than {RUNS} runs: the cell is too large to enumerate")
        if isinstance(outcome, Raised):
            raised_by = raised_by or outcome.error
            continue
        tokens, longest = outcome
        law[tokens] = law.get(tokens, Fraction(0)) + weight
        blocks[longest] = blocks.get(longest, Fraction(0)) + weight
        traces.setdefault(tokens, trace)
    return law, traces, blocks, count, raised_by


def _witness(
    prompt: Tokens, tokens: Tokens, trace: list[Decision], new_tokens: int, off: Law[Tokens], on: Law[Tokens]
) -> Witness:
    return Witness(
        prompt=list(prompt),
        new_tokens=new_tokens,
        decisions=[(list(d.site), int(d.outcome)) for d in trace],
        tokens=list(tokens),
        off=float(off.get(tokens, 0)),
        on=float(on[tokens]),
    )


def _plot(off: Law[Tokens], on: Law[Tokens]) -> dict[str, list[Any]]:
    outcomes = sorted(off.keys() | on.keys())
    return {
        "outcome": [" ".join(map(str, tokens)) for tokens in outcomes],
        "target": [float(off.get(t, 0)) for t in outcomes],
        "observed": [float(on.get(t, 0)) for t in outcomes],
    }


def replay(name: str, witness: dict[str, Any]) -> Tokens:
    """Run a witness of a cell again, decision by decision; returns the tokens that come out."""
    cell = CELLS[name]
    subject = WAYS[cell.way](cell.vocabulary)
    prompt, new_tokens = tuple(witness["prompt"]), witness["new_tokens"]
    generate(cell, subject, cell.prompt, 2, on=True)
    trace: list[tuple[Site, int]] = [(tuple(site), outcome) for site, outcome in witness["decisions"]]
    chance = Replay(trace)
    outcome = intercepted(lambda: generate(cell, subject, prompt, new_tokens, on=True))(chance)
    chance.finish()
    if isinstance(outcome, Raised):
        raise RuntimeError(outcome.error)
    return outcome[0]


# --- greedy: token for token -----------------------------------------------------------------------------------------


def _measure_greedy(cell: Cell, subject: Subject) -> Measured:
    found = Measured()
    differing, longest = 0, dict[int, int]()
    for prompt in itertools.product(range(cell.vocabulary), repeat=2 if cell.policy else 3):
        with subject_code():
            off, _ = generate(cell, subject, prompt, cell.new_tokens, on=False)
            on, block = generate(cell, subject, prompt, cell.new_tokens, on=True)
        found.runs_off, found.runs_on = found.runs_off + 1, found.runs_on + 1
        longest[block] = longest.get(block, 0) + 1
        margin = _margin(subject, prompt + off)
        found.margin = margin if found.margin is None else min(found.margin, margin)
        if on != off:
            differing += 1
            found.law = found.law or _greedy_witness(cell, subject, prompt)
    found.distance = differing / found.runs_on
    found.blocks = {size: count / found.runs_on for size, count in sorted(longest.items())}
    return found


def _greedy_witness(cell: Cell, subject: Subject, prompt: Tokens) -> Witness:
    """The shortest generation from this prompt whose outputs differ."""
    for new_tokens in range(1, cell.new_tokens + 1):
        off, on = (generate(cell, subject, prompt, new_tokens, on=on)[0] for on in (False, True))
        if off != on:
            break
    return Witness(prompt=list(prompt), new_tokens=new_tokens, decisions=[], tokens=list(on), instead=list(off))


def _margin(subject: Subject, tokens: Tokens) -> float:
    """Smallest gap between the two largest raw logits anywhere in a sequence: how far greedy is from a tie."""
    with torch.no_grad():
        best = subject[0](torch.tensor([tokens])).logits[0].topk(2).values
    return float((best[:, 0] - best[:, 1]).min())
