"""The transport of a library in the process: its generate functions, in a child, with options as keyword arguments.

    generate(prompt, max_new_tokens, temperature, seed, **options) -> text or tokens

What the function does not take by name it refuses, which is an honest answer. The prompt is text; the function
tokenises as it likes. Only plain options are passed; rows, streams, chat and several choices belong to servers.
"""

from dataclasses import dataclass

from refengine.audit.paired.functions import CALL_SECONDS
from refengine.audit.sandbox.child import Child
from refengine.audit.served.ask import Answer, Ask, Choice, Failed, Refused

SERVER_ONLY = {"logprobs", "n", "echo", "stop", "response_format"}  # options that a plain generate does not have


@dataclass(frozen=True)
class Generate:
    """One function of the child, which has opened it."""

    child: Child
    name: str

    def send(self, ask: Ask) -> Answer:
        """Raises Refused for what a function has no word for, Failed where it raises."""
        refused = SERVER_ONLY & ask.options.keys()
        if ask.chat or ask.stream or refused:
            raise Refused(f"a function has no {', '.join(sorted(refused)) or 'chat or stream'}")
        arguments = ["\n".join(ask.turns), ask.tokens, ask.temperature, ask.seed or 0]
        request = {"op": "call", "subject": self.name, "arguments": arguments, "options": dict(ask.options)}
        outcome = self.child.ask(request, CALL_SECONDS)
        if not outcome.ok and "unexpected keyword argument" in str(outcome):
            raise Refused(str(outcome))
        if not outcome.ok:
            raise Failed(f"{self.name}: {outcome}")
        if "broken" in outcome.value:
            raise Failed(f"{self.name}: {outcome.value['broken']}")
        said = outcome.value["answer"]
        return Answer((Choice(said if isinstance(said, str) else " ".join(map(str, said))),))
