"""What a sampled answer scores: sums over its tokens by which a law that is not the promised one gives itself away.

Where rows of log probabilities are reported, each token is scored against its own row: how surprising it is, whether it
is the likeliest, whether it lies beyond the listed ones, each less what the row itself expects. A sum then moves by
what sampling did and not by what the text happened to be about. Without rows a token is as surprising as it was rare
among all answers so far, of both sides, after the word before it.

No score has to be right. It is compared between two sides of which either could have given either answer.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import exp, log
from typing import Any, NamedTuple, TypeAlias

from refengine.audit.served.ask import Choice, Listed, Row

SURPRISE_NATS = 8.0  # a token scores at most
SHARED = 8  # tokens of a text before which two texts are often alike
UNLISTED = 10.0  # tokens that share the chance of those beyond the listed, about
EVERY = "every token"
PLACES: Mapping[str, range] = {  # of tokens of a completion
    EVERY: range(1 << 30),
    "the first token": range(1),
    "tokens 2 to 4": range(1, 4),
    "tokens 5 to 16": range(4, 16),
    "later tokens": range(16, 1 << 30),
}
LATER_CHOICES = "choices after the first"
LENGTH, ENDED, NEXT = "the length", "how many end by themselves", "how one surprise follows another"
ALIKE = "how many choices of one request begin alike"
UNEVEN = "how unevenly the choices of one request fall"  # beside all choices of the requests before it
APART = ALIKE, UNEVEN  # what choices say that share their coins, though each of them has the right law
OFTEN = 2.0  # choices that a word is expected in, from which on it counts by itself
COPIES = "how often a text goes on as it did after the same two tokens"  # as drafts do that are looked up in it
ORDER = "how much longer a choice is for every choice before it"  # where choices are numbered as they end
STARTS = (1, 2, 4)  # words by which two choices are told to begin alike
LIKELIEST = "the share of the likeliest token"
WHAT = ("the mean surprise", LIKELIEST, "the share of tokens beyond the listed")
KINDS = len(WHAT) * (len(PLACES) + 1) + 5 + len(STARTS) + 2
Scored: TypeAlias = tuple[float, ...]  # of one token, an entry for each of WHAT
# Tokens from this on are in one place; and by how many tokens are before it, what a token is counted in.
DIFFERENT = 1 + max(places.start for places in PLACES.values())
PLACES_OF = [[name for name, places in PLACES.items() if i in places] for i in range(DIFFERENT)]
# By the same, for each of WHAT the titles of the sums that it is part of; the second of a choice after the first.
TITLES, LATER_TITLES = (
    [[[f"{what} at {name}" for name in (*names, *more)] for what in WHAT] for names in PLACES_OF]
    for more in ((), (LATER_CHOICES,))
)
READ_ROWS = 4096  # that are remembered: a row is read several times for each pair, and comes in several answers


class Policy(NamedTuple):
    """What stands between a row and the law of a token."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def filters(self) -> bool:
        return self[1:] != Policy()[1:]


@dataclass(frozen=True)
class Law:
    """The probabilities of the listed tokens, and that of all others together."""

    listed: Row
    rest: float

    def chance(self, token: str) -> float:
        return self.listed.get(token, self.rest / UNLISTED)

    @cached_property
    def likeliest(self) -> str:
        return max(self.listed, key=lambda token: self.listed[token])

    @cached_property
    def surprises(self) -> Row:
        return {token: min(SURPRISE_NATS, -log(max(chance, 1e-9))) for token, chance in self.listed.items()}

    @cached_property
    def beyond(self) -> float:
        """The surprise of a token that is not listed."""
        return min(SURPRISE_NATS, -log(self.rest))

    @cached_property
    def expected(self) -> float:
        """The mean surprise."""
        listed = sum(chance * self.surprises[token] for token, chance in self.listed.items())
        return listed + self.rest * self.beyond


NO_ROW = Law({}, 1.0)


def as_reported(row: Listed) -> Law:
    """The row as the law of the token."""
    listed = {token: exp(min(0.0, chance)) for token, chance in row}
    return Law(listed, max(1e-6, 1.0 - sum(listed.values())))


def with_policy(row: Listed, policy: Policy) -> Law:
    """The row as that before temperature and filters; what a filter keeps is taken to be listed."""
    before = as_reported(row)
    listed, top = before.listed, max(before.listed.values())
    kept, mass = {}, 0.0
    for rank, token in enumerate(sorted(listed, key=lambda token: -listed[token])):
        if rank < (policy.top_k or len(listed)) and mass < policy.top_p and listed[token] >= policy.min_p * top:
            kept[token] = (listed[token] / top) ** (1.0 / policy.temperature)
        mass += listed[token]
    # Flattened by the temperature it is more, by how much is not known.
    rest = 1e-6 if policy.filters else before.rest / top
    total = sum(kept.values()) + rest
    return Law({token: weight / total for token, weight in kept.items()}, rest / total)


@lru_cache(READ_ROWS)
def readings(row: Listed, policy: Policy) -> tuple[Law, Law]:
    return as_reported(row), with_policy(row, policy)


def surprise(token: str, law: Law) -> float:
    """Less its mean under the law."""
    return law.surprises.get(token, law.beyond) - law.expected


def against_row(token: str, law: Law) -> Scored:
    """Each less its mean under the law."""
    return (
        surprise(token, law),
        float(token == law.likeliest) - law.listed[law.likeliest],
        float(token not in law.listed) - law.rest,
    )


@dataclass
class Reader:
    """Scores answers to one kind of request, and learns from both sides alike how rows are to be read.

    options, temperature   of the request
    """

    options: Mapping[str, Any]
    temperature: float
    off_by: list[float] = field(default_factory=lambda: [0.0, 0.0])  # a reading's surprises in sum
    words: Counter[str] = field(default_factory=Counter)
    after: Counter[tuple[str, str]] = field(default_factory=Counter)
    total: int = 0
    fallen: defaultdict[tuple[int, int], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    shared: dict[tuple[Hashable, ...], Listed] = field(default_factory=dict)  # by prompt and tokens before it

    def __post_init__(self) -> None:
        told = {name: self.options[name] for name in Policy._fields if name in self.options}
        self.policy = Policy(self.temperature, **told)

    def pair(
        self, on: Sequence[Choice], off: Sequence[Choice], prompt: int = 0
    ) -> tuple[dict[str, float], dict[str, float]]:
        """The scores of both answers; nothing of them is learned before both are scored, but for the rows that both are
        held to."""
        self.share(prompt, (*on, *off))
        scored = self.scores(on, prompt), self.scores(off, prompt)
        for choice in (*on, *off):
            self.learn(choice)
            for place, word in enumerate(pieces(choice.text)[: max(STARTS)]):
                self.fallen[prompt, place][word] += 1
        return scored

    def uneven(self, prompt: int, place: int, words: Sequence[str]) -> float:
        """Pearson's statistic of the words at a place of one request's choices, beside those of the requests before it;
        words that are seldom count together."""
        before, count = self.fallen[prompt, place], Counter(words)
        if not before:
            return 0.0
        all_expected = {word: len(words) * seen / before.total() for word, seen in before.items()}
        expected = {word: many for word, many in all_expected.items() if many >= OFTEN}
        seldom = max(1.0, len(words) - sum(expected.values()))
        left = len(words) - sum(count[word] for word in expected)
        return (left - seldom) ** 2 / seldom + sum((count[word] - many) ** 2 / many for word, many in expected.items())

    def share(self, prompt: int, choices: Sequence[Choice]) -> None:
        """Both sides are held to one row after the same tokens, the first that came: by rounding each has its own
        there, again and again, and where a bias decides what is drawn nothing else tells their scores apart."""
        found: defaultdict[tuple[Hashable, ...], list[Listed]] = defaultdict(list)
        for choice in choices:
            for i, row in enumerate(choice.listed[:SHARED]):
                before = prompt, *(choice.tokens or ())[:i]
                if before not in self.shared:
                    found[before].append(row)
        self.shared |= {before: min(rows, key=sorted) for before, rows in found.items()}

    def scores(self, choices: Sequence[Choice], prompt: int = 0) -> dict[str, float]:
        """By "WHAT at PLACE"."""
        sums: defaultdict[str, float] = defaultdict(float)
        begun, places = [pieces(choice.text)[: max(STARTS)] for choice in choices], range(max(STARTS))
        for words in STARTS:
            starts = Counter(tuple(told[:words]) for told in begun)
            sums[f"{ALIKE}, for {words} words"] = sum(count * (count - 1) / 2 for count in starts.values())
        uneven = [self.uneven(prompt, place, [told[place] for told in begun if len(told) > place]) for place in places]
        sums[f"{UNEVEN}, at the first word"], sums[f"{UNEVEN}, at all words"] = uneven[0], sum(uneven)
        for index, choice in enumerate(choices):
            before = 0.0
            sums[ENDED] += choice.finish == "stop"
            sums[COPIES] += self.copies(choice)
            count = 0
            for count, token in enumerate(self.tokens(choice, prompt), 1):
                sums[NEXT] += before * token[0]
                before = token[0]
                titles = (LATER_TITLES if index else TITLES)[min(count, DIFFERENT) - 1]
                for score, names in zip(token, titles, strict=False):
                    for title in names:
                        sums[title] += score
            sums[LENGTH] += count
            sums[ORDER] += count * (index - (len(choices) - 1) / 2)
        return dict(sums)

    def copies(self, choice: Choice) -> float:
        """Tokens that are those which came after the same two before, less what rows expect where they are reported."""
        told = (choice.tokens or ()) if choice.listed else pieces(choice.text)
        reading, total, after = self.reading, 0.0, dict[tuple[str, ...], str]()
        for i in range(2, len(told)):
            copy = after.get(before := tuple(told[i - 2 : i]))
            if copy is not None:
                expected = self.law(choice.listed[i], reading).chance(copy) if choice.listed else 0.0
                total += float(told[i] == copy) - expected
            after[before] = told[i]
        return total

    def tokens(self, choice: Choice, prompt: int) -> Iterator[Scored]:
        if choice.listed:
            told, reading = choice.tokens or (), self.reading
            rows = enumerate(choice.listed)
            held = [self.shared.get((prompt, *told[:i]), row) if i < SHARED else row for i, row in rows]
            for token, row in zip(told, held, strict=True):
                yield against_row(token, readings(row, self.policy)[reading]) if row else (0.0,) * len(WHAT)
            return
        last = ""
        for word in pieces(choice.text):
            seldom = (self.words[word] + 0.5) / (self.total + 0.5 * (len(self.words) + 1))
            yield (min(SURPRISE_NATS, -log((self.after[last, word] + 2 * seldom) / (self.words[last] + 2.0))),)
            last = word

    def steps(self, choice: Choice, most: int | None = None) -> list[tuple[str, float | None]]:
        """Its tokens, or so many of them, with their chances; words without where no rows are reported."""
        if not choice.listed:
            return [(word, None) for word in pieces(choice.text)[:most]]
        told = zip((choice.tokens or ())[:most], self.laws(choice, most), strict=True)
        return [(token, law.chance(token)) for token, law in told]

    def laws(self, choice: Choice, most: int | None = None) -> list[Law]:
        """The rows of its tokens as they are read; none where none are reported."""
        reading = self.reading
        return [self.law(row, reading) for row in choice.listed[:most]]

    def law(self, row: Listed, reading: int) -> Law:
        return readings(row, self.policy)[reading] if row else NO_ROW

    @property
    def reading(self) -> int:
        """The number of that by which the tokens of both sides were as surprising as expected."""
        return min(range(len(self.off_by)), key=lambda i: abs(self.off_by[i]))

    def learn(self, choice: Choice) -> None:
        if choice.listed:
            for token, row in zip(choice.tokens or (), choice.listed, strict=True):
                for i, law in enumerate(readings(row, self.policy) if row else ()):
                    self.off_by[i] += surprise(token, law)
            return
        last = ""
        for word in pieces(choice.text):
            self.after[last, word] += 1
            self.words[last] += not last
            self.words[word] += 1
            self.total += 1
            last = word


def pieces(text: str) -> list[str]:
    """Words, and signs by themselves, with the blanks before them. Scripts without blanks have no words: each of their
    characters is a sign, or a whole text would be one piece."""
    return re.findall(r"\s*(?:[^\W\u2e80-\U0010ffff]+|\S)", text)
