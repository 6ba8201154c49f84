"""Checks at the sizes of real use: long chains, large trees, many lanes, large vocabularies, long decodes.

Enumeration stays small: what goes wrong from the ninth node, the 65th lane or the 33rd token on is invisible to it.
Here one run per case is compared with the definition, under recorded uniforms.
"""

import bisect
import itertools
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import torch

from refengine.bugs.checks.batches import PAIRS, Case, Pair, cases
from refengine.bugs.checks.tables import Row
from refengine.bugs.checks.twins import witness
from refengine.bugs.checks.violation import Case as Claim
from refengine.bugs.checks.violation import Violation, first
from refengine.engine import coins
from refengine.engine.coins import Recorded
from refengine.exact.block import Block
from refengine.exact.chance import Uniforms

LANES = 72
TOKENS = 12
GRID = 1 << 24
DEEP = 20  # of the long chain
FAR = 130  # the number of the tree's first node that can be kept: beyond seven bits


def rules() -> Violation | None:
    """A batched rule gives the definition's tokens on chains of 20, trees of 140 and twelve leaves, among 72 lanes."""
    for pair in PAIRS:
        small = cases(pair, 3, bits=4, vocabulary=TOKENS)
        chosen = [*itertools.islice(itertools.cycle(small), LANES - 14), *large(pair)]
        have = pair.run(chosen, Recorded(_Columns(len(chosen))))
        for lane, (case, got) in enumerate(zip(chosen, have, strict=True)):
            want = pair.define(case, Uniforms(_Lane(lane)))
            if got != want:
                return Violation(f"{pair.name}: {got}, not {want}, in lane {lane}", witness(pair, case))
    return None


def large(pair: Pair) -> Iterator[Case]:
    """Up to fourteen cases of the rule's kind."""
    yield sure(pair, [range(j, j + 1) for j in range(-1, DEEP - 1)])
    if pair.shape == "chain":
        for length in range(9, 16):
            yield sure(pair, [range(j, j + 1) for j in range(-1, length - 1)])
        return
    # Seven refused siblings, what hangs below the first of them, and the eighth with a chain below it.
    parents = [-1] * 7 + [0] * (FAR - 7) + [-1, *range(FAR, FAR + 9)]
    yield sure(pair, [range(up, up + 1) for up in parents], kept=(*range(FAR, FAR + 10),))
    for seed in range(12):
        yield wide(pair, 8 if pair.drawn == "distinct" else 12, seed)


def sure(pair: Pair, parents: Sequence[range], kept: Sequence[int] | None = None) -> Case:
    """A block of which the nodes `kept` (default: all but the last) come out: the target wants their tokens alone."""
    above = [up.start for up in parents]
    path = list(range(len(above) - 1)) if kept is None else list(kept)
    tokens = [sum(up == above[j] for up in above[:j]) % TOKENS for j in range(len(above))]
    p = [point(0)] * (len(above) + 1)
    q: list[Row | None] = [None] * len(above)
    for j in path:
        p[above[j] + 1] = point(tokens[j])
    if pair.drawn:
        siblings = {up: above.count(up) for up in above}
        q = [flat(8) if siblings[up] > 1 else point(tokens[j]) for j, up in enumerate(above)]
    return Case(tuple(p), Block(tuple(tokens), tuple(above), tuple(q), (None,) * len(above)))


def wide(pair: Pair, leaves: int, seed: int) -> Case:
    """So many siblings at the root, under random rows of 3 bits: 9 * 3 + 24 bits fit into float64."""
    generator = random.Random(seed)
    tokens = generator.sample(range(8), 8) if leaves == 8 else [generator.randrange(8) for _ in range(leaves)]
    late = (*tokens[-3:], TOKENS - 1)  # what the target wants, every other time: a late sibling, or none of them
    p = tuple(coarse(generator, late if seed % 2 else range(8)) for _ in range(leaves + 1))
    q = (flat(8) if pair.drawn else None,) * leaves
    return Case(p, Block(tuple(tokens), (-1,) * leaves, q, (None,) * leaves))


def coarse(generator: random.Random, tokens: Sequence[int]) -> Row:
    """Eight eighths, each on one of these tokens."""
    drawn = [generator.choice(tokens) for _ in range(8)]
    return tuple(Fraction(drawn.count(x), 8) for x in range(TOKENS))


def point(token: int) -> Row:
    return tuple(Fraction(x == token) for x in range(TOKENS))


def flat(count: int) -> Row:
    return tuple(Fraction(int(x < count), count) for x in range(TOKENS))


def mark(site: Any, lane: int) -> int:
    """The uniform of a site in a lane, times 2^24."""
    return zlib.crc32(f"{site} {lane}".encode()) >> 8


class _Columns(Mapping[Any, Any]):
    """A uniform for every site and lane, as Recorded wants them."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes

    def __getitem__(self, site: Any) -> torch.Tensor:
        return torch.tensor([mark(site, lane) for lane in range(self.lanes)], dtype=torch.float64) / GRID

    def __contains__(self, site: object) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Lane(_Columns):
    """The same uniforms seen from one lane, as Uniforms wants them."""

    def __getitem__(self, site: Any) -> Any:
        return Fraction(mark(site, self.lanes), GRID)


def vocabulary() -> Violation | None:
    """choose over 100,000 tokens is the first whose cumulative weight is above u * total, counted in integers."""
    return first(_vocabulary())


def _vocabulary() -> Iterator[Claim]:
    generator = random.Random(0)
    weights = [generator.choice((0, 1, 3, 5001)) for _ in range(99_999)]
    whole = 1 << 27  # what is left for the last token has 24 bits: float32 holds every weight, and not their sums
    weights.append(whole - sum(weights))
    edges = list(itertools.accumulate(weights))
    # u = n / 2^29 on, just below and just above an edge: u * total is then an exact quarter of an integer.
    marks = [4 * edges[i] + d for i in (0, 1, 49_999, 65_536, 70_000, 99_997, 99_998) for d in (-1, 0, 1)]
    marks += [generator.randrange(4 * whole) for _ in range(20)] + [0, 4 * whole - 1]
    u = torch.tensor([n / (4 * whole) for n in marks], dtype=torch.float64)
    rows = torch.tensor(weights, dtype=torch.float32).expand(len(marks), -1)
    want = [bisect.bisect_right([4 * edge for edge in edges], n) for n in marks]
    yield "tokens of a large vocabulary", coins.choose_below(u, rows).tolist(), want
