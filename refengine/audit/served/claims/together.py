"""The claim about all laws together: what moves several settings a little.

Each law has its own evidence (sampled.py), and each pays for learning what differs. A correction that is drawn with the
coin that refused the draft moves a tenth of the mass at every setting: no law decides that alone, and all of them lean
to the same tokens. Here a bet is one for all settings: a score whose bet is a shift of so many deviations, that way,
in every pair of requests; or in those of some settings, each with a shift of its own. Two scores are learned from the
pairs before, of all settings: how much oftener a token came with speculation, and how much oftener it came after the
same prefix.

Why that is fair: pairs of all settings come one after another, in an order that was named before any of them was
answered. The null says of each that, whatever came before, its two answers could as well be exchanged: other requests,
with seeds of their own. So each gain has mean 1 given the past, and the product over all pairs is a martingale, as is
the mean over scores and shifts. The null allows that the sides differ at one prompt and at one setting, whichever: the
evidence is the least over what may be left out, and so at most that of the martingale without the odd ones. It passes
the bar with probability at most alpha over the number of claims.

How many choices of a request begin alike is no score here: an honest server may draw them from different parts of the
law, and then speculation changes how.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from typing import Any, ClassVar

import numpy as np

from refengine.audit.served.ask import Choice
from refengine.audit.served.belief import SIGN_NATS
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.sampled import LAW_PROMPTS, SCORES, Pair, Sampled
from refengine.audit.served.claims.scores import APART
from refengine.audit.served.claims.tilt import Seen, Tilt, tokens_or_words
from refengine.evidence.e_process_of_scores import SHIFTS, Score
from refengine.evidence.power import ends_wealth
from refengine.evidence.rows import Rows, log_sum

CLAIM = "Nothing moves the laws of several settings."
TOKENS, PREFIXES = "which tokens come", "which tokens come after a prefix"
DEEPEST = 4  # tokens of a prefix, about
EXTRA = 1 << 20  # the number of the first look that is for all settings
LEAST = 3  # settings
MOST_UNSEEN_SHIFT = 1.0  # deviations of a pair's score; more may stay unseen in an audit that says nothing of the claim


def tokens_of(prompt: int, words: Sequence[str]) -> Seen:
    return [((), word) for word in words]


def after_prefixes(prompt: int, words: Sequence[str]) -> Seen:
    return [((prompt, *words[:i]), word) for i, word in enumerate(words[:DEEPEST])]


LEARNED = {TOKENS: tokens_of, PREFIXES: after_prefixes}
CLASSES = {TOKENS: "one coin for two uses", PREFIXES: "another correction"}


@dataclass
class Together:
    """The belief. Laws tell it their pairs, which are bet on in the order of their numbers (`settle`)."""

    settings: list[str] = field(default_factory=list)
    looks: int = 0
    evidence: float = 0.0
    of_texts: float = 0.0  # what of it no reported row has a part in
    pending: list[tuple[int, str, Pair]] = field(default_factory=list)
    tilts: Mapping[str, Tilt] = field(default_factory=lambda: {name: Tilt() for name in LEARNED})
    scores: dict[tuple[str, str], Score] = field(default_factory=dict)  # by name and setting

    def __post_init__(self) -> None:
        self.names = [*LEARNED]
        self.texts: dict[tuple[str, int, int], set[str]] = {}  # by setting, prompt and side
        self.several: set[str] = set()  # settings at which a side gave two texts to a prompt

    def told(self, number: int, setting: str, pair: Pair) -> None:
        """The pair of a law at that look."""
        self.pending.append((number, setting, pair))

    def settle(self) -> None:
        if not self.pending:
            return
        for _, setting, pair in sorted(self.pending, key=lambda told: told[:2]):
            self._add(setting, *pair)
        self.pending.clear()
        halves = self.left_out()
        self.evidence = float(log_sum(halves, 0).min()) - log(2.0)
        self.of_texts = float(halves[0].min()) - log(2.0)

    def _add(
        self,
        setting: str,
        prompt: int,
        on: Sequence[Choice],
        off: Sequence[Choice],
        scored: tuple[dict[str, float], dict[str, float]],
    ) -> None:
        """A setting is bet on from when it is seen to be sampled: what gives one text to a prompt is no law."""
        if setting not in self.settings:
            self.settings.append(setting)
        here, there = ({name: x for name, x in side.items() if not name.startswith(APART)} for side in scored)
        sides = [[tokens_or_words(choice) for choice in side] for side in (on, off)]
        for name, seen in LEARNED.items():
            found = [[entry for words in side for entry in seen(prompt, words)] for side in sides]
            here[name], there[name] = (self.tilts[name].score(side) for side in found)
            for side, entries in enumerate(found):
                self.tilts[name].keep(side, entries)
        if setting in self.several:
            self.looks += 1
            for name in sorted({*here, *there}):
                score = self.scores.setdefault((name, setting), Score())
                score.add(prompt, here.get(name, 0.0) - there.get(name, 0.0))
                if name not in self.names:
                    self.names.append(name)
        for side, choices in enumerate((on, off)):
            texts = self.texts.setdefault((setting, prompt, side), set())
            texts.update(choice.text for choice in choices)
            if len(texts) > 1:
                self.several.add(setting)

    def wealth(self) -> Rows:
        """In nats: [scores, settings, prompts, shifts]."""
        wealth = np.zeros((len(self.names), len(self.settings), LAW_PROMPTS, len(SHIFTS)))
        for (name, setting), score in self.scores.items():
            for prompt, gained in score.log_wealth.items():
                wealth[self.names.index(name), self.settings.index(setting), prompt] = gained
        return wealth

    def left_out(self) -> Rows:
        """The evidence of learned scores, and of the others, without a setting and a prompt, [2, settings, prompts]: a
        half of the wealth is on each; scores that have not come yet keep their share."""
        wealth = self.wealth()
        row, column = wealth.sum(2, keepdims=True), wealth.sum(1, keepdims=True)
        rest = row.sum(1, keepdims=True) - row - column + wealth
        common = log_sum(rest, 3) - log(len(SHIFTS))
        own = self.own(row - wealth)
        by_score = np.logaddexp(common, own.sum(1, keepdims=True) - own) - log(2.0)
        learned, others = by_score[: len(LEARNED)], by_score[len(LEARNED) :]
        unseen = np.zeros((SCORES - len(others), *others.shape[1:]))
        parts = learned, np.concatenate([others, unseen])
        return np.stack([log_sum(part, 0) - log(len(part)) for part in parts])

    @staticmethod
    def own(wealth: Rows) -> Rows:
        """Of a setting, in nats: half is not bet, so that a setting which is alike on both sides loses the half at
        most."""
        return np.logaddexp(0.0, log_sum(wealth, 3) - log(len(SHIFTS))) - log(2.0)

    @property
    def log_evidence(self) -> float:
        self.settle()
        return self.evidence

    @property
    def signs(self) -> int:
        return int(self.log_evidence > SIGN_NATS)

    def would_show(self, bar: float) -> float:
        """The shift of a score between the sides, in deviations of a pair, that would have been seen in 99% of runs: a
        pair gains t^2 / 2 nats with variance t^2."""
        kept = (1 - 1 / LAW_PROMPTS) * (1 - 1 / max(2, len(self.settings)))
        return 2 * ends_wealth(kept * self.looks, exp(-bar), 4.0 * len(LEARNED) * len(SHIFTS))

    def unsaid(self, bar: float) -> str:
        if self.would_show(bar) <= MOST_UNSEEN_SHIFT:
            return ""
        return f"{self.looks} pairs of requests would not show what moves them all a little: more --requests"

    def excluded(self, bar: float) -> str:
        shift = f"{self.would_show(bar):.2g} of its deviation"
        return f"A score that is moved by {shift} at all settings would have been seen 99% of the time."

    def strongest(self) -> str:
        """The score by which the most is told."""
        wealth = self.wealth().sum(2, keepdims=True)
        total = np.maximum(log_sum(wealth.sum(1), 2) - log(len(SHIFTS)), self.own(wealth).sum(1))
        return self.names[int(total[:, 0].argmax())]

    def where(self, name: str) -> str:
        """The settings at which that score tells something."""
        if name not in self.names:
            return "at all settings"
        own = self.own(self.wealth().sum(2, keepdims=True))[self.names.index(name), :, 0]
        found = [setting for setting, told in zip(self.settings, own, strict=True) if told > SIGN_NATS]
        return f"at {', '.join(found)}" if 0 < len(found) < len(self.settings) else "at all settings"

    @property
    def witnesses(self) -> list[dict[str, Any]]:
        name = self.strongest()
        counted: dict[str, Any] = {"what": name, "pairs": self.looks, "settings": len(self.settings)}
        if name in self.tilts:
            most = {token: {"on": on, "off": off} for token, on, off in self.tilts[name].most()}
            return [counted | {"tokens that lean most": most}]
        means = {s: round(score.mean, 3) for (n, s), score in self.scores.items() if n == name}
        return [counted | {"on less off, in the mean": means}]

    def named(self, alone: bool = True) -> str:
        """What a maintainer reads. alone: no setting is decided by itself, which tells the classes of `refengine bugs`
        that move every law a little from those that move one much."""
        name = self.strongest()
        leaning = self.tilts[name].most() if name in self.tilts else []
        most = ", ".join(f"{token!r} {'more' if on > off else 'less'}" for token, on, off in leaning)
        if name in CLASSES:
            prefix = " after a prefix" if name == PREFIXES else ""
            like = f", as of {CLASSES[name]!r}" if alone else ""
            return f"{self.where(name)} the same tokens lean{prefix} ({most} often){like}"
        way = "more" if np.mean([score.mean for (n, _), score in self.scores.items() if n == name]) > 0 else "less"
        return f"{self.where(name)} {name} is {way}"

    def counts(self) -> dict[str, int]:
        return {"looks": self.looks, "settings": len(self.settings)}


@dataclass
class AllLaws:
    """A look is one at each law."""

    by_itself: ClassVar[bool] = True
    laws: Sequence[Sampled]
    belief: Together
    name: str = "law/all settings"
    wanted: int = 1

    def __post_init__(self) -> None:
        self.cost = 2 * len(self.laws)
        self.beliefs: dict[str, Any] = {CLAIM: self.belief}

    def unit(self, bench: Bench, k: int) -> None:
        for law in self.laws:
            law.pair(bench, EXTRA + k)
