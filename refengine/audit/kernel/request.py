"""What is audited, a child process that has it loaded, and a finding about it. Nothing here imports torch."""

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from numbers import Integral, Real
from typing import Any

from refengine.audit.common import CLAIM, SOURCE
from refengine.audit.kernel.plan import limit
from refengine.audit.sandbox.child import WORKER, Child
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.report.finding import Finding, Recipe, Verdict

LOADING_SECONDS = 60.0
NUMBERS = {"seed": Integral, "alpha": Real, "seconds": Real, "calls": Integral}
COMPILER = "torch._dynamo"  # which torch imports, for a second, at the first operation that is intercepted
MARK = "$ "  # a subject that begins with it is a command, not MODULE:FUNCTION
PARAMETERS = {  # of each signature; signatures.py says what they are
    "verify": ("p", "q", "draft", "generator"),
    "verify_batch": ("p", "q", "draft", "generator"),
    "round": ("target", "draft", "prefix", "gamma", "generator"),
}


@dataclass(frozen=True)
class Request:
    """What is audited, and how. A subject is MODULE:FUNCTION, or the command line of a program after "$ "."""

    subject: str
    signature: str = "verify"
    path: str | None = None
    seed: int = 0
    alpha: float = ALPHA
    seconds: float | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.subject, str):
            named = f"{getattr(self.subject, '__module__', '')}:{getattr(self.subject, '__qualname__', '')}"
            raise BadInput(f"a subject runs in a process of its own and is named: {named!r}, say, not {self.subject!r}")
        for name, kind in NUMBERS.items():
            value = getattr(self, name)
            if not isinstance(value, kind) and (value is not None or name not in ("seconds", "calls")):
                raise BadInput(f"{name} is a {'whole ' * (kind is Integral)}number, got {value!r}")
        if not self.is_program():
            check_name(self.subject)
        if self.signature not in PARAMETERS:
            raise BadInput(f"unknown signature {self.signature!r}: one of {', '.join(PARAMETERS)}")
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

    def preload(self) -> tuple[str, ...]:
        """What the fork server of its children has imported: no call of a program is intercepted."""
        return WORKER if self.is_program() else (*WORKER, COMPILER)

    def check_that_it_exists(self) -> None:
        """Raises BadInput where there is no such program, or no such module on the child's import path."""
        if self.is_program():
            program, *_ = shlex.split(self.subject.removeprefix(MARK)) or [""]
            if shutil.which(program) is None:
                wrong = (
                    "is a folder" if os.path.isdir(program) else "may not be executed: chmod +x, or name what runs it"
                )
                first, *others = program.split() or [""]
                quoted = f": leave the quotes away, -- {program}" if others and shutil.which(first) else ""
                raise BadInput(
                    f"{program} {wrong}" if os.path.exists(program) else f"there is no program {program!r} here{quoted}"
                )
            return
        package = self.subject.partition(":")[0].partition(".")[0]
        folder = self.path or os.getcwd()
        if package not in sys.builtin_module_names and PathFinder.find_spec(package, [*sys.path, folder]) is None:
            raise BadInput(f"no module is called {package!r}, neither installed nor in {folder} (--path names another)")

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


def check_name(subject: str) -> None:
    """Raises BadInput for what is not of the form MODULE:FUNCTION, with the form that was probably meant."""
    module, colon, name = subject.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if colon and all(part.isidentifier() for part in parts) and not module.endswith(".py"):
        return
    folder, file = os.path.split(module)
    named = file.removesuffix(".py")
    words = re.findall(r"\w+(?:\.\w+)*", subject)
    hint = ""
    if named.isidentifier() and (not name or name.replace(".", "_").isidentifier()):
        hint = f": did you mean {named}:{name or 'FUNCTION'}{' --path ' + folder if folder else ''}?"
    elif not named.isidentifier() and os.path.isfile(os.path.join(folder, f"{named}.py")):
        hint = f": {named!r} is no name of a module, so nothing can import {named}.py; rename it"
    elif len(words) == 2 or (len(words) == 1 and "." in words[0]):
        hint = f": did you mean {':'.join(words if len(words) == 2 else words[0].rsplit('.', 1))}?"
    raise BadInput(f"a subject is MODULE:FUNCTION, got {subject!r}{hint}")


def opened(request: Request) -> Child:
    """A child with the subject loaded."""
    child = Child("refengine.audit.kernel.child.worker:make", path=request.path, preload=request.preload())
    opening = {"op": "open", "subject": request.subject, "signature": request.signature}
    outcome = child.ask(opening, LOADING_SECONDS)
    if not outcome.ok:
        printed = child.printed().strip().splitlines()
        child.close()
        why = outcome.message if outcome.kind == "raised" else str(outcome)
        if why.startswith("SystemExit"):
            why += f"; it printed {printed[-1]!r}" if printed else ""
            why += '; what runs when the file is a program belongs below `if __name__ == "__main__":`'
        raise BadInput(f"cannot load {request.subject}: {why}{hidden(request)}")
    return child


def hidden(request: Request) -> str:
    """What to do where another module comes before the subject's own on the import path; "" where none does."""
    package = request.subject.partition(":")[0].partition(".")[0]
    own = None if request.is_program() else PathFinder.find_spec(package, [request.path or os.getcwd()])
    known = PathFinder.find_spec(package, sys.path)
    first = known.origin if known else "Python's own" if package in sys.builtin_module_names else None
    if own is None or own.origin is None or first is None or os.path.realpath(first) == os.path.realpath(own.origin):
        return ""
    return f"; {own.origin} is hidden by a module of its name ({first}): rename it"
