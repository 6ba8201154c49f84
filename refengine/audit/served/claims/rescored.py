"""The claim about log probabilities of sampled tokens: each is the one that plain decoding gives to the text before
it."""

from dataclasses import dataclass, field
from typing import Any

from refengine.audit.served.ask import LISTED, Ask, Choice
from refengine.audit.served.belief import Faults
from refengine.audit.served.bench import Bench
from refengine.audit.served.faults import shown

SCORED_TOKENS = 8  # of a completion whose tokens are scored again, one at a time
RESCORED = "a token is reported with the log probability it has"


@dataclass
class Rescored:
    """The log probability that a sampled token is reported with, against the score that the side without speculation
    gives the token when the text before it comes as a prompt."""

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
