"""The claim about a verifier with known rows; the progress of an audit, and the plot of its evidence."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

CLAIM = "Each emitted token is distributed as the target's row after what was emitted before it."
CONTRACT_CLAIM = "A call answers with the tokens that it emits, in the form that its signature names."
SOURCE = "Leviathan et al. 2023, App. A.1; Chen et al. 2023, Theorem 1"
MAX_UNSEEN_TV = 0.5  # an audit that would not see this total variation is not tested instead of consistent
PLOT_POINTS = 200
Progress: TypeAlias = Callable[[str, float], None]  # (activity, share of it that is done)


def thinned(curve: Sequence[tuple[int, float]]) -> dict[str, list[Any]]:
    """(draws, log evidence) as the table of a plot; rounded, since no verdict depends on it."""
    kept = curve[:: max(1, len(curve) // PLOT_POINTS)]
    return {"draws": [n for n, _ in kept], "log10_wealth": [round(log / float(np.log(10)), 2) for _, log in kept]}
