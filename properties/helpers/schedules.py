"""Random schedules of a batch: who joins when, who leaves before the end, what each has to say alone."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from refengine.decoder.batch import Batch
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.loop import Session
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature, top_p
from refengine.engine.rules import RULES
from refengine.selfcheck.drafters.bits import Heard, Listened
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

POLICY = pipeline(temperature(0.8), top_p(0.95))
SEATS, WORDS = 4, 6


@dataclass(frozen=True)
class Request:
    """Number of its coins, prompt, and the length of its output."""

    number: int
    prompt: Tokens
    length: int


@dataclass
class Company:
    """A drafter of the table in `SEATS` sessions of one model, and what every request says alone.

    slots  given: in the bitwise mode
    """

    drafter: str
    dtype: torch.dtype
    slots: int | None = None
    device: str = "cpu"
    said: dict[Request, Tokens] = field(default_factory=dict)
    heard: Heard = field(default_factory=Heard)

    def __post_init__(self) -> None:
        tiny = ROWS[self.drafter]
        first: Any = load_target(FIXTURES / tiny.target, self.dtype, self.device, self.slots)
        more = {"slots": self.slots} if self.slots else {}
        self.sessions = []
        for seat in range(SEATS + 1):  # one more, which is always alone
            target = type(first)(first.model, **more) if seat else first
            judge: Any = Listened(target, self.heard) if self.slots else target
            self.sessions.append(Session(judge, tiny.load(target), RULES[tiny.rules[0]], POLICY, 0))

    def alone(self, request: Request) -> Tokens:
        if request not in self.said:
            session = replace(self.sessions[-1], max_new_tokens=request.length)
            session.begin(request.prompt, self.coins(request))
            while not session.done:
                session.play(self.coins(request))
            self.said[request] = session.out
        return self.said[request]

    def coins(self, request: Request) -> Philox:
        return Philox(9, torch.tensor([request.number], device=self.device))

    def play(self, source: random.Random, batch: Callable[[], Batch] = Batch, total: int = 6) -> list[str]:
        """One schedule; whatever was said that is not what the request says alone."""
        together, wrong, waiting = batch(), list[str](), [drawn(source) for _ in range(total)]
        seated: dict[int, Request] = {}
        while waiting or seated:
            for seat in range(SEATS):
                if waiting and seat not in seated and source.random() < 0.6:
                    seated[seat] = request = waiting.pop()
                    self.sessions[seat].max_new_tokens = request.length
                    together.join(self.sessions[seat], request.prompt, self.coins(request))
            together.step()
            for seat, request in list(seated.items()):
                session = self.sessions[seat]
                ended, gone = session.done, source.random() < 0.05
                if gone and not ended:  # what has ended leaves by itself
                    together.leave(session)
                if ended or gone:
                    del seated[seat]
                    joined = bool(session.prompt)
                    if joined and session.out != self.alone(request)[: len(session.out)]:
                        wrong.append(f"{request}: {session.out}, alone {self.alone(request)}")
                    if ended and not gone and len(session.out) != request.length:
                        wrong.append(f"{request}: {len(session.out)} tokens")
        return wrong


def drawn(source: random.Random) -> Request:
    """One of a few hundred requests, so that what each says alone is worked out once."""
    number = source.randrange(300)
    mine = random.Random(number)
    prompt = tuple(mine.randrange(WORDS) for _ in range(mine.randint(1, 7)))
    return Request(number, prompt, mine.randint(1, 10))
