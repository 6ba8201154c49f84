"""Where two greedy completions part, and by how much the server itself prefers one token there: a tie or a defect."""

from collections.abc import Sequence
from dataclasses import dataclass

from refengine.audit.completions import Completion, Server

LEAST_NOISE = 1e-3  # nats: what a half-precision server differs by between two shapes of a batch


@dataclass(frozen=True)
class Parting:
    """The first token in which two completions differ. margin: nats by which the server without speculation prefers its
    own, at least, where the other is not among the likeliest; None where it reports no chances."""

    prompt: str
    position: int
    off: str
    on: str
    margin: float | None


def parting(prompt: str, on: Completion, off: Completion) -> Parting | None:
    """None where the completions are equal."""
    if on.tokens is None or off.tokens is None:
        return None if on.text == off.text else Parting(prompt, 0, off.text, on.text, None)
    if on.tokens == off.tokens:
        return None
    pairs = enumerate(zip(on.tokens, off.tokens, strict=False))
    i = next((i for i, (x, y) in pairs if x != y), min(len(on.tokens), len(off.tokens)))
    ours, theirs = ("".join(said.tokens[i : i + 1]) for said in (on, off) if said.tokens is not None)
    row = off.top[i] if off.top is not None and i < len(off.top) else {}
    margin = row[theirs] - row.get(ours, min(row.values())) if theirs in row else None
    return Parting(prompt, i, theirs, ours, margin)


def rounding(server: Server, prompts: Sequence[str], completions: Sequence[Completion], seed: int) -> float:
    """How far the server's log probability of a token moves when the tokens before it come as a prompt, in one pass, as
    they do within a round: the largest of one look a prompt, in nats."""
    worst = LEAST_NOISE
    for prompt, said in zip(prompts, completions, strict=True):
        if said.tokens is None or said.top is None or len(said.tokens) < 2 or "".join(said.tokens) != said.text:
            continue  # half of such a completion cannot be put into a prompt again
        half = len(said.tokens) // 2
        token, row = said.tokens[half], said.top[half]
        again = server.complete(prompt + "".join(said.tokens[:half]), 1, 0.0, seed)
        if again.tokens == (token,) and again.top and token in again.top[0] and token in row:
            worst = max(worst, abs(again.top[0][token] - row[token]))
    return worst
