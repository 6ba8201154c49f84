"""Step: a part of a report, which makes some of its findings."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from refengine.report.finding import Finding


@dataclass(frozen=True)
class Step:
    """A part of a report, the unit of the journal: seconds of work, at best one finding.

    name    unique in a report
    run     makes the findings; it is pickled
    place   steps of one place run one after the other in one process, because they share what it remembers: loaded
            networks, a fork server, a test run
    digest  what its findings are computed from, as it is now; None where they are made each time anew
    """

    name: str
    run: Callable[[], Iterable[Finding]]
    place: str = ""
    digest: Callable[[], str] | None = None
