"""The exponential race: argmax of w_i / E_i, E_i exponential, is i with probability w_i / sum(w).

Its logarithm is the Gumbel-max trick (Maddison, Tarlow, Minka, "A* sampling", 2014, section 2).

Samplers write it in many ways: probs / empty.exponential_(), logits - log(-log(u)), log(p) + gumbel. All have the form
x_i = g(w_i / E_i) with one increasing g. So w_i is proportional to the E_i at which x_i passes a level c, and the form
holds iff these proportions are the same at every level; two levels are compared.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from refengine.audit.interception.uniforms import Unmodelled

# x is mostly float32: its level sets are known to about 2^-22 relative, and so are the weights.
FORM_TOLERANCE = 1e-5
SHARE_TOLERANCE = 1e-7  # of all the weight: a tenth of the null's ball (fixed_bets.py); light entries run in few digits
STEP = 2.0**-13  # of an exponential, at which an entry must move: else its values are few, and ties decide
LEVELS = 5.0, 60.0  # exponentials of the heaviest entry: a lighter one's are smaller, and 1 - exp(-E) still says them
SMALLEST, LARGEST = 1e-14, 700.0  # exponentials between which a level is looked for: exp(-E) must stay a float64


def race_weights(entries: Callable[[Tensor], Tensor], owners: list[int], uniforms: int) -> list[float]:
    """Weights of the entries of one race: `entries(table of uniforms)` gives x, whose entry i depends on owners[i]."""

    def x_at(exponentials: list[float]) -> list[float]:
        table = torch.full((uniforms + 1,), 0.5, dtype=torch.float64)
        table[owners] = torch.tensor([math.exp(-e) for e in exponentials], dtype=torch.float64)
        return [float(x) for x in entries(table).double()]

    fast, typical, slow = (x_at([e] * len(owners)) for e in (1e-3, 1.0, 30.0))
    if any(math.isnan(x) for x in typical) or any(f < s for f, s in zip(fast, slow, strict=True)):
        raise Unmodelled("an argmax of random numbers that is not an exponential race")
    running = [f > s for f, s in zip(fast, slow, strict=True)]  # a weight of zero never moves
    if any(_stands(x_at(near), x_at([e * (1 + STEP) for e in near]), running) for near in _ladder(len(owners))):
        raise Unmodelled("an argmax of random numbers that take few values")
    if not any(running):
        raise Unmodelled("an argmax of random numbers in which a constant can win")
    heaviest = max((i for i, moves in enumerate(running) if moves), key=lambda i: typical[i])
    levels = [x_at([e] * len(owners))[heaviest] for e in LEVELS]
    if any(x > min(levels) for x, moves in zip(typical, running, strict=True) if not moves):
        raise Unmodelled("an argmax of random numbers in which a constant can win")
    first, second = (_crossings(x_at, running, level) for level in levels)
    for a, b in zip(first, second, strict=True):
        if abs(a - b) > FORM_TOLERANCE * (a + b) + SHARE_TOLERANCE:
            raise Unmodelled("an argmax of random numbers that is not an exponential race")
    return first


def _ladder(entries: int) -> list[list[float]]:
    """Typical values of exponentials, the same for all entries."""
    return [[0.1 * 1.7**k] * entries for k in range(8)]


def _stands(before: list[float], after: list[float], running: list[bool]) -> bool:
    return any(moves and a == b for a, b, moves in zip(before, after, running, strict=True))


def _crossings(x_at: Callable[[list[float]], list[float]], running: list[bool], level: float) -> list[float]:
    """The exponential at which each entry passes `level`, as a share of all; zero for entries that stand still."""
    low, high = [math.log(SMALLEST)] * len(running), [math.log(LARGEST)] * len(running)
    for _ in range(60):
        middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        above = [x > level for x in x_at([math.exp(m) for m in middle])]
        low = [m if up else a for m, up, a in zip(middle, above, low, strict=True)]
        high = [b if up else m for m, up, b in zip(middle, above, high, strict=True)]
    crossing = [math.exp(a) if moves else 0.0 for a, moves in zip(low, running, strict=True)]
    return [c / sum(crossing) for c in crossing]
