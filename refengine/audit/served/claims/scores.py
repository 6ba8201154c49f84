"""What a sampled answer scores: sums over its tokens by which a law that is not the promised one gives itself away.

Where rows of log probabilities are reported, each token is scored against its own row: how surprising it is, whether it
is the likeliest, whether it lies beyond the listed ones, each less what the row itself expects. A sum then moves by
what sampling did and not by what the text happened to be about. Without rows a token is as surprising as it was rare
among all answers so far, of both sides, after the word before it.

No score has to be right. It is compared between two sides of which either could have given either answer.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from typing import Any, TypeAlias

from refengine.audit.served.ask import LISTED, Choice, Row

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
COPIES = "how often a text goes on as it did after the same two tokens"  # as drafts do that are looked up in it
ORDER = "how much longer a choice is for every choice before it"  # where choices are numbered as they end
STARTS = (1, 2, 4)  # words by which two choices are told to begin alike
LIKELIEST = "the share of the likeliest token"
WHAT = ("the mean surprise", LIKELIEST, "the share of tokens beyond the listed")
KINDS = len(WHAT) * (len(PLACES) + 1) + 5 + len(STARTS)
Scored: TypeAlias = tuple[float, ...]  # of one token, an entry for each of WHAT
Law: TypeAlias = tuple[Row, float]  # (probabilities of the listed tokens, that of all others)


def as_reported(row: Row, options: Mapping[str, Any], temperature: float) -> Law:
    """The row as the law of the token."""
    listed = {token: exp(min(0.0, chance)) for token, chance in row.items()}
    return listed, max(1e-6, 1.0 - sum(listed.values()))


def with_policy(row: Row, options: Mapping[str, Any], temperature: float) -> Law:
    """The row as that before temperature and filters; what a filter keeps is taken to be listed."""
    listed, rest = as_reported(row, options, temperature)
    top = max(listed.values())
    order = sorted(listed, key=lambda token: -listed[token])
    kept, mass = {}, 0.0
    filters = any(name in options for name in ("top_k", "top_p", "min_p"))
    for rank, token in enumerate(order):
        if (
            rank < (options.get("top_k") or len(order))
            and mass < options.get("top_p", 1.0)
            and listed[token] >= options.get("min_p", 0.0) * top
        ):
            kept[token] = (listed[token] / top) ** (1.0 / temperature)
        mass += listed[token]
    rest = 1e-6 if filters else rest / top  # flattened by the temperature it is more, by how much is not known
    total = sum(kept.values()) + rest
    return {token: weight / total for token, weight in kept.items()}, rest / total


READINGS = (as_reported, with_policy)


def against_row(token: str, law: Law) -> Scored:
    """Each less its mean under the law."""
    listed, rest = law
    surprise = {name: min(SURPRISE_NATS, -log(max(chance, 1e-9))) for name, chance in listed.items()}
    beyond = min(SURPRISE_NATS, -log(rest))
    expected = sum(chance * surprise[name] for name, chance in listed.items()) + rest * beyond
    likeliest = max(listed, key=lambda name: listed[name])
    return (
        surprise.get(token, beyond) - expected,
        float(token == likeliest) - listed[likeliest],
        float(token not in listed) - rest,
    )


@dataclass
class Reader:
    """Scores answers to one kind of request, and learns from both sides alike how rows are to be read.

    options, temperature   of the request
    """

    options: Mapping[str, Any]
    temperature: float
    off_by: list[float] = field(default_factory=lambda: [0.0] * len(READINGS))  # a reading's surprises in sum
    words: Counter[str] = field(default_factory=Counter)
    after: Counter[tuple[str, str]] = field(default_factory=Counter)
    total: int = 0
    shared: dict[tuple[Hashable, ...], Row] = field(default_factory=dict)  # by prompt and tokens before it

    def pair(
        self, on: Sequence[Choice], off: Sequence[Choice], prompt: int = 0
    ) -> tuple[dict[str, float], dict[str, float]]:
        """The scores of both answers; nothing of them is learned before both are scored, but for the rows that both are
        held to."""
        self.share(prompt, (*on, *off))
        scored = self.scores(on, prompt), self.scores(off, prompt)
        for choice in (*on, *off):
            self.learn(choice)
        return scored

    def share(self, prompt: int, choices: Sequence[Choice]) -> None:
        """Both sides are held to one row after the same tokens, the first that came: by rounding each has its own
        there, again and again, and where a bias decides what is drawn nothing else tells their scores apart."""
        found: defaultdict[tuple[Hashable, ...], list[Row]] = defaultdict(list)
        for choice in filter(has_rows, choices):
            for i, row in enumerate(listed_rows(choice)[:SHARED]):
                found[prompt, *(choice.tokens or ())[:i]].append(row)
        for before, rows in found.items():
            self.shared.setdefault(before, min(rows, key=lambda row: sorted(row.items())))

    def scores(self, choices: Sequence[Choice], prompt: int = 0) -> dict[str, float]:
        """By "WHAT at PLACE"."""
        sums: defaultdict[str, float] = defaultdict(float)
        for words in STARTS:
            starts = Counter(tuple(pieces(choice.text)[:words]) for choice in choices)
            sums[f"{ALIKE}, for {words} words"] = sum(count * (count - 1) / 2 for count in starts.values())
        for index, choice in enumerate(choices):
            before = 0.0
            sums[ENDED] += choice.finish == "stop"
            sums[COPIES] += self.copies(choice)
            for i, token in enumerate(self.tokens(choice, prompt)):
                sums[LENGTH] += 1
                sums[ORDER] += index - (len(choices) - 1) / 2
                sums[NEXT] += before * token[0]
                before = token[0]
                where = [name for name, places in PLACES.items() if i in places]
                for name in (*where, *([LATER_CHOICES] if index else [])):
                    for what, score in zip(WHAT, token, strict=False):
                        sums[f"{what} at {name}"] += score
        return dict(sums)

    def copies(self, choice: Choice) -> float:
        """Tokens that are those which came after the same two before, less what rows expect where they are reported."""
        told, laws = [token for token, _ in self.steps(choice)], self.laws(choice)
        total, after = 0.0, dict[tuple[str, ...], str]()
        for i in range(2, len(told)):
            copy = after.get(before := tuple(told[i - 2 : i]))
            if copy is not None:
                total += float(told[i] == copy) - (laws[i][0].get(copy, laws[i][1] / UNLISTED) if laws else 0.0)
            after[before] = told[i]
        return total

    def tokens(self, choice: Choice, prompt: int) -> Iterator[Scored]:
        if has_rows(choice):
            told = choice.tokens or ()
            rows = enumerate(listed_rows(choice))
            held = [self.shared.get((prompt, *told[:i]), row) if i < SHARED else row for i, row in rows]
            for token, row in zip(told, held, strict=True):
                yield (
                    against_row(token, self.reading(row, self.options, self.temperature)) if row else (0.0,) * len(WHAT)
                )
            return
        last = ""
        for word in pieces(choice.text):
            seldom = (self.words[word] + 0.5) / (self.total + 0.5 * (len(self.words) + 1))
            yield (min(SURPRISE_NATS, -log((self.after[last, word] + 2 * seldom) / (self.words[last] + 2.0))),)
            last = word

    def steps(self, choice: Choice) -> list[tuple[str, float | None]]:
        """Its tokens with their chances; words without where no rows are reported."""
        if not has_rows(choice):
            return [(word, None) for word in pieces(choice.text)]
        laws = zip(choice.tokens or (), self.laws(choice), strict=True)
        return [(token, listed.get(token, rest / UNLISTED)) for token, (listed, rest) in laws]

    def laws(self, choice: Choice) -> list[Law]:
        """The rows of its tokens as they are read; none where none are reported."""
        rows = listed_rows(choice) if has_rows(choice) else []
        return [self.reading(row, self.options, self.temperature) if row else ({}, 1.0) for row in rows]

    @property
    def reading(self) -> Callable[[Row, Mapping[str, Any], float], Law]:
        """The reading by which the tokens of both sides were as surprising as expected."""
        return READINGS[min(range(len(READINGS)), key=lambda i: abs(self.off_by[i]))]

    def learn(self, choice: Choice) -> None:
        if has_rows(choice):
            for token, row in zip(choice.tokens or (), listed_rows(choice), strict=True):
                for i, reading in enumerate(READINGS):
                    if row:
                        self.off_by[i] += against_row(token, reading(row, self.options, self.temperature))[0]
            return
        last = ""
        for word in pieces(choice.text):
            self.after[last, word] += 1
            self.words[last] += not last
            self.words[word] += 1
            self.total += 1
            last = word


def pieces(text: str) -> list[str]:
    """Words with the blanks before them."""
    return re.findall(r"\s*\S+", text)


def has_rows(choice: Choice) -> bool:
    return bool(choice.tokens and choice.top and len(choice.tokens) == len(choice.top))


def listed_rows(choice: Choice) -> list[Row]:
    """The likeliest of each row: whether a token that is none of them is listed too does not say how it was drawn."""
    return [dict(sorted(row.items(), key=lambda entry: -entry[1])[:LISTED]) for row in choice.top or ()]
