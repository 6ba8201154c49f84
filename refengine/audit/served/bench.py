"""Both sides under one roof: requests are sent, counted and inspected here, and prompts come from here."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from threading import Lock
from typing import Any

from refengine.audit.served.ask import Answer, Ask, Refused, Subject
from refengine.audit.served.belief import Faults
from refengine.audit.served.faults import CHECKS, faults, shown

PROMPTS = (
    "The capital of France is",
    "Once upon a time there was a",
    "def add(a, b):\n    return",
    "1, 2, 3, 4, 5, 6,",
    "yes no yes no yes no",
    "red green blue red green blue red",
    "In the beginning the",
)


@dataclass
class Bench:
    """on, off: the two sides. `metadata` gathers the faults of every request that both sides were sent alike."""

    on: Subject
    off: Subject
    prompts: Sequence[str] = PROMPTS
    at_once: int = 16
    sent: int = 0
    metadata: dict[str, Faults] = field(default_factory=lambda: {name: Faults() for name in CHECKS})
    plain_answers: dict[tuple[str, int], tuple[Answer, Answer]] = field(default_factory=dict)
    logprobs: Mapping[str, Any] = field(default_factory=dict)  # {"logprobs": True} where both sides report them

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(8 * self.at_once)
        self.lock = Lock()  # claims are looked at together

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown()

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

    def both(self, ask: Ask) -> tuple[Answer, Answer]:
        """The same request to both sides at once; its metadata is held side against side. Raises Refused, Failed."""
        futures = [self.pool.submit(side.send, ask) for side in (self.on, self.off)]
        self.sent += 2
        on, off = (future.result() for future in futures)
        here, there = faults(ask, on), faults(ask, off)
        witness = {"request": ask.summary(), "on": shown(on), "off": shown(off)}
        with self.lock:
            for name in here.keys() & there.keys():
                self.metadata[name].add(here[name], there[name], witness)
        return on, off

    def each(self, asks: Sequence[Ask]) -> tuple[list[Answer], list[Answer]]:
        """These requests together to either side: they are under way at the same time. Raises Refused, Failed."""
        self.sent += 2 * len(asks)
        futures = [[self.pool.submit(side.send, ask) for ask in asks] for side in (self.on, self.off)]
        on, off = ([future.result() for future in side] for side in futures)
        return on, off

    def plain(self, number: int, tokens: int) -> tuple[Answer, Answer]:
        """What both sides say to a prompt at temperature 0 with nothing else asked; asked once."""
        prompt = self.prompt(number)
        if (prompt, tokens) not in self.plain_answers:
            self.plain_answers[prompt, tokens] = self.both(Ask((prompt,), tokens, options=self.logprobs))
        return self.plain_answers[prompt, tokens]

    def accepts(self, ask: Ask) -> tuple[bool, bool]:
        """Which of the sides takes such a request."""
        taken = []
        for side in (self.on, self.off):
            self.sent += 1
            try:
                side.send(ask)
                taken.append(True)
            except Refused:
                taken.append(False)
        return taken[0], taken[1]
