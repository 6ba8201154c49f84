"""What sampled tokens are reported with: their rows, and their log probabilities scored again as a prompt.

After the same tokens, with speculation, a row is the one that it was without.

Sampled answers to a prompt begin alike often enough, so that the rows of both sides after the same tokens are compared
without a request more, at every temperature that a law is asked for. Either answer of a pair is held to rows of
earlier answers without speculation: where none of the sides speculates it is as likely to stray as the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, ClassVar, TypeAlias

from refengine.audit.served.ask import LISTED, Answer, Ask, Choice, Row
from refengine.audit.served.belief import Faults
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.compare import rows_apart
from refengine.audit.served.claims.options import FILTERS
from refengine.audit.served.faults import shown

DEEPEST = 16  # tokens after which rows are kept
# At the edge of a filter, and where next to all mass is a bias's, rounding moves what is listed by much.
UNEVEN = {*FILTERS, "logit_bias"}
TEMPERATURE = 0.5  # at which many choices begin alike for some rounds
LOOKS_OF_A_PROMPT = 8
SCORED_TOKENS = 8  # of a completion whose tokens are scored again, one at a time
RESCORED = "a token is reported with the log probability it has"
SHARED_ROWS = "a sampled token has the row of plain decoding"
Before: TypeAlias = tuple[int, tuple[str, ...]]  # a prompt, and tokens up to the one that the row is of


@dataclass
class SharedRows:
    """Of one kind of request."""

    seen: dict[Before, Row] = field(default_factory=dict)

    def look(
        self, bench: Bench, place: int, asked: Ask, said: tuple[Answer, Answer]
    ) -> tuple[bool, bool, dict[str, Any]] | None:
        """(whether it shows with speculation, whether it does without, witness) of a pair of answers to the prompt of
        that number; None where nothing of them was seen before."""
        if UNEVEN & asked.options.keys():
            return None
        on, off = (self.farthest(place, answer.choices) for answer in said)
        for choice in said[1].choices:
            for before, row in rows(place, choice):
                self.seen.setdefault(before, row)
        if on is None or off is None:
            return None
        told = {"on": shown(said[0]), "off": shown(said[1])}
        far = bench.noise.far
        return on[0] > far, off[0] > far, {"request": asked.summary(), **on[1], **told}

    def farthest(self, place: int, choices: Sequence[Choice]) -> tuple[float, dict[str, Any]] | None:
        """(nats, what is farthest from what was seen before it); None where nothing was."""
        found = [
            (rows_apart(before[1][-1], row, self.seen[before]), before, row)
            for choice in choices
            for before, row in rows(place, choice)
            if before in self.seen
        ]
        if not found:
            return None
        apart, before, row = max(found, key=lambda told: told[0])
        known = {"after": list(before[1][:-1]), "row": row, "row without": self.seen[before]}
        return apart, {**known, "nats apart": round(apart, 3)}


def rows(place: int, choice: Choice) -> Iterator[tuple[Before, Row]]:
    for i, row in enumerate(choice.listed[:DEEPEST]):
        if row:
            yield (place, (choice.tokens or ())[: i + 1]), dict(row)


@dataclass
class SampledRows:
    """A look is one answer of each side, in several choices where a request has some."""

    by_itself: ClassVar[bool] = False
    choices: int
    name: str = "logprobs/sampled"
    cost: int = 2
    wanted: int = 3

    def __post_init__(self) -> None:
        self.beliefs: dict[str, Any] = {SHARED_ROWS: Faults()}
        self.shared = SharedRows()

    def unit(self, bench: Bench, k: int) -> None:
        place, seeds = k // LOOKS_OF_A_PROMPT, Random(f"{self.name}/{k}")
        several = {"n": self.choices} if self.choices > 1 else {}
        ask = Ask((bench.prompt(place),), DEEPEST, TEMPERATURE, {**bench.logprobs, **several})
        here, there = (replace(ask, seed=seeds.getrandbits(31)) for _ in range(2))
        if told := self.shared.look(bench, place, here, bench.apart(here, there)):
            (belief,) = self.beliefs.values()
            belief.add(*told)


@dataclass
class Rescored:
    """The log probability that a sampled token is reported with, against the score that the side without speculation
    gives the token when the text before it comes as a prompt."""

    by_itself: ClassVar[bool] = False
    temperature: float = 1.0
    cost: int = 4
    wanted: int = 4
    name: str = "logprobs/rescored"
    beliefs: dict[str, Any] = field(default_factory=lambda: {RESCORED: Faults()})

    def unit(self, bench: Bench, k: int) -> None:
        ask = Ask((bench.prompt(k),), SCORED_TOKENS, self.temperature, bench.logprobs, seed=k)
        answers = bench.each([ask])
        off_by, told = [], []
        for (answer,) in answers:
            choice = answer.choices[0]
            i = self.place(choice, k)
            score = self.score(bench, ask, choice, i)
            reported = choice.logprobs[i] if choice.logprobs and i < len(choice.logprobs) else None
            if score is None or reported is None:
                return
            off_by.append(abs(max(reported, -50.0) - score))
            told.append({"position": i, "reported": round(reported, 4), "scored": round(score, 4), **shown(answer)})
        witness = {"request": ask.summary(), "on": told[0], "off": told[1]}
        (belief,) = self.beliefs.values()
        belief.add(off_by[0] > bench.noise.nats, off_by[1] > bench.noise.nats, witness)

    @staticmethod
    def place(choice: Choice, k: int) -> int:
        """Of a token that is one of the listed: a position that moves with k."""
        count = len(choice.tokens or ())
        rows = zip(choice.tokens or (), choice.top or (), strict=False)
        listed = [i for i, (token, row) in enumerate(rows) if token in sorted(row, key=lambda t: -row[t])[:LISTED]]
        return listed[k % len(listed)] if listed else k % max(1, count)

    def score(self, bench: Bench, ask: Ask, choice: Choice, i: int) -> float | None:
        """None where the token is not among the likeliest, or where no tokens are reported."""
        if not choice.tokens or "".join(choice.tokens).strip() != choice.text.strip():
            return None
        again = Ask((ask.turns[0] + "".join(choice.tokens[:i]),), 1, ask.temperature, bench.logprobs, seed=i)
        bench.spend(1)
        row = bench.off.send(again).choices[0].top
        return row[0].get(choice.tokens[i]) if row else None
