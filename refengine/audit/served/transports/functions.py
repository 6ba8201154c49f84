"""The transport of a library in the process: its generate functions, in a child, with options as keyword arguments.

    generate(prompt, max_new_tokens, temperature, seed, **options) -> text, or tokens without the prompt

What the function does not take by name it refuses, which is an honest answer. The prompt is text; the function
tokenises as it likes. Only plain options are passed; rows, streams, chat and several choices belong to servers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from refengine.audit.kernel.child.signatures import ContractBroken, as_list, load, whole_number
from refengine.audit.sandbox.child import Child, Handler, subject_code
from refengine.audit.served.ask import Answer, Ask, Choice, Failed, Refused
from refengine.errors import BadInput

LOADING_SECONDS, CALL_SECONDS = 300.0, 60.0
MOST = 1 << 20  # entries of an answer
SERVER_ONLY = {"logprobs", "n", "echo", "stop", "response_format"}  # options that a plain generate does not have


@dataclass(frozen=True)
class Generate:
    """One function of the child, which has opened it. The child answers one call at a time."""

    child: Child
    name: str
    lock: Lock

    def send(self, ask: Ask) -> Answer:
        """Raises Refused for what a function has no word for, Failed where it raises."""
        refused = SERVER_ONLY & ask.options.keys()
        if ask.chat or ask.stream or ask.more or refused:
            raise Refused(f"a function has no {', '.join(sorted(refused)) or 'chat, stream or list of prompts'}")
        if ask.seed is None and ask.temperature > 0:
            raise Refused("a function is always given a seed")
        arguments = ["\n".join(ask.turns), ask.tokens, ask.temperature, ask.seed or 0]
        options = {name: value for name, value in ask.options.items() if value is not None}
        request = {"op": "call", "subject": self.name, "arguments": arguments, "options": options}
        with self.lock:
            outcome = self.child.ask(request, CALL_SECONDS)
        if not outcome.ok and "unexpected keyword argument" in str(outcome):
            raise Refused(f"it takes no {', '.join(sorted(ask.options))}")
        if not outcome.ok:
            raise Failed(f"{self.name}: {outcome}")
        if "broken" in outcome.value:
            raise Failed(f"{self.name}: {outcome.value['broken']}")
        return Answer((Choice(outcome.value["answer"]),))


def opened(child: Child, names: tuple[str, ...]) -> list[Generate]:
    """These functions, loaded. Raises BadInput."""
    lock = Lock()
    for name in names:
        loaded = child.ask({"op": "open", "subject": name}, LOADING_SECONDS)
        if not loaded.ok:
            raise BadInput(f"cannot load {name}: {loaded.message}")
    return [Generate(child, name, lock) for name in names]


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

    def call(self, subject: str, arguments: list[Any], options: dict[str, Any]) -> dict[str, str]:
        with subject_code():
            answer = self.subjects[subject](*arguments, **options)
        if isinstance(answer, str):
            return {"answer": answer}
        if hasattr(answer, "__len__") and len(answer) > MOST:
            return {"broken": f"the answer has {len(answer)} entries"}
        try:
            found = as_list(answer)
            if len(found) == 1 and isinstance(found[0], list):
                found = found[0]
            return {
                "answer": " ".join(t if isinstance(t, str) else str(whole_number(i, t)) for i, t in enumerate(found))
            }
        except ContractBroken as error:
            return {"broken": str(error)}
