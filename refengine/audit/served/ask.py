"""A request as a user makes it, and what came back: the same for a server and for a function in the process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = dict[str, float]  # log probabilities of some tokens of one position
Listed: TypeAlias = tuple[tuple[str, float], ...]  # a row's likeliest tokens, in their order
INCLUDED = "include_stop_str_in_output"  # vLLM's, and others': the text ends with the stop string
STOPPED = {"stop", "stop_token_ids"}  # options by which a text ends in the middle of what else it may say
LISTED = 5  # tokens of a row that are asked for: what every server allows


def listed(wish: bool | int) -> int:
    """Tokens of a row that a wish for log probabilities asks for."""
    return LISTED if wish is True else int(wish)


class Refused(Exception):
    """The subject says that it does not do what was asked: an honest answer."""


class Failed(Exception):
    """No answer came back, for a reason that says nothing of what was asked."""


class Gone(Failed):
    """Nobody answers any more: there is nothing left to ask."""


@dataclass(frozen=True)
class Ask:
    """One request.

    turns     what user and assistant said in turn, the user first; one turn is a plain prompt
    tokens    the most that may be generated
    options   further parameters by the names of the OpenAI API and of its dialects
    chat      through the chat API
    stream    answered in pieces
    seed      None: the request names none
    hang_up   the client leaves when that piece of a streamed answer begins to come; 0: it stays
    system    what a chat's system message says, before all turns; "": it has none
    more      further prompts of a list: the request has an answer for each, the first one's first
    prompt_ids  the prompt as the ids of its tokens, sent in place of the turns; (): it is text
    wrong     it asks for what there is not: whether it is refused or not, what comes back is no answer
    """

    turns: tuple[str, ...]
    tokens: int
    temperature: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    chat: bool = False
    stream: bool = False
    seed: int | None = None
    hang_up: int = 0
    more: tuple[str, ...] = ()
    system: str = ""
    prompt_ids: tuple[int, ...] = ()
    wrong: bool = False

    def summary(self) -> dict[str, Any]:
        """As a witness shows it."""
        prompt = list(self.prompt_ids or self.turns)
        shown: dict[str, Any] = {"prompt": prompt, "max_tokens": self.tokens, "temperature": self.temperature}
        shown |= {"prompts of the list": 1 + len(self.more)} if self.more else {}
        shown |= {"system": self.system} if self.system else {}
        shown |= dict(self.options) | ({"seed": self.seed} if self.seed is not None else {})
        shown = {name: value for name, value in shown.items() if value is not None}
        return shown | {name: True for name in ("chat", "stream", "hang_up") if getattr(self, name)}


@dataclass(frozen=True)
class Choice:
    """One completion. tokens, logprobs, top, ids: an entry per reported token, prompt_ids: one per token of its prompt;
    None where nothing is reported."""

    text: str
    finish: str | None = None
    tokens: tuple[str, ...] | None = None
    logprobs: tuple[float | None, ...] | None = None
    top: tuple[Row, ...] | None = None
    ids: tuple[int, ...] | None = None
    prompt_ids: tuple[int, ...] | None = None

    @cached_property
    def listed(self) -> tuple[Listed, ...]:
        """The likeliest of each token's row: whether a token that is none of them is listed too does not say how it was
        drawn. () where not every token has a row."""
        rows = self.top or ()
        if len(rows) != len(self.tokens or ()):
            return ()
        return tuple(tuple(sorted(row.items(), key=itemgetter(1), reverse=True)[:LISTED]) for row in rows)


@dataclass(frozen=True)
class Answer:
    """choices in the order of their index; usage as it was reported, {} where it was not."""

    choices: tuple[Choice, ...]
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.choices[0].text

    def outcome(self) -> tuple[tuple[str, str | None], ...]:
        """What a user sees: texts and why they ended."""
        return tuple((choice.text, choice.finish) for choice in self.choices)


class Subject(Protocol):
    """Whoever answers. Raises Refused, Failed."""

    def send(self, ask: Ask) -> Answer: ...


@dataclass(frozen=True)
class Seedless:
    """A subject that takes no seed."""

    subject: Subject

    def send(self, ask: Ask) -> Answer:
        return self.subject.send(replace(ask, seed=None))
