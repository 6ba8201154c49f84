"""Small inputs whose whole law is enumerated."""

import numpy as np

from refengine.audit.inputs.case import Case, case, rolled, same


def exact_cases(batch: bool) -> list[Case]:
    """Small inputs whose whole law is enumerated: hard zeros at either end, rows that differ, values that round."""
    if batch:
        half = case("exact, two lanes", rolled([0.7, 0.3], 2, 2, 1, 1), same([0.4, 0.6], 2, 1))
        return [half, *(item for item in exact_cases(False) if item.gamma == 1)]
    p = np.array([[0.1, 0.2, 0.4, 0.3], [0.15, 0.0, 0.5, 0.35], [0.25, 0.45, 0.3, 0.0]])[None, :, None]
    q = np.array([[0.4, 0.3, 0.1, 0.2], [0.25, 0.25, 0.25, 0.25]])[None, :, None]
    zeros = case("exact, zeros in the middle", p, q)
    ends = case("exact, zeros at the ends", same([0, 0.55, 0.45, 0], 1, 2), same([0.3, 0.4, 0.1, 0.2], 1, 1))
    generator = np.random.default_rng(20261123)
    table = generator.dirichlet(np.ones(2), size=(1, 7, 2))
    path = case("exact, two contexts", table[:, :4], table[:, 4:])
    rounding = case(
        "exact, rounding",
        np.array([0.3137, 0.2711, 0.1953, 0.1171, 0.0731, 0.0297])[None, None, None].repeat(2, axis=1),
        np.array([0.0213, 0.0877, 0.1319, 0.1871, 0.2593, 0.3127])[None, None, None],
    )
    # What is cut from the tail of a row, or done to a residual that is next to nothing, shows in an exact law.
    close, to = [0.5, 0.499195, 5.5e-4, 2e-4, 5e-5, 5e-6], [0.4995, 0.4998, 4e-4, 2.3e-4, 2e-5, 5e-5]
    near = case("exact, nearly equal", same(close, 1, 2), same(to, 1, 1))
    return [ends, rounding, near, zeros, path]
