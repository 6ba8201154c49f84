"""Both sides under one roof: requests are sent, counted and inspected here, and prompts come from here."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from random import Random
from threading import Lock, local
from typing import Any, TypeAlias

from refengine.audit.served.ask import Answer, Ask, Failed, Gone, Refused, Subject
from refengine.audit.served.belief import Faults, Partings
from refengine.audit.served.faults import CHECKS, faults, shown
from refengine.audit.served.noise import KNOWN_TIE_SHARE, Noise

PROMPTS = (
    "The capital of France is",
    "Once upon a time there was a",
    "def add(a, b):\n    return",
    "1, 2, 3, 4, 5, 6,",
    "yes no yes no yes no",
    "red green blue red green blue red",
    "In the beginning the",
)

COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")  # of usage, by every server
UNANSWERED = "a request is not answered"
LEAST_WITHOUT = 5  # requests without something, of which none shows a fault, before it is said to need that
OF_EVERY_REQUEST = {"prompt", "max_tokens", "temperature", "seed", "logprobs", "stream_options", "return_token_ids"}
HEATED = "a temperature other than 1"
USAGE = "the same text has another usage than without speculation"
OTHER_IDS = "the same text has other ids than without speculation"
FINISH = "the same text has another finish_reason than without speculation"
ROWS = "a sampled token has another row than without speculation after the same tokens"
FAR_FROM_A_TIE = "a text is another, far from any tie"
FAR_SHARE = 1 / 2000  # of prompts at which an honest pair may do so, or count one text of the same tokens otherwise
PAUSE = 0.005  # seconds between two requests that are to come one after the other
Said: TypeAlias = Answer | Refused | Failed


def parts_of(witness: Mapping[str, Any]) -> set[str]:
    """The parameters of its request, and the API that it went through."""
    request = witness["request"]
    return {*request} - OF_EVERY_REQUEST | (
        {HEATED} if request.get("temperature", 1.0) not in (0.0, 1.0) else set[str]()
    )


def titled(name: str) -> str:
    """What was gathered from all answers, as its finding is called."""
    return f"{'greedy' if name == FAR_FROM_A_TIE else 'metadata'}/{name}"


LAW_CHOICES = 64  # of a request whose law is sampled, unless told otherwise


@dataclass
class Bench:
    """on, off: the two sides. `metadata` gathers the faults of every request that both sides were sent alike."""

    on: Subject
    off: Subject
    prompts: Sequence[str] = PROMPTS
    at_once: int = 16
    together: bool = True  # whether requests can be under way together
    law_choices: int = LAW_CHOICES  # the most
    vocabulary: int = 0  # tokens of the model, as far as somebody said so or answers have shown (claims/found_ids.py)
    sent: int = 0
    metadata: dict[str, Faults] = field(
        default_factory=lambda: {name: Faults() for name in (*CHECKS, UNANSWERED, ROWS)}
    )
    alike: dict[str, Partings] = field(  # what is told of the same text, side against side
        default_factory=lambda: {name: Partings(KNOWN_TIE_SHARE) for name in (USAGE, OTHER_IDS, FINISH)}
    )
    far: Partings = field(default_factory=lambda: Partings(FAR_SHARE))  # of plain requests (claims/ties.py)
    strayed: set[tuple[str, ...]] = field(default_factory=set)  # what was asked where it showed
    compared: list[tuple[int, bool]] = field(default_factory=list)  # at temperature 0: requests by then; all the same
    plain_answers: dict[tuple[str, int, bool, bool], tuple[Answer, Answer]] = field(default_factory=dict)
    logprobs: Mapping[str, Any] = field(default_factory=dict)  # {"logprobs": True} where both sides report them
    ids: Mapping[str, Any] = field(default_factory=dict)  # the option for the ids of tokens
    prompt_ids: bool = False  # both sides take a prompt as the ids of its tokens
    ends: Mapping[str, Any] = field(default_factory=dict)  # the bias by which plain texts end (claims/found_ids.py)
    chat_ends: Sequence[Mapping[str, Any]] = ()  # the same in chat, of all ends together, then of each alone
    stream_usage: Mapping[str, Any] = field(default_factory=dict)  # the option for usage at a stream's end
    choices: int = 1  # of a request, that both sides give
    samples: bool = False  # requests of one choice have several answers without speculation
    noise: Noise = field(default_factory=Noise)

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(8 * self.at_once)
        self.lock = Lock()  # claims are looked at together
        self.asked_of: defaultdict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)  # (part of a request, shows)
        self.usual: defaultdict[str, set[frozenset[str]]] = defaultdict(set)  # parts of what shows it on either side
        self.heard = local()  # of a look of this thread: `names` of the faults of answers that it came upon, `spent`

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown()

    def spend(self, requests: int) -> None:
        """Count requests that are sent."""
        self.heard.spent = self.spent() + requests
        with self.lock:
            self.sent += requests

    def spent(self) -> int:
        """Requests of the look of this thread."""
        return int(getattr(self.heard, "spent", 0))

    @property
    def several(self) -> Mapping[str, int]:
        """The option for as many choices as both sides give."""
        return {"n": self.choices} if self.choices > 1 else {}

    def ending(self, chat: bool) -> Mapping[str, Any]:
        """The bias by which texts end."""
        return next(iter(self.chat_ends), {}) if chat else self.ends

    def prompt(self, number: int) -> str:
        """The prompt of that number: the ones that were given, then two and three of them in a row, all different."""
        singles = len(self.prompts)
        if number < singles:
            return self.prompts[number]
        longer = (
            product(range(singles), repeat=2) if number < singles + singles**2 else product(range(singles), repeat=3)
        )
        skipped = singles if number < singles + singles**2 else singles + singles**2
        rows = list(longer)
        return " ".join(self.prompts[i] for i in rows[(number - skipped) * 31 % len(rows)])

    def sampled_prompt(self, place: int) -> str:
        """That of a law: every other one ends as it has begun, so that drafts which are looked up in the text come with
        the first token."""
        prompt = self.prompt(place)
        words = prompt.split(" ")
        return " ".join([prompt, *words[: (len(words) + 1) // 2]]) if place % 2 else prompt

    def fresh(self, number: int, longest: int = 0) -> str:
        """A prompt of so many words, else of as many as the longest has, in an order that no other claim asks for: no
        cache holds it yet."""
        words = " ".join(self.prompts).split()
        longest = longest or max(len(prompt.split()) for prompt in self.prompts)
        return " ".join(Random(f"fresh {number}").choices(words, k=longest))

    def both(self, ask: Ask) -> tuple[Answer, Answer]:
        """The same request to both sides at once; its metadata is held side against side. Raises Refused, Failed."""
        (on,), (off,) = self.each([ask])
        self.inspect(ask, on, off)
        alike = [[(c.text, c.tokens if self.logprobs else None) for c in side.choices] for side in (on, off)]
        if ask.temperature == 0:
            with self.lock:
                self.compared.append((self.sent, alike[0] == alike[1]))
        if alike[0] == alike[1]:
            self.compare_alike(ask, on, off)
        return on, off

    def compare_alike(self, ask: Ask, on: Answer, off: Answer) -> None:
        """What two answers of the same text say of it, as far as both do."""
        witness = {"request": ask.summary(), "on": shown(on), "off": shown(off)}
        if on.usage and off.usage:
            self.keep(USAGE, any(on.usage.get(name) != off.usage.get(name) for name in COUNTS), False, witness)
        ids = [[choice.ids for choice in side.choices] for side in (on, off)]
        if all(map(all, ids)):
            self.keep(OTHER_IDS, ids[0] != ids[1], False, witness | {"ids on": ids[0], "ids off": ids[1]})
        ends = [[choice.finish for choice in side.choices] for side in (on, off)]
        as_many = on.usage.get("completion_tokens") == off.usage.get("completion_tokens")  # else the end may be a tie
        if all(map(all, ends)) and as_many and {*ends[0], *ends[1]} != {"length"}:
            self.keep(FINISH, ends[0] != ends[1], False, witness)

    def of_answers(self) -> dict[str, Faults | Partings]:
        """What was gathered from all answers, by its name."""
        return {**self.metadata, **self.alike, FAR_FROM_A_TIE: self.far}

    def inspect(self, ask: Ask, on: Answer, off: Answer, sampled: bool = False) -> None:
        """Hold the metadata of two answers to one request side against side.

        sampled  a fault counts only if the side without speculation has never shown it in a request with these
                 parameters or with some of them: how often a convention shows depends on the text
        """
        here, there = faults(ask, on), faults(ask, off)
        witness = {"request": ask.summary(), "on": shown(on), "off": shown(off)}
        parts = frozenset(parts_of(witness))
        for name in sorted(here.keys() & there.keys()):
            with self.lock:  # claims that are looked at together add to it
                usual = any(fewer <= parts for fewer in self.usual[name])
                if there[name]:
                    self.usual[name].add(parts)
            if not (sampled and usual):
                self.keep(name, here[name], there[name], witness)

    def without(self, asks: Sequence[Ask]) -> list[Answer]:
        """These requests together to the side without speculation. Raises Refused, Failed."""
        self.spend(len(asks))
        return [future.result() for future in [self.pool.submit(self.off.send, ask) for ask in asks]]

    def each(self, asks: Sequence[Ask], in_turn: bool = False) -> tuple[list[Answer], list[Answer]]:
        """These requests together to either side: they are under way at the same time; in_turn: and come in this order.
        Raises Refused, Failed."""
        self.spend(2 * len(asks))
        futures: tuple[list[Future[Said]], list[Future[Said]]] = ([], [])
        for ask in asks:
            for side, subject in zip(futures, (self.on, self.off), strict=True):
                side.append(self.pool.submit(_said, subject, ask))
            time.sleep(PAUSE * in_turn)
        on, off = ([future.result() for future in side] for side in futures)
        for ask, here, there in zip(asks, on, off, strict=True):
            if not any(isinstance(said, Refused | Gone) for said in (here, there)):
                self.keep(UNANSWERED, isinstance(here, Failed), isinstance(there, Failed), {"request": ask.summary()})
        for said in (*on, *off):
            if isinstance(said, Exception):
                raise said
        return on, off  # type: ignore[return-value]  # what is no answer was raised

    def apart(self, on: Ask, off: Ask) -> tuple[Answer, Answer]:
        """A request to either side, of its own, at the same time. Raises Refused, Failed."""
        return self.company([on], [off])[0]

    def company(self, on: Sequence[Ask], off: Sequence[Ask]) -> list[tuple[Answer, Answer]]:
        """Requests to either side, all under way together. Raises Refused, Failed."""
        self.spend(len(on) + len(off))
        here, there = (
            [self.pool.submit(side.send, ask) for ask in asks] for side, asks in ((self.on, on), (self.off, off))
        )
        said = [(one.result(), other.result()) for one, other in zip(here, there, strict=True)]
        for ask, answers in zip(on, said, strict=True):
            self.inspect(ask, *answers, sampled=True)
        return said

    def keep(self, name: str, on: bool, off: bool, witness: dict[str, Any]) -> None:
        if on and not off:
            self.listened().add(name)
        with self.lock:
            self.asked_of[name].update((part, on and not off) for part in ("", *parts_of(witness)))
            if name in self.alike:
                self.alike[name].add(on, witness)
            else:
                self.metadata[name].add(on, off, witness)

    def listened(self) -> set[str]:
        """The faults that the look of this thread came upon."""
        names: set[str] = getattr(self.heard, "names", set())
        return names

    def keep_far(self, turns: tuple[str, ...], shows: bool, witness: dict[str, Any]) -> None:
        """A look at a prompt, which counts no more once it has shown."""
        with self.lock:
            if turns not in self.strayed:
                self.far.add(shows, witness)
            if shows:
                self.strayed.add(turns)
                self.listened().add(FAR_FROM_A_TIE)

    def needs(self, name: str) -> list[str]:
        """What every request has at which a fault of answers showed with speculation alone, and others lack."""
        seen = self.asked_of[name]
        without = {part: seen["", False] - seen[part, False] for part, shows in seen if part and shows}
        return sorted(p for p, n in without.items() if n >= LEAST_WITHOUT and seen[p, True] == seen["", True])

    def plain(self, number: int, tokens: int, chat: bool = False, ends: bool = False) -> tuple[Answer, Answer]:
        """What both sides say to a prompt at temperature 0 with nothing else asked, but that it ends; asked once."""
        ending = self.ending(chat) if ends else {}
        key = self.prompt(number), tokens, chat, bool(ending)
        if key not in self.plain_answers:
            options = {**self.logprobs, **self.ids, **ending}
            self.plain_answers[key] = self.both(Ask((key[0],), tokens, options=options, chat=chat))
        return self.plain_answers[key]

    def complaints(self, ask: Ask) -> tuple[Refused | Failed | None, Refused | Failed | None]:
        """What either side has against such a request; None where it is taken. Raises Gone."""
        said: list[Refused | Failed | None] = []
        for side in (self.on, self.off):
            self.spend(1)
            try:
                side.send(ask)
                said.append(None)
            except Gone:
                raise
            except (Refused, Failed) as error:
                said.append(error)
        return said[0], said[1]

    def accepts(self, ask: Ask) -> bool:
        """Whether both sides take such a request. The side with speculation may fall over it: that is no refusal."""
        on, off = self.complaints(ask)
        return not off and not isinstance(on, Refused)


def _said(side: Subject, ask: Ask) -> Said:
    try:
        return side.send(ask)
    except (Refused, Failed) as error:
        return error
