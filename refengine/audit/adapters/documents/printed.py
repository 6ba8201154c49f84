"""`refengine audit library documents`: what the documents promise of the programs that they print, each with a verdict.

A promise that is broken carries the edit of the printed text that keeps it, and the edited program is judged too: what
the finding says of the mend has run.
"""

from typing import Any

from refengine.audit.adapters import Absent, package_version
from refengine.audit.adapters.documents.promises import PROMISES, Edit, Promise
from refengine.audit.sandbox.child import Child
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe
from refengine.source_tree import FIXTURES

INSTALL = "pip install transformers"
SECONDS = 120.0  # of one program; they take seconds
JUDGES = "refengine.selfcheck.documents.child:make"
PRELOAD = ("transformers", "refengine.decoder")
FOLDER = FIXTURES / "subjects" / "printed"


def audit_printed(program: str) -> list[Finding]:
    """One finding for each promise of a program; not tested where transformers or the source tree is missing."""
    promises = [promise for promise in PROMISES if promise.program == program]
    try:
        version = package_version("transformers", INSTALL)
        if not FOLDER.is_dir():
            raise Absent(f"the programs are typed in under {FOLDER.relative_to(FIXTURES.parent)} of the source tree")
    except Absent as absent:
        return [_finding(promise, promise.program, verdict="not tested", reason=str(absent)) for promise in promises]
    with Child("refengine.selfcheck.documents.child:make", preload=("transformers", "refengine.decoder")) as child:
        return [_judged(promise, f"{program} as printed, transformers {version}", child) for promise in promises]


def _judged(promise: Promise, subject: str, child: Child) -> Finding:
    found = _ask(child, promise, promise.given)
    if isinstance(found, str):
        return _finding(promise, subject, verdict="not tested", reason=found)
    told: dict[str, Any] = {"numbers": {name: _number(value) for name, value in found["numbers"].items()}}
    told["notes"] = [f"judged with {_said(promise.given)}"] if promise.given else []
    if not found["witness"]:
        return _finding(promise, subject, verdict="consistent", **told)
    mended = _ask(child, promise, promise.given + promise.mend) if promise.mend else promise.missing
    if isinstance(mended, str) or mended["witness"]:
        told["notes"].append(f"mended by: {mended}" if promise.missing else f"the mend does not hold: {mended}")
    else:
        told["notes"].append(f"mended by {_said(promise.mend)}; then nothing is found")
    if "tv" in found:
        told["magnitude"] = Magnitude(tv=_number(found["tv"]), exact=True)
    told["notes"] += [promise.wrong] if promise.wrong else []
    return _finding(promise, subject, verdict="violated", witness=found["witness"], diagnosis=promise.diagnosis, **told)


def _ask(child: Child, promise: Promise, edits: tuple[Edit, ...]) -> Any:
    """What the child found: a witness or none, and numbers; or in one line why it could not tell."""
    outcome = child.ask({"promise": promise.id, "file": promise.file, "edits": [list(edit) for edit in edits]}, SECONDS)
    return outcome.value if outcome.ok else str(outcome)


def _said(edits: tuple[Edit, ...]) -> str:
    return "; ".join(f"`{' '.join(old.split())}` -> `{' '.join(new.split())}`" for old, new in edits)


def _number(value: Any) -> Any:
    """A float of float32 networks may differ by some roundings on another machine."""
    return Quantity(value=value, tolerance=1e-4) if isinstance(value, float) else value


def _finding(promise: Promise, subject: str, **more: Any) -> Finding:
    return Finding(
        id=f"audit.printed/{promise.id}",
        subject=subject,
        claim=promise.claim,
        source=promise.source,
        role="subject",
        method="the printed text run in a child process on tiny networks, its random calls answered by us",
        recipe=Recipe(function=f"{__name__}:audit_printed", arguments={"program": promise.program}),
        **more,
    )
