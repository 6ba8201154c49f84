"""The suite: looks at the claims of a plan are shared out by what has been seen so far.

Every claim has its own share of alpha, fixed beforehand by how many claims there are, so that the order of looks may
depend on the evidence. Each turn takes the first of these that there is:

1. Suspects that are pursued, with at most 1 / (2 + claims decided) of the requests, or with all that are left once the
   nearest to a decision has NEARLY of its evidence: the two nearest, if that has more than SUSPECT_NATS and would be
   decided with what is left; else, if the suspects' evidence together would decide one claim, the one with most; else,
   once all had MOST of their looks, the one with most that has more than FAINT_NATS.
2. Every fourth turn: the two suspects nearest to a decision.
3. Claims that were never looked at.
4. Whoever had the smallest share of the looks that it wants; past MOST of them laws come first of which nothing can be
   said yet, and of these the one that is nearest to saying something.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import inf, log
from typing import Any, TypeAlias

from refengine.audit.common import Progress
from refengine.audit.served.ask import Failed, Gone, Refused
from refengine.audit.served.belief import signs_of
from refengine.audit.served.bench import FAR_FROM_A_TIE, UNANSWERED, Bench, titled
from refengine.audit.served.claims.cells import Cell, Parity
from refengine.audit.served.claims.sampled import FEW, Law, Sampled
from refengine.audit.served.claims.ties import ANY_REQUEST
from refengine.audit.served.claims.together import AllLaws
from refengine.audit.served.plan import Plan
from refengine.audit.served.reduce import TRIES, reduced

GIVE_UP = 3  # looks after which a claim that no look was made of is left
SMALL = 6  # claims whose witness is made small
SUSPECT_NATS = 4.0  # of evidence: more than chance gives to one claim in fifty, and too little to decide
NEARLY = 0.5  # of the evidence of a decision, from which on a claim is pursued whatever it has had of the requests
FAINT_NATS = 2.0  # of evidence, that is followed once all claims had MOST of what they want; laws have their looks
OUTWEIGHED = -1.0  # nats: signs that later looks have said enough against
SUSPECTS = 2  # claims that are looked at in one turn where there are signs: a decision needs many looks of one
LAW_LOOKS = 2  # times what a law wants, at most, with FEW choices or more
MOST = 0.5  # of the looks that a claim wants: then laws come first that would show nothing yet
Doubts: TypeAlias = list[tuple[float, float]]  # (nats of evidence, what a request adds to them)
IDLE = 24  # looks one after another that show nothing of a claim: these prompts give nothing to ask
TOGETHER = 4  # claims that are looked at together, where being alone is not what they are about


@dataclass
class State:
    """A cell with what became of it."""

    cell: Cell
    looks: int = 0
    idle: int = 0  # the last of them, that showed nothing of the claim
    spent: int = 0  # requests, those included that were asked about a tie
    refusals: int = 0
    refused: str = ""
    failures: int = 0
    failed: str = ""
    small: dict[str, Any] | None = None  # the smallest witness that was found
    heard: Counter[str] = field(default_factory=Counter)  # looks by faults of answers that showed, on that side alone

    @property
    def given_up(self) -> bool:
        """It is refused or fails more often than not."""
        return 2 * max(self.refusals, self.failures) > max(self.looks, GIVE_UP - 1)

    @property
    def lacking(self) -> bool:
        """A side refuses what it asks."""
        return self.refusals > 0 and (self.given_up or self.refusals == self.looks)

    @property
    def share(self) -> float:
        """Of what it wants, that it had, in requests."""
        return self.spent / (self.cell.cost * self.cell.wanted)

    def evidence(self) -> float:
        return max(float(belief.log_evidence) for belief in self.cell.beliefs.values())

    def shown(self) -> int:
        """How often its looks have shown something of the claim."""
        return sum(belief.looks for belief in self.cell.beliefs.values())

    def signs(self) -> int:
        return signs_of(self.cell.beliefs)


@dataclass
class Suite:
    """A plan under way. requests: how many may be sent in all. alpha: of all claims together."""

    bench: Bench
    plan: Plan
    alpha: float
    requests: int
    pursued: int = 0  # requests that went to claims with so much evidence
    pursuing: bool = False  # whether the claims that are looked at are such
    gone: str = ""  # what was heard last of a server that answers no more

    def __post_init__(self) -> None:
        self.states = [
            State(cell, int(begun := cell.name in self.plan.begun), cell.cost * begun)
            for cell in sorted(self.plan.cells, key=lambda cell: cell.cost)
        ]
        claims = sum(len(state.cell.beliefs) for state in self.states) + len(self.bench.of_answers())
        self.bar = log(claims / self.alpha)

    def run(self, progress: Progress) -> None:
        turn = 0
        with ThreadPoolExecutor(TOGETHER) as pool:
            while not self.gone and (chosen := self.chosen(turn)):
                turn += 1
                sent = self.bench.sent
                list(pool.map(self.look, chosen))
                self.pursued += self.pursuing * (self.bench.sent - sent)
                for state in chosen:
                    self.make_small(state)
                progress(f"{chosen[0].cell.name}, {self.bench.sent} requests", self.bench.sent / self.requests)

    def look(self, state: State) -> None:
        self.bench.heard.names = heard = set[str]()
        shown = state.shown()
        self.bench.heard.spent = 0
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
        state.spent += self.bench.spent()
        state.heard.update(heard)
        state.idle = 0 if state.shown() > shown else state.idle + 1

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

    def doubts(self, state: State) -> Doubts:
        """(evidence, what a request of its looks adds to it) of what its looks have a part in, and is not decided: the
        claim itself, and the faults of answers that they came upon."""
        spent = max(1, state.spent, *(2 * belief.looks for belief in state.cell.beliefs.values()))
        found = [(state.evidence(), state.evidence() / spent)]
        told = self.bench.of_answers()
        names = {*state.heard, *([FAR_FROM_A_TIE] if self.bench.strayed and state.cell.name == ANY_REQUEST else [])}
        for name in sorted(names):
            a_sign = told[name].log_evidence / max(1, told[name].signs)
            often = (state.heard[name] + 1) / (state.spent + state.cell.cost)
            found.append((told[name].log_evidence, a_sign * often))
        return [(evidence, pace) for evidence, pace in found if evidence < self.bar]

    def rank(self, doubts: Doubts) -> tuple[bool, float, float]:
        """Of a suspect: first those with more evidence than chance gives, and of them what is decided soonest."""
        left = min(((self.bar - evidence) / pace for evidence, pace in doubts if min(evidence, pace) > 0), default=inf)
        return most(doubts) <= SUSPECT_NATS, left, -most(doubts)

    def enough(self, state: State) -> bool:
        """Rounding moves laws too, by little and always the same way: where there is some, no law is looked at until it
        shows."""
        law = next((law for law in getattr(state.cell, "laws", [state.cell]) if isinstance(law, Sampled)), None)
        if law is None or self.bench.noise.quiet:
            return False
        return LAW_LOOKS * law.wanted * max(1, FEW // law.several) <= state.looks  # with fewer choices, more looks

    def due(self, state: State) -> tuple[bool, bool, float]:
        """The order where nothing is suspected: claims short of MOST by what they had of what they want, in requests;
        then laws of which nothing can be said yet, the nearest to it first; then the others."""
        if state.share < MOST:
            return False, False, state.share
        laws = [b for b in state.cell.beliefs.values() if isinstance(b, Law) and b.too_few(self.bar)]
        return True, not laws, laws[0].would_show(self.bar) if laws else state.share

    def strong(self, suspects: list[tuple[State, float]], all_seen: bool, soon: bool) -> list[State]:
        """Of suspects with their evidence, in their rank, those that up to half of the requests may go to. all_seen:
        whether every claim had MOST of what it wanted. soon: what is left would decide the first, at its pace."""
        if suspects and suspects[0][1] > SUSPECT_NATS and soon:
            return [state for state, _ in suspects[:SUSPECTS]]
        among: list[tuple[State, float]] = []
        if sum(max(0.0, nats) for _, nats in suspects) >= self.bar:
            of_others = [suspect for suspect in suspects if not isinstance(suspect[0].cell, Parity)]
            among = [(state, nats) for state, nats in of_others or suspects if nats > 0]
        elif all_seen:
            others = (suspect for suspect in suspects if not isinstance(suspect[0].cell, Sampled | AllLaws))
            among = [(state, nats) for state, nats in others if nats > FAINT_NATS]
        return [max(among, key=lambda suspect: suspect[1])[0]] if among else []

    def chosen(self, turn: int) -> list[State]:
        """What is looked at next, together; nothing when every claim is decided or nothing more may be asked."""
        left = self.requests - self.bench.sent
        asked = [s for s in self.states if s.idle < IDLE and (not s.given_up or self.falls(s))]
        open_ = [s for s in asked if s.evidence() < self.bar and s.cell.cost <= left and not self.enough(s)]
        fresh = [s for s in open_ if not s.looks]
        found = [(s, doubts) for s in open_ if len(doubts := self.doubts(s)) > 1 or s.signs()]
        ranked = sorted((self.rank(doubts), i) for i, (_, doubts) in enumerate(found) if most(doubts) > OUTWEIGHED)
        soon = bool(ranked) and ranked[0][0][1] <= left
        suspected = [(found[i][0], most(found[i][1])) for _, i in ranked]
        suspects = [state for state, _ in suspected]
        of_options = [s for s in suspects if isinstance(s.cell, Parity)]  # a fault of all requests shows in each
        of_others = [s for s in suspects if not isinstance(s.cell, Parity)]
        all_seen = all(s.share >= MOST for s in open_)
        strong = self.strong(suspected, all_seen, soon)
        decided = sum(state.evidence() >= self.bar for state in self.states)
        nearly = bool(suspected) and suspected[0][1] > NEARLY * self.bar
        self.pursuing = bool(strong) and (nearly or (2 + decided) * self.pursued <= self.bench.sent)
        if self.pursuing:
            order = strong
        elif suspects and turn % 4 == 1:
            order = ((of_others, of_options)[turn % 8 == 1] or suspects)[:SUSPECTS]
        elif fresh:
            order = fresh
        else:
            order = sorted(open_, key=self.due)
        if not order or order[0].cell.by_itself:
            return order[:1]
        together = [s for s in order if not s.cell.by_itself][:TOGETHER]
        return together[: max(1, left // max(s.cell.cost for s in together))]


def most(doubts: Doubts) -> float:
    return max((evidence for evidence, _ in doubts), default=-inf)


def beliefs(suite: Suite) -> Iterator[tuple[str, str, Any, State | None]]:
    """(name of the finding, claim, belief, its cell) of everything that was looked at."""
    for state in suite.states:
        for claim, belief in state.cell.beliefs.items():
            yield state.cell.name, claim, belief, state
    for name, belief in suite.bench.of_answers().items():
        if belief.looks:
            yield titled(name), f"No answer has this fault: {name}.", belief, None
