"""`audit generate MODULE:FUNCTION`: anyone's generate with speculation on, beside one with it off, in a child process.

    generate(prompt, max_new_tokens, temperature, seed) -> tokens      both sides; ids or strings, without the prompt
    row(prompt, tokens) -> log probabilities [V]                       optional: the next row, with speculation off

The prompt is text. The functions are the user's: they load a model when they are imported, and tokenise as they like.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from refengine.audit.common import Progress
from refengine.audit.kernel.signatures import ContractBroken, as_list, load, whole_number
from refengine.audit.paired.audit import compare
from refengine.audit.paired.comparison import Comparison, Settings
from refengine.audit.paired.completion import Completion, Failed, Row
from refengine.audit.sandbox.child import Child, Handler, subject_code
from refengine.errors import BadInput
from refengine.report.finding import Finding, Recipe

LOADING_SECONDS, CALL_SECONDS = 300.0, 60.0
MAX_ENTRIES = 1 << 20  # of an answer: the row of a large vocabulary has some 10^5


def audit_generate(
    on: str,
    off: str,
    row: str | None = None,
    path: str | None = None,
    progress: Progress = lambda what, share: None,
    **requested: Any,
) -> list[Finding]:
    """The greedy and the sampling finding about functions named "module:function". Raises BadInput where one cannot be
    loaded.

    row    names the function that tells a tie from a defect
    path   a folder that is put on the import path
    requested  the fields of request.Settings
    """
    settings = Settings(**requested)
    names = {"on": on, "off": off, "row": row, "path": path}
    recipe = Recipe(
        function=f"{__name__}:audit_generate",
        arguments={**names, **asdict(settings), "prompts": list(settings.prompts)},
    )
    with Child("refengine.audit.paired.functions:make", path=path) as child:
        for side in filter(None, (on, off, row)):
            loaded = child.ask({"op": "open", "subject": side}, LOADING_SECONDS)
            if not loaded.ok:
                raise BadInput(f"cannot load {side}: {loaded.message}")
        sides = (FunctionSide(child, on, row), FunctionSide(child, off, row))
        return compare(Comparison("generate", on, off, settings, recipe), sides, 1, progress)


@dataclass(frozen=True)
class FunctionSide:
    """One function of the child, as a side."""

    child: Child
    name: str
    row_name: str | None

    def complete(self, prompt: str, tokens: int, temperature: float, seed: int) -> Completion:
        answer = self._ask(self.name, [prompt, tokens, temperature, seed])
        try:
            said = tuple(t if isinstance(t, str) else str(whole_number(i, t)) for i, t in enumerate(answer))
        except ContractBroken as error:
            raise Failed(f"{self.name}: {error}") from None
        return Completion(" ".join(said), said)

    def row(self, prompt: str, tokens: tuple[str, ...]) -> Row:
        """Keyed by ids; empty for tokens that are strings, which a row does not list."""
        if self.row_name is None or not all(token.isdigit() for token in tokens):
            return {}
        row = self._ask(self.row_name, [prompt, [int(token) for token in tokens]])
        return {str(token): float(chance) for token, chance in enumerate(row)}

    def _ask(self, name: str, arguments: list[Any]) -> list[Any]:
        outcome = self.child.ask({"op": "call", "subject": name, "arguments": arguments}, CALL_SECONDS)
        if not outcome.ok:
            raise Failed(f"{name}: {outcome}")
        if "broken" in outcome.value:
            raise Failed(f"{name}: {outcome.value['broken']}")
        return list(outcome.value["answer"])


# --- the child's side ------------------------------------------------------------------------------------------------


def make() -> Handler:
    """The factory that Child names."""
    return Worker()


class Worker:
    """Answers {"op": "open" | "call", ...}."""

    def __init__(self) -> None:
        self.subjects: dict[str, Callable[..., Any]] = {}

    def __call__(self, request: dict[str, Any]) -> Any:
        return getattr(self, request.pop("op"))(**request)

    def open(self, subject: str) -> None:
        with subject_code():
            self.subjects[subject] = load(subject)

    def call(self, subject: str, arguments: list[Any]) -> dict[str, Any]:
        with subject_code():
            answer = self.subjects[subject](*arguments)
        if hasattr(answer, "__len__") and len(answer) > MAX_ENTRIES:
            return {"broken": f"the answer has {len(answer)} entries"}
        try:
            found = as_list(answer)
        except ContractBroken as error:
            return {"broken": str(error)}
        nested = [entry for entry in found if isinstance(entry, list)]
        return {"answer": nested[0] if len(nested) == len(found) == 1 else found}
