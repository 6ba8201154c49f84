"""The claims about a served path, each a cell: what is asked, what it is held to, what was gathered against it.

A cell's `unit(bench, k)` makes its k-th look: some requests to both sides, and what they showed goes into its beliefs.
Looks are independent but for their prompts, which come from one list. A cell may be looked at as often as one likes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from refengine.audit.served.ask import Answer, Ask, Choice
from refengine.audit.served.belief import Faults, Partings
from refengine.audit.served.bench import Bench
from refengine.audit.served.faults import shown
from refengine.audit.served.options import TOKENS, Option, Options

LOGPROB_NOISE = 0.1  # nats by which two passes of one network may report a token apart
NEAR_TIE = 0.02  # nats between the two likeliest tokens under which half precision may take either
KNOWN_TIE_SHARE = 0.02  # of prompts that part without a tie, where the rows are reported and say so


class Cell(Protocol):
    """name: "parity/top_k". beliefs: what is claimed -> what was gathered against it. cost: requests of a unit."""

    @property
    def name(self) -> str: ...

    beliefs: dict[str, Any]
    cost: int

    def unit(self, bench: Bench, k: int) -> None: ...


# --- one right answer ------------------------------------------------------------------------------------------------


@dataclass
class Plain:
    """Temperature 0 and nothing else: where rows are reported, a parting at a near tie is told from a defect."""

    name: str = "greedy"
    cost: int = 2
    tokens: int = TOKENS
    chat: bool = False
    turns: Callable[[Bench, int], tuple[str, ...]] | None = None
    beliefs: dict[str, Any] = field(
        default_factory=lambda: {
            "the text is that of plain decoding": Partings(),
            "where the rows are reported, it parts only at ties": Partings(KNOWN_TIE_SHARE),
            "the log probabilities are those of plain decoding": Partings(),
        }
    )

    def unit(self, bench: Bench, k: int) -> None:
        if self.turns is None and not self.chat and self.tokens == TOKENS:
            ask = Ask((bench.prompt(k),), TOKENS, options=bench.logprobs)
            on, off = bench.plain(k, TOKENS)
        else:
            turns = self.turns(bench, k) if self.turns else (bench.prompt(k),)
            ask = Ask(turns, self.tokens, options=bench.logprobs, chat=self.chat)
            on, off = bench.both(ask)
        text, known, chances = self.beliefs.values()
        witness = difference(ask, on, off)
        text.add(parted(on, off), witness)
        if (tie := ties(on.choices[0], off.choices[0])) is not None:
            known.add(parted(on, off) and not tie, witness)
        if (apart := logprobs_apart(on.choices[0], off.choices[0])) is not None:
            chances.add(apart > LOGPROB_NOISE, witness | {"nats apart": round(apart, 3)})


@dataclass
class Parity:
    """One parameter that leaves one right answer: its text, and the log probabilities it is reported with."""

    option: Option
    dialect: int = 0
    chat: bool = False
    stream: bool = False
    looks: int = 0
    changes: int = 0  # of the plain text, on the side without speculation
    as_plain: int = 0  # answers with speculation that are the plain text although those without are not
    cost: int = 2
    beliefs: dict[str, Any] = field(
        default_factory=lambda: {
            "the text is that of plain decoding": Partings(),
            "the log probabilities are those of plain decoding": Partings(),
        }
    )

    @property
    def name(self) -> str:
        arm = "chat, " * self.chat + "streamed, " * self.stream
        return f"parity/{self.option.name}" + (f" ({arm.rstrip(', ')})" if arm else "")

    def ask(self, bench: Bench, k: int) -> Ask | None:
        """None where this prompt gives nothing to ask."""
        plain = bench.plain(k, TOKENS)[1].text
        made = self.option.made(plain, k)
        if not made:
            return None
        options: Options = dict(made[min(self.dialect, len(made) - 1)])
        tokens = options.pop("max_tokens", self.option.tokens)
        return Ask(
            (bench.prompt(k),),
            tokens,
            self.option.temperature,
            {**bench.logprobs, **options},
            chat=self.chat,
            stream=self.stream,
            seed=k if self.option.temperature else None,
        )

    def unit(self, bench: Bench, k: int) -> None:
        ask = self.ask(bench, k)
        if ask is None:
            return
        on, off = bench.both(ask)
        plain = bench.plain(k, TOKENS)[1].text
        self.looks += 1
        self.changes += off.text != plain
        self.as_plain += off.text != plain and on.text == plain
        text, chances = self.beliefs.values()
        witness = difference(ask, on, off)
        text.add(parted(on, off), witness)
        if (apart := logprobs_apart(on.choices[0], off.choices[0])) is not None:
            chances.add(apart > LOGPROB_NOISE, witness | {"nats apart": round(apart, 3)})


# --- a side against itself -------------------------------------------------------------------------------------------

Shows = tuple[bool, dict[str, Any]]


@dataclass
class Own:
    """The same schedule of requests to either side; `shows` says of one side's answers whether the fault shows.

    steps  requests one after another; the requests of one step are under way together
    """

    name: str
    claim: str
    steps: Callable[[Bench, int], Sequence[Sequence[Ask]]]
    shows: Callable[[Sequence[Answer]], bool]
    cost: int
    beliefs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.beliefs = {self.claim: Faults()}

    def unit(self, bench: Bench, k: int) -> None:
        steps = self.steps(bench, k)
        said: tuple[list[Answer], list[Answer]] = ([], [])
        for asks in steps:
            for side, answers in zip(said, bench.each(asks), strict=True):
                side.extend(answers)
        on, off = (self.shows(answers) for answers in said)
        witness = {
            "requests": [[ask.summary() for ask in asks] for asks in steps],
            "with speculation": [shown(answer) for answer in said[0]],
            "without": [shown(answer) for answer in said[1]],
        }
        self.beliefs[self.claim].add(on, off, witness)


# --- comparing answers -----------------------------------------------------------------------------------------------


def parted(on: Answer, off: Answer) -> bool:
    return on.outcome() != off.outcome()


def difference(ask: Ask, on: Answer, off: Answer) -> dict[str, Any]:
    """The request, both answers, and the first character in which they differ."""
    pairs = enumerate(zip(on.text, off.text, strict=False))
    first = next((i for i, (x, y) in pairs if x != y), min(len(on.text), len(off.text)))
    return {"request": ask.summary(), "on": shown(on), "off": shown(off), "first difference at character": first}


def ties(on: Choice, off: Choice) -> bool | None:
    """Whether the first two tokens that differ nearly tie in the row without speculation; None where no row says."""
    if on.tokens is None or off.tokens is None or not off.top:
        return None
    if on.tokens == off.tokens:
        return False
    i = next((i for i, (x, y) in enumerate(zip(on.tokens, off.tokens, strict=False)) if x != y), None)
    if i is None or i >= len(off.top) or off.tokens[i] not in off.top[i]:
        return False
    row = off.top[i]
    return on.tokens[i] in row and row[off.tokens[i]] - row[on.tokens[i]] < NEAR_TIE


def logprobs_apart(on: Choice, off: Choice) -> float | None:
    """The largest distance of the log probabilities of the tokens that both emitted alike, in nats."""
    if not on.tokens or not off.tokens or not on.logprobs or not off.logprobs:
        return None
    rows = zip(on.tokens, off.tokens, on.logprobs, off.logprobs, strict=False)
    apart = 0.0
    for mine, theirs, a, b in rows:
        if mine != theirs or a is None or b is None:
            break
        apart = max(apart, abs(max(a, -50.0) - max(b, -50.0)))
    return apart


def streamed(ask: Ask) -> Ask:
    return replace(ask, stream=True)
