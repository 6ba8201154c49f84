"""The total variation that a test detects with probability 0.99: of the e-process, and of the chi-square test."""

import numpy as np


def ends_wealth(draws: float, alpha: float, choices: float) -> float:
    """The TV d at which an e-process ends with probability 0.99 after learning which of so many choices pays.

    It must gain log(1/alpha) nats, and log(choices) for the share of the wealth that each choice got. The log
    likelihood ratio of n draws at distance d from an even split has mean 2 d^2 n and variance 4 d^2 n.
    """
    z, need = 2.33, np.log(1 / alpha) + np.log(choices)
    root = (z + np.sqrt(z**2 + 2 * need)) / 2  # solves 2 d^2 n - 2 z d sqrt(n) = need for d sqrt(n)
    return float(min(1.0, root / np.sqrt(max(draws, 1.0))))


def detectable_tv(n: int, cells: int, alpha: float, power: float = 0.99) -> float:
    """The least TV that a chi-square test over `cells` equal cells rejects with this power, whatever its shape.

    At total variation d the non-centrality is smallest when the deviation is spread evenly, +-2d/cells per cell (for an
    odd number of cells, a little more), where it is 4 n d^2. A TV above 1 means that nothing would be seen.
    """
    from scipy.optimize import brentq  # these take a second to import, and no audit has need of them
    from scipy.stats import chi2, ncx2

    if cells < 2:
        raise ValueError(f"a test has at least two cells, got {cells}")
    freedom = cells - 1
    threshold = chi2.isf(alpha, freedom)
    root = brentq(lambda shift: ncx2.sf(threshold, freedom, shift) - power, 1e-9, 1e6)
    return float(np.sqrt(root / (4.0 * n)))
