"""A request of the running loop, coin by coin: what the definitions say of the same uniforms.

The laws of `test_loop.py` need many draws: a total variation of d shows after about 1 / d^2 of them. But the loop's
coins are known, and so is every row. With a uniform in hand a definition has one answer: the token that is drafted from
the reported row, the end of the round, the first token. The loop gives the same answer to every coin, or is not that
definition. Two programs that differ by a total variation of d differ on a coin with probability d at least, however
each of them uses it, so d shows after about 1 / d coins.

Definitions are exact, the loop is in floats: they part where a uniform lies within rounding of a boundary. Rows of
three live tokens have two boundaries, off by 1e-16 of the mass that the coin of a round decides about, so the error is
1e-15 a round at most: below ALPHA for the million rounds of a long sample.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import torch
from torch import Tensor

from refengine.decoder.loop import Played, nodes
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import parts
from refengine.exact.block import ROOT, Block
from refengine.exact.chance import Shifted, Weight, accept_below, choose_below
from refengine.exact.chance import Site as OneSite
from refengine.exact.rules import RULES

ROUNDING = 1e-9  # two passes over one input agree far better, and a stale row is off by 1e-3


class Uniforms(Protocol):
    """The uniforms of one request by absolute site: accept's, and choose's."""

    def uniform(self, site: OneSite) -> tuple[float, float]: ...


@dataclass(frozen=True)
class Known:
    """The chance of the definitions that has a request's own uniforms."""

    coins: Uniforms

    def accept(self, num: Weight, den: Weight, site: OneSite) -> bool:
        return accept_below(Fraction(self.coins.uniform(site)[0]), num, den)

    def choose(self, weights: Any, site: OneSite) -> int:
        return choose_below(Fraction(self.coins.uniform(site)[1]), weights)


@dataclass(frozen=True)
class Exactly:
    """A round as its rule is defined on it: the block, with the rows p root first."""

    block: Block
    p: list[tuple[Fraction, ...]]

    @staticmethod
    def of(played: Played) -> "Exactly":
        tokens, parents = nodes(played.block)
        drawn = played.block.q is not None
        q = [exactly(row) for row in played.block.q[0]] if drawn else [None] * len(tokens)
        sites = [one_site(site) for site in played.block.sites] if drawn else [None] * len(tokens)
        return Exactly(Block(tokens, parents, tuple(q), tuple(sites)), [exactly(row) for row in played.p])

    def is_corrected(self, path: Tokens) -> bool:
        """Whether a round that keeps this path refuses what is drafted after it."""
        return bool(self.block.children(path[-1] if path else ROOT))


def check(rule: str, known: Exactly, played: Played, coins: Uniforms, start: int) -> None:
    """Hold a round, begun after `start` tokens, to the definitions on the same coins. Raises AssertionError."""
    block, chance = known.block, Shifted(Known(coins), start)
    for node, (token, q, site) in enumerate(zip(block.tokens, block.q, block.sites, strict=True)):
        if q is not None and site is not None:
            before = {block.tokens[j] for j in block.children(block.parents[node]) if j < node}
            left = [Fraction(0) if x in before and rule == "without_replacement" else mass for x, mass in enumerate(q)]
            told = chance.choose(left, site)
            assert token == told, f"by its coin, draft {site} of the reported row is {told}, and the loop has {token}"
    found = RULES[rule].rule(known.p, block, chance)
    told = found.tokens, found.path
    said = played.verdict.tokens, played.verdict.path
    assert said == told, f"by its coins, the round after {start} tokens ends in {told}, and the loop in {said}"


def check_rows(played: Played, before: Tokens, row_after: Callable[[Tokens], tuple[float, ...]]) -> None:
    """Hold the rows that the emitted tokens come from to those of plain decoding after the text before each."""
    for place, node in enumerate((ROOT, *played.verdict.path)[: len(played.emitted)]):
        text = (*before, *played.emitted[:place])
        off = float((played.p[node + 1] - torch.tensor(row_after(text), dtype=torch.float64)).abs().max())
        assert off <= ROUNDING, f"the loop's row after {text} is off by {off:.2g}"


def exactly(row: Tensor) -> tuple[Fraction, ...]:
    weights = [Fraction(x) for x in row.tolist()]
    mass = sum(weights)
    return tuple(w / mass for w in weights)


def one_site(site: Any) -> OneSite:
    kind, *where = parts(site)
    return (kind, *(int(x) for x in where if x is not None))
