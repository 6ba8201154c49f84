"""The claims about laws: nothing tells a sampled completion from one that was made with speculation off.

Pairs of completions, one of each side, with seeds of their own; the evidence is `evidence/e_process_of_pairs.py`.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from refengine.audit.paired.completion import Completion
from refengine.audit.paired.sampling import features
from refengine.audit.served.ask import Answer, Ask, Choice
from refengine.audit.served.belief import Faults
from refengine.audit.served.bench import Bench
from refengine.audit.served.faults import shown
from refengine.audit.served.options import Options
from refengine.evidence.e_process_of_pairs import COMMONER, Pairs

SAMPLED_TOKENS = 8  # of a completion: two rounds of most drafters
PLACES = 3  # prompts: few, so that each is sampled often
KINDS = 2 * SAMPLED_TOKENS + 1  # features of a completion
SIGN_NATS = 1.0  # of evidence, from which a law is looked at more closely
RESCORED_NATS = 0.3  # by which a reported log probability may differ from the server's own score of the text


@dataclass
class Law:
    """The belief of a sampled claim: counts of what either side emitted."""

    pairs: Pairs = field(default_factory=lambda: Pairs(PLACES, KINDS))
    prompts: list[str] = field(default_factory=list)
    looks: int = 0

    @property
    def log_evidence(self) -> float:
        return self.pairs.log_evidence() if self.looks else 0.0

    @property
    def signs(self) -> int:
        return int(self.log_evidence > SIGN_NATS)

    @property
    def witnesses(self) -> list[dict[str, Any]]:
        place, name = self.pairs.strongest()
        feature = self.pairs.commoner if name == COMMONER else self.pairs.features[place, name]
        outcomes: list[Hashable] = sorted(
            set(feature.first) | set(feature.second), key=lambda o: -abs(feature.first[o] - feature.second[o])
        )
        counts = {str(o): {"on": feature.first[o], "off": feature.second[o]} for o in outcomes[:4]}
        return [{"prompt": self.prompts[place], "what": name, "pairs": feature.count, "counts": counts}]

    def counts(self) -> dict[str, int]:
        return {"pairs": self.looks}


@dataclass
class Sampled:
    """One setting of temperature and filters."""

    name: str
    temperature: float
    options: Options
    cost: int = 2
    beliefs: dict[str, Any] = field(default_factory=lambda: {"the law is that of plain decoding": Law()})

    def unit(self, bench: Bench, k: int) -> None:
        (law,) = self.beliefs.values()
        place = k % PLACES
        law.prompts = [bench.prompt(i) for i in range(PLACES)]
        asks = [
            Ask((bench.prompt(place),), SAMPLED_TOKENS, self.temperature, dict(self.options), seed=2 * k + side + 1)
            for side in (0, 1)
        ]
        futures = [bench.pool.submit(side.send, ask) for side, ask in zip((bench.on, bench.off), asks, strict=True)]
        bench.sent += 2
        on, off = (future.result() for future in futures)
        law.pairs.add(place, *(features(SAMPLED_TOKENS, _completion(answer), False) for answer in (on, off)))
        law.looks += 1


def _completion(answer: Answer) -> Completion:
    return Completion(answer.text, None)


@dataclass
class Rescored:
    """The log probability that a sampled token is reported with, against the score that the side without speculation
    gives the token when the text before it comes as a prompt."""

    temperature: float = 1.0
    cost: int = 4
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
        belief.add(off_by[0] > RESCORED_NATS, off_by[1] > RESCORED_NATS, witness)

    def score(self, bench: Bench, ask: Ask, choice: Choice, i: int) -> float | None:
        """None where the token is not among the likeliest, or where no tokens are reported."""
        if not choice.tokens or "".join(choice.tokens) != choice.text:
            return None
        again = Ask((ask.turns[0] + "".join(choice.tokens[:i]),), 1, 0.0, bench.logprobs)
        bench.sent += 1
        row = bench.off.send(again).choices[0].top
        return row[0].get(choice.tokens[i]) if row else None
