"""The table of smallest rows, by enumeration of every row with small denominators (no z3)."""

from fractions import Fraction

import pytest

from proofs.smt.defects import DEFECTS, Defect
from proofs.smt.outside import OUTSIDE
from proofs.smt.smallest import SMALLEST, smallest
from refengine.bugs.catalogue import all_bugs


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
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
