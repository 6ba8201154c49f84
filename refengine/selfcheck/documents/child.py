"""The child that printed programs run in: a request names a promise, the file of the program, and edits of its text."""

from types import ModuleType
from typing import Any

from refengine.audit.adapters.documents.printed import FOLDER
from refengine.audit.sandbox.child import Handler, subject_code
from refengine.selfcheck.documents.judges import JUDGES, Found
from refengine.selfcheck.documents.judges_of_loops import LOOPS
from refengine.selfcheck.documents.judges_of_medusa import MEDUSA


def make() -> Handler:
    return answer


def answer(request: dict[str, Any]) -> Found:
    """The judge of a promise, on the printed text with these edits."""
    program = loaded(request["file"], request["edits"])
    judge = {**JUDGES, **LOOPS, **MEDUSA}[request["promise"]]
    return {"numbers": {}, "witness": {}, **judge(program)}


def loaded(file: str, edits: list[list[str]]) -> ModuleType:
    """The printed text as a module, with edits; each changes one place. Raises ValueError where it does not."""
    path = FOLDER / f"{file}.py"
    text = path.read_text("utf-8")
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{path.name} has {old!r} {text.count(old)} times, and an edit is of one place")
        text = text.replace(old, new)
    module = ModuleType(f"printed_{file}")
    with subject_code():
        exec(compile(text, path.name, "exec"), module.__dict__)
    return module
