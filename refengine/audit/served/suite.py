"""The suite: what the two sides take is found out once, then looks are shared out by what has been seen so far.

Every claim has its own share of alpha, fixed beforehand by how many claims there are, so that the order of looks may
depend on the evidence. Half of the looks go to the claims with the most evidence against them that are not yet decided,
the others to all in turn, in proportion to what each wants: a small run sees a little of everything.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import inf, log
from typing import Any

from refengine.audit.common import Progress
from refengine.audit.served.ask import Ask, Choice, Failed, Gone, Refused, Seedless
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.cells import Cell, Own, Parity, Plain, logprobs_apart
from refengine.audit.served.claims.edge import MOST_WORDS, found_edge
from refengine.audit.served.claims.options import OPTIONS, SAMPLED, TOKENS, Option, Options
from refengine.audit.served.claims.sampled import CHOICES, Rescored, Sampled
from refengine.audit.served.claims.schedules import HEAVY, LONG, schedules
from refengine.audit.served.claims.ties import ties
from refengine.audit.served.noise import CLOSE, LOOKS, Noise
from refengine.audit.served.reduce import TRIES, reduced

TURNS = 1  # looks at every claim before belief decides
GIVE_UP = 3  # looks after which a claim that no look was made of is left
SMALL = 6  # claims whose witness is made small
NOISE_COMPANY = 5  # prompts that are asked together, to see what company does to a text
STREAM_USAGE: Options = {"stream_options": {"include_usage": True}}
SUSPECTS = 2  # claims with the most evidence that are looked at in one turn: a decision needs many looks of one
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
class Plan:
    """The cells that can be looked at, and what the servers do not do: name -> why."""

    cells: list[Cell]
    lacking: dict[str, str]


def planned(bench: Bench, only: str = "") -> Plan:
    """Asks either side once for what it takes. Raises Gone, and Refused where not even a plain request is taken."""
    for name, said in zip(("on", "off"), bench.complaints(Ask((bench.prompt(0),), 4)), strict=True):
        if said:
            raise Refused(f"the server {name} does not take a plain request: {said}")
    seeds = _seeds(bench)
    bench.logprobs, rows = _reports(bench)
    streams = bench.accepts(Ask((bench.prompt(0),), 4, stream=True))
    if streams and bench.accepts(Ask((bench.prompt(0),), 4, options=STREAM_USAGE, stream=True)):
        bench.stream_usage = STREAM_USAGE
    chat = bench.accepts(Ask((bench.prompt(0),), 4, chat=True))
    several = [n for n in CHOICES if _gives(bench, n)]
    bench.choices = max(several, default=1)
    bench.noise = measured(bench)
    plan = Plan([Plain("greedy", bench.noise, rows)], {} if seeds else {"seed": "refused: no request has one"})
    plan.lacking |= {
        way: "not taken by both sides" for way, taken in (("chat", chat), ("stream", streams)) if not taken
    }
    if rows:
        plan.cells.append(Rescored())
    else:
        plan.lacking["logprobs"] = "rows of log probabilities are not reported by both sides"
    for option in OPTIONS:
        dialect, why = _dialect(bench, option)
        if dialect is None:
            plan.lacking[option.name] = why
            continue
        arms = [(False, False)]
        if option.front:
            arms += [*([(False, True)] * streams), *([(True, False)] * chat)]
        plan.cells += [Parity(option, bench.noise, rows, dialect, in_chat, stream) for in_chat, stream in arms]
    needs: dict[str, Options] = {"n": {"n": 3}, "neighbour": HEAVY, "ignore_eos": {"ignore_eos": True}}
    extra = {name: bench.accepts(Ask((bench.prompt(0),), 4, 1.0, needed, seed=1)) for name, needed in needs.items()}
    for setting in SAMPLED:
        choices = next((n for n in several if n <= setting.choices), 1)
        cell = Sampled(setting, choices)
        if bench.accepts(replace(cell.ask(bench, 0, 1), tokens=4)):
            plan.cells.append(cell)
        else:
            plan.lacking[cell.name] = "refused"
    extra |= {"stream": streams, "chat": chat, "together": bench.together, "seed": seeds}
    long = next((n for n in LONG if bench.accepts(Ask((bench.prompt(0),), n))), LONG[-1])
    plan.cells += schedules(bench.noise, rows, extra, long)
    edge = "state/context edge"
    if edge.startswith(only):  # it takes thirty requests to find
        if bench.together and (found := found_edge(bench)):
            plan.cells.append(Plain(edge, bench.noise, rows, asked=found.ask, cost=3, wanted=8))
        else:
            plan.lacking[edge] = f"a prompt of {MOST_WORDS} words is taken"
    return plan


def _seeds(bench: Bench) -> bool:
    """Whether both sides take a seed; where one does not, none is sent from here on."""
    ask = Ask((bench.prompt(0),), 4, 1.0)
    if not bench.accepts(ask) or bench.accepts(replace(ask, seed=1)):
        return True
    bench.on, bench.off = Seedless(bench.on), Seedless(bench.off)
    return False


def _gives(bench: Bench, choices: int) -> bool:
    """Some servers take `n` and answer with one choice."""
    ask = Ask((bench.prompt(0),), 4, 1.0, {"n": choices}, seed=1)
    return bench.accepts(ask) and all(len(side[0].choices) == choices for side in bench.each([ask]))


def _reports(bench: Bench) -> tuple[Options, bool]:
    """(the option that asks for log probabilities, whether both sides then report tokens with their rows)."""
    wish = {"logprobs": True}
    ask = Ask((bench.prompt(0),), 4, options=wish)
    if not bench.accepts(ask):
        return {}, False
    answers = [side[0].choices[0] for side in bench.each([ask])]
    rows = all(said.tokens and said.logprobs and max(map(len, said.top or ()), default=0) > 1 for said in answers)
    return (wish, True) if rows else ({}, False)  # a row of one token tells no tie


def measured(bench: Bench) -> Noise:
    """The side without speculation beside itself: every prompt alone, then some together; and rows side by side.
    Where rows say of the sides that they part at a tie, that is noise too."""
    parted, tied_sides, apart = 0, 0, 0.0
    sides, margins = [], []
    for first in range(0, LOOKS, NOISE_COMPANY):
        numbers = range(first, first + NOISE_COMPANY)
        alone = [bench.plain(k, TOKENS)[1] for k in numbers]
        again = bench.without([Ask((bench.prompt(k),), TOKENS, options=bench.logprobs) for k in numbers])
        for one, other in zip(alone, again, strict=True):
            parted += one.outcome() != other.outcome()
            apart = max(apart, logprobs_apart(one.choices[0], other.choices[0]) or 0.0)
        for k in numbers:
            on, off = (side.choices[0] for side in bench.plain(k, TOKENS))
            sides.append(logprobs_apart(on, off) or 0.0)
            tied_sides += ties(on, off, Noise().nats) is True
            rows = [sorted(row.values())[-2:] for row in off.top or () if len(row) > 1]
            margins += [likeliest - second for second, likeliest in rows]
    close = sum(margin < CLOSE for margin in margins)
    near = sorted(sides)[9 * len(sides) // 10]
    return Noise(LOOKS, max(parted, tied_sides), apart, len(margins), close, near, bench.choices > 1)


def _dialect(bench: Bench, option: Option) -> tuple[int | None, str]:
    """The first dialect that both sides take; else why there is none."""
    plain = bench.plain(0, TOKENS)[1].choices[0]
    made = option.made(plain if plain.text.strip() else Choice("a b c d e f g h", "length"), 0)
    said = "refused by the side without speculation"
    for dialect, options in enumerate(made):
        options = dict(options)
        ask = Ask((bench.prompt(0),), options.pop("max_tokens", 4), option.temperature, options, seed=1)
        on, off = bench.complaints(ask)
        if not on and not off:
            return dialect, ""
        if not off:
            said = f"refused with speculation, taken without: {on}"
    return None, said


@dataclass
class Suite:
    """A plan under way. requests: how many may be sent in all. alpha: of all claims together."""

    bench: Bench
    plan: Plan
    alpha: float
    requests: int
    gone: str = ""  # what was heard last of a server that answers no more

    def __post_init__(self) -> None:
        self.states = [State(cell) for cell in sorted(self.plan.cells, key=lambda cell: cell.cost)]
        claims = sum(len(state.cell.beliefs) for state in self.states) + len(self.bench.of_answers())
        self.bar = log(claims / self.alpha)

    def run(self, progress: Progress) -> None:
        turn = 0
        with ThreadPoolExecutor(TOGETHER) as pool:
            while not self.gone and (chosen := self.chosen(turn)):
                turn += 1
                list(pool.map(self.look, chosen))
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

    def heard(self, state: State) -> float:
        """The most evidence for a fault of answers that its looks came upon, and that is not decided."""
        told = self.bench.of_answers()
        found = (told[name].log_evidence for name in state.heard)
        return max((evidence for evidence in found if evidence < self.bar), default=-inf)

    def doubt(self, state: State) -> float:
        return max(state.evidence(), self.heard(state))

    def chosen(self, turn: int) -> list[State]:
        """What is looked at next, together; nothing when every claim is decided or nothing more may be asked."""
        left = self.requests - self.bench.sent
        open_ = [s for s in self.states if not s.given_up and s.evidence() < self.bar and s.cell.cost <= left]
        fresh = [s for s in open_ if s.looks < TURNS]
        doubted = [s for s in open_ if s.signs() or self.heard(s) > -inf]
        suspects = sorted(doubted, key=self.doubt, reverse=True)
        of_options = [s for s in suspects if isinstance(s.cell, Parity)]  # a fault of all requests shows in each
        of_others = [s for s in suspects if not isinstance(s.cell, Parity)]
        if fresh:
            order = sorted(fresh, key=lambda s: s.looks)
        elif suspects and turn % 4 in (1, 2):
            order = ((of_others, of_options)[turn % 4 == 1] or suspects)[:SUSPECTS]
        else:
            order = sorted(open_, key=lambda s: s.looks / s.cell.wanted)
        if not order or isinstance(order[0].cell, Own):
            return order[:1]
        together = [s for s in order if not isinstance(s.cell, Own)][:TOGETHER]
        return together[: max(1, left // max(s.cell.cost for s in together))]


def beliefs(suite: Suite) -> Iterator[tuple[str, str, Any, State | None]]:
    """(name of the finding, claim, belief, its cell) of everything that was looked at."""
    for state in suite.states:
        for claim, belief in state.cell.beliefs.items():
            yield state.cell.name, claim, belief, state
    for name, belief in suite.bench.of_answers().items():
        if belief.looks:
            yield f"metadata/{name}", f"Of an answer it is not so that {name}.", belief, None
