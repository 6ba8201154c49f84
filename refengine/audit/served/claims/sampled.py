"""The claims about laws: nothing tells a sampled answer from one that was made with speculation off.

Pairs of answers, one of each side, with seeds of their own. An answer is several choices of some rounds' tokens. Two
kinds of evidence share the wealth: what stands at a place of the text after a prompt (`evidence/e_process_of_pairs.py`)
and what the whole answer scores (`scores.py`, `evidence/e_process_of_scores.py`).
"""

import itertools
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from math import exp, log
from typing import Any, ClassVar, TypeAlias

import numpy as np

from refengine.audit.common import MAX_UNSEEN_TV
from refengine.audit.served.ask import Answer, Ask, Choice, Row
from refengine.audit.served.belief import SIGN_NATS
from refengine.audit.served.bench import LAW_CHOICES, ROWS, Bench
from refengine.audit.served.claims.options import FILTERS, Setting
from refengine.audit.served.claims.scores import APART, Reader, pieces
from refengine.audit.served.claims.scores import KINDS as READ
from refengine.audit.served.claims.shared_rows import SharedRows
from refengine.audit.served.claims.tilt import Tilt, after, tokens_or_words
from refengine.evidence.e_process_of_pairs import COMMONER, Pairs
from refengine.evidence.e_process_of_prefixes import DEEPEST, Prefixes, Step
from refengine.evidence.e_process_of_scores import Scores
from refengine.evidence.power import ends_wealth
from refengine.evidence.rows import log_sum

CHOICES = (LAW_CHOICES, 16, 8, 4)  # of a request, the first that both sides take: they cost one request
FEW = 4  # choices of a request, with which more requests are needed
WORDS = 8  # of a completion that are compared place by place: beyond them hardly two samples have a past in common
LAW_PROMPTS = 5  # few, so that each is sampled often
KINDS = 2 * WORDS + 1  # features of a completion
# Learned scores: how many tokens each looks back.
LEARNED = {"which tokens come": 0, "which tokens come after another": 1, "which tokens come after two others": 2}
SCORES = READ + len(LEARNED)  # kinds of a score
ROUNDED = 0.1  # log odds by which rounding may move a token wherever a text comes to the same few tokens
OF_TEXTS = [1, 2]  # the numbers of those kinds of evidence in which no row has a part
EVIDENCE_KINDS = 4
NOWHERE = "at no place that fresh answers would show"
UNSAID = {"temperature": None}
CLAIM = "the law is that of plain decoding"
Pair: TypeAlias = tuple[int, Sequence[Choice], Sequence[Choice], tuple[dict[str, float], dict[str, float]]]
Heard: TypeAlias = Callable[[int, str, Pair], None]  # (number of a look, setting, its pair)


@dataclass
class Law:
    """The belief of a sampled claim.

    The null allows one prompt at which the sides differ: where two tokens tie at the edge of a filter, rounding decides
    which of them can come at all. So the evidence is the least that any choice of LAW_PROMPTS - 1 prompts gives.
    """

    reader: Reader
    prompts: list[str] = field(default_factory=list)
    looks: int = 0
    bare: int = 0  # of these, without rows
    choices: int = 0  # of each side
    prefixes: Prefixes = field(default_factory=Prefixes)
    characters: Prefixes = field(default_factory=Prefixes)  # where a text is cut into tokens does not part its looks
    pairs: Pairs = field(default_factory=lambda: Pairs(LAW_PROMPTS, KINDS))
    scores: Scores = field(default_factory=lambda: Scores(SCORES))
    tilts: dict[str, Tilt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        few = "logit_bias" in self.reader.options  # tokens that can come
        self.tilts = {name: Tilt(ROUNDED if few or back > 1 else 0.0) for name, back in LEARNED.items()}
        self.texts: list[tuple[set[str], set[str]]] = [(set(), set()) for _ in range(LAW_PROMPTS)]
        self.evidence = 0.0
        self.of_texts = 0.0  # what of it no reported row has a part in

    def add(self, place: int, on: Sequence[Choice], off: Sequence[Choice]) -> Pair:
        """Two answers to the prompt of that number; of one with more choices than the other the last are left out. Also
        what they score."""
        count = min(len(on), len(off))
        on, off = on[:count], off[:count]
        self.prefixes.add(place, *([self.reader.steps(choice, DEEPEST) for choice in side] for side in (on, off)))
        self.characters.add(place, *([_letters(choice.text) for choice in side] for side in (on, off)))
        self.pairs.add(place, *([features(choice.text) for choice in side] for side in (on, off)))
        scored = self.reader.pair(on, off, place)
        self._learned((on, off), scored)
        self.scores.add(place, *scored)
        for seen, side in zip(self.texts[place], (on, off), strict=True):
            seen.update(choice.text for choice in side)
        self.looks += 1
        self.bare += not any(choice.listed for choice in on)
        self.choices += count
        kinds = np.array([self.kinds(i) for i in range(LAW_PROMPTS)])
        self.evidence = float(log_sum(kinds, 1).min()) - log(kinds.shape[1])
        self.of_texts = float(log_sum(kinds[:, OF_TEXTS], 1).min()) - log(kinds.shape[1])
        return place, on, off, scored

    def _learned(self, sides: tuple[Sequence[Choice], ...], scored: tuple[dict[str, float], ...]) -> None:
        """The scores that the pairs before taught, of both answers before either of them teaches it more. Where two
        tokens tie at the edge of a filter, rounding decides which can come at all, and at many prompts the same."""
        if any(name in FILTERS for name in self.reader.options):
            return
        words = [[tokens_or_words(choice) for choice in side] for side in sides]
        rows = [[row for choice in side for row in self.rows(choice)] for side in sides]
        for name, tilt in self.tilts.items():
            seen = [[entry for told in side for entry in after(LEARNED[name], told)] for side in words]
            for told, entries, row in zip(scored, seen, rows, strict=True):
                told[name] = tilt.score(entries, row)
            for side, entries in enumerate(seen):
                tilt.keep(side, entries)

    def score(self, name: str, place: int, choices: Sequence[Choice]) -> float:
        """Of a fresh answer to the prompt of that number, by what was learned so far."""
        if name not in self.tilts:
            return self.reader.scores(choices, place).get(name, 0.0)
        seen = [entry for choice in choices for entry in after(LEARNED[name], tokens_or_words(choice))]
        return self.tilts[name].score(seen, [row for choice in choices for row in self.rows(choice)])

    def rows(self, choice: Choice) -> list[Row]:
        """Of its tokens, as they are read; empty ones where none are reported."""
        laws = self.reader.laws(choice)
        return [law.listed for law in laws] if laws else [{}] * len(tokens_or_words(choice))

    def kinds(self, without: int | None = None) -> list[float]:
        """The evidence of each of EVIDENCE_KINDS."""
        return [kind.log_evidence(without) for kind in (self.prefixes, self.characters, self.pairs, self.scores)]

    @property
    def constant(self) -> bool:
        """Neither side gives more than one completion to a prompt: no sample, and nothing to compare laws by."""
        several = any(len(side) > 1 for sides in self.texts for side in sides)
        return not several and self.looks >= 4 * LAW_PROMPTS

    @property
    def log_evidence(self) -> float:
        return 0.0 if self.constant else self.evidence

    @property
    def signs(self) -> int:
        return int(self.log_evidence > SIGN_NATS)

    def would_show(self, bar: float) -> float:
        """The total variation of a word at its place, at every prompt alike, that would have been seen in 99% of runs.

        A pair of outcomes at distance d gains d^2 nats with variance 2 d^2, half of what a draw beside a known law
        does; the mixture gives the kinds of evidence, three families, three weights and KINDS features their shares;
        e^3 is for learning. A pair of requests gains log 2 at most.
        """
        return self._shown_by(self.looks, bar)

    def _shown_by(self, looks: int, bar: float) -> float:
        """The same of so many pairs, with as many choices each as those that came."""
        share = (LAW_PROMPTS - 1) / LAW_PROMPTS
        cost = EVIDENCE_KINDS * 9.0 * KINDS * exp(3.0)
        if share * looks * log(2.0) < bar + log(cost):
            return 1.0
        return ends_wealth(share * looks * max(1.0, self.choices / max(1, self.looks)) / 2, exp(-bar), cost)

    def too_few(self, bar: float) -> bool:
        """More looks would say what these do not."""
        return not self.constant and self.would_show(bar) > MAX_UNSEEN_TV

    def unsaid(self, bar: float) -> str:
        if self.constant:
            return "both sides give one completion to a prompt whatever the seed is: nothing is sampled"
        if not self.too_few(bar):
            return ""
        enough = next(n for n in itertools.count(self.looks) if self._shown_by(n, bar) <= MAX_UNSEEN_TV)
        few = f"{self.looks} pairs of requests would not show a total variation of {MAX_UNSEEN_TV:g}"
        return f"{few}, {enough} would: more --requests"

    def excluded(self, bar: float) -> str:
        both = ", if it is there whether log probabilities are asked for or not" if 0 < self.bare < self.looks else ""
        return f"A total variation of {self.would_show(bar):.2g} would have been seen 99% of the time{both}."

    @property
    def witnesses(self) -> list[dict[str, Any]]:
        name = self.scores.strongest()
        if self.scores.log_evidence() > self.pairs.log_evidence() and name in self.tilts:
            most = {token: {"on": on, "off": off} for token, on, off in self.tilts[name].most()}
            return [{"what": name, "pairs": self.looks, "tokens that lean most": most}]
        if self.scores.log_evidence() > self.pairs.log_evidence():
            score = self.scores.scores[name]
            return [{"what": name, "pairs": score.count, "on less off, in the mean": round(score.mean, 3)}]
        place, name = self.pairs.strongest()
        feature = self.pairs.commoner if name == COMMONER else self.pairs.features[place, name]
        outcomes: list[Hashable] = sorted(
            {*feature.first, *feature.second}, key=lambda o: -abs(feature.first[o] - feature.second[o])
        )
        counts = {str(o): {"on": feature.first[o], "off": feature.second[o]} for o in outcomes[:4]}
        distance = sum(abs(feature.first[o] - feature.second[o]) for o in outcomes) / (2 * max(1, feature.count))
        shown = {"what": name, "pairs": feature.count, "distance of the counts": round(distance, 3), "counts": counts}
        return [shown if name == COMMONER else {"prompt": self.prompts[place], **shown}]

    def named(self) -> str:
        """What differs, where no place of the text does."""
        name = self.scores.strongest()
        others = (kind.log_evidence() for kind in (self.pairs, self.prefixes, self.characters))
        if self.scores.log_evidence() <= max(SIGN_NATS, *others):
            return NOWHERE
        if name in self.tilts:
            return f"{name} is another"
        more = "more" if self.scores.scores[name].mean > 0 else "less"
        said = f"{name} is {more} with speculation, and no token by itself"
        return f"the n choices of a request are not independent: {said}" if name.startswith(APART) else said

    def counts(self) -> dict[str, int]:
        return {"looks": self.looks, "choices": self.choices}


def _letters(text: str) -> list[Step]:
    return [(letter, None) for letter in text[:DEEPEST]]


def features(text: str) -> dict[str, Hashable]:
    """What is compared of a completion: its first words, how many they are, every word, and every two in a row."""
    found = pieces(text)
    words = (*found, *[None] * WORDS)[:WORDS]
    told: dict[str, Hashable] = {"the first words": "".join(found[:WORDS]), "how long it is": len(found)}
    told |= {f"word {i}": word for i, word in enumerate(words)}
    return told | {f"words {i} and {i + 1}": words[i : i + 2] for i in range(len(words) - 1)}


@dataclass
class Sampled:
    """One setting of temperature and filters.

    choices  of a prompt, that a request asks for by `n`
    prompts  equal ones of a request; where these are several no seed is sent: it might be that of each
    told     hears of every pair
    """

    by_itself: ClassVar[bool] = False
    setting: Setting
    choices: int = 1
    told: Heard = lambda number, setting, pair: None
    chat: bool = False
    prompts: int = 1

    def __post_init__(self) -> None:
        self.several = self.choices * self.prompts
        self.cost = 2 * self.setting.company
        # With 53 and 72 something is said, of as many claims as there are.
        self.wanted = -(-(53 if self.several > FEW else 72) // self.setting.company)
        self.beliefs: dict[str, Any] = {CLAIM: Law(Reader(self.setting.options, self.setting.temperature))}
        self.shared = SharedRows()

    @property
    def name(self) -> str:
        return f"law/{self.setting.name}" + " (chat)" * self.chat

    @property
    def asks_for(self) -> set[str]:
        """The parameters that move its law, and chat."""
        heat = {"temperature"} if self.setting.temperature != 1.0 else set[str]()
        return heat | {*self.setting.options} | ({"chat"} if self.chat else set())

    def ask(self, bench: Bench, place: int, seed: int, way: int = 0) -> Ask:
        """way: 0, or how many users ask: 1 without rows and with no word of the temperature, 2 without rows, 3 so for
        one token."""
        several = {"n": self.choices} if self.choices > 1 else {}
        ends = bench.ending(self.chat) if self.setting.ends else {}
        rows = {} if way else bench.logprobs
        turns = self.setting.by_prompt
        asked = {**self.setting.options, **turns[place % len(turns)]}
        options = {**rows, **ends, **asked, **several, **(UNSAID if way == 1 else {})}
        prompt = bench.sampled_prompt(place)
        return Ask(
            (prompt,),
            1 if way == 3 else self.setting.tokens,
            self.setting.temperature,
            options,
            chat=self.chat,
            seed=seed if self.setting.seeded and self.prompts == 1 else None,
            more=(prompt,) * (self.prompts - 1),
        )

    def one_text(self) -> bool:
        """Of several choices that were asked for, both sides gave one text each."""
        sides = [side for sides in self.beliefs[CLAIM].texts for side in sides]
        return self.several > 1 and all(len(side) <= 1 for side in sides)

    def asked(self, bench: Bench) -> Ask:
        """One of its requests."""
        return self.ask(bench, 0, 1)

    def unit(self, bench: Bench, k: int) -> None:
        """As many pairs as are under way together."""
        numbers = range(k * self.setting.company, (k + 1) * self.setting.company)
        asks = [self.asks(bench, number) for number in numbers]
        said = bench.company([here for here, _ in asks], [there for _, there in asks])
        for number, (here, _), answers in zip(numbers, asks, said, strict=True):
            self.learn(bench, number, here, *answers)

    def pair(self, bench: Bench, k: int) -> None:
        """One of them, alone."""
        here, there = self.asks(bench, k)
        self.learn(bench, k, here, *bench.apart(here, there))

    def asks(self, bench: Bench, k: int) -> tuple[Ask, Ask]:
        """Of each side one, with seeds that have nothing in common. As most users ask, without seeds, three of four
        are asked without rows: some engines do not speculate where rows are asked for."""
        seeds, way = random.Random(f"{self.name}/{k}"), 0 if self.setting.seeded else k % 4
        here, there = (self.ask(bench, k % LAW_PROMPTS, seeds.getrandbits(31), way) for _ in range(2))
        return here, there

    def learn(self, bench: Bench, k: int, asked: Ask, on: Answer, off: Answer) -> None:
        law, place = self.beliefs[CLAIM], k % LAW_PROMPTS
        law.prompts = [bench.sampled_prompt(i) for i in range(LAW_PROMPTS)]
        if told := self.shared.look(bench, place, asked, (on, off)):
            bench.keep(ROWS, *told)
        self.told(k, self.setting.name, law.add(place, on.choices, off.choices))
