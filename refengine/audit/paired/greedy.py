"""The greedy claim. Where two completions part, the margin by which the side without speculation prefers its own token
is compared with measured rounding: a tie, or a defect."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import isfinite

from refengine.audit.paired.comparison import GREEDY, Comparison, Sides
from refengine.audit.paired.completion import Completion, Failed, Side
from refengine.evidence.naming import unexplained
from refengine.report.finding import Finding, Number, Quantity

GREEDY_TOKENS = 48  # of a completion
MIN_NOISE = 1e-3  # nats: what half precision differs by between two shapes of a batch
MASKED_LOG_PROBABILITY = -1e4  # stands for minus infinity, which a report cannot hold
NOISE_FACTOR_OF_A_DEFECT = 10.0  # a margin beyond so many times the noise is no tie


def greedy(comparison: Comparison, sides: Sides, pool: ThreadPoolExecutor) -> Finding:
    """Each prompt once with speculation and twice without: a parting does not count where the side without speculation
    parts from itself at or before it."""
    (on, off), prompts, seed = sides, comparison.settings.prompts, comparison.settings.seed
    method = f"{len(prompts)} prompts, up to {GREEDY_TOKENS} tokens each"

    def completed(request: tuple[Side, str]) -> Completion:
        side, prompt = request
        return side.complete(prompt, GREEDY_TOKENS, 0.0, seed)

    try:
        said = list(pool.map(completed, [(side, prompt) for prompt in prompts for side in (on, off, off)]))
        noise = rounding(off, prompts, said[1::3], seed)
        trios = zip(prompts, said[0::3], said[1::3], said[2::3], strict=True)
        partings = [found for trio in trios if (found := _parting_of_speculation(*trio, off))]
    except Failed as error:
        return comparison.finding("greedy", GREEDY, method, "not tested", reason=str(error))
    numbers: dict[str, Number] = {"prompts": len(prompts), "partings": len(partings)}
    numbers["noise"] = Quantity(value=noise, tolerance=1.0)
    defects = [p for p in partings if p.margin is not None and abs(p.margin) > NOISE_FACTOR_OF_A_DEFECT * noise]
    if defects:
        witness = dict(max(defects, key=lambda p: abs(p.margin or 0.0)).__dict__)
        diagnosis = unexplained("at temperature 0, in a token that is not the likeliest")
        return comparison.finding(
            "greedy", GREEDY, method, "violated", numbers=numbers, witness=witness, diagnosis=diagnosis
        )
    unknown = sum(p.margin is None for p in partings)
    if unknown:
        reason = f"{unknown} completions part where no chances are reported: a tie or a defect"
        return comparison.finding("greedy", GREEDY, method, "not tested", numbers=numbers, reason=reason)
    notes = [f"{p.prompt!r} parts at token {p.position}: a tie, its margin is {p.margin:.1e} nats" for p in partings]
    return comparison.finding("greedy", GREEDY, method, "consistent", numbers=numbers, notes=notes)


@dataclass(frozen=True)
class Parting:
    """The first token in which two completions differ. margin: nats by which the side without speculation prefers its
    own, at least so many where the other is not in its row; None where there is no row."""

    prompt: str
    position: int
    off: str
    on: str
    margin: float | None


def _parting_of_speculation(
    prompt: str, ours: Completion, theirs: Completion, again: Completion, off: Side
) -> Parting | None:
    """Where speculation parts from a completion that the other side gives both times."""
    found, own = parting(prompt, ours, theirs, off), parting(prompt, again, theirs, off)
    return found if found is not None and (own is None or own.position > found.position) else None


def parting(prompt: str, on: Completion, off: Completion, side: Side) -> Parting | None:
    """None where the completions are equal. side: the one without speculation, which reports the row."""
    if on.tokens is None or off.tokens is None:
        return None if on.text == off.text else Parting(prompt, 0, off.text, on.text, None)
    if on.tokens == off.tokens:
        return None
    pairs = enumerate(zip(on.tokens, off.tokens, strict=False))
    i = next((i for i, (x, y) in pairs if x != y), min(len(on.tokens), len(off.tokens)))
    ours, theirs = ("".join(said.tokens[i : i + 1]) for said in (on, off) if said.tokens is not None)
    row = off.top[i] if off.top is not None and i < len(off.top) else side.row(prompt, off.tokens[:i])
    margin = row[theirs] - max(row.get(ours, min(row.values())), MASKED_LOG_PROBABILITY) if theirs in row else None
    return Parting(prompt, i, theirs, ours, margin if margin is not None and isfinite(margin) else None)


def rounding(side: Side, prompts: Sequence[str], completions: Sequence[Completion], seed: int) -> float:
    """How far the log probability of a token moves when the tokens before it are part of the prompt and are read in one
    pass, as within a round: the largest move over the prompts, one token of each, in nats."""
    worst = MIN_NOISE
    for prompt, said in zip(prompts, completions, strict=True):
        if said.tokens is None or said.top is None or len(said.tokens) < 2 or "".join(said.tokens) != said.text:
            continue  # half of such a completion cannot be put into a prompt again
        half = len(said.tokens) // 2
        token, row = said.tokens[half], said.top[half]
        again = side.complete(prompt + "".join(said.tokens[:half]), 1, 0.0, seed)
        if again.tokens == (token,) and again.top and token in again.top[0] and token in row:
            worst = max(worst, abs(again.top[0][token] - row[token]))
    return worst
