"""`audit kernel` and `audit process`: a function or a program in one of the plain signatures, held to the rows we pass.

Three instruments, the deepest first: the exact law on small inputs where the subject's randomness can be intercepted;
the contract of the answer; sequential evidence on sampled calls. Whatever they find is then found again by `replay`, in
a fresh process and on inputs as small as will do, and that is the finding: what is reported has replayed once already.
"""

from contextlib import ExitStack
from time import monotonic
from typing import Any

import msgspec
import numpy as np

from refengine.audit.common import CLAIM, SOURCE, TOO_LITTLE, Progress, thinned
from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel import witness
from refengine.audit.kernel.campaign import NO_TOKENS, Drive, End
from refengine.audit.kernel.exact_depth import exact_depth
from refengine.audit.kernel.explain_law import explain
from refengine.audit.kernel.request import Request, identity, opened
from refengine.evidence.alpha import ALPHA
from refengine.evidence.learned_bets import CONCENTRATIONS
from refengine.evidence.power import ends_wealth
from refengine.report.finding import Finding, Recipe

CALLS = {"verify": 200_000, "verify_batch": 50_000, "round": 100_000}  # unless the caller names another number
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
    """Findings about `module:function`. Raises BadInput where the subject cannot be loaded.

    path     a folder that is put on the import path
    seed     decides every draft and generator of the audit
    alpha    the probability of accusing a correct subject, whatever the number of calls
    seconds  when the clock ends it, from when the subject is loaded; calls end it first unless the subject is slow
    calls    how many are sampled, by default CALLS; with time to spare, the verdict depends on no clock
    """
    request = Request(subject, signature, path, seed, alpha, seconds, calls)
    with ExitStack() as children:
        child = children.enter_context(opened(request))
        until = monotonic() + seconds
        drive = Drive(child, signature, seed, alpha, until - SHARE_FOR_WITNESS * seconds)
        first = exact_cases(signature == "verify_batch")[0]
        drive.add(first)
        found = drive.run(first.name, 2)  # a subject that hangs shows it here
        if found is not None and found.kind in ("hang", "killed", "adapter"):
            return [not_tested(request, found.message, [])]
        if found is not None and found.kind == "broken":
            return [witness.smallest(request, drive, found, until, [])]
        exact = exact_depth(request, drive, progress)
        notes = exact.notes
        if exact.end is not None and exact.end.kind != "raised":
            return [not_tested(request, exact.end.message, notes)]
        if case := exact.violated():
            finding = witness.of_law(request, case, explain(exact.laws), notes)
            if finding.verdict == "violated":
                return [finding]
            notes.append(f"{case}: not so in a fresh process, so a state is kept between calls; sampled instead")
            exact.stateful = True
        if exact.stateful:  # its first calls are judged too, and nothing depends on how many were spent on laws
            child.close()
            drive.child = children.enter_context(opened(request))
        found = _sampled(request, drive, progress)
        if found is None or found.kind == "clock":
            if exact.end is not None:  # what raises once is not tested, unless it is found to be wrong
                return [not_tested(request, exact.end.message, notes)]
            return [_consistent(request, drive, notes, clock=found is not None)]
        if found.kind in ("raised", "hang", "killed", "adapter"):
            return [not_tested(request, found.message, notes)]
        progress("looking for the smallest witness", 0.0)
        return [witness.smallest(request, drive, found, until, notes)]


def audit_again(**arguments: Any) -> list[Finding]:
    """A violation that no smaller run showed: the audit is made again and asked for its verdict alone, since it may be
    found in another way this time."""
    (finding,) = audit_kernel(**arguments)
    recipe = Recipe(function=f"{__name__}:audit_again", arguments=arguments)
    return [msgspec.structs.replace(finding, recipe=recipe, replay="statistical")]


def _sampled(request: Request, drive: Drive, progress: Progress) -> End | None:
    """Sequential evidence. An input that makes the subject raise is left out; when all do, that is the end."""
    total = request.calls or CALLS[request.signature]
    drive.cases.clear()
    drive.first, drive.calls = ("", NO_TOKENS), 0
    for item in cases():
        drive.add(item)
    drive.until = max(drive.until, monotonic() + SHARE_FOR_SAMPLING * request.seconds)
    for name, count in drive.schedule(total):
        end = drive.run(name, count)
        progress(f"sampling: {drive.calls} calls", min(1.0, drive.calls / total))
        if end is None:
            continue
        if end.kind == "raised":
            drive.skipped[name] = end.message
            if len(drive.skipped) == len(drive.cases):
                return end
            continue
        return end
    return None


def _consistent(request: Request, drive: Drive, notes: list[str], clock: bool) -> Finding:
    if drive.skipped:
        first = next(iter(drive.skipped.values()))
        reason = f"{first}; so on {len(drive.skipped)} of {len(drive.cases)} inputs, consistent on the others"
        return not_tested(request, reason, notes)
    least = detectable(drive)
    if least > TOO_LITTLE:
        spent = f"{drive.calls} calls in {request.seconds:g} s" if clock else f"{drive.calls} calls"
        more = "give it more with --seconds" if clock else "give it more with --calls"
        return not_tested(request, f"{spent} would not show a TV of {TOO_LITTLE:g}: {more}", notes)
    ended = " The clock ended it." if clock else ""
    return Finding(
        id=identity(request),
        subject=request.subject,
        claim=CLAIM,
        source=SOURCE,
        verdict="consistent",
        role="subject",
        method=f"sequential evidence, alpha {request.alpha:g}, {drive.calls} calls over {len(drive.cases)} inputs, "
        f"TV >= {least:.1g} at the place met most would have been seen with probability 0.99.{ended}",
        recipe=Recipe(function=f"{__name__}:audit_kernel", arguments=request.arguments()),
        numbers={"calls": drive.calls, "inputs": len(drive.cases)},
        notes=notes,
        tables={"evidence": thinned(drive.curve)},
        replay="exact" if not clock and reproducible(request, drive) else "statistical",
    )


def reproducible(request: Request, drive: Drive) -> bool:
    """Whether a fresh process answers the first calls alike; if not, the subject has noise of its own."""
    name, tokens = drive.first
    if not name:
        return False
    with opened(request) as child:
        again = Drive(child, request.signature, request.seed, request.alpha, monotonic() + 60.0)
        again.add(drive.cases[name].case)
        again.run(name, len(tokens), stop=False)
        return np.array_equal(again.last["tokens"], tokens)


def not_tested(request: Request, reason: str, notes: list[str]) -> Finding:
    return Finding(
        id=identity(request),
        subject=request.subject,
        claim=CLAIM,
        source=SOURCE,
        verdict="not tested",
        reason=reason,
        role="subject",
        method="none: there was no answer to judge",
        recipe=Recipe(function=f"{__name__}:audit_kernel", arguments=request.arguments()),
        notes=notes,
    )


def detectable(drive: Drive) -> float:
    """The TV at the place that was visited most that would have been seen with probability 0.99. A learner must pay
    log(1/alpha), the prior of the component, and its choice between inputs, groups and concentrations."""
    most = max(drive.cases.values(), key=lambda p: float(p.evidence.counts[0].sum(1).max()))
    visits = float(most.evidence.counts[0].sum(1).max())
    groups = len(most.evidence.learners["the place"].mass)
    need = np.log(1 / drive.alpha) + np.log(16.0) + np.log(len(drive.cases) * groups * len(CONCENTRATIONS))
    return ends_wealth(visits, need)
