"""What is audited, and a child process that has it loaded."""

from dataclasses import dataclass
from typing import Any

from refengine.audit.kernel.program import MARK
from refengine.audit.kernel.signatures import SIGNATURES
from refengine.audit.sandbox.child import Child
from refengine.errors import BadInput


@dataclass(frozen=True)
class Request:
    """What is audited, and how. A subject is MODULE:FUNCTION, or the command line of a program after "$ "."""

    subject: str
    signature: str
    path: str | None
    seed: int
    alpha: float
    seconds: float
    calls: int | None

    def __post_init__(self) -> None:
        module, colon, name = self.subject.partition(":")
        if not self.is_program() and not (module and colon and name):
            raise BadInput(f"a subject is MODULE:FUNCTION, got {self.subject!r}")
        if self.signature not in SIGNATURES:
            raise BadInput(f"unknown signature {self.signature!r}: one of {', '.join(SIGNATURES)}")
        if not 0 < self.alpha < 1:
            raise BadInput(f"alpha lies between 0 and 1, got {self.alpha}")
        if self.calls is not None and self.calls < 1:
            raise BadInput(f"calls are one or more, got {self.calls}")

    def is_program(self) -> bool:
        return self.subject.startswith(MARK)

    def arguments(self) -> dict[str, Any]:
        return dict(self.__dict__)


def identity(request: Request) -> str:
    kind = "process" if request.is_program() else "kernel"
    return f"audit.{kind}.{request.signature}/{request.subject}"


def opened(request: Request) -> Child:
    """A child with the subject loaded."""
    child = Child("refengine.audit.kernel.worker:make", path=request.path)
    outcome = child.ask({"op": "open", "subject": request.subject, "signature": request.signature}, 60.0)
    if outcome.kind == "raised":
        child.close()
        raise BadInput(f"cannot load {request.subject}: {outcome.message}")
    if not outcome.ok:
        child.close()
        raise BadInput(f"cannot load {request.subject}: {outcome}")
    return child
