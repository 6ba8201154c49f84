"""Speculation on, compared with speculation off: a server, or a library's own generate.

Two claims. Greedy: at temperature 0 the tokens are equal, but for ties. Sampling: the completions of both sides have
one law, whatever the policy is. A side may have noise of its own, so findings are replayed statistically.
"""

from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from refengine.audit.common import Progress
from refengine.audit.paired.comparison import Comparison, Sides
from refengine.audit.paired.greedy import greedy
from refengine.audit.paired.sampling import sampling
from refengine.report.finding import Finding


def compare(comparison: Comparison, sides: Sides, at_once: int, progress: Progress) -> list[Finding]:
    """The greedy and the sampling finding. at_once: completions that are requested at a time."""
    until = monotonic() + comparison.settings.seconds
    with ThreadPoolExecutor(at_once) as pool:
        progress("greedy", 0.0)
        return [greedy(comparison, sides, pool), sampling(comparison, sides, pool, at_once, until, progress)]
