"""The claims about laws: nothing tells a sampled completion from one that was made with speculation off.

Pairs of completions, one of each side, with seeds of their own; the evidence is `evidence/e_process_of_pairs.py`.
"""

import random
import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import exp
from typing import Any

from refengine.audit.served.ask import Ask, Choice
from refengine.audit.served.belief import Faults
from refengine.audit.served.bench import Bench
from refengine.audit.served.faults import shown
from refengine.audit.served.options import Options
from refengine.evidence.e_process_of_pairs import COMMONER, Pairs
from refengine.evidence.power import ends_wealth

SAMPLED_TOKENS = 8  # of a completion: two rounds of most drafters
PLACES = 3  # prompts: few, so that each is sampled often
KINDS = 2 * SAMPLED_TOKENS + 1  # features of a completion
SIGN_NATS = 1.0  # of evidence, from which a law is looked at more closely


@dataclass
class Law:
    """The belief of a sampled claim: counts of what either side emitted.

    The null allows one prompt at which the sides differ: where two tokens tie at the edge of a filter, rounding decides
    which of them can come at all. So the evidence is the least that any choice of PLACES - 1 prompts gives.
    """

    prompts: list[str] = field(default_factory=list)
    looks: int = 0

    def __post_init__(self) -> None:
        self.without = [Pairs(PLACES - 1, KINDS) for _ in range(PLACES)]  # [i]: the pairs of all prompts but i
        self.texts: list[tuple[set[str], set[str]]] = [(set(), set()) for _ in range(PLACES)]

    def add(self, place: int, on: str, off: str) -> None:
        told = [features(said) for said in (on, off)]
        for i, pairs in enumerate(self.without):
            if i != place:
                pairs.add(place, *told)
        for seen, said in zip(self.texts[place], (on, off), strict=True):
            seen.add(said)
        self.looks += 1

    @property
    def constant(self) -> bool:
        """Neither side gives more than one completion to a prompt: no sample, and nothing to compare laws by."""
        several = any(len(side) > 1 for sides in self.texts for side in sides)
        return not several and self.looks >= 4 * PLACES

    @property
    def log_evidence(self) -> float:
        return 0.0 if self.constant else min(pairs.log_evidence() if pairs.features else 0.0 for pairs in self.without)

    @property
    def signs(self) -> int:
        return int(self.log_evidence > SIGN_NATS)

    def would_show(self, bar: float) -> float:
        """The total variation, at every prompt alike, that would have brought the evidence to the bar in 99% of runs.

        A pair at distance d gains d^2 nats with variance 2 d^2, half of what a draw beside a known law does; the
        mixture gives three families, three weights and KINDS features their shares; e^3 is for learning.
        """
        fewest = min(pairs.commoner.count for pairs in self.without)
        return ends_wealth(fewest / 2, exp(-bar), 9.0 * KINDS * exp(3.0))

    @property
    def witnesses(self) -> list[dict[str, Any]]:
        pairs = max(self.without, key=lambda p: p.log_evidence() if p.features else 0.0)
        place, name = pairs.strongest()
        feature = pairs.commoner if name == COMMONER else pairs.features[place, name]
        outcomes: list[Hashable] = sorted(
            {*feature.first, *feature.second}, key=lambda o: -abs(feature.first[o] - feature.second[o])
        )
        counts = {str(o): {"on": feature.first[o], "off": feature.second[o]} for o in outcomes[:4]}
        distance = sum(abs(feature.first[o] - feature.second[o]) for o in outcomes) / (2 * max(1, feature.count))
        shown = {"what": name, "pairs": feature.count, "distance of the counts": round(distance, 3), "counts": counts}
        return [shown if name == COMMONER else {"prompt": self.prompts[place], **shown}]

    def counts(self) -> dict[str, int]:
        return {"looks": self.looks}


def features(text: str) -> dict[str, Hashable]:
    """What is compared of a completion: the whole, its length, every word, and every two in a row."""
    pieces = re.findall(r"\s*\S+", text)
    words = (*pieces, *[None] * SAMPLED_TOKENS)[:SAMPLED_TOKENS]
    told: dict[str, Hashable] = {"the whole completion": text, "how long it is": len(pieces)}
    told |= {f"word {i}": word for i, word in enumerate(words)}
    return told | {f"words {i} and {i + 1}": words[i : i + 2] for i in range(len(words) - 1)}


@dataclass
class Sampled:
    """One setting of temperature and filters."""

    name: str
    temperature: float
    options: Options
    cost: int = 2
    wanted: int = 240
    beliefs: dict[str, Any] = field(default_factory=lambda: {"the law is that of plain decoding": Law()})

    def unit(self, bench: Bench, k: int) -> None:
        """One completion of each side, with seeds of their own that have nothing in common."""
        (law,) = self.beliefs.values()
        place = k % PLACES
        law.prompts = [bench.prompt(i) for i in range(PLACES)]
        seeds = random.Random(f"{self.name}/{k}")
        asks = [
            Ask((bench.prompt(place),), SAMPLED_TOKENS, self.temperature, self.options, seed=seeds.getrandbits(31))
            for _ in range(2)
        ]
        futures = [bench.pool.submit(side.send, ask) for side, ask in zip((bench.on, bench.off), asks, strict=True)]
        bench.sent += 2
        on, off = (future.result() for future in futures)
        law.add(place, on.text, off.text)


@dataclass
class Rescored:
    """The log probability that a sampled token is reported with, against the score that the side without speculation
    gives the token when the text before it comes as a prompt."""

    temperature: float = 1.0
    cost: int = 4
    wanted: int = 12
    name: str = "logprobs/rescored"
    beliefs: dict[str, Any] = field(
        default_factory=lambda: {"a token is reported with the log probability it has": Faults()}
    )

    def unit(self, bench: Bench, k: int) -> None:
        ask = Ask((bench.prompt(k),), SAMPLED_TOKENS, self.temperature, bench.logprobs, seed=k)
        answers = bench.each([ask])
        off_by, told = [], []
        for (answer,) in answers:
            choice = answer.choices[0]
            i = k % max(1, len(choice.tokens or ()))
            score = self.score(bench, ask, choice, i)
            reported = choice.logprobs[i] if choice.logprobs and i < len(choice.logprobs) else None
            if score is None or reported is None:
                return
            off_by.append(abs(max(reported, -50.0) - score))
            told.append({"position": i, "reported": round(reported, 4), "scored": round(score, 4), **shown(answer)})
        witness = {"request": ask.summary(), "on": told[0], "off": told[1]}
        (belief,) = self.beliefs.values()
        belief.add(off_by[0] > bench.noise.nats, off_by[1] > bench.noise.nats, witness)

    def score(self, bench: Bench, ask: Ask, choice: Choice, i: int) -> float | None:
        """None where the token is not among the likeliest, or where no tokens are reported."""
        if not choice.tokens or "".join(choice.tokens).strip() != choice.text.strip():
            return None
        again = Ask((ask.turns[0] + "".join(choice.tokens[:i]),), 1, 0.0, bench.logprobs)
        bench.sent += 1
        row = bench.off.send(again).choices[0].top
        return row[0].get(choice.tokens[i]) if row else None
