"""The smallest rows at which a defect shows: fewest tokens, then the smallest common denominator of all rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise, product

from proofs.smt.defects import Defect
from refengine.exact.block import target_rows
from refengine.exact.chance import Enumerate, Outcome, Site, Weight
from refengine.exact.law import Law, completed, target_law, tv
from refengine.exact.row import Row

Tokens = tuple[int, ...]

# defect -> (tokens, common denominator of the rows, TV of the first two tokens at the rows that show it most)
SMALLEST = {
    "accepts always": (2, 1, "1"),
    "ratio upside down": (2, 1, "1"),
    "resample from target": (2, 2, "1/4"),
    "one-hot residual": (3, 2, "1/4"),
    "one coin for two uses": (3, 3, "1/6"),
    "draft and verifier share coins": (2, 3, "1/6"),
    "greedy proposal, soft q": (2, 2, "1/2"),
    "raw row as q": (2, 2, "1/2"),
    "value-dependent truncation": (2, 3, "2/9"),
    "row slip": (2, 1, "1"),
    "bonus from the row before": (2, 1, "1"),
    "first draft unverified": (2, 1, "1"),
    "rejected token stays": (2, 1, "1"),
    "lossy by design: relaxed-acceptance": (2, 2, "1/2"),
    "lossy by design: synthetic-acceptance": (2, 1, "1/2"),
    "siblings not renormalised": (3, 3, "1/3"),
    "agreement draws again after a mismatch": (2, 2, "1/4"),
    "candidates without renormalisation": (2, 2, "1/8"),
    "equal candidates merged": (3, 3, "1/9"),
}


@dataclass
class OneUniformPerSite(Enumerate):
    """`Enumerate`, except that a second decision at a site sees what the first one left of its uniform."""

    left: dict[Site, tuple[Fraction, Fraction]] = field(default_factory=dict)

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        bar = Fraction(num, den) if num < den else Fraction(int(num > 0))
        return self._fall(site, [Fraction(0), bar, Fraction(1)]) == 0

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        total = sum(weights, Fraction(0))
        return self._fall(site, [sum(weights[:i], Fraction(0)) / total for i in range(len(weights) + 1)])

    def _fall(self, site: Site, bars: Sequence[Fraction]) -> int:
        low, high = self.left.get(site, (Fraction(0), Fraction(1)))
        ends = [(max(low, a), min(high, b)) for a, b in pairwise(bars)]
        outcome = super().choose([max(b - a, Fraction(0)) / (high - low) for a, b in ends], site)
        self.left[site] = ends[outcome]
        return outcome


@dataclass(frozen=True)
class Smallest:
    """p, q: the rows where the round begins; after: every later row of either; tv: of the first two tokens, exact."""

    denominator: int
    tv: Fraction
    p: Row
    q: Row
    after: Row


def smallest(defect: Defect, size: int, largest_denominator: int = 4) -> Smallest | None:
    """Over rows with a common denominator: the first that shows the defect, and there the rows that show it most."""
    for denominator in range(1, largest_denominator + 1):
        rows = list(grid(size, denominator))
        found = (Smallest(denominator, distance(defect, *choice), *choice) for choice in product(rows, repeat=3))
        best = max(found, key=lambda case: case.tv)
        if best.tv > 0:
            return best
    return None


def distance(defect: Defect, p: Row, q: Row, after: Row) -> Fraction:
    """Exact TV between two tokens of the defective round, topped up by the target, and two tokens of the target."""

    def target(prefix: Tokens) -> Row:
        return after if prefix else p

    drafter = defect.drafter(lambda prefix: after if prefix else q)
    emitted: Law[Tokens] = {}
    pending: list[tuple[Outcome, ...]] = [()]
    while pending:
        chance = OneUniformPerSite(forced=pending.pop())
        block = drafter((), chance)
        tokens = defect.rule(target_rows(target, (), block), block, chance).tokens
        pending.extend(chance.untaken)
        emitted[tokens] = emitted.get(tokens, 0) + chance.weight
    return Fraction(tv(completed(emitted, target, (), 2), target_law(target, (), 2)))


def grid(size: int, denominator: int) -> Iterator[Row]:
    """Every row of multiples of 1 / denominator."""
    for head in product(range(denominator + 1), repeat=size - 1):
        if sum(head) <= denominator:
            yield tuple(Fraction(k, denominator) for k in (*head, denominator - sum(head)))
