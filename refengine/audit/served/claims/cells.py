"""The claims about a served path, each a cell: what is asked, what it is held to, what was gathered against it.

A cell's `unit(bench, k)` makes its k-th look: some requests to both sides, and what they showed goes into its beliefs.
Looks are independent but for their prompts, which come from one list. A cell may be looked at as often as one likes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar, Protocol

from refengine.audit.served.ask import STOPPED, Answer, Ask, Failed, Refused
from refengine.audit.served.belief import Faults, Partings, signs_of
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.compare import difference, logprobs_apart
from refengine.audit.served.claims.options import FILTERS, TOKENS, Option, Options
from refengine.audit.served.claims.ties import FRONT_END, asked_tie, count_far, parted, tied
from refengine.audit.served.faults import contradicts
from refengine.audit.served.noise import KNOWN_TIE_SHARE, Noise


class Cell(Protocol):
    """name: "parity/top_k". beliefs: what is claimed -> what was gathered against it. cost: requests of a look.
    wanted: looks after which others come first. by_itself: no other claim is looked at meanwhile."""

    @property
    def by_itself(self) -> bool: ...

    @property
    def name(self) -> str: ...

    beliefs: dict[str, Any]
    cost: int
    wanted: int

    def unit(self, bench: Bench, k: int) -> None: ...


FEW_TOKENS = 4  # of an answer whose text is nobody's claim
LISTED_PROMPTS, MOST_STOPS = 6, 4  # of a list, in one request; that the API of OpenAI takes
SEED_APART = 1 << 20  # of a request that is made again
TEXT = "the text is that of plain decoding"
LOGPROBS_EQUAL = "the log probabilities are those of plain decoding"


@dataclass
class Plain:
    """Temperature 0 and nothing else. noise: what an honest pair may part by. rows: reported, they tell ties. asked:
    the request of that number, where it is not a prompt with so many tokens and options. at_the_edge: of a context,
    where an honest pair may end apart, far from any tie."""

    name: str
    noise: Noise
    rows: bool
    tokens: int = TOKENS
    chat: bool = False
    turns: Callable[[Bench, int], tuple[str, ...]] | None = None
    asked: Callable[[Bench, int], Ask] | None = None
    options: Options = field(default_factory=dict)
    cost: int = 2
    wanted: int = 7
    at_the_edge: bool = False

    def __post_init__(self) -> None:
        self.shown_at: list[int] = []  # the numbers of looks
        share = KNOWN_TIE_SHARE if self.rows else self.noise.asked_share(self.tokens)
        self.beliefs: dict[str, Any] = {TEXT: Partings(share)}
        if self.rows:
            self.beliefs[LOGPROBS_EQUAL] = Partings(self.noise.rows_share)

    @property
    def after_others(self) -> bool:
        """What it asks comes after other requests, which are a part of it."""
        return self.cost > Plain.cost and not self.at_the_edge

    @property
    def by_itself(self) -> bool:
        """Nothing that another claim asks comes between."""
        return self.after_others

    def ask(self, bench: Bench, k: int) -> Ask:
        if self.asked:
            return self.asked(bench, k)
        turns = self.turns(bench, k) if self.turns else (bench.prompt(k),)
        return Ask(turns, self.tokens, options={**bench.logprobs, **self.options}, chat=self.chat)

    def shown(self, bench: Bench, most: int) -> list[Ask]:
        """The requests that showed it, at most so many, with what comes before them."""
        return [self.ask(bench, k) for k in self.shown_at[:most]]

    def unit(self, bench: Bench, k: int) -> None:
        ask = self.ask(bench, k)
        bare = not (self.turns or self.asked or self.chat) and self.tokens == TOKENS
        on, off = bench.plain(k, TOKENS) if bare else bench.both(ask)
        if shows := self.shows(bench, ask, on, off):
            self.shown_at.append(k)
        witness = difference(ask, on, off)
        self.beliefs[TEXT].add(shows, witness)
        compare_logprobs(self.beliefs, bench, on, off, witness)
        if not self.at_the_edge:
            count_far(bench, ask, [(on, off)], witness)

    def shows(self, bench: Bench, ask: Ask, on: Answer, off: Answer) -> bool:
        if self.rows or not parted(on, off):
            return parted(on, off) and not tied(on, off, bench.noise.tie)
        return not asked_tie(bench, ask, on, off)


@dataclass
class Parity:
    """One parameter that leaves one right answer: its text, and the log probabilities it is reported with. prompts: of
    a list that every other request asks, with the same options: as many answers for one request."""

    by_itself: ClassVar[bool] = False
    option: Option
    noise: Noise
    rows: bool
    dialect: int = 0
    chat: bool = False
    stream: bool = False
    prompts: int = 1
    looks: int = 0
    changes: int = 0  # of the plain text, on the side without speculation
    as_plain: int = 0  # answers with speculation that are the plain text although those without are not
    sampled: int = 0  # looks at which the side without speculation does not give the one text that is left
    as_greedy: int = 0  # partings at prompts at which the plain texts part too
    told: int | None = None  # the number of the last look that showed anything
    cost: int = 2

    def __post_init__(self) -> None:
        # A front end adds little to be wrong, and what is asked another way too has looks there.
        self.wanted = 2 if self.stream else 3 if self.chat else 4
        self.shown_in: list[Ask] = []
        self.variants: dict[int, int] = {}  # by the number of a look
        self.beliefs: dict[str, Any] = {TEXT: Partings(self.noise.asked_share(self.option.tokens))}
        if self.rows:
            self.beliefs[LOGPROBS_EQUAL] = Partings(self.noise.rows_share)

    @property
    def name(self) -> str:
        arm = [word for word in ("chat", "stream") if getattr(self, word)]
        return f"parity/{self.option.name}" + (f" ({', '.join(arm)})" if arm else "")

    def variant(self, k: int) -> int:
        """Which value the parameter has at that look: another each time, but once one has shown something, every other
        time the last that did. The defect may be of that value alone."""
        return self.variants.setdefault(k, self.variants[self.told] if self.told is not None and k % 2 else k)

    def rows_asked(self, bench: Bench, k: int) -> Options:
        """At one value of four no rows, as most users ask for none, and some engines do not speculate where they do;
        and at one only the token itself. So too when that value comes again since it has shown something."""
        few: dict[int, Options] = {1: {"logprobs": 1} if bench.logprobs else {}, 2: {}}
        return few.get(self.variant(k) % 4, dict(bench.logprobs))

    def several(self, bench: Bench, k: int) -> Options:
        """Two choices at one value of four, where both have one right text: but at temperature 0, where engines do not
        give several."""
        two = self.option.extreme and self.variant(k) % 4 == 3 and bench.choices > 1 and not self.stream
        return {"n": 2} if two else {}

    def made(self, bench: Bench, place: int, k: int) -> Options:
        """The options of the look k at the prompt of that number; {} where it gives nothing to ask."""
        made = self.option.made(self.plain(bench, place)[1].choices[0], self.variant(k))
        return made[min(self.dialect, len(made) - 1)] if made else {}

    def plain(self, bench: Bench, place: int) -> tuple[Answer, Answer]:
        """What both sides say to that prompt without the parameter."""
        return bench.plain(place, TOKENS, self.chat, self.option.ends)

    def asks(self, bench: Bench, k: int) -> dict[int, Ask]:
        """What the request asks of each of its prompts, by their numbers; {} where the first gives nothing to ask."""
        if not (first := self.made(bench, k, k)):
            return {}
        others = range(k + 1, k + self.prompts) if k % 2 and not self.option.temperature else ()
        made = {k: first} | {place: told for place in others if (told := self.made(bench, place, k))}
        shared = asked_together([*made.values()])
        options = {**(bench.ending(self.chat) if self.option.ends else {}), **(first if shared is None else shared)}
        tokens = options.pop("max_tokens", self.option.tokens)
        options = {**self.rows_asked(bench, k), **options, **self.several(bench, k)}
        options |= bench.stream_usage if self.stream else {}
        heat, seed = self.option.temperature, k if self.option.temperature else None
        return {
            place: Ask((bench.prompt(place),), tokens, heat, options, chat=self.chat, stream=self.stream, seed=seed)
            for place in ([k] if shared is None else made)
        }

    def asked(self, bench: Bench) -> Ask:
        """One of its requests. Raises ValueError where the first prompt gives none."""
        if not (asks := self.asks(bench, 0)):
            raise ValueError(f"{self.name} is not asked at the first prompt")
        return asks[0]

    def shown(self, bench: Bench, most: int) -> list[Ask]:
        """The requests that showed it, at most so many."""
        return self.shown_in[:most]

    def unit(self, bench: Bench, k: int) -> None:
        if not (asks := self.asks(bench, k)):
            return
        first, *others = asks.values()
        on, off = bench.both(replace(first, more=tuple(ask.turns[0] for ask in others)))
        signs = signs_of(self.beliefs)
        asked = [*asks.items()] * first.options.get("n", 1)
        mine, theirs = (each(side) if len(asked) > 1 else [side] for side in (on, off))
        for (place, ask), here, there in zip(asked, mine, theirs, strict=False):
            self.look(bench, place, ask, here, there, {"prompts of the list": len(asks)} if others else {})
        self.told = k if signs_of(self.beliefs) > signs else self.told

    def look(self, bench: Bench, place: int, ask: Ask, on: Answer, off: Answer, among: dict[str, Any]) -> None:
        """At the answers to one prompt."""
        plain_on, plain = self.plain(bench, place)
        self.looks += 1
        if self.option.extreme and off.text != self.left(bench, ask, plain):
            self.sampled += 1
            return
        self.changes += off.text != plain.text
        self.as_plain += off.text != plain.text and on.text == plain.text
        self.as_greedy += parted(on, off) and parted(plain_on, plain)
        if shows := self.shows(bench, ask, on, off):
            self.shown_in.append(ask)
        witness = difference(ask, on, off) | among
        self.beliefs[TEXT].add(shows, witness)
        compare_logprobs(self.beliefs, bench, on, off, witness)
        as_greedy = replace(ask, temperature=0.0) if self.option.extreme else ask  # one token is left
        count_far(bench, as_greedy, [(on, off)], witness)

    def left(self, bench: Bench, ask: Ask, plain: Answer) -> str:
        """The text of the side without speculation where one token is left: the plain one, unless it is longer or other
        options move it; then what another seed gives."""
        if ask.tokens <= TOKENS and not ask.options.keys() - {*FILTERS, *FRONT_END}:
            return plain.text
        return bench.without([replace(ask, seed=SEED_APART + (ask.seed or 0))])[0].text

    def shows(self, bench: Bench, ask: Ask, on: Answer, off: Answer) -> bool:
        """A choice does: these have one right text."""
        return any(self.choice_shows(bench, ask, *pair) for pair in zip(each(on), each(off), strict=False))

    def choice_shows(self, bench: Bench, ask: Ask, on: Answer, off: Answer) -> bool:
        """What the request does not allow is no tie. A filter that leaves one token leaves none to ask about: that is
        asked without it. Rows that are reported may be those before the parameter: a tie in them excuses a parting, and
        hides few that the parameter made."""
        if contradicts(ask, on) and not contradicts(ask, off):
            return True
        if not parted(on, off) or tied(on, off, bench.noise.tie):
            return False
        options = {name: value for name, value in ask.options.items() if name not in FILTERS}
        asked = replace(ask, temperature=0.0, options=options) if self.option.extreme else ask
        return not asked_tie(bench, asked, on, off)


def each(answer: Answer) -> list[Answer]:
    """What is said to each prompt of a list; the usage is of all of them."""
    return [Answer((choice,)) for choice in answer.choices]


def asked_together(made: Sequence[Options]) -> Options | None:
    """What all prompts of a list are asked with. Where they differ in what stops them, these stops together; None where
    they differ in anything else."""
    if any(isinstance(options.get("stop"), str) for options in made):  # which holds but one
        return None
    rest = [{name: value for name, value in options.items() if name not in STOPPED} for options in made]
    names = STOPPED & made[0].keys()
    if any(other != rest[0] for other in rest) or any(STOPPED & options.keys() != names for options in made):
        return None
    found = {name: [*dict.fromkeys(chain.from_iterable(options[name] for options in made))] for name in names}
    return {**rest[0], **{name: stops[:MOST_STOPS] for name, stops in found.items()}}


def compare_logprobs(beliefs: dict[str, Any], bench: Bench, on: Answer, off: Answer, witness: dict[str, Any]) -> None:
    """Of the tokens that both emitted alike before they part; one text is reported in the same tokens."""
    mine, theirs = on.choices[0], off.choices[0]
    apart, others = logprobs_apart(mine, theirs), mine.text == theirs.text and mine.tokens != theirs.tokens
    if LOGPROBS_EQUAL in beliefs and (others or apart is not None):
        more = {"reported": mine.tokens, "nats apart": apart and round(apart, 3)}
        beliefs[LOGPROBS_EQUAL].add(others or (apart or 0.0) > bench.noise.rows_nats, witness | more)


@dataclass
class Answered:
    """A parameter that the side with speculation alone falls over: no claim can ask for it, so it is one by itself."""

    by_itself: ClassVar[bool] = False
    parameter: str
    options: Options
    cost: int = 2
    wanted: int = 16

    def __post_init__(self) -> None:
        self.name = f"parity/{self.parameter}"
        self.beliefs: dict[str, Any] = {f"Requests with {self.parameter} are answered.": Faults()}

    def ask(self, bench: Bench, k: int) -> Ask:
        return Ask((bench.prompt(k),), FEW_TOKENS, 1.0, self.options, seed=k)

    def falls(self, bench: Bench) -> bool:
        """Whether there is such a claim. Raises Gone."""
        on, off = bench.complaints(self.ask(bench, 0))
        return isinstance(on, Failed) and not off

    def unit(self, bench: Bench, k: int) -> None:
        ask = self.ask(bench, k)
        said = bench.complaints(ask)
        for complaint in said:
            if isinstance(complaint, Refused):
                raise complaint
        (belief,) = self.beliefs.values()
        belief.add(*map(bool, said), {"request": ask.summary(), "on": str(said[0])})
