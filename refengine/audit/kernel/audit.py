"""`audit kernel` and `audit process`: a function or a program in one of the plain signatures, held to the rows we pass.

Three stages, each of which may end the audit with a finding: three calls of one small input, which show a subject that
hangs or answers no tokens, and how long a call takes; the exact law on small inputs, where the subject's random calls
can be intercepted; sequential evidence on sampled calls. How many calls the later stages make is settled after the
first (`plan.py`). A violation is then made again by `replay`, in a fresh process and on inputs as
small as possible, and what `replay` returns is the finding: every reported violation has replayed once already.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple, Self, assert_never

import msgspec
import numpy as np

from refengine.audit.common import MAX_UNSEEN_TV, Progress, thinned
from refengine.audit.inputs.case import Case
from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel import witness
from refengine.audit.kernel.campaign import HANG_SECONDS, Campaign, End, Tried
from refengine.audit.kernel.exact_depth import Exact, exact_depth
from refengine.audit.kernel.explain_law import explain
from refengine.audit.kernel.plan import SHARE_FOR_WITNESS, SHARE_SAMPLED, Plan, plan
from refengine.audit.kernel.request import Request, opened
from refengine.evidence.alpha import ALPHA
from refengine.evidence.bets.learned_bets import CONCENTRATIONS
from refengine.evidence.power import ends_wealth
from refengine.report.finding import Finding, Quantity, Recipe

FIRST_CALLS = 3
FEW_CALLS, SHARE_AT_ONE_INPUT = 2_000, 0.25  # spread over all inputs alone, few calls would see much at none
MIN_SHARE_EXACT = 0.5  # of the small inputs, with exact laws, that is worth a verdict without a sample
GOALS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # total variations that more calls are recommended for
CLOSER = 0.75  # of what would have been seen, that a goal is at most


class Audited(NamedTuple):
    """An audit and what is said beside it, which depends on the machine and is no part of a report.

    advice   the number of calls that would show a smaller deviation, and about how long they take here
    printed  what the subject printed
    """

    finding: Finding
    advice: str
    printed: str


def audit_kernel(
    subject: str,
    signature: str,
    path: str | None = None,
    seed: int = 0,
    alpha: float = ALPHA,
    seconds: float | None = None,
    calls: int | None = None,
    progress: Progress = lambda what, share: None,
) -> list[Finding]:
    """One finding about `module:function`. Raises BadInput where the subject cannot be loaded.

    path     a folder that is put on the import path
    seed     decides every draft and generator of the audit
    alpha    the probability of accusing a correct subject, whatever the number of calls
    seconds  when the clock ends it, from when the subject is loaded; ten minutes, or no limit where calls are given
    calls    how many are sampled; by default as `plan` says, where the clock counts for slow subjects only
    """
    return [audited(Request(subject, signature, path, seed, alpha, seconds, calls), progress).finding]


def audited(
    request: Request, progress: Progress = lambda what, share: None, inputs: Callable[[], list[Case]] = cases
) -> Audited:
    """The finding with what is said beside it. Raises BadInput where the subject cannot be loaded.

    inputs  that are sampled, where a subject is too slow for all of them
    """
    with Audit(request, progress, inputs) as audit:
        finding = audit.first_calls() or audit.exact_laws() or audit.sampled()
        return Audited(finding, audit.advice, audit.printed())


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
    inputs: Callable[[], list[Case]] = cases
    children: ExitStack = field(default_factory=ExitStack)
    notes: list[str] = field(default_factory=list)
    plan: Plan = field(init=False)
    exact: Exact = field(default_factory=Exact)
    advice: str = ""
    said: list[str] = field(default_factory=list)  # what the subject printed in processes that have ended
    raised: str = ""  # what the subject raised before it was sampled: it is not tested, unless sampling shows it wrong

    def __enter__(self) -> Self:
        self.child = self.children.enter_context(opened(self.request))
        self.until = monotonic() + self.request.limit
        self.plan = plan(self.request.signature, 0.0, self.request.seconds, self.request.calls)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.children.close()

    def printed(self) -> str:
        return "".join([*self.said, self.child.printed()])

    def first_calls(self) -> Finding | None:
        """Some calls of one small input, which settle the plan."""
        campaign = self._campaign()
        first = exact_cases(self.request.signature == "verify_batch")[0]
        campaign.add(first)
        end = campaign.run(first.name, FIRST_CALLS)
        pace = self.child.ask({"op": "pace"}, HANG_SECONDS)
        if pace.ok:
            self.plan = plan(self.request.signature, pace.value, self.request.seconds, self.request.calls)
            if not self.plan.whole:
                self.progress(f"{1e3 * pace.value:.3g} ms a call: {self.plan.calls} of them are planned", 0.0)
        if end is None:
            return None
        match end.kind:
            case "hang" | "killed" | "adapter":
                return self._not_tested(end.message)
            case "broken":
                return witness.smallest(self.request, campaign, end, self.until, [], self._most())
            case "raised":
                self.raised = end.message
                return None  # the later stages may show it wrong all the same
            case "impossible" | "rejected" | "clock":
                return None  # the later stages say more about it
            case _:
                assert_never(end.kind)

    def exact_laws(self) -> Finding | None:
        """The exact laws on small inputs; what keeps a state is sampled in a fresh process after them."""
        until = self.until - SHARE_FOR_WITNESS * self.request.limit
        found = self.exact = exact_depth(self.request, self.child, self.plan, until, self.progress)
        self.notes = found.notes
        if found.failure is not None and found.failure.kind != "raised":
            return self._not_tested(str(found.failure))
        self.raised = self.raised or str(found.failure or "")
        stateful = found.stateful
        if case := found.violated():
            finding = witness.of_law(self.request, case, explain(found.laws), self.notes)
            if finding.verdict == "violated":
                return finding
            self.notes.append(f"{case}: not so in a fresh process, so a state is kept between calls; sampled instead")
            stateful = True
        if stateful:  # its first calls are judged too, and nothing depends on how many were spent on laws
            self.exact = Exact(found.inputs)
            self.said.append(self.child.printed())
            self.child.close()
            self.child = self.children.enter_context(opened(self.request))
        return None

    def sampled(self) -> Finding:
        """Sequential evidence on all inputs. An input on which the subject raises is left out."""
        campaign, total = self._campaign(), self.plan.calls
        if not (self.exact.laws or self.plan.whole or self.request.calls):
            total += self.plan.runs  # that were planned for enumerations
        for item in self.inputs():
            campaign.add(item)
        begun = monotonic()
        campaign.until = max(campaign.until, begun + SHARE_SAMPLED * self.request.limit)
        end = _spent(campaign, total, self.progress)
        if end is None:
            return self._held(campaign, monotonic() - begun, clock=False)
        match end.kind:
            case "clock":
                return self._held(campaign, monotonic() - begun, clock=True)
            case "raised" | "hang" | "killed" | "adapter":
                return self._not_tested(self.raised or end.message)
            case "impossible" | "broken" | "rejected":
                self.progress("looking for the smallest witness", 0.0)
                return witness.smallest(self.request, campaign, end, self.until, self.notes, self._most())
            case _:
                assert_never(end.kind)

    def _most(self) -> int | None:
        """Calls of one try of a witness: a slow subject gets no more than the audit itself."""
        return None if self.plan.whole else self.plan.calls

    def _campaign(self) -> Campaign:
        request, until = self.request, self.until - SHARE_FOR_WITNESS * self.request.limit
        return Campaign(self.child, request.signature, request.seed, request.alpha, until)

    def _not_tested(self, reason: str) -> Finding:
        method = "none: there was no answer to judge"
        return self.request.finding("not tested", method, self._recipe(), reason=reason, notes=self.notes)

    def _recipe(self) -> Recipe:
        return Recipe(function=f"{__name__}:audit_kernel", arguments=self.request.arguments())

    def _held(self, campaign: Campaign, seconds: float, clock: bool) -> Finding:
        """Nothing was found: consistent, where enough was seen to say so.

        seconds  that the sampling took
        clock    whether the time was up before all calls were made
        """
        if self.raised:
            return self._not_tested(self.raised)
        tried = [item for item in campaign.cases.values() if item.calls]
        if campaign.skipped:
            first = next(iter(campaign.skipped.values()))
            others = sum(item.case.name not in campaign.skipped for item in tried)
            beside = f"; nothing wrong was seen on {others} others" if others else ""
            return self._not_tested(f"{first}; so on {len(campaign.skipped)} of {len(campaign.cases)} inputs{beside}")
        least = detectable(campaign)
        self.advice = further(campaign.calls, least, seconds)
        exact = len(self.exact.laws)
        shown = f"the exact laws of {exact} of {self.exact.inputs} small inputs are right; " if exact else ""
        spent = f"{shown}{campaign.calls} sampled calls" + (" until the clock ended it" if clock else "")
        if least > MAX_UNSEEN_TV and exact < max(MIN_SHARE_EXACT * self.exact.inputs, 1):
            return self._not_tested(f"{spent} would not show a TV of {MAX_UNSEEN_TV:g}")
        would = f"would show a TV of {least:.2g} at the position tested most, with probability 0.99"
        return self.request.finding(
            "consistent",
            f"{spent} of {len(tried)} inputs {would if least < 1 else 'are too few to show more'} "
            f"(sequential evidence, alpha {self.request.alpha:g})",
            self._recipe(),
            numbers={
                "calls": campaign.calls,
                "inputs": len(tried),
                "exact laws": exact,
                "TV that would be seen": Quantity(value=least, tolerance=1e-6),
            },
            notes=self.notes,
            tables={"evidence": thinned(campaign.curve)},
            replay="exact" if self.plan.whole and not clock and reproducible(self.request, campaign) else "statistical",
        )


def _spent(campaign: Campaign, total: int, progress: Progress) -> End | None:
    """How `total` calls ended, spent where they say most; None where they were spent without an end."""
    for name, count in _turns(campaign, total):
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


def _turns(campaign: Campaign, total: int) -> Iterator[tuple[str, int]]:
    """(input, calls) of the schedule; of few calls the last go to the input that was visited most."""
    at_one = int(SHARE_AT_ONE_INPUT * total) if total < FEW_CALLS else 0
    yield from campaign.schedule(total - at_one)
    if at_one and len(campaign.skipped) < len(campaign.cases):
        yield visited_most(campaign).case.name, at_one


def further(calls: int, least: float, seconds: float) -> str:
    """What would show a smaller deviation: its least TV falls with the root of the calls."""
    goal = next((goal for goal in GOALS if goal < CLOSER * least), None)
    if goal is None or not calls:
        return ""
    more = (least / goal) ** 2
    digit = 10 ** max(0, int(math.log10(more * calls)) - 1)  # of two significant ones
    wanted = math.ceil(more * calls / digit) * digit
    return f"--calls {wanted} for a TV of {goal:g}, {lasting(more * seconds)} here"


def lasting(seconds: float) -> str:
    """A time as one says it."""
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} minutes" if seconds < 5400 else f"about {seconds / 3600:.0f} hours"


def reproducible(request: Request, campaign: Campaign) -> bool:
    """Whether a fresh process answers the first calls alike; if not, the subject has noise of its own."""
    name, tokens = campaign.first
    if not name:
        return False
    with opened(request) as child:
        again = Campaign(child, request.signature, request.seed, request.alpha, monotonic() + request.limit)
        again.add(campaign.cases[name].case)
        again.run(name, len(tokens), stop=False)
        return again.last != {} and np.array_equal(again.last["tokens"], tokens)


def visited_most(campaign: Campaign) -> Tried:
    """The input with the site that was visited most, of those on which nothing was raised."""
    return max((tried for name, tried in campaign.cases.items() if name not in campaign.skipped), key=_visits)


def _visits(tried: Tried) -> float:
    """To the site of an input that was visited most."""
    return float(tried.evidence.counts[0].sum(1).max())


def detectable(campaign: Campaign) -> float:
    """The TV at the site that was visited most that would have been seen with probability 0.99. A learner must pay
    log(1/alpha), the prior of the component, and its choice between inputs, groups and concentrations."""
    most = visited_most(campaign)
    visits = _visits(most)
    groups = len(most.evidence.learners["the site"].mass)
    return ends_wealth(visits, campaign.alpha, 16.0 * len(campaign.cases) * groups * len(CONCENTRATIONS))
