"""The exact law of a kernel with the signature of transformers' `_speculative_sampling`, on every table. In the child.

The kernel's own random calls are intercepted and enumerated: one pass over all runs gives the law of what is emitted,
float32 arithmetic, 24-bit uniforms and all.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import msgspec

from refengine.audit.magnitude import excess
from refengine.audit.sandbox.child import subject_code
from refengine.exact.block import Target
from refengine.exact.chance import Chance, Replay, Site, runs
from refengine.exact.law import Law, Tokens, completed, target_law
from refengine.exact.row import Row, normalised
from refengine.exact.tables import FAMILIES, Table, tables

Verify: TypeAlias = Callable[..., tuple[Any, Any]]

# The null is a ball, because the kernel computes in float32: a softmax moves each p and q by a few 2^-24 relative, and
# an accept lands on the next of 2^24 grid points. A few tokens together stay below 1e-6; p = 0 has no such excuse.
TOLERANCE = 1e-6
PREFIX = (0,)
# (vocabulary, drafted tokens), smallest first: the first violation is the witness
SIZES = ((2, 1), (2, 2), (3, 1), (3, 2))
SEEDS = range(2)
NEAR = (3, 6)  # q = p (1 ± 10^-k)


class Worst(msgspec.Struct, kw_only=True):
    """One violation: the table it was found on, how much mass is misplaced, and one run that does it."""

    size: tuple[int, int]
    family: str
    seed: int
    amount: str  # an exact fraction
    p: list[list[str]]
    q: list[list[str]]
    draft: list[int]
    decisions: list[tuple[list[str | int], int]]
    tokens: list[int]


class Measured(msgspec.Struct, kw_only=True):
    """What the child found. `tv`, `zero`: the largest over all tables; the witnesses are the first, smallest ones."""

    runs: int = 0
    tables: int = 0
    tv: float = 0.0
    zero: float = 0.0
    raised: float = 0.0
    raised_by: str = ""
    unmodelled: str = ""  # why the kernel's randomness could not be followed
    miscounted: int = 0
    law: Worst | None = None
    mask: Worst | None = None
    count: Worst | None = None
    plot: dict[str, list[Any]] = {}


def serve() -> Callable[[str], Any]:
    """The child's side: kernel name in, measurements out."""
    return lambda kernel: msgspec.to_builtins(measure(load(kernel)))


def load(kernel: str) -> Verify:
    """Import "module:function"."""
    module, _, name = kernel.partition(":")
    with subject_code():
        function: Verify = getattr(importlib.import_module(module), name)
    return function


def measure(verify: Verify, sizes: Sequence[tuple[int, int]] = SIZES) -> Measured:
    """Enumerate the kernel on every table, smallest first."""
    from refengine.audit.interception.uniforms import Unmodelled

    found = Measured()
    try:
        for size in sizes:
            for family, seed, target, draft in all_tables(size[0]):
                _measure_table(found, verify, size, (family, seed), target, draft)
    except Unmodelled as unmodelled:
        found.unmodelled = str(unmodelled)
    return found


def all_tables(vocabulary: int) -> Iterator[tuple[str, int, Target, Table]]:
    """Every table of one vocabulary: the hostile families, and drafts that are almost the target."""
    for seed in SEEDS:
        for family in FAMILIES:
            yield family, seed, *tables(family, vocabulary, seed)
        for k in NEAR:
            yield f"near 1e-{k}", seed, *near(vocabulary, seed, k)


def near(vocabulary: int, seed: int, k: int) -> tuple[Target, Table]:
    """q = p (1 ± 10^-k), signs alternating: the residual is all rounding error, or nearly so."""
    target, _ = tables("generic", vocabulary, seed)

    def draft(prefix: Tokens) -> Row:
        return normalised([px * (1 + (-1) ** x * Fraction(1, 10**k)) for x, px in enumerate(target(prefix))])

    return target, draft


def one_round(verify: Verify, target: Target, draft: Table, gamma: int) -> Callable[[Chance], Any]:
    """Draft from q, verify once: (drafted, emitted, reported number of matches) as a function of chance."""
    import torch

    from refengine.audit.interception.intercept import intercepted

    def logits(rows: list[Row], shift: float) -> Any:
        """A softmax does not see a constant added to a row; a kernel that forgets the softmax does."""
        logs = torch.tensor([[[float(x) for x in row] for row in rows]], dtype=torch.float64).log()
        return (logs + shift * torch.arange(1, len(rows) + 1)[:, None]).float()

    def program(chance: Chance) -> Any:
        prefix: Tokens = PREFIX
        q, p = list[Row](), [target(PREFIX)]
        for depth in range(gamma):
            q.append(draft(prefix))
            prefix = (*prefix, chance.choose(q[-1], ("draft", depth)))
            p.append(target(prefix))

        def call() -> tuple[Tokens, int]:
            emitted, matches = verify(torch.tensor([prefix]), logits(q, -0.75), gamma, logits(p, 0.5))
            return tuple(int(x) for x in emitted.reshape(-1).tolist()), int(matches)

        return prefix[1:], intercepted(call)(chance)

    return program


def _measure_table(
    found: Measured, verify: Verify, size: tuple[int, int], name: tuple[str, int], target: Target, draft: Table
) -> None:
    from refengine.audit.interception.intercept import Raised

    gamma = size[1]
    emitted: Law[Tokens] = {}
    traces: dict[Tokens, Worst] = {}
    raised = Fraction(0)
    for (drafted, outcome), weight, trace in runs(one_round(verify, target, draft, gamma)):
        found.runs += 1
        if isinstance(outcome, Raised):
            raised += weight
            found.raised_by = found.raised_by or outcome.error
            continue
        tokens, matches = outcome
        emitted[tokens] = emitted.get(tokens, Fraction(0)) + weight
        worst = Worst(
            size=size,
            family=name[0],
            seed=name[1],
            amount="",
            p=[[str(x) for x in target((*PREFIX, *drafted[:i]))] for i in range(gamma + 1)],
            q=[[str(x) for x in draft((*PREFIX, *drafted[:i]))] for i in range(gamma)],
            draft=list(drafted),
            decisions=[(list(d.site), int(d.outcome)) for d in trace],
            tokens=list(tokens),
        )
        traces.setdefault(tokens, worst)
        if matches != len(tokens) - 1 or tokens[:-1] != drafted[:matches]:
            found.miscounted += 1
            worst.amount = str(weight)
            found.count = found.count or worst
    found.tables += 1
    found.raised = max(found.raised, float(raised))
    _judge(found, emitted, traces, target, size)
    if size == SIZES[-1] and name == ("generic", 0):
        found.plot = _plot(emitted, target)


def _judge(
    found: Measured, emitted: Law[Tokens], traces: dict[Tokens, Worst], target: Target, size: tuple[int, int]
) -> None:
    """Total variation of the completed law, and the mass on tokens that the target excludes.

    Counted is what is overrepresented: the total variation, where every run returns. Runs that raise cannot add to it.
    """
    vocabulary, gamma = size
    inside = {t: w for t, w in emitted.items() if all(0 <= x < vocabulary for x in t) and 0 < len(t) <= gamma + 1}
    masked = {t: w for t, w in emitted.items() if t not in inside or _impossible(t, target)}
    expected = target_law(target, PREFIX, gamma + 1)
    observed = completed(inside, target, PREFIX, gamma + 1)
    distance, zero = excess(observed, expected), sum(masked.values(), Fraction(0))
    found.tv, found.zero = max(found.tv, float(distance)), max(found.zero, float(zero))
    if distance > TOLERANCE and found.law is None:
        found.law = traces[max(emitted, key=lambda t: (_overshoot(t, observed, expected), t))]
        found.law.amount = str(distance)
    if masked and found.mask is None:
        found.mask = traces[max(masked, key=lambda t: (masked[t], t))]
        found.mask.amount = str(zero)


def _impossible(tokens: Tokens, target: Target) -> bool:
    return any(target((*PREFIX, *tokens[:i]))[x] == 0 for i, x in enumerate(tokens))


def _overshoot(tokens: Tokens, observed: Law[Tokens], expected: Law[Tokens]) -> Fraction:
    """By how much the continuations of `tokens` are overrepresented."""
    n = len(tokens)
    return sum((w - expected.get(t, 0) for t, w in observed.items() if t[:n] == tokens), Fraction(0))


def _plot(emitted: Law[Tokens], target: Target) -> dict[str, list[Any]]:
    expected, observed = target_law(target, PREFIX, 2), completed(emitted, target, PREFIX, 2)
    outcomes = sorted(expected.keys() | observed.keys())
    return {
        "outcome": [" ".join(map(str, tokens)) for tokens in outcomes],
        "target": [float(expected.get(t, 0)) for t in outcomes],
        "observed": [float(observed.get(t, 0)) for t in outcomes],
    }


def replay(witness: dict[str, Any], kernel: str) -> Tokens:
    """Run a witness again, decision by decision; returns the tokens that the kernel emits."""
    vocabulary, gamma = witness["vocabulary"], len(witness["draft"])
    named = {(family, seed): (target, draft) for family, seed, target, draft in all_tables(vocabulary)}
    target, draft = named[witness["family"], witness["seed"]]
    trace: list[tuple[Site, int]] = [(tuple(site), outcome) for site, outcome in witness["decisions"]]
    chance = Replay(trace)
    _, outcome = one_round(load(kernel), target, draft, gamma)(chance)
    chance.finish()
    tokens: Tokens = outcome[0]
    return tokens
