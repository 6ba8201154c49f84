"""Speculation on, held to speculation off, where the rows of neither are given: a server, or a library's own generate.

Two claims. Greedy: at temperature 0 the tokens are equal, but for ties. Sampling: nothing tells which of two
completions came from which side, whatever the policy is. A side may have noise of its own, so findings are replayed
statistically.
"""

from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from refengine.audit.common import Progress
from refengine.audit.paired.greedy import greedy
from refengine.audit.paired.request import Request, Sides
from refengine.audit.paired.sampling import sampling
from refengine.report.finding import Finding


def beside(request: Request, sides: Sides, at_once: int, progress: Progress) -> list[Finding]:
    """The greedy and the sampling finding, with so many completions under way."""
    until = monotonic() + request.asked.seconds
    with ThreadPoolExecutor(at_once) as pool:
        progress("greedy", 0.0)
        return [greedy(request, sides, pool), sampling(request, sides, pool, at_once, until, progress)]
