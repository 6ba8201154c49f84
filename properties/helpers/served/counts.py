"""A side in this process that says one word a token, within a context: what an audit asks of it is looked at."""

from dataclasses import dataclass, field

from refengine.audit.served.ask import Answer, Ask, Choice, Refused


@dataclass
class Counts:
    """Says one word a token. context: of which words have `size` tokens; refuses: what would not fit, else it ends."""

    context: int
    size: int = 1
    refuses: bool = True
    tells: bool = True  # its usage
    early: int = 0  # tokens before the edge at which it ends
    asked: list[Ask] = field(default_factory=list)

    def send(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        prompt = self.size * len(ask.turns[0].split(" "))
        room = self.context - prompt
        if room < (ask.tokens if self.refuses else 1):
            raise Refused("too long")
        count = min(ask.tokens, max(1, room - self.early))
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        return Answer((Choice(" a" * count, "length"),), usage if self.tells else {})
