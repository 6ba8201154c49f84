"""`audit kernel` and `audit process`: a function or a program in one of the plain signatures, held to the rows we pass.

Three stages, each of which may end the audit with a finding: two calls of one small input, which show a subject that
hangs or answers no tokens; the exact law on small inputs, where the subject's random calls can be intercepted;
sequential evidence on sampled calls. A violation is then made again by `replay`, in a fresh process and on inputs as
small as possible, and what `replay` returns is the finding: every reported violation has replayed once already.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Any, Self, assert_never

import msgspec
import numpy as np

from refengine.audit.common import MAX_UNSEEN_TV, Progress, thinned
from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel import witness
from refengine.audit.kernel.campaign import Campaign, End
from refengine.audit.kernel.exact_depth import exact_depth
from refengine.audit.kernel.explain_law import explain
from refengine.audit.kernel.request import Request, opened
from refengine.evidence.alpha import ALPHA
from refengine.evidence.learned_bets import CONCENTRATIONS
from refengine.evidence.power import ends_wealth
from refengine.report.finding import Finding, Recipe

DEFAULT_CALLS = {"verify": 200_000, "verify_batch": 50_000, "round": 100_000}  # unless the caller names another number
SHARE_FOR_WITNESS = 0.3  # of the time, kept back for shrinking and replaying
SHARE_FOR_SAMPLING = 0.3  # of the time, at least


def audit_kernel(
    subject: str,
    signature: str,
    path: str | None = None,
    seed: int = 0,
    alpha: float = ALPHA,
    seconds: float = 50.0,
    calls: int | None = None,
    progress: Progress = lambda what, share: None,
) -> list[Finding]:
    """One finding about `module:function`. Raises BadInput where the subject cannot be loaded.

    path     a folder that is put on the import path
    seed     decides every draft and generator of the audit
    alpha    the probability of accusing a correct subject, whatever the number of calls
    seconds  when the clock ends it, from when the subject is loaded; calls end it first unless the subject is slow
    calls    how many are sampled, by default DEFAULT_CALLS; with time to spare, the verdict depends on no clock
    """
    with Audit(Request(subject, signature, path, seed, alpha, seconds, calls), progress) as audit:
        return [audit.first_calls() or audit.exact_laws() or audit.sampled()]


def audit_again(**arguments: Any) -> list[Finding]:
    """A violation that no smaller run showed: the audit is made again and only its verdict is compared, since it may be
    found in another way this time."""
    (finding,) = audit_kernel(**arguments)
    recipe = Recipe(function=f"{__name__}:audit_again", arguments=arguments)
    return [msgspec.structs.replace(finding, recipe=recipe, replay="statistical")]


@dataclass
class Audit:
    """The stages, in their order; each returns the finding that ends the audit, or None."""

    request: Request
    progress: Progress
    children: ExitStack = field(default_factory=ExitStack)
    notes: list[str] = field(default_factory=list)
    raised: str = ""  # what the subject raised in the exact stage: it is not tested, unless sampling shows it wrong

    def __enter__(self) -> Self:
        self.child = self.children.enter_context(opened(self.request))
        self.until = monotonic() + self.request.seconds
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.children.close()

    def first_calls(self) -> Finding | None:
        """Two calls of one small input."""
        campaign = self._campaign()
        first = exact_cases(self.request.signature == "verify_batch")[0]
        campaign.add(first)
        end = campaign.run(first.name, 2)
        if end is None:
            return None
        match end.kind:
            case "hang" | "killed" | "adapter":
                return self._not_tested(end.message)
            case "broken":
                return witness.smallest(self.request, campaign, end, self.until, [])
            case "raised" | "impossible" | "rejected" | "clock":
                return None  # the later stages say more about it
            case _:
                assert_never(end.kind)

    def exact_laws(self) -> Finding | None:
        """The exact laws on small inputs; what keeps a state is sampled in a fresh process after them."""
        found = exact_depth(self.request, self.child, self.progress)
        self.notes = found.notes
        if found.failure is not None and found.failure.kind != "raised":
            return self._not_tested(str(found.failure))
        self.raised = str(found.failure or "")
        stateful = found.stateful
        if case := found.violated():
            finding = witness.of_law(self.request, case, explain(found.laws), self.notes)
            if finding.verdict == "violated":
                return finding
            self.notes.append(f"{case}: not so in a fresh process, so a state is kept between calls; sampled instead")
            stateful = True
        if stateful:  # its first calls are judged too, and nothing depends on how many were spent on laws
            self.child.close()
            self.child = self.children.enter_context(opened(self.request))
        return None

    def sampled(self) -> Finding:
        """Sequential evidence on all inputs. An input on which the subject raises is left out."""
        campaign = self._campaign()
        for item in cases():
            campaign.add(item)
        campaign.until = max(campaign.until, monotonic() + SHARE_FOR_SAMPLING * self.request.seconds)
        total = self.request.calls or DEFAULT_CALLS[self.request.signature]
        end = _spent(campaign, total, self.progress)
        if end is None:
            return self._held(campaign, clock=False)
        match end.kind:
            case "clock":
                return self._held(campaign, clock=True)
            case "raised" | "hang" | "killed" | "adapter":
                return self._not_tested(end.message)
            case "impossible" | "broken" | "rejected":
                self.progress("looking for the smallest witness", 0.0)
                return witness.smallest(self.request, campaign, end, self.until, self.notes)
            case _:
                assert_never(end.kind)

    def _campaign(self) -> Campaign:
        request, until = self.request, self.until - SHARE_FOR_WITNESS * self.request.seconds
        return Campaign(self.child, request.signature, request.seed, request.alpha, until)

    def _not_tested(self, reason: str) -> Finding:
        method = "none: there was no answer to judge"
        return self.request.finding("not tested", method, self._recipe(), reason=reason, notes=self.notes)

    def _recipe(self) -> Recipe:
        return Recipe(function=f"{__name__}:audit_kernel", arguments=self.request.arguments())

    def _held(self, campaign: Campaign, clock: bool) -> Finding:
        """Nothing was found: consistent, where enough was seen to say so. clock: whether the time was up."""
        request, tried = self.request, len(campaign.cases)
        if self.raised:
            return self._not_tested(self.raised)
        if campaign.skipped:
            first = next(iter(campaign.skipped.values()))
            reason = f"{first}; so on {len(campaign.skipped)} of {tried} inputs, consistent on the others"
            return self._not_tested(reason)
        least = detectable(campaign)
        if least > MAX_UNSEEN_TV:
            spent = f"{campaign.calls} calls" + (f" in {request.seconds:g} s" if clock else "")
            option = "--seconds" if clock else "--calls"
            return self._not_tested(f"{spent} would not show a TV of {MAX_UNSEEN_TV:g}: give it more with {option}")
        method = (
            f"sequential evidence, alpha {request.alpha:g}, {campaign.calls} calls over {tried} inputs, "
            f"TV >= {least:.1g} at the site visited most would have been seen with probability 0.99."
        )
        return request.finding(
            "consistent",
            method + (" The clock ended it." if clock else ""),
            self._recipe(),
            numbers={"calls": campaign.calls, "inputs": tried},
            notes=self.notes,
            tables={"evidence": thinned(campaign.curve)},
            replay="exact" if not clock and reproducible(request, campaign) else "statistical",
        )


def _spent(campaign: Campaign, total: int, progress: Progress) -> End | None:
    """How `total` calls ended, spent where they say most; None where they were spent without an end."""
    for name, count in campaign.schedule(total):
        end = campaign.run(name, count)
        progress(f"sampling: {campaign.calls} calls", min(1.0, campaign.calls / total))
        if end is None:
            continue
        if end.kind != "raised":
            return end
        campaign.skipped[name] = end.message
        if len(campaign.skipped) == len(campaign.cases):
            return end
    return None


def reproducible(request: Request, campaign: Campaign) -> bool:
    """Whether a fresh process answers the first calls alike; if not, the subject has noise of its own."""
    name, tokens = campaign.first
    if not name:
        return False
    with opened(request) as child:
        again = Campaign(child, request.signature, request.seed, request.alpha, monotonic() + 60.0)
        again.add(campaign.cases[name].case)
        again.run(name, len(tokens), stop=False)
        return np.array_equal(again.last["tokens"], tokens)


def detectable(campaign: Campaign) -> float:
    """The TV at the site that was visited most that would have been seen with probability 0.99. A learner must pay
    log(1/alpha), the prior of the component, and its choice between inputs, groups and concentrations."""
    most = max(campaign.cases.values(), key=lambda tried: float(tried.evidence.counts[0].sum(1).max()))
    visits = float(most.evidence.counts[0].sum(1).max())
    groups = len(most.evidence.learners["the site"].mass)
    return ends_wealth(visits, campaign.alpha, 16.0 * len(campaign.cases) * groups * len(CONCENTRATIONS))
