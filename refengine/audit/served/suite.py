"""The suite: looks at the claims of a plan are shared out by what has been seen so far.

Every claim has its own share of alpha, fixed beforehand by how many claims there are, so that the order of looks may
depend on the evidence. A quarter of the turns goes to the claims with the most evidence against them that are not yet
decided, the others to all in turn, in proportion to what each wants: a small run sees a little of everything. Where
there is more evidence than chance gives, it is half of the requests.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import inf, log
from typing import Any

from refengine.audit.common import Progress
from refengine.audit.served.ask import Failed, Gone, Refused
from refengine.audit.served.bench import FAR, UNANSWERED, Bench, titled
from refengine.audit.served.claims.cells import Cell, Own, Parity
from refengine.audit.served.claims.far import ANY_REQUEST
from refengine.audit.served.claims.together import AllLaws
from refengine.audit.served.plan import Plan
from refengine.audit.served.reduce import TRIES, reduced

GIVE_UP = 3  # looks after which a claim that no look was made of is left
SMALL = 6  # claims whose witness is made small
SUSPECT_NATS = 4.0  # of evidence: more than chance gives to one claim in fifty, and too little to decide
SUSPECTS = 2  # claims with the most evidence that are looked at in one turn: a decision needs many looks of one
BY_ITSELF = Own | AllLaws  # claims that are looked at alone
TOGETHER = 4  # claims that are looked at together, where being alone is not what they are about


@dataclass
class State:
    """A cell with what became of it."""

    cell: Cell
    looks: int = 0
    refusals: int = 0
    refused: str = ""
    failures: int = 0
    failed: str = ""
    small: dict[str, Any] | None = None  # the smallest witness that was found
    heard: set[str] = field(default_factory=set)  # faults of answers that showed in its looks, with speculation alone

    @property
    def given_up(self) -> bool:
        """It is refused or fails more often than not."""
        return 2 * max(self.refusals, self.failures) > max(self.looks, GIVE_UP - 1)

    def evidence(self) -> float:
        return max(float(belief.log_evidence) for belief in self.cell.beliefs.values())

    def signs(self) -> int:
        return sum(belief.signs for belief in self.cell.beliefs.values())


@dataclass
class Suite:
    """A plan under way. requests: how many may be sent in all. alpha: of all claims together."""

    bench: Bench
    plan: Plan
    alpha: float
    requests: int
    pursued: int = 0  # requests that went to claims with so much evidence
    gone: str = ""  # what was heard last of a server that answers no more

    def __post_init__(self) -> None:
        self.states = [
            State(cell, int(cell.name in self.plan.begun))
            for cell in sorted(self.plan.cells, key=lambda cell: cell.cost)
        ]
        claims = sum(len(state.cell.beliefs) for state in self.states) + len(self.bench.of_answers())
        self.bar = log(claims / self.alpha)

    def run(self, progress: Progress) -> None:
        turn = 0
        with ThreadPoolExecutor(TOGETHER) as pool:
            while not self.gone and (chosen := self.chosen(turn)):
                turn += 1
                pursuing, sent = self.doubt(chosen[0]) > SUSPECT_NATS, self.bench.sent
                list(pool.map(self.look, chosen))
                self.pursued += pursuing * (self.bench.sent - sent)
                for state in chosen:
                    self.make_small(state)
                progress(f"{chosen[0].cell.name}, {self.bench.sent} requests", self.bench.sent / self.requests)

    def look(self, state: State) -> None:
        self.bench.heard.names = state.heard
        try:
            state.cell.unit(self.bench, state.looks)
        except Gone as error:
            self.gone = str(error)
        except Refused as error:
            state.refusals += 1
            state.refused = str(error)
        except Failed as error:
            state.failures += 1
            state.failed = str(error)
        state.looks += 1

    def make_small(self, state: State) -> None:
        """Of the first claims that are decided, a witness that is as short as it was found to be."""
        if state.evidence() < self.bar or state.small is not None or self.gone:
            return
        if sum(s.small is not None for s in self.states) >= SMALL or self.requests - self.bench.sent < TRIES:
            return
        try:
            state.small = reduced(self.bench, state.cell) or {}
        except (Failed, Refused) as error:
            state.small = {"not made smaller": str(error)}

    def falls(self, state: State) -> bool:
        """The side with speculation alone gave no answer in its looks, and that is not decided: an error that comes
        again each time is no reason to look away."""
        return UNANSWERED in state.heard and self.bench.metadata[UNANSWERED].log_evidence < self.bar

    def heard(self, state: State) -> float:
        """The most evidence for a fault of answers that its looks came upon, and that is not decided."""
        told = self.bench.of_answers()
        names = state.heard | ({FAR} if self.bench.strayed and state.cell.name == ANY_REQUEST else set())
        found = (told[name].log_evidence for name in names)
        return max((evidence for evidence in found if evidence < self.bar), default=-inf)

    def doubt(self, state: State) -> float:
        return max(state.evidence(), self.heard(state))

    def chosen(self, turn: int) -> list[State]:
        """What is looked at next, together; nothing when every claim is decided or nothing more may be asked."""
        left = self.requests - self.bench.sent
        asked = [s for s in self.states if not s.given_up or self.falls(s)]
        open_ = [s for s in asked if s.evidence() < self.bar and s.cell.cost <= left]
        fresh = [s for s in open_ if not s.looks]
        doubted = [s for s in open_ if s.signs() or self.heard(s) > -inf]
        suspects = sorted(doubted, key=lambda s: (self.doubt(s), s.cell.name == ANY_REQUEST), reverse=True)
        of_options = [s for s in suspects if isinstance(s.cell, Parity)]  # a fault of all requests shows in each
        of_others = [s for s in suspects if not isinstance(s.cell, Parity)]
        if suspects and self.doubt(suspects[0]) > SUSPECT_NATS and 2 * self.pursued <= self.bench.sent:
            order = suspects[:SUSPECTS]
        elif suspects and turn % 4 == 1:
            order = ((of_others, of_options)[turn % 8 == 1] or suspects)[:SUSPECTS]
        elif fresh:
            order = fresh
        else:
            order = sorted(open_, key=lambda s: s.looks / s.cell.wanted)
        if not order or isinstance(order[0].cell, BY_ITSELF):
            return order[:1]
        together = [s for s in order if not isinstance(s.cell, BY_ITSELF)][:TOGETHER]
        return together[: max(1, left // max(s.cell.cost for s in together))]


def beliefs(suite: Suite) -> Iterator[tuple[str, str, Any, State | None]]:
    """(name of the finding, claim, belief, its cell) of everything that was looked at."""
    for state in suite.states:
        for claim, belief in state.cell.beliefs.items():
            yield state.cell.name, claim, belief, state
    for name, belief in suite.bench.of_answers().items():
        if belief.looks:
            yield titled(name), f"Of an answer it is not so that {name}.", belief, None
