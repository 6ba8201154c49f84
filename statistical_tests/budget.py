"""One family-wise budget for the whole suite: whatever is run, a correct build fails with probability at most FAMILY.

Every test gets ALPHA, and says what it could have seen. Seeds are fixed, so a second run is identical; ALPHA is what a
fresh seed would risk. Changing a seed to get green is a defect.
"""

import os
import random

import pytest

from refengine.evidence.alpha import ALPHA as FAMILY
from refengine.source_tree import commit_seed

TESTS = 1000  # at least as many as there are; test_budget.py counts them
ALPHA = FAMILY / TESTS
STATEMENT = "null:"  # how a line of `state` begins
HOW_TO_READ = (
    "Each line is a test that passed. null: what it takes for true. n: tokens, rounds or picks that were counted.",
    "alpha: with this probability at most it fails though the null is true. A total variation of the size at the end",
    "(TV: the largest error in the probability of any event; 0 if the laws are equal) fails it with probability 0.99.",
    "coin by coin: the loop's answer to a coin is compared with the definition's: a TV of d shows after about 1 / d.",
)
# Every large sample has a long version, ten times as many: `-m "stat and long"`. What one run of it stated is kept in
# benchmarks/results/stat_long.txt.
SCALES = [pytest.param(1, id="once"), pytest.param(10, id="tenfold", marks=pytest.mark.long)]


def drawn(drafters: list[str]) -> list[str]:
    """All of them; where LOOP_DRAFTERS is a number, so many, others at every commit: their loops take half of the time
    of the suite, and what a change must pass has a limit."""
    count = int(os.environ.get("LOOP_DRAFTERS") or len(drafters))
    chosen = set(random.Random(commit_seed()).sample(drafters, min(count, len(drafters))))
    return [drafter for drafter in drafters if drafter in chosen]


def state(null: str, n: int, detectable: float, alpha: float = ALPHA, what: str = "a TV of") -> None:
    """What every test prints."""
    print(f"{STATEMENT} {null}; n = {n}; alpha = {alpha:.2g}; {what} {detectable:.2g} is seen with probability 0.99")
