"""A violation made again, in a fresh process: what a violated finding says, and what `rerun` asks for.

Three kinds of witness:

    exact     an input on which the enumerated law is not the target's
    call      one call that emits a token of probability zero, or an answer that is no list of tokens
    sequence  calls 0 .. n - 1 of one small input, whose evidence alone reaches 1/alpha
"""

from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal, TypeAlias, assert_never

import msgspec
import numpy as np

from refengine.audit.common import CLAIM, CONTRACT_CLAIM
from refengine.audit.inputs.case import Case, turn
from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel.campaign import HANG_SECONDS, Campaign, End
from refengine.audit.kernel.exact_law import ExactLaw, exact_law, target_row
from refengine.audit.kernel.history import features
from refengine.audit.kernel.plan import RUNS
from refengine.audit.kernel.request import Request, opened
from refengine.audit.magnitude import at_least, small_mass
from refengine.audit.sandbox.child import Child
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.distance import mean_tv_at_least, tv_at_least
from refengine.evidence.e_process import CaseEvidence, Evidence
from refengine.evidence.naming import BROKEN_CONTRACT
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe

FRESH_CALLS, FRESH_WIDE_CALLS = 2000, 200  # at least, for the lower bound on the total variation; of many ids
CONFIDENCE = 0.999  # of that bound
LAW_TOLERANCE = 1e-7  # of an exact TV: the subject's own float32 rounding, another machine's kernels
SHOWN_VOCABULARY = 8  # up to which the rows of an input are part of the witness; tokens of a longer row that are shown
STRIKING_SIGMAS = 5.0  # of a token's count, from which on the row is shown where it comes too often or too seldom
Kind: TypeAlias = Literal["exact", "call", "sequence"]
METHODS: dict[Kind, str] = {
    "exact": "exact law of one call: the subject's random calls were intercepted and enumerated on input {case!r}",
    "call": "one call on input {case!r}",
    "sequence": "sequential evidence, alpha {alpha:g}, at most {calls} calls of input {case!r} alone",
}


class CutCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of an input, and the size that it is cut to."""

    case: str
    gamma: int
    lanes: int

    def rows(self, signature: str) -> Case:
        """The input. Raises ValueError where none has that name."""
        known = {item.name: item for item in [*cases(), *exact_cases(signature == "verify_batch")]}
        if self.case not in known:
            raise ValueError(f"no input is called {self.case!r}")
        return known[self.case].cut(self.gamma, self.lanes)


class Replay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A recipe: the arguments of `replay`, which are those of the audit, the witness, and what was said of it."""

    subject: str
    signature: str
    path: str | None
    seed: int
    alpha: float
    seconds: float
    kind: Kind
    case: CutCase
    start: int  # the number of the first call that is made again
    calls: int
    found_after: int  # calls of the audit
    diagnosis: str
    notes: list[str]
    fresh: int = FRESH_CALLS  # at least, of inputs that are not wide

    def request(self) -> Request:
        return Request(self.subject, self.signature, self.path, self.seed, self.alpha, self.seconds, None)


def replay(**arguments: Any) -> list[Finding]:
    """[the finding of a recipe, made again], consistent where the violation does not come back. The arguments are the
    fields of Replay."""
    return [made_again(msgspec.convert(arguments, Replay))]


def made_again(asked: Replay) -> Finding:
    request, item = asked.request(), asked.case.rows(asked.signature)
    with opened(request) as child:
        observed = _observed(child, asked, item)
    method = METHODS[asked.kind].format(alpha=asked.alpha, calls=asked.calls, case=item.name)
    recipe = Recipe(function=f"{__name__}:replay", arguments=msgspec.to_builtins(asked))
    said: dict[str, Any] = {"diagnosis": asked.diagnosis, "notes": asked.notes}
    numbers = {"found_after_calls": asked.found_after}
    if observed is None:
        return request.finding("consistent", method, recipe, numbers=numbers, **said)
    calls = {"seed": asked.seed, "start": asked.start, "calls": asked.calls}
    return request.finding(
        "violated",
        method,
        recipe,
        CONTRACT_CLAIM if asked.diagnosis == BROKEN_CONTRACT else CLAIM,
        numbers={**numbers, **observed.numbers},
        magnitude=observed.magnitude,
        witness={**_inputs(item, asked.case), **calls, **observed.shown},
        **said,
    )


@dataclass(frozen=True)
class Observed:
    """A violation as it came out."""

    numbers: dict[str, Any]
    magnitude: Magnitude | None
    shown: dict[str, Any]


def _observed(child: Child, asked: Replay, item: Case) -> Observed | None:
    campaign = Campaign(child, asked.signature, asked.seed, asked.alpha, monotonic() + asked.seconds)
    campaign.add(item)
    if asked.kind == "exact":
        enumeration = {"op": "exact", "name": item.name, "most": RUNS, "seconds": asked.seconds}
        reply = child.ask(enumeration, HANG_SECONDS)
        return _law_observed(exact_law(item, reply.value)) if reply.ok and "outcomes" in reply.value else None
    fresh = min(asked.fresh, FRESH_CALLS if item.cell is None else FRESH_WIDE_CALLS)
    campaign.cases[item.name].calls = asked.start
    end = campaign.run(item.name, asked.calls)
    if end is None:
        return None
    match end.kind:
        case "clock" | "raised" | "hang" | "killed" | "adapter":
            return None
        case "rejected":
            return _sequence_observed(campaign, item, fresh)
        case "broken":
            return _call_observed(campaign, end, at_least(0.0))
        case "impossible":
            return _call_observed(campaign, end, at_least(_impossible_share(campaign, item, fresh), breaks_mask=True))
        case _:
            assert_never(end.kind)


def _call_observed(campaign: Campaign, end: End, size: Magnitude | None) -> Observed:
    shown = {"call": end.call, "lane": end.lane, "what": end.message, **end.answer, **_due(campaign, end)}
    return Observed({"call": end.call}, size, shown)


def _due(campaign: Campaign, end: End) -> dict[str, Any]:
    """The target's row at the position that ended it, where it is short."""
    item = campaign.cases[end.case].case
    if "position" not in end.answer or item.width > SHOWN_VOCABULARY:
        return {}
    lane = end.lane if campaign.signature == "verify_batch" else turn(end.call, item.lanes)
    row = target_row(item, lane, tuple(end.answer["tokens"][: end.answer["position"]]))
    return {"due": np.round(row, 6).tolist()}


def _impossible_share(campaign: Campaign, item: Case, calls: int) -> float:
    """A lower bound on the TV at the site where a token without mass was seen, from fresh calls."""
    first = campaign.cases[item.name].evidence
    site = int((first.counts[0] * (first.p == 0)).sum(1).argmax())
    fresh = _fresh(campaign, item, calls)
    counts = fresh.counts[0, site]
    return tv_at_least(int(counts[fresh.p[site] == 0].sum()), int(counts.sum()), 0.0, CONFIDENCE)


def _fresh(campaign: Campaign, item: Case, calls: int) -> CaseEvidence:
    """The evidence of calls that no decision has depended on yet."""
    fresh = CaseEvidence(item.p, item.q, features(item), sizes=item.sizes)
    campaign.cases[item.name].evidence = fresh
    campaign.evidence = Evidence(tuple(features(item)), campaign.alpha, {item.name: fresh})
    campaign.run(item.name, calls, stop=False)
    return fresh


def _law_observed(law: ExactLaw) -> Observed | None:
    if not law.violates():
        return None
    worst, impossible = law.worst, law.impossible.impossible
    tv = Quantity(value=worst.tv, tolerance=LAW_TOLERANCE)
    within = worst.tv <= BALL
    if within:  # the law is off by rounding, but for the tokens without mass: their mass bounds the TV from below
        worst, tv = law.impossible, small_mass(impossible)
    shown = {
        "lane": worst.lane,
        "position": worst.position,
        "emitted": list(worst.emitted),
        "law": [round(x, 6) for x in worst.law],
        "null": [round(x, 6) for x in worst.null],
    }
    numbers = {"runs": law.runs, "impossible_mass": small_mass(impossible)}
    return Observed(numbers, Magnitude(tv=tv, exact=not within, breaks_mask=impossible > 0), shown)


def _sequence_observed(campaign: Campaign, item: Case, calls: int) -> Observed:
    """The evidence, and a lower bound on the TV from as many fresh calls again, or so many.

    The bound is the larger of two: the TV at one site after one history, and the mean over all sites and histories. The
    mean is larger where rows or positions depend on one another and the law of each alone is right.
    """
    first = campaign.cases[item.name].evidence
    used = campaign.cases[item.name].calls
    name, learner = max(first.learners.items(), key=lambda entry: float(np.max(entry[1].log_wealth())))
    group, often = learner.strongest()
    evidence = campaign.evidence.log_evidence()
    again = _fresh(campaign, item, max(used, calls))
    fresh = again.learners[name]
    one, all_of_them = fresh.share(group, often), fresh.shares(often)
    half = (1.0 + CONFIDENCE) / 2.0  # of two bounds either may be wrong
    bounds = tv_at_least(*one, half), mean_tv_at_least(*all_of_them, half)
    at_one = bounds[0] >= bounds[1]
    hits, draws, mass = one if at_one else all_of_them
    shown: dict[str, Any] = {
        "feature": name,
        "share observed": f"{hits} of {draws}",
        "share expected": round(mass, 6),
    }
    if at_one:
        shown |= {"group": group, "cells that come too often": np.flatnonzero(often[group]).tolist()}
    shown |= _clearest(again, item)
    numbers = {"calls": used, "log_evidence": Quantity(value=evidence, tolerance=0.01)}
    return Observed(numbers, at_least(max(bounds)), shown)


def _clearest(found: CaseEvidence, item: Case) -> dict[str, Any]:
    """The site and token that come too often most clearly, with the tokens there that are furthest from what is due;
    nothing where each token by itself comes as it should."""
    counts, due = found.counts[0], found.p
    draws = counts.sum(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = (counts - draws * due) / np.sqrt(draws * due * (1.0 - due))
    off = np.where((due > 0) & (due < 1) & (draws > 0), off, 0.0)
    site = int(np.abs(off).max(1).argmax())
    if np.abs(off[site]).max() < STRIKING_SIGMAS:
        return {}
    tokens = np.sort(np.argsort(-np.abs(off[site]), kind="stable")[:SHOWN_VOCABULARY])
    lane, position = divmod(site // item.contexts, item.gamma + 1)
    return {
        "site": {"lane": lane, "position": position, "draws": int(draws[site, 0])},
        "came": {_named(item, int(t)): int(counts[site, t]) for t in tokens},
        "due": {_named(item, int(t)): round(float(due[site, t]), 6) for t in tokens},
    }


def _named(item: Case, token: int) -> str:
    """A token; of a wide vocabulary, the tokens of one cell."""
    return str(token) if item.cell is None else f"like {int(np.argmax(item.cell == token))}"


def _inputs(item: Case, cut: CutCase) -> dict[str, Any]:
    """The input as a reader wants it: rows where they are short."""
    shown: dict[str, Any] = {**msgspec.to_builtins(cut), "vocabulary": item.width, "contexts": item.contexts}
    if item.width <= SHOWN_VOCABULARY and item.contexts == 1:
        shown["p"] = np.round(item.p[0, :, 0], 6).tolist()
        shown["q"] = np.round(item.q[0, :, 0], 6).tolist()
    return shown
