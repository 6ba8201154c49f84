"""A violation made small: every violated finding is what `replay` returns for the smallest run that shows it again."""

from collections.abc import Iterator
from time import monotonic
from typing import Any

import msgspec

from refengine.audit.common import CLAIM, SOURCE
from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.kernel.campaign import Drive, End
from refengine.audit.kernel.diagnosis import diagnose
from refengine.audit.kernel.replay import Small, replay
from refengine.audit.kernel.request import Request, identity
from refengine.evidence.naming import BROKEN_CONTRACT
from refengine.report.finding import Finding, Recipe

MOST_CALLS = 16384  # of a witness that is smaller than what the audit used
MORE = 4  # times the calls and the time, of an audit that is its own witness


def smallest(request: Request, drive: Drive, end: End, until: float, notes: list[str]) -> Finding:
    """The finding about a violation that `drive` met, with the smallest witness that replays within the time."""
    calls = drive.calls
    diagnosis = BROKEN_CONTRACT if end.kind == "broken" else diagnose(drive)
    given = {**request.arguments(), "found_after": calls, "diagnosis": diagnosis, "notes": notes}
    for attempt in attempts(drive, end):
        again = {**given, **attempt}
        (finding,) = replay(**again)
        if finding.verdict == "violated":
            (second,) = replay(**again)
            if second == finding:
                return finding
            # A subject with noise of its own comes out otherwise each time: then only the verdict can be asked for.
            if second.verdict == "violated":
                return msgspec.structs.replace(finding, replay="statistical")
        if monotonic() > until:
            break
    return unrepeated(request, drive, end, calls, diagnosis, notes)


def attempts(drive: Drive, end: End) -> Iterator[dict[str, Any]]:
    """What to replay, the smallest first."""
    item = drive.cases[end.case].case
    whole = Small(end.case, item.gamma, item.lanes).__dict__
    if end.kind == "rejected":
        for small, calls in candidates(drive):
            yield {"kind": "sequence", "case": small.__dict__, "start": 0, "calls": calls}
        return
    yield {"kind": "call", "case": whole, "start": end.call, "calls": 1}
    yield {"kind": "call", "case": whole, "start": 0, "calls": end.call + 1}  # it takes the calls before it
    yield {"kind": "call", "case": whole, "start": 0, "calls": 8 * (end.call + 512)}  # it has noise of its own


def unrepeated(request: Request, drive: Drive, end: End, calls: int, diagnosis: str, notes: list[str]) -> Finding:
    """The audit saw it and no smaller run did: the audit itself is the witness, given room for other noise and a slower
    machine."""
    again = {**request.arguments(), "calls": MORE * calls, "seconds": MORE * request.seconds}
    return Finding(
        id=identity(request),
        subject=request.subject,
        claim=CLAIM,
        source=SOURCE,
        verdict="violated",
        role="subject",
        method=f"sequential evidence, alpha {request.alpha:g}, {calls} calls over {len(drive.cases)} inputs",
        recipe=Recipe(function="refengine.audit.kernel.audit:audit_again", arguments=again),
        witness={"seed": request.seed, "calls": calls, "case": end.case, "what": end.message or "the whole audit"},
        diagnosis=diagnosis,
        notes=[*notes, "No smaller run than the audit showed it again."],
        replay="statistical",
    )


def of_law(request: Request, name: str, diagnosis: str, notes: list[str]) -> Finding:
    """The finding about an exact law that is not the target's."""
    item = next(item for item in exact_cases(request.signature == "verify_batch") if item.name == name)
    found: dict[str, Any] = {"found_after": 0, "diagnosis": diagnosis, "notes": notes}
    what = {"kind": "exact", "case": Small(name, item.gamma, item.lanes).__dict__, "start": 0, "calls": 0}
    return replay(**{**request.arguments(), **found, **what})[0]


def candidates(drive: Drive) -> list[tuple[Small, int]]:
    """Inputs on which the evidence grew, cut to ever larger sizes, with calls that should be more than enough."""
    share = drive.evidence.posterior()

    def growth(name: str) -> float:
        progress = drive.cases[name]
        return float(share @ progress.evidence.log_wealth[0]) / max(progress.calls, 1)

    best = sorted(drive.cases, key=growth, reverse=True)[:2]
    out: list[tuple[Small, int]] = []
    for name in best:
        item, rate = drive.cases[name].case, growth(name)
        calls = int(min(MOST_CALLS, 60.0 / max(rate, 1e-6) + 64))
        sizes = {(1, 1), (1, 2), (2, 1), (item.gamma, 1), (item.gamma, item.lanes)}
        if item.cell is not None:  # a call of many ids takes too long for tries
            sizes = {(item.gamma, item.lanes)}
        fitting = sorted((g, n) for g, n in sizes if g <= item.gamma and n <= item.lanes)
        out += [(Small(name, gamma, lanes), 2 * calls) for gamma, lanes in sorted(fitting, key=lambda s: s[0] * s[1])]
    item = drive.cases[best[0]].case
    return [*out, (Small(best[0], item.gamma, item.lanes), 4 * drive.cases[best[0]].calls)]
