"""A violation made small, and made again: every violated finding is what `replay` returns.

Three kinds of witness:

    exact     an input on which the enumerated law is not the target's
    call      one call that emits a token of probability zero, or an answer that is no list of tokens
    sequence  calls 0 .. n - 1 of one small input, whose evidence alone reaches 1/alpha
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

import msgspec
import numpy as np

from refengine.audit.case import Case
from refengine.audit.child import Child
from refengine.audit.doubt import explains, seen
from refengine.audit.drive import Drive, End
from refengine.audit.exact_cases import exact_cases
from refengine.audit.excess import small_mass
from refengine.audit.explain import OF_POSITIONS, OF_ROWS
from refengine.audit.laws import ExactLaw, exact_law
from refengine.audit.past import ABOVE, FURTHER_BACK, ROUND_BEFORE, features
from refengine.audit.promise import CLAIM, SOURCE
from refengine.audit.request import Request, identity, opened
from refengine.audit.schedule import cases
from refengine.evidence.bets import BALL
from refengine.evidence.distance import mean_tv_at_least, tv_at_least
from refengine.evidence.sequential import ALONE, EVERYWHERE, LISTED, ONE_COIN, CaseEvidence, Evidence
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe

DIAGNOSIS_CALLS, FEW_CALLS = 2000, 4  # over all inputs, and of each that has many ids
MOST_CALLS = 16384  # of a witness that is smaller than what the audit used
# What a feature of the past says, where what is emitted depends on it.
SHARED = {
    "the token before": OF_POSITIONS,
    **{feature: OF_ROWS for where in ABOVE for feature in (f"the same place {where}", f"so far {where}")},
    **dict.fromkeys(ROUND_BEFORE, "unlisted: a round depends on the one before, so a coin or a state is shared"),
    FURTHER_BACK: "unlisted: a round depends on one further back, so a coin or a state is shared",
    "the number of the call": "unlisted: what is emitted depends on the number of the call, so a state is kept",
}
FRESH_CALLS, FRESH_WIDE = 2000, 200  # at least, for the lower bound on the total variation; of many ids
CONFIDENCE = 0.999  # of that bound


@dataclass(frozen=True)
class Small:
    """A case cut to a size."""

    case: str
    gamma: int
    lanes: int

    def item(self, signature: str) -> Case:
        known = {item.name: item for item in [*cases(), *exact_cases(signature == "verify_batch")]}
        if self.case not in known:
            raise ValueError(f"no input is called {self.case!r}")
        return known[self.case].cut(self.gamma, self.lanes)


def smallest(request: Request, drive: Drive, end: End, until: float, notes: list[str]) -> Finding:
    """The finding about a violation that `drive` met, with the smallest witness that replays within the time."""
    calls = drive.calls
    diagnosis = "the contract" if end.kind == "broken" else diagnose(drive)
    given = {**request.arguments(), "found_after": calls, "diagnosis": diagnosis, "notes": notes}
    for attempt in attempts(drive, end):
        again = {**given, **attempt}
        (finding,) = replay(**again)
        if finding.verdict == "violated":
            # A subject with noise of its own comes out otherwise each time: then only the verdict can be asked for.
            return finding if replay(**again) == [finding] else msgspec.structs.replace(finding, replay="statistical")
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
    """The audit saw it and no smaller run did: the audit itself is the witness."""
    return Finding(
        id=identity(request),
        subject=request.subject,
        claim=CLAIM,
        source=SOURCE,
        verdict="violated",
        role="subject",
        method=f"sequential evidence, alpha {request.alpha:g}, {calls} calls over {len(drive.cases)} inputs",
        recipe=Recipe(function="refengine.audit.kernel:audit_kernel", arguments=request.arguments()),
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


def diagnose(drive: Drive) -> str:
    """The listed defects that explain what was emitted; some more calls of every input tell them apart, and from what
    nobody listed."""
    told = [name for name in drive.cases if name not in drive.skipped]
    for name in told:
        few = drive.cases[name].case.cell is not None  # a call of many ids takes long
        drive.run(name, FEW_CALLS if few else DIAGNOSIS_CALLS // len(drive.cases), stop=False)
    names, posterior = drive.evidence.components(), drive.evidence.posterior()
    likely = [i for i in np.argsort(-posterior) if posterior[i] > 0.2]
    listed = [names[i] for i in likely if i < len(LISTED)]
    met = [drive.cases[name] for name in told if drive.cases[name].calls]
    listed = [name for name in listed if name == ONE_COIN or explains(name.removesuffix(", seldom"), met)]
    if listed:
        return " or ".join(listed)
    feature = names[likely[0]].removeprefix(EVERYWHERE).removeprefix(ALONE) if likely else ""
    return SHARED.get(feature, seen(met))


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


# --- replay ----------------------------------------------------------------------------------------------------------


def replay(
    subject: str,
    signature: str,
    path: str | None,
    seed: int,
    alpha: float,
    seconds: float,
    kind: str,
    case: dict[str, Any],
    start: int,
    calls: int,
    found_after: int,
    diagnosis: str,
    notes: list[str],
) -> list[Finding]:
    """Make the finding again in a fresh process: [finding], consistent where the violation does not come back."""
    request, small = Request(subject, signature, path, seed, alpha, seconds, None), Small(**case)
    recipe = {k: v for k, v in locals().items() if k in REPLAYED}
    item = small.item(signature)
    with opened(request) as child:
        seen = _again(child, request, item, kind, start, calls)
    violated = seen is not None
    return [
        Finding(
            id=identity(request),
            subject=subject,
            claim=CLAIM,
            source=SOURCE,
            verdict="violated" if violated else "consistent",
            role="subject",
            method=METHODS[kind].format(alpha=alpha, calls=calls, case=item.name),
            recipe=Recipe(function="refengine.audit.witness:replay", arguments=recipe),
            numbers={"found_after_calls": found_after, **(seen.numbers if seen else {})},
            magnitude=seen.magnitude if seen else None,
            witness={**_inputs(item, small), "seed": seed, "start": start, "calls": calls, **seen.shown}
            if seen
            else None,
            diagnosis=diagnosis,
            notes=notes,
        )
    ]


REPLAYED = (
    "subject signature path seed alpha seconds kind case start calls found_after diagnosis notes".split()  # noqa: SIM905
)
METHODS = {
    "exact": "exact law of one call: the subject's random calls were intercepted and enumerated on input {case!r}",
    "call": "one call on input {case!r}",
    "sequence": "sequential evidence, alpha {alpha:g}, at most {calls} calls of input {case!r} alone",
}


@dataclass(frozen=True)
class Seen:
    """A violation as it came out."""

    numbers: dict[str, Any]
    magnitude: Magnitude
    shown: dict[str, Any]


def _again(child: Child, request: Request, item: Case, kind: str, start: int, calls: int) -> Seen | None:
    drive = Drive(child, request.signature, request.seed, request.alpha, monotonic() + request.seconds)
    drive.add(item)
    if kind == "exact":
        reply = child.ask({"op": "exact", "name": item.name, "seconds": request.seconds}, 2 * request.seconds)
        return _exact_seen(exact_law(item, reply.value)) if reply.ok and "outcomes" in reply.value else None
    drive.cases[item.name].calls = start
    end = drive.run(item.name, calls)
    if end is None or end.kind in ("clock", "raised", "hang", "killed", "adapter"):
        return None
    if end.kind == "rejected":
        return _sequence_seen(drive, item, calls)
    shown = {"call": end.call, "lane": end.lane, "what": end.message, **drive.last_call(end)}
    breaks = end.kind == "impossible"
    tv = Quantity(value=_impossible_share(drive, item) if breaks else 0.0, tolerance=0.0)
    return Seen({"call": end.call}, Magnitude(tv=tv, exact=False, breaks_mask=breaks), shown)


def _impossible_share(drive: Drive, item: Case) -> float:
    """A lower bound on the TV at the place where a token without mass was seen, from fresh calls."""
    place = int((drive.cases[item.name].evidence.counts[0] * (drive.cases[item.name].evidence.p == 0)).sum(1).argmax())
    fresh = _fresh(drive, item, _fresh_calls(item))
    counts = fresh.counts[0, place]
    return tv_at_least(int(counts[fresh.p[place] == 0].sum()), int(counts.sum()), 0.0, CONFIDENCE)


def _fresh_calls(item: Case) -> int:
    return FRESH_CALLS if item.cell is None else FRESH_WIDE


def _fresh(drive: Drive, item: Case, calls: int) -> CaseEvidence:
    """The evidence of calls that nobody has looked at yet."""
    fresh = CaseEvidence(item.p, item.q, features(item), sizes=item.sizes)
    drive.cases[item.name].evidence = fresh
    drive.evidence = Evidence(tuple(features(item)), drive.alpha, {item.name: fresh})
    drive.run(item.name, calls, stop=False)
    return fresh


def _exact_seen(law: ExactLaw) -> Seen | None:
    if not law.violates():
        return None
    worst, impossible = law.worst, law.impossible.impossible
    tv = Quantity(value=worst.tv, tolerance=1e-7)  # the subject's own float32 rounding, another machine's kernels
    within = worst.tv <= BALL
    if within:  # what the law is off by is rounding, but for what cannot be: that mass bounds it from below
        worst, tv = law.impossible, small_mass(impossible)
    shown = {
        "lane": worst.lane,
        "position": worst.position,
        "emitted": list(worst.emitted),
        "law": [round(x, 6) for x in worst.law],
        "null": [round(x, 6) for x in worst.null],
    }
    numbers = {"runs": law.runs, "impossible_mass": small_mass(impossible)}
    return Seen(numbers, Magnitude(tv=tv, exact=not within, breaks_mask=impossible > 0), shown)


def _sequence_seen(drive: Drive, item: Case, calls: int) -> Seen:
    """The evidence, and a lower bound on the TV from as many fresh calls again: that at one place and past, or the mean
    over all of them, which is more where rows or positions depend on one another and each is right by itself."""
    first = drive.cases[item.name].evidence
    used = drive.cases[item.name].calls
    name, learner = max(first.learners.items(), key=lambda entry: float(np.max(entry[1].log_wealth())))
    group, often = learner.strongest()
    evidence = drive.evidence.log_evidence()
    fresh = _fresh(drive, item, max(used, _fresh_calls(item))).learners[name]
    one, all_of_them = fresh.share(group, often), fresh.shares(often)
    half = (1.0 + CONFIDENCE) / 2.0  # of two bounds either may be wrong
    bounds = tv_at_least(*one, half), mean_tv_at_least(*all_of_them, half)
    at_one = bounds[0] >= bounds[1]
    hits, draws, mass = one if at_one else all_of_them
    tv = Quantity(value=max(bounds), tolerance=0.0)
    shown: dict[str, Any] = {"told by": name, "their share": f"{hits} of {draws}", "expected share": round(mass, 6)}
    if at_one:
        shown |= {"group": group, "cells that come too often": np.flatnonzero(often[group]).tolist()}
    numbers = {"calls": used, "log_evidence": Quantity(value=evidence, tolerance=0.01)}
    return Seen(numbers, Magnitude(tv=tv, exact=False), shown)


def _inputs(item: Case, small: Small) -> dict[str, Any]:
    """The input as a reader wants it: rows where they are short."""
    shown: dict[str, Any] = {**small.__dict__, "vocabulary": item.width, "contexts": item.contexts}
    if item.width <= 8 and item.contexts == 1:
        shown["p"] = np.round(item.p[0, :, 0], 6).tolist()
        shown["q"] = np.round(item.q[0, :, 0], 6).tolist()
    return shown
