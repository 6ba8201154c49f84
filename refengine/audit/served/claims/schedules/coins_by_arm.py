"""Two claims about coins that are told by an exchange of answers, as in `coins_in_company.py`.

With a seed an answer is its own, whatever its neighbours have: where one row without a seed takes the batch off the
path that knows seeds, the seed holds beside seeded requests alone. A look is RUNS runs beside a neighbour with a seed
and as many beside one without, in an order that is drawn before. The neighbour's answer is one whatever its seed is, so
that what is under way is alike in all of them. Null: which neighbour a run had moves nothing.

Requests without a seed that come one after another, each to a server with nothing else to do, are independent, and have
the law of plain decoding. What restarts whenever a server wakes gives every one of them the same coins, of which
batches, and the choices of one request, show nothing: a law that is another is all that is seen of it. Null: two
answers, one of either side, could as well be exchanged. They are at one prompt, so that the bet learns fast
(`evidence/e_process_of_prefixes.py`). Where answers without a seed are all one by a server's manner, nothing is told.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from refengine.audit.served.ask import Choice, Refused
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.schedules.coins_in_company import (
    FEW_TOKENS,
    SIZE,
    Followed,
    OneToken,
    answers_beside,
    bet_on_batches,
)
from refengine.audit.served.claims.schedules.requests import sampled
from refengine.audit.served.claims.scores import pieces
from refengine.audit.served.faults import shown
from refengine.evidence.e_process_of_prefixes import Prefixes, Step

HOLDS = "An answer with a seed is the same beside requests with seeds and without."
ONE_BY_ONE = "Requests without a seed that come one after another are independent, and have the law of plain decoding."
RUNS = 5  # of an arm


@dataclass
class BesideUnseeded:
    """A look is 2 * RUNS runs of two requests, at either side. one_token: what leaves the neighbour one token."""

    by_itself: ClassVar[bool] = True
    one_token: OneToken
    name: str = "seed/beside none"
    cost: int = 8 * RUNS
    wanted: int = 1

    def __post_init__(self) -> None:
        constant = "there was one answer, whether its neighbour had a seed or none"
        independent = "answers beside a seed were no more alike than beside none"
        self.beliefs: dict[str, Any] = {HOLDS: Followed(constant, independent)}

    def unit(self, bench: Bench, k: int) -> None:
        """Raises Refused, Failed."""
        mine = sampled(bench, k, 1000 + k)
        seeds = {(arm, again): None if arm else 77 * k + again for arm in range(2) for again in range(RUNS)}
        other, said = answers_beside(bench, k, mine, self.one_token, seeds, f"{self.name}/{k}")
        texts = [[[said[arm, again][side][1].text for again in range(RUNS)] for arm in range(2)] for side in (0, 1)]
        nats = [bet_on_batches(seeded, free, f"{self.name}/{k}") for seeded, free in texts]
        witness = {
            "requests": [[other.summary(), mine.summary()]],
            "answers beside seeds": [shown(said[0, again][0][1]) for again in range(2)],
            "answers beside none": [shown(said[1, again][0][1]) for again in range(2)],
        }
        (belief,) = self.beliefs.values()
        belief.add(*nats, len({text for arm in texts[0] for text in arm}) > 1, witness)


@dataclass
class OneByOne:
    """A look is SIZE requests to either side, without rows: some engines do not speculate where rows are asked for."""

    by_itself: ClassVar[bool] = True
    name: str = "seed/one by one"
    cost: int = 2 * SIZE
    wanted: int = 1
    prefixes: Prefixes = field(default_factory=Prefixes)

    def __post_init__(self) -> None:
        constant = "there was one answer"
        independent = "answers of the sides could as well be exchanged"
        self.beliefs: dict[str, Any] = {ONE_BY_ONE: Followed(constant, independent)}

    def unit(self, bench: Bench, k: int) -> None:
        """Raises Refused, Failed."""
        ask = replace(sampled(bench, 0, None), tokens=FEW_TOKENS, options=bench.ids)
        pairs = [bench.each([ask]) for _ in range(SIZE)]
        texts = [[said[side][0].text for said in pairs] for side in (0, 1)]
        if len({*texts[1]}) == 1:
            raise Refused("without a seed there is one answer, without speculation too")
        before = self.prefixes.log_evidence()
        for on, off in pairs:
            self.prefixes.add(0, *([steps(side[0].choices[0])] for side in (on, off)))
        witness = {"request": ask.summary(), "with speculation": texts[0], "without": texts[1]}
        (belief,) = self.beliefs.values()
        belief.add(self.prefixes.log_evidence() - before, 0.0, len({*texts[0]}) > 1, witness)


def steps(choice: Choice) -> list[Step]:
    """Its tokens, else its words, of which no row says how likely they are."""
    return [(str(told), None) for told in choice.ids or pieces(choice.text)]
