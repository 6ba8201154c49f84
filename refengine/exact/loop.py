"""The loop: draft, verify, commit, until a stop token or the length limit."""

from refengine.exact.block import Drafter, Rule, Target, target_rows
from refengine.exact.chance import Chance, Shifted


def generate(
    target: Target,
    drafter: Drafter,
    rule: Rule,
    prompt: tuple[int, ...],
    max_new_tokens: int,
    chance: Chance,
    stop: frozenset[int] = frozenset(),
) -> tuple[int, ...]:
    """The tokens after `prompt`. They end with the first stop token, wherever in a block it falls, or at the limit.

    Sites carry the start of their round, so no round can reuse another round's coin.
    """
    out: tuple[int, ...] = ()
    while len(out) < max_new_tokens:
        prefix = prompt + out
        here = Shifted(chance, len(prefix))
        block = drafter(prefix, here)
        for token in rule(target_rows(target, prefix, block), block, here).tokens:
            out = (*out, token)
            if token in stop or len(out) == max_new_tokens:
                return out
    return out


def plain(
    target: Target, prompt: tuple[int, ...], max_new_tokens: int, chance: Chance, stop: frozenset[int] = frozenset()
) -> tuple[int, ...]:
    """The same without speculation: what `generate` must be equal to in law."""
    out: tuple[int, ...] = ()
    while len(out) < max_new_tokens:
        token = chance.choose(target(prompt + out), ("emit", len(prompt) + len(out)))
        out = (*out, token)
        if token in stop:
            break
    return out
