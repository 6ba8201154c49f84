"""Confidence truncation: how a drafter may shorten its block, and how it may not.

`causal` looks at the confidence of a position before the token there is drawn, and `stopping` ends the block *after*
keeping a token: both leave every kept token distributed as q, so a lossless rule stays lossless. `retrospective` draws
the whole block first and then keeps the length that promises most. The later confidences depend on x_k, so x_k is kept
or dropped because of what it is, and the law changes: p = (.7, .3), q = (.5, .5) comes out as (.85, .15).
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from refengine.exact.block import Block, Drafter, chain
from refengine.exact.chance import Chance, Site
from refengine.exact.row import Row

Prefix: TypeAlias = tuple[int, ...]
Confidence: TypeAlias = Callable[[Prefix], Fraction]  # of the next position, from what precedes it


def causal(draft_row: Callable[[Prefix], Row], confidence: Confidence, threshold: Fraction, gamma: int) -> Drafter:
    """Stop before position k when confidence(prefix up to k) < threshold (DSpark's threshold policy)."""

    def draft(prefix: Prefix, chance: Chance) -> Block:
        return _draw(draft_row, prefix, gamma, chance, lambda path: confidence(path) < threshold, lambda path: False)

    return draft


def stopping(draft_row: Callable[[Prefix], Row], last: Callable[[Prefix], bool], gamma: int) -> Drafter:
    """Stop after the token at which `last(prefix with it)` holds; that token is kept."""

    def draft(prefix: Prefix, chance: Chance) -> Block:
        return _draw(draft_row, prefix, gamma, chance, lambda path: False, last)

    return draft


def retrospective(
    draft_row: Callable[[Prefix], Row], confidence: Confidence, cost: Sequence[Fraction], gamma: int
) -> Drafter:
    """Draw gamma tokens, then keep the length that maximises expected tokens per cost. A negative control: lossy.

    Expected tokens of length n are 1 + sum over k <= n of the product of the first k confidences; cost[n] is the cost
    of verifying n drafts. The sum looks past the token it decides about.
    """

    def draft(prefix: Prefix, chance: Chance) -> Block:
        whole = _draw(draft_row, prefix, gamma, chance, lambda path: False, lambda path: False)
        survival, expected, speed = Fraction(1), Fraction(1), [1 / Fraction(cost[0])]
        for n in range(1, gamma + 1):
            survival *= confidence(prefix + whole.tokens[: n - 1])
            expected += survival
            speed.append(expected / cost[n])
        keep = max(range(gamma + 1), key=lambda n: speed[n])
        return chain(whole.tokens[:keep], whole.q[:keep], whole.sites[:keep])

    return draft


def _draw(
    draft_row: Callable[[Prefix], Row],
    prefix: Prefix,
    gamma: int,
    chance: Chance,
    cut_before: Callable[[Prefix], bool],
    cut_after: Callable[[Prefix], bool],
) -> Block:
    tokens: Prefix = ()
    rows: list[Row] = []
    sites: list[Site] = []
    while len(tokens) < gamma and not cut_before(prefix + tokens):
        site = ("draft", len(tokens))
        rows.append(draft_row(prefix + tokens))
        sites.append(site)
        tokens = (*tokens, chance.choose(rows[-1], site))
        if cut_after(prefix + tokens):
            break
    return chain(tokens, rows, sites)
