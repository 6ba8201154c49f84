"""What a verifier with known rows promises, and what every audit shows: its progress, and the plot of its evidence."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

CLAIM = "Each emitted token is distributed as the target's row after what was emitted before it."
SOURCE = "Leviathan et al. 2023, Theorem 1; Chen et al. 2023, Theorem 1"
TOO_LITTLE = 0.5  # a consistent audit would have seen a smaller total variation than this
POINTS = 200  # of the plot
Progress: TypeAlias = Callable[[str, float], None]  # (what is going on, how much of it is done)


def thinned(curve: Sequence[tuple[int, float]]) -> dict[str, list[Any]]:
    """(draws, log evidence) as the table of a plot; rounded, since it is not a number anybody relies on."""
    kept = curve[:: max(1, len(curve) // POINTS)]
    return {"draws": [n for n, _ in kept], "log10_wealth": [round(log / float(np.log(10)), 2) for _, log in kept]}
