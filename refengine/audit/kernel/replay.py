"""A violation made again, in a fresh process: what a violated finding says, and what `rerun` asks for.

Three kinds of witness:

    exact     an input on which the enumerated law is not the target's
    call      one call that emits a token of probability zero, or an answer that is no list of tokens
    sequence  calls 0 .. n - 1 of one small input, whose evidence alone reaches 1/alpha
"""

from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from refengine.audit.common import CLAIM, SOURCE
from refengine.audit.inputs.case import Case
from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel.campaign import Drive
from refengine.audit.kernel.exact_law import ExactLaw, exact_law
from refengine.audit.kernel.history import features
from refengine.audit.kernel.request import Request, identity, opened
from refengine.audit.magnitude import at_least, small_mass
from refengine.audit.sandbox.child import Child
from refengine.evidence.distance import mean_tv_at_least, tv_at_least
from refengine.evidence.e_process import CaseEvidence, Evidence
from refengine.evidence.fixed_bets import BALL
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe

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
            recipe=Recipe(function=f"{__name__}:replay", arguments=recipe),
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
    magnitude: Magnitude | None
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
    tv = _impossible_share(drive, item) if breaks else 0.0
    return Seen({"call": end.call}, at_least(tv, breaks_mask=breaks), shown)


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
    shown: dict[str, Any] = {"told by": name, "their share": f"{hits} of {draws}", "expected share": round(mass, 6)}
    if at_one:
        shown |= {"group": group, "cells that come too often": np.flatnonzero(often[group]).tolist()}
    numbers = {"calls": used, "log_evidence": Quantity(value=evidence, tolerance=0.01)}
    return Seen(numbers, at_least(max(bounds)), shown)


def _inputs(item: Case, small: Small) -> dict[str, Any]:
    """The input as a reader wants it: rows where they are short."""
    shown: dict[str, Any] = {**small.__dict__, "vocabulary": item.width, "contexts": item.contexts}
    if item.width <= 8 and item.contexts == 1:
        shown["p"] = np.round(item.p[0, :, 0], 6).tolist()
        shown["q"] = np.round(item.q[0, :, 0], 6).tolist()
    return shown
