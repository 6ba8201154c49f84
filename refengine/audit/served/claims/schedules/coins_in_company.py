"""The claims about coins in company: no request has part in those of another.

An answer does not follow the seed of another. With a seed a request's coins are its own. Where one generator tosses
the coins of a whole batch, an answer is another in company, but so it is on an honest server that drafts less under
load. What tells them apart: a neighbour to which a parameter leaves one token says the same, and is as long under way,
whatever its seed is. So everything that anybody may make depend on company is alike in all runs of a look, but for the
seed, which is another in each of ARMS and the same in the two runs of one arm.

Null: which runs are of one arm moves nothing. n = 2 ARMS runs a look, in an order that is drawn before; whatever the
answers are, and whatever they do over time, each of the 945 ways to pair the runs is then as likely as the true one.
The bet is exp(WEIGHT * how alike the runs of an arm are), divided by its mean over all ways: it has mean 1, and an
answer that follows the seed earns log 945 = 6.9 nats a look, so that three looks decide at the default alpha. Where a
half of the runs follow (a total variation of 0.5 between arms) it takes some ten.

Requests without a seed that are under way together are independent. Where one coin serves all rows of a batch each
answer has the right law, and those of one batch begin alike too often: two of them by some percent, which two equal
requests a look show too seldom. So two batches of equal requests are sent, one after the other, and what is compared
are all pairs in a batch.

Null: which batch an answer was in moves nothing. The bet is exp(weight * how alike the answers of a batch are, in
standard deviations), divided by its mean over this way to part the answers and DRAWN others, which are drawn before:
whatever the answers are, each of these is as likely as the true one. So it has mean 1, and gains log (DRAWN + 1) = 6.9
nats a look at most. One weight is for a coin that decides all, the other for one that decides some.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import log
from random import Random
from typing import Any, ClassVar, TypeAlias

import numpy as np

from refengine.audit.served.ask import Answer, Ask, Refused
from refengine.audit.served.belief import SIGN_NATS
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.found_ids import LEAST_TOKENS
from refengine.audit.served.claims.options import TOKENS, Options, alone
from refengine.audit.served.claims.schedules.requests import sampled
from refengine.audit.served.faults import shown
from refengine.evidence.rows import Rows, log_sum

CLAIM = "An answer does not follow the seed of another request."
ARMS = 5  # seeds of the neighbour, each in two runs
WEIGHT = 6.0  # nats that a pair of equal answers is worth beside one of which nothing is alike
INDEPENDENT = "Requests without a seed that are under way together, and their choices, are independent."
SIZE = 14  # requests of a batch
FEW_TOKENS = 4  # what is alike by chance is seldom longer
DEVIATIONS = (1.0, 3.0)  # nats of a standard deviation
DRAWN = 999  # other ways to part the answers
DECIMALS = 9  # to which sums are the same
Run: TypeAlias = tuple[int, int]  # (arm, which of its runs)
Answers: TypeAlias = dict[Run, tuple[list[Answer], list[Answer]]]  # of either side, the neighbour's first


def pairings(items: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Every way to make pairs of them."""
    if not items:
        yield []
        return
    first, *rest = items
    for other in rest:
        for more in pairings([i for i in rest if i != other]):
            yield [(first, other), *more]


EVERY_WAY = np.array(list(pairings(range(2 * ARMS))))  # the first of them has the runs of an arm side by side


def bet(texts: Sequence[str]) -> float:
    """In nats, of the answers of an arm side by side."""
    return gained(WEIGHT * likeness(texts)[EVERY_WAY[..., 0], EVERY_WAY[..., 1]].sum(1))


def gained(nats: Rows) -> float:
    """By a bet of so many nats on each way, each as likely as another, where the first is the true one."""
    return float(nats[0] - log_sum(nats, 0)) + log(len(nats))


def likeness(texts: Sequence[str]) -> Rows:
    """[texts, texts]"""
    return np.array([[alike(a, b) for b in texts] for a in texts])


def alike(a: str, b: str) -> float:
    """The share of two texts in which they begin alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))) / max(1, len(a), len(b))


@dataclass
class Followed:
    """The belief. What the side without speculation does too is taken off. constant, independent: what is said where it
    holds, of one answer and of several."""

    constant: str
    independent: str
    nats: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    moved: int = 0  # looks in which the answers with speculation were not all one
    witnesses: list[dict[str, Any]] = field(default_factory=list)

    def add(self, on: float, off: float, moved: bool, witness: dict[str, Any]) -> None:
        for gained, side in zip((on, off), self.nats, strict=True):
            side.append(gained)
        self.moved += moved
        self.witnesses = [*self.witnesses, witness] if on > max(0.0, off) and not self.witnesses else self.witnesses

    @property
    def looks(self) -> int:
        return len(self.nats[0])

    @property
    def log_evidence(self) -> float:
        on, off = map(sum, self.nats)
        return float(on - max(0.0, off))

    @property
    def signs(self) -> int:
        return sum(on > SIGN_NATS and on > off for on, off in zip(*self.nats, strict=True))

    def unsaid(self, bar: float) -> str:
        return ""

    def excluded(self, bar: float) -> str:
        if not self.moved:
            return f"In {self.looks} looks {self.constant}."
        return f"In {self.looks} looks {self.independent}."

    def counts(self) -> dict[str, int]:
        return {"looks": self.looks, "looks with several answers": self.moved}


@dataclass
class OneToken:
    """What leaves a neighbour one token: a bias on an id. A mark without a text may be less likely than its neighbours
    by more than a bias makes up for, and every parameter may be ignored: then other ids, and a filter.

    biased, filtered  both sides take that
    passed            forms under which a neighbour's answers were several
    """

    biased: bool = True
    filtered: bool = False
    passed: int = 0

    def left(self, bench: Bench) -> list[Options]:
        """The forms of which nothing is known against."""
        most = max(LEAST_TOKENS, bench.vocabulary)
        ids = (5, most // 2, most - 1) if self.biased else ()
        return [*map(alone, ([i] for i in ids)), *([{"top_k": 1}] * self.filtered)][self.passed :]


@dataclass
class OthersSeeds:
    """A look is 2 * ARMS runs of two requests, at either side. one_token: what leaves the neighbour one token."""

    by_itself: ClassVar[bool] = True
    one_token: OneToken
    name: str = "seed/of another"
    cost: int = 8 * ARMS
    wanted: int = 1

    def __post_init__(self) -> None:
        constant = "it was one answer, whatever seed a neighbour had"
        independent = "answers beside the same seed were no more alike than beside others"
        self.beliefs: dict[str, Any] = {CLAIM: Followed(constant, independent)}

    def unit(self, bench: Bench, k: int) -> None:
        """Raises Refused, Failed."""
        mine, seeds = sampled(bench, k, 1000 + k), {(i, again): 77 * k + i for i in range(ARMS) for again in range(2)}
        other, said = answers_beside(bench, k, mine, self.one_token, seeds, f"{self.name}/{k}")
        texts = [[said[run][side][1].text for run in seeds] for side in (0, 1)]
        witness = {
            "requests": [[other.summary(), mine.summary()]],
            "answers beside two seeds": [shown(said[arm, 0][0][1]) for arm in range(2)],
            "and again": [shown(said[arm, 1][0][1]) for arm in range(2)],
        }
        (belief,) = self.beliefs.values()
        belief.add(*map(bet, texts), len(set(texts[0])) > 1, witness)


def neighbour(bench: Bench, k: int, one_token: Options) -> Ask:
    """Sampled, as the coins of batches are tossed for those; longer than the other, so that it stays."""
    return replace(sampled(bench, k + 1, None), tokens=4 * TOKENS, options=one_token)


def answers_beside(
    bench: Bench, k: int, mine: Ask, one_token: OneToken, seeds: Mapping[Run, int | None], key: str
) -> tuple[Ask, Answers]:
    """A neighbour whose answers are one, and those of either side beside it with every one of these seeds. Raises
    Failed, and Refused where there is none: answers that differ may honestly move the other."""
    for options in one_token.left(bench):
        other = neighbour(bench, k, options)
        if said := _answers(bench, mine, {run: replace(other, seed=seed) for run, seed in seeds.items()}, key):
            return other, said
        one_token.passed += 1
    raise Refused("it samples where one token is left")


def _answers(bench: Bench, mine: Ask, others: Mapping[Run, Ask], key: str) -> Answers:
    """Of either side to every one of these neighbours and to a request that comes after it, in an order that is drawn
    before; {} as soon as the neighbours' answers are not one."""
    said: Answers = {}
    for run in Random(key).sample([*others], len(others)):
        said[run] = bench.each([others[run], mine], in_turn=True)
        if any(len({answers[side][0].text for answers in said.values()}) > 1 for side in (0, 1)):
            return {}
    return said


def bet_on_batches(first: Sequence[str], second: Sequence[str], key: str) -> float:
    """In nats, of the answers of two batches."""
    texts = [*first, *second]
    chance, places, pairs = Random(key), range(len(texts)), likeness(texts)
    parted = np.array([places, *(chance.sample(places, len(texts)) for _ in range(DRAWN))])
    batches = np.split(parted, [len(first)], axis=1)
    within: Rows = sum(pairs[batch[:, :, None], batch[:, None, :]].sum((1, 2)) for batch in batches)
    within = within.round(DECIMALS)  # sums of the same numbers in another order are equal
    likely = (within - within.mean()) / (within.std() or 1.0)
    return float(np.logaddexp.reduce([gained(weight * likely) for weight in DEVIATIONS])) - log(len(DEVIATIONS))


@dataclass
class OneBatch:
    """A look is two batches, at either side: of SIZE requests, or of two with so many choices each."""

    by_itself: ClassVar[bool] = True
    choices: int = 1

    def __post_init__(self) -> None:
        of_choices = self.choices > 1
        self.name = "n/of a batch" if of_choices else "seed/of a batch"
        self.size, self.wanted = (2, 2) if of_choices else (SIZE, 1)
        self.cost = 4 * self.size
        constant = "there was one answer, whatever batch it was in"
        independent = "answers of one batch were no more alike than those of two"
        self.beliefs: dict[str, Any] = {INDEPENDENT: Followed(constant, independent)}

    def unit(self, bench: Bench, k: int) -> None:
        """Raises Refused, Failed."""
        several = {"n": self.choices} if self.choices > 1 else {}
        ask = replace(sampled(bench, k, None), tokens=FEW_TOKENS, options=several)
        asked = [bench.each([ask] * self.size) for _ in range(2)]
        texts = [[[c.text for said in sides[side] for c in said.choices] for sides in asked] for side in (0, 1)]
        nats = [bet_on_batches(one, other, f"{self.name}/{k}") for one, other in texts]
        first, second = texts[0]
        witness = {"requests": [[ask.summary()] * self.size], "first batch": first, "second batch": second}
        (belief,) = self.beliefs.values()
        belief.add(*nats, len({*first, *second}) > 1, witness)
