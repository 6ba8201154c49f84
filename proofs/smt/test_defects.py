"""Each class of defects: z3 finds rows that show it, and proves that fewer tokens cannot.

The table in `smallest.py` says how small a test may be: with two tokens nothing can see a replacement that is drawn
with the acceptance's own coin, because only one token is left to be drawn.
"""

from fractions import Fraction

import pytest

pytest.importorskip("z3", reason="not tested: z3-solver is not installed")

from proofs.smt.defects import DEFECTS, Defect
from proofs.smt.judge import difference
from proofs.smt.smallest import SMALLEST, distance, smallest

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
