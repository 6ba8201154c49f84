"""`refengine audit library transformers`: its kernel `_speculative_sampling`, by its exact law.

The draft tokens are drawn by us from the very rows that are handed over as q, so what is judged is the rule alone. A
kernel that takes the same arguments can stand in for transformers' (`kernel`), which is how planted defects are tried.
"""

from fractions import Fraction
from typing import Any

import msgspec

from refengine.audit.adapters import Absent
from refengine.audit.adapters.transformers.kernel_law import TOLERANCE, Measured, Worst
from refengine.audit.adapters.transformers.library import PRELOAD, installed
from refengine.audit.magnitude import small_mass
from refengine.audit.sandbox.child import Child
from refengine.evidence.naming import BOUNDARY, ZERO_MASS
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe

KERNEL = "transformers.generation.utils:_speculative_sampling"
SOURCE = "Leviathan et al. 2023, Alg. 1, named by the function's docstring"
LAW_SECONDS = 60.0
CLAIMS = {
    "law": "One round of the kernel leaves the law of the next tokens unchanged, for q that the draft was drawn from.",
    "zero-mass": "A token to which the target gives probability zero is never emitted.",
    "count": "The number of matches that the kernel reports is the number of draft tokens it emits.",
}


def audit_kernel_hf(kernel: str = KERNEL) -> list[Finding]:
    """The findings on transformers' speculative sampling kernel, or on one with its signature ("module:function")."""
    try:
        subject = f"transformers {installed()} {kernel.partition(':')[2]}"
    except Absent as absent:
        return [_untested(claim, "transformers", kernel, str(absent)) for claim in CLAIMS]
    with Child("refengine.audit.adapters.transformers.kernel_law:serve", preload=PRELOAD) as child:
        outcome = child.ask(kernel, LAW_SECONDS)
    if not outcome.ok:
        return [_untested(claim, subject, kernel, str(outcome)) for claim in CLAIMS]
    measured = msgspec.convert(outcome.value, Measured)
    return [_finding(claim, subject, kernel, measured) for claim in CLAIMS]


def _finding(claim: str, subject: str, kernel: str, measured: Measured) -> Finding:
    if measured.unmodelled:
        return _untested(claim, subject, kernel, f"the law cannot be enumerated: {measured.unmodelled}")
    worst = {"law": measured.law, "zero-mass": measured.mask, "count": measured.count}[claim]
    if measured.raised > TOLERANCE and worst is None:
        reason = f"the subject raised on runs of total mass {measured.raised:.3g}: {measured.raised_by}"
        return _untested(claim, subject, kernel, reason)
    numbers: dict[str, Any] = {"runs enumerated": measured.runs, "tables": measured.tables}
    if claim == "law":
        numbers |= {"largest TV": Quantity(value=measured.tv, tolerance=TOLERANCE), "TV allowed": str(TOLERANCE)}
    elif claim == "zero-mass":
        numbers["largest mass on excluded tokens"] = small_mass(measured.zero)
    else:
        numbers["runs with a wrong count"] = measured.miscounted
    law = Quantity(value=measured.tv, tolerance=TOLERANCE)
    size = {"law": law, "zero-mass": small_mass(measured.zero), "count": Quantity(value=0.0, tolerance=0.0)}[claim]
    return Finding(
        id=f"audit.kernel.hf/{claim}",
        subject=subject,
        claim=CLAIMS[claim],
        source=SOURCE,
        role="subject",
        verdict="consistent" if worst is None else "violated",
        method=f"exact law by interception, {measured.runs} runs, {measured.tables} context-dependent tables",
        recipe=Recipe(function=f"{__name__}:audit_kernel_hf", arguments={"kernel": kernel}),
        numbers=numbers,
        magnitude=None if worst is None else Magnitude(tv=size, exact=True, breaks_mask=measured.mask is not None),
        witness=None if worst is None else _witness(worst),
        diagnosis=_diagnosis(claim, worst),
        notes=[f"raised on runs of total mass {measured.raised:.3g}: {measured.raised_by}"] if measured.raised else [],
        tables={"law": _within_tolerance(measured.plot)} if claim == "law" and measured.plot else {},
    )


def _within_tolerance(plot: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {**plot, "observed": [Quantity(value=value, tolerance=TOLERANCE) for value in plot["observed"]]}


def _witness(worst: Worst) -> dict[str, Any]:
    return {
        "vocabulary": worst.size[0],
        "family": worst.family,
        "seed": worst.seed,
        "p": worst.p,
        "q": worst.q,
        "draft": worst.draft,
        "decisions": [[list(site), outcome] for site, outcome in worst.decisions],
        "tokens": worst.tokens,
    }


def _diagnosis(claim: str, worst: Worst | None) -> str:
    """Named only where the number itself says it: mass of single grid points means a uniform that is exactly 0."""
    if claim != "zero-mass" or worst is None:
        return ""
    if Fraction(worst.amount) <= Fraction(2, 1 << 24):
        return f"{BOUNDARY} (r <= p/q where r = 0)"
    return f"{ZERO_MASS}, with more mass than a boundary has"


def _untested(claim: str, subject: str, kernel: str, reason: str) -> Finding:
    return Finding(
        id=f"audit.kernel.hf/{claim}",
        subject=subject,
        claim=CLAIMS[claim],
        source=SOURCE,
        role="subject",
        verdict="not tested",
        reason=reason,
        method="exact law by interception",
        recipe=Recipe(function=f"{__name__}:audit_kernel_hf", arguments={"kernel": kernel}),
    )
