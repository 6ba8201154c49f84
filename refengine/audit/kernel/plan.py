"""The plan of an audit: how many calls each stage makes, settled before anything is judged.

Budgets are counts, so that a verdict does not depend on how busy a machine is. The whole plan is that of a quick
subject. One whose calls take long enough that the whole plan would outlast the time limit gets a smaller one: every
count is the largest power of two that fits, so that only a large change of pace changes a plan. After that the clock
decides nothing, unless the machine turns out far slower than its first calls.
"""

import math
from dataclasses import dataclass

SECONDS = 600.0  # in which an audit ends that is given neither a number of calls nor a time
NO_LIMIT_SECONDS = 86_400.0  # where it is given a number of calls
CALLS = {"verify": 50_000, "verify_batch": 10_000, "round": 30_000}  # in which all listed defects but one show
RUNS = 3_000  # of the enumerations together; most verifiers need some 200, and one that rejects in a loop never ends
AGREEING_CALLS = 2_000  # sampled calls that an enumerated law has to agree with before it is believed
REORDERED_CALLS = 16  # that are made in the opposite order too
SHARE_SAMPLED, SHARE_ENUMERATED, SHARE_AGREEING = 0.3, 0.25, 0.02  # of the time; the last for each small input
SHARE_FOR_WITNESS = 0.3  # of the time, kept back for shrinking and replaying


@dataclass(frozen=True)
class Plan:
    """Counts of calls.

    calls      sampled
    runs       of the enumerations of exact laws together
    agreeing   sampled to confirm one exact law
    reordered  made in two orders before that
    whole      whether a quick subject would get no more
    """

    calls: int
    runs: int
    agreeing: int
    reordered: int
    whole: bool


def plan(signature: str, call_seconds: float, seconds: float | None, calls: int | None) -> Plan:
    """What fits into the time; a number of calls that is asked for is not cut by it.

    call_seconds  what one call takes
    seconds       the time limit, SECONDS where there is none
    calls         the number asked for, if any; as many runs are allowed then
    """
    fitting = (SECONDS if seconds is None else seconds) / max(call_seconds, 1e-9)
    wanted = calls or CALLS[signature]
    sampled = wanted if calls else _fit(wanted, SHARE_SAMPLED * fitting)
    agreeing = _fit(AGREEING_CALLS, SHARE_AGREEING * fitting)
    runs = max(_fit(RUNS, SHARE_ENUMERATED * fitting), min(RUNS, calls or 0))
    return Plan(
        calls=sampled,
        runs=runs,
        agreeing=agreeing,
        reordered=min(REORDERED_CALLS, max(2, agreeing // 4)),
        whole=(sampled, runs, agreeing) == (wanted, RUNS, AGREEING_CALLS),
    )


def limit(seconds: float | None, calls: int | None) -> float:
    """The time limit of an audit, in seconds."""
    if seconds is not None:
        return seconds
    return SECONDS if calls is None else NO_LIMIT_SECONDS


def _fit(whole: int, most: float) -> int:
    """`whole`, or the largest power of two that is at most `most`; one at least."""
    return whole if whole <= most else 2 ** max(0, int(math.log2(max(most, 1.0))))
