"""What is audited, a child process that has it loaded, and a finding about it."""

from dataclasses import dataclass
from typing import Any

from refengine.audit.common import CLAIM, SOURCE
from refengine.audit.kernel.plan import limit
from refengine.audit.kernel.program import MARK
from refengine.audit.kernel.signatures import SIGNATURES
from refengine.audit.sandbox.child import Child
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.report.finding import Finding, Recipe, Verdict

LOADING_SECONDS = 60.0


@dataclass(frozen=True)
class Request:
    """What is audited, and how. A subject is MODULE:FUNCTION, or the command line of a program after "$ "."""

    subject: str
    signature: str
    path: str | None = None
    seed: int = 0
    alpha: float = ALPHA
    seconds: float | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        module, colon, name = self.subject.partition(":")
        if not self.is_program() and not (module and colon and name):
            raise BadInput(f"a subject is MODULE:FUNCTION, got {self.subject!r}")
        if self.signature not in SIGNATURES:
            raise BadInput(f"unknown signature {self.signature!r}: one of {', '.join(SIGNATURES)}")
        if not 0 < self.alpha < 1:
            raise BadInput(f"alpha lies between 0 and 1, got {self.alpha}")
        if self.seconds is not None and not self.seconds > 0:
            raise BadInput(f"seconds are a positive time, got {self.seconds:g}")
        if self.calls is not None and self.calls < 1:
            raise BadInput(f"calls are one or more, got {self.calls}")

    @property
    def limit(self) -> float:
        """When the clock ends the audit, in seconds."""
        return limit(self.seconds, self.calls)

    def is_program(self) -> bool:
        return self.subject.startswith(MARK)

    def arguments(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def finding(self, verdict: Verdict, method: str, recipe: Recipe, claim: str = CLAIM, **more: Any) -> Finding:
        """A finding about the subject."""
        kind = "process" if self.is_program() else "kernel"
        return Finding(
            id=f"audit.{kind}.{self.signature}/{self.subject}",
            subject=self.subject,
            claim=claim,
            source=SOURCE,
            role="subject",
            verdict=verdict,
            method=method,
            recipe=recipe,
            **more,
        )


def opened(request: Request) -> Child:
    """A child with the subject loaded."""
    child = Child("refengine.audit.kernel.worker:make", path=request.path)
    opening = {"op": "open", "subject": request.subject, "signature": request.signature}
    outcome = child.ask(opening, LOADING_SECONDS)
    if not outcome.ok:
        child.close()
        why = outcome.message if outcome.kind == "raised" else outcome
        raise BadInput(f"cannot load {request.subject}: {why}")
    return child
