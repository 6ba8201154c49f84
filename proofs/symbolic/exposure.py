"""Exposure bias in the smallest model that has it: a drafter on the target's path, or off it.

On the path it errs with probability eps and leaves it. Off the path, a drafter that was trained on the target's own
contexts only was never told what to do: it errs always. One trained on its own roll-outs knows these contexts too and
errs there with probability eps2; without an error it is back.
"""

import random
from fractions import Fraction
from typing import Any

Number = Any


def loss(step: int, eps: Number, off: Number) -> Number:
    """P(error at step `step`), step 1 first, when an error on the path has chance eps and off it `off`."""
    astray, error = 0, eps
    for _ in range(step):
        error = (1 - astray) * eps + astray * off
        astray = error  # an error leads off the path, its absence leads back
    return error


def simulate(step: int, eps: Fraction, off: Fraction, trials: int, seed: int) -> float:
    """The share of `trials` roll-outs that err at step `step`."""
    source, errors = random.Random(seed), 0
    for _ in range(trials):
        astray = False
        for _ in range(step):
            astray = source.random() < (off if astray else eps)
        errors += astray
    return errors / trials
