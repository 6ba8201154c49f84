"""Table drafters: the four ways in which candidates come about, each from a row `draft_row(prefix)`."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from refengine.exact.block import ROOT, Block, Drafter, chain
from refengine.exact.chance import Chance, Site
from refengine.exact.row import Row, normalised, without

Prefix: TypeAlias = tuple[int, ...]
DraftRow: TypeAlias = Callable[[Prefix], Row]


def sampled_chain(draft_row: DraftRow, gamma: int) -> Drafter:
    """x_0 .. x_{gamma-1}, each drawn from the draft's row after the ones before."""

    def draft(prefix: Prefix, chance: Chance) -> Block:
        tokens: Prefix = ()
        rows: list[Row] = []
        sites: list[Site] = []
        for i in range(gamma):
            rows.append(draft_row(prefix + tokens))
            sites.append(("draft", i))
            tokens = (*tokens, chance.choose(rows[-1], sites[-1]))
        return chain(tokens, rows, sites)

    return draft


def iid_tree(draft_row: DraftRow, widths: Sequence[int]) -> Drafter:
    """At depth d every node gets widths[d] independent draws; equal draws stay separate nodes."""

    def draw(row: Row, count: int, depth: int, node: int, chance: Chance) -> list[tuple[int, Site]]:
        sites: list[Site] = [("draft", depth, node + k) for k in range(count)]
        return [(chance.choose(row, site), site) for site in sites]

    return _tree(draft_row, widths, draw)


def without_replacement_tree(draft_row: DraftRow, widths: Sequence[int]) -> Drafter:
    """At depth d every node gets widths[d] different tokens, fewer where the row supports fewer."""

    def draw(row: Row, count: int, depth: int, node: int, chance: Chance) -> list[tuple[int, Site]]:
        drawn: list[tuple[int, Site]] = []
        left: Sequence[Fraction] = row
        while len(drawn) < count and sum(left) > 0:
            site = ("draft", depth, node + len(drawn))
            token = chance.choose(normalised(left), site)
            drawn.append((token, site))
            left = without(left, token)
        return drawn

    return _tree(draft_row, widths, draw)


def fixed(block_of: Callable[[Prefix], tuple[Sequence[int], Sequence[int]]]) -> Drafter:
    """Deterministic candidates: `block_of(prefix)` gives (tokens, parents)."""

    def draft(prefix: Prefix, chance: Chance) -> Block:
        tokens, parents = block_of(prefix)
        return Block(tuple(tokens), tuple(parents), (None,) * len(tokens), (None,) * len(tokens))

    return draft


def _tree(
    draft_row: DraftRow,
    widths: Sequence[int],
    draw: Callable[[Row, int, int, int, Chance], list[tuple[int, Site]]],
) -> Drafter:
    """Grow a tree breadth first; `draw(row, count, depth, first node, chance)` gives one family of siblings."""

    def draft(prefix: Prefix, chance: Chance) -> Block:
        tokens: list[int] = []
        parents: list[int] = []
        rows: list[Row] = []
        sites: list[Site] = []
        level: list[tuple[int, Prefix]] = [(ROOT, ())]
        for depth, count in enumerate(widths):
            next_level: list[tuple[int, Prefix]] = []
            for parent, path in level:
                row = draft_row(prefix + path)
                for token, site in draw(row, count, depth, len(tokens), chance):
                    next_level.append((len(tokens), (*path, token)))
                    tokens.append(token)
                    parents.append(parent)
                    rows.append(row)
                    sites.append(site)
            level = next_level
        return Block(tuple(tokens), tuple(parents), tuple(rows), tuple(sites))

    return draft
