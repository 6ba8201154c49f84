"""Each class of defects: z3 finds rows that show it, proves that fewer tokens cannot, and the smallest rows are named.

The table is the answer to "how small may a test be": with two tokens nothing can see a replacement drawn with the
acceptance's own coin, because only one token is left to be drawn.
"""

from fractions import Fraction

import pytest

pytest.importorskip("z3", reason="not tested: z3-solver is not installed")

from proofs.smt.defects import DEFECTS, Defect
from proofs.smt.judge import difference
from proofs.smt.outside import OUTSIDE
from proofs.smt.smallest import distance, smallest
from refengine.bugs.catalogue import all_bugs

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

each = pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)


@each
def test_some_rows_show_it(defect: Defect) -> None:
    """Kills a defect that is none, and a z3 model that exact enumeration does not confirm."""
    size, _, _ = SMALLEST[defect.name]
    found = difference(size, defect.drafter, defect.rule)
    assert found is not None
    uniform = (Fraction(1, size),) * size
    after = next((row for prefix, row in found.p.items() if prefix), uniform)
    assert distance(defect, found.p[()], found.q.get((), uniform), found.q.get((-1,), after)) > 0


@each
def test_fewer_tokens_do_not(defect: Defect) -> None:
    """Kills the belief that two tokens are enough: where the table says three, z3 proves two blind."""
    size, _, _ = SMALLEST[defect.name]
    if size == 2:
        assert smallest(defect, 1) is None  # with one token there is one law
    else:
        assert difference(size - 1, defect.drafter, defect.rule) is None


@each
def test_the_smallest_rows(defect: Defect) -> None:
    """Kills a table entry that is not the smallest or not the worst: every row with that denominator is tried."""
    size, denominator, tv = SMALLEST[defect.name]
    found = smallest(defect, size)
    assert found is not None
    assert (found.denominator, found.tv) == (denominator, Fraction(tv))


def test_every_class_of_the_catalogue_is_here_or_has_a_reason() -> None:
    """Kills a new class that nobody looked for a smallest model of, and a reason for a class that is gone."""
    classes = {bug.law_class for bug in all_bugs()}
    outside = {name for names in OUTSIDE.values() for name in names}
    shown = {defect.name for defect in DEFECTS}
    assert classes - shown == outside
    assert not shown & outside
