"""The smallest witness of a violation: the smallest run that `replay` shows to be violated again is the finding."""

from collections.abc import Iterator
from time import monotonic
from typing import Any

import msgspec

from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.kernel.campaign import Campaign, End
from refengine.audit.kernel.diagnosis import diagnose
from refengine.audit.kernel.replay import FRESH_CALLS, CutCase, Replay, made_again
from refengine.audit.kernel.request import Request
from refengine.evidence.naming import BROKEN_CONTRACT
from refengine.report.finding import Finding, Recipe

MAX_WITNESS_CALLS = 16384  # of a witness that is smaller than what the audit used
ROOM = 4  # times the calls and the time, of an audit that is its own witness
NATS_OF_A_WITNESS = 60.0  # that a candidate's calls should be worth, at the rate at which its evidence grew


def smallest(
    request: Request, campaign: Campaign, end: End, until: float, notes: list[str], most: int | None = None
) -> Finding:
    """The finding about the violation that ended a campaign, with the smallest witness that replays within the time.

    most  calls of one try, of a slow subject: two tries are made then; None: as many as it takes
    """
    calls = campaign.calls
    diagnosis = BROKEN_CONTRACT if end.kind == "broken" else diagnose(campaign)
    fresh = {} if most is None else {"fresh": min(FRESH_CALLS, most)}
    for attempt in attempts(campaign, end, most):
        asked = _asked(request, found_after=calls, diagnosis=diagnosis, notes=notes, **fresh, **attempt)
        finding = made_again(asked)
        if finding.verdict == "violated":
            second = made_again(asked)
            if second == finding:
                return finding
            # A subject with noise of its own comes out otherwise each time: then only the verdict can be compared.
            if second.verdict == "violated":
                return msgspec.structs.replace(finding, replay="statistical")
        if monotonic() > until:
            break
    return unrepeated(request, campaign, end, calls, diagnosis, notes)


def _asked(request: Request, **witness: Any) -> Replay:
    audited = {name: value for name, value in request.arguments().items() if name != "calls"}
    return Replay(**{**audited, "seconds": request.limit}, **witness)


def attempts(campaign: Campaign, end: End, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The witnesses to try, the smallest first: kind, case, start and calls of a Replay."""
    if end.kind == "rejected":
        for cut, calls in candidates(campaign) if most is None else few_candidates(campaign, most):
            yield {"kind": "sequence", "case": cut, "start": 0, "calls": calls}
        return
    item = campaign.cases[end.case].case
    one_call = {"kind": "call", "case": CutCase(end.case, item.gamma, item.lanes)}
    yield {**one_call, "start": end.call, "calls": 1}
    yield {**one_call, "start": 0, "calls": end.call + 1}  # it takes the calls before it
    noisy = 8 * (end.call + 512)  # it has noise of its own
    yield {**one_call, "start": 0, "calls": noisy if most is None else max(end.call + 1, min(noisy, most))}


def unrepeated(request: Request, campaign: Campaign, end: End, calls: int, diagnosis: str, notes: list[str]) -> Finding:
    """The audit showed it and no smaller run did: the audit itself is the witness, given room for other noise and a
    slower machine."""
    again = {**request.arguments(), "calls": ROOM * calls, "seconds": None}
    return request.finding(
        "violated",
        f"sequential evidence, alpha {request.alpha:g}, {calls} calls over {len(campaign.cases)} inputs",
        Recipe(function="refengine.audit.kernel.audit:audit_again", arguments=again),
        witness={"seed": request.seed, "calls": calls, "case": end.case, "what": end.message or "the whole audit"},
        diagnosis=diagnosis,
        notes=[*notes, "No smaller run than the audit showed it again."],
        replay="statistical",
    )


def of_law(request: Request, name: str, diagnosis: str, notes: list[str]) -> Finding:
    """The finding about an exact law that is not the target's."""
    item = next(item for item in exact_cases(request.signature == "verify_batch") if item.name == name)
    cut = CutCase(name, item.gamma, item.lanes)
    witness: dict[str, Any] = {"kind": "exact", "case": cut, "start": 0, "calls": 0, "found_after": 0}
    return made_again(_asked(request, diagnosis=diagnosis, notes=notes, **witness))


def candidates(campaign: Campaign) -> list[tuple[CutCase, int]]:
    """Inputs on which the evidence grew, cut to ever larger sizes, with calls that should be more than enough."""
    share = campaign.evidence.posterior()

    def growth(name: str) -> float:
        tried = campaign.cases[name]
        return float(share @ tried.evidence.log_wealth[0]) / max(tried.calls, 1)

    best = sorted(campaign.cases, key=growth, reverse=True)[:2]
    found: list[tuple[CutCase, int]] = []
    for name in best:
        item, rate = campaign.cases[name].case, growth(name)
        calls = int(min(MAX_WITNESS_CALLS, NATS_OF_A_WITNESS / max(rate, 1e-6) + 64))
        sizes = {(1, 1), (1, 2), (2, 1), (item.gamma, 1), (item.gamma, item.lanes)}
        if item.cell is not None:  # a call of many ids takes too long for tries
            sizes = {(item.gamma, item.lanes)}
        fitting = sorted((g, n) for g, n in sizes if g <= item.gamma and n <= item.lanes)
        found += [
            (CutCase(name, gamma, lanes), 2 * calls) for gamma, lanes in sorted(fitting, key=lambda s: s[0] * s[1])
        ]
    item = campaign.cases[best[0]].case
    return [*found, (CutCase(best[0], item.gamma, item.lanes), 4 * campaign.cases[best[0]].calls)]


def few_candidates(campaign: Campaign, most: int) -> list[tuple[CutCase, int]]:
    """Two of them, each with at most so many calls: the input on which the evidence grew fastest, at its smallest and
    whole."""
    found = candidates(campaign)
    smallest, whole = found[0], found[-1]
    return [(cut, min(calls, most)) for cut, calls in dict.fromkeys((smallest, whole))]
