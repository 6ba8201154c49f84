"""The suite: what the two sides take is found out once, then looks are shared out by what has been seen so far.

Every claim has its own share of alpha, fixed beforehand by how many claims there are, so that the order of looks may
depend on the evidence. Half of the looks go to the claim with the most evidence against it that is not yet decided, the
others to the claims in turn, those that cost least first: a small run sees a little of everything.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import log
from typing import Any

from refengine.audit.common import Progress
from refengine.audit.served.ask import Ask, Failed, Refused
from refengine.audit.served.bench import Bench
from refengine.audit.served.cells import Cell, Own, Parity, Plain
from refengine.audit.served.options import OPTIONS, SAMPLED, TOKENS, Option, Options
from refengine.audit.served.sampled import Rescored, Sampled
from refengine.audit.served.schedules import HEAVY, schedules

TURNS = 3  # looks at every claim before belief decides
TOGETHER = 4  # claims that are looked at together, where being alone is not what they are about


@dataclass
class State:
    """A cell with what became of it."""

    cell: Cell
    looks: int = 0
    failed: str = ""

    def evidence(self) -> float:
        return max(float(belief.log_evidence) for belief in self.cell.beliefs.values())

    def signs(self) -> int:
        return sum(belief.signs for belief in self.cell.beliefs.values())


@dataclass
class Plan:
    """The cells that can be looked at, and what is not: name -> why."""

    cells: list[Cell]
    untested: dict[str, str]


def planned(bench: Bench) -> Plan:
    """Asks either side once for what it takes. Raises Failed, and Refused where not even a plain request is taken."""
    plain = Ask((bench.prompt(0),), 4)
    for side in (bench.on, bench.off):
        bench.sent += 1
        side.send(plain)
    bench.logprobs = {"logprobs": True} if _reports_rows(bench) else {}
    chat = all(bench.accepts(Ask((bench.prompt(0),), 4, chat=True)))
    cells: list[Cell] = [Plain()]
    untested: dict[str, str] = {} if chat else {"chat": "the chat API is not taken by both sides"}
    if bench.logprobs:
        cells.append(Rescored())
    else:
        untested["logprobs"] = "log probabilities are not reported by both sides"
    for option in OPTIONS:
        dialect, why = _dialect(bench, option)
        if dialect is None:
            untested[f"parity/{option.name}"] = why
            continue
        arms = [(False, False), (False, True), *([(True, False)] if chat else [])]
        cells += [Parity(option, dialect, in_chat, stream) for in_chat, stream in arms]
    for name, temperature, options in SAMPLED:
        if all(bench.accepts(Ask((bench.prompt(0),), 4, temperature, options, seed=1))):
            cells.append(Sampled(f"law/{name}", temperature, options))
        else:
            untested[f"law/{name}"] = "refused"
    needs: dict[str, Options] = {"n": {"n": 3}, "neighbour": HEAVY}
    extra = {
        name: all(bench.accepts(Ask((bench.prompt(0),), 4, 1.0, options, seed=1))) for name, options in needs.items()
    }
    return Plan([*cells, *schedules(chat, extra)], untested)


def _reports_rows(bench: Bench) -> bool:
    """Whether both sides report tokens with their log probabilities."""
    try:
        answers = [side.send(Ask((bench.prompt(0),), 4, options={"logprobs": True})) for side in (bench.on, bench.off)]
    except Refused:
        return False
    bench.sent += 2
    return all(answer.choices[0].tokens and answer.choices[0].logprobs for answer in answers)


def _dialect(bench: Bench, option: Option) -> tuple[int | None, str]:
    """The first dialect that both sides take; else why there is none."""
    made = option.made(bench.plain(0, TOKENS)[1].text or "a b c d e f g h", 0)
    on_alone_refuses = False
    for dialect, options in enumerate(made):
        options = dict(options)
        ask = Ask((bench.prompt(0),), options.pop("max_tokens", 4), option.temperature, options, seed=1)
        on, off = bench.accepts(ask)
        if on and off:
            return dialect, ""
        on_alone_refuses |= off
    if on_alone_refuses:
        return None, "refused with speculation, an honest answer, and taken without"
    return None, "refused by the side without speculation"


@dataclass
class Suite:
    """A plan under way. requests: how many may be sent in all. alpha: of all claims together."""

    bench: Bench
    plan: Plan
    alpha: float
    requests: int

    def __post_init__(self) -> None:
        self.states = [State(cell) for cell in sorted(self.plan.cells, key=lambda cell: cell.cost)]
        claims = sum(len(state.cell.beliefs) for state in self.states) + len(self.bench.metadata)
        self.bar = log(claims / self.alpha)

    def run(self, progress: Progress) -> None:
        turn = 0
        while self.bench.sent < self.requests and (chosen := self.chosen(turn)):
            turn += 1
            with ThreadPoolExecutor(TOGETHER) as pool:
                list(pool.map(self.look, chosen))
            progress(f"{chosen[0].cell.name}, {self.bench.sent} requests", self.bench.sent / self.requests)

    def look(self, state: State) -> None:
        try:
            state.cell.unit(self.bench, state.looks)
        except (Failed, Refused) as error:
            state.failed = str(error)
        state.looks += 1

    def chosen(self, turn: int) -> list[State]:
        """What is looked at next, together; nothing when every claim is decided."""
        open_ = [s for s in self.states if not s.failed and s.evidence() < self.bar]
        fresh = [s for s in open_ if s.looks < TURNS]
        suspects = sorted((s for s in open_ if s.signs()), key=lambda s: -s.evidence())
        if fresh:
            order = sorted(fresh, key=lambda s: s.looks)
        elif suspects and turn % 4:
            order = suspects
        else:
            order = sorted(open_, key=lambda s: s.looks * s.cell.cost)
        if not order or isinstance(order[0].cell, Own):
            return order[:1]
        return [s for s in order if not isinstance(s.cell, Own)][:TOGETHER]


def beliefs(suite: Suite) -> Iterator[tuple[str, str, Any, State | None]]:
    """(name of the finding, claim, belief, its cell) of everything that was looked at."""
    for state in suite.states:
        for claim, belief in state.cell.beliefs.items():
            yield state.cell.name, claim, belief, state
    for name, belief in suite.bench.metadata.items():
        if belief.looks:
            yield f"metadata/{name}", f"Of an answer it is not so that {name}.", belief, None
