"""A side against itself: one schedule of requests to either side, of which one side alone may show a fault."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, TypeAlias

from refengine.audit.served.ask import Answer, Ask
from refengine.audit.served.belief import Faults, Partings
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.ties import asked_tie, count_far
from refengine.audit.served.faults import shown

LOOKS_BY_COST = ((8, 4), (12, 3), (26, 2), (inf, 1))  # up to so many requests of a look, so many looks are wanted
Shows: TypeAlias = tuple[bool, bool, dict[str, Any]]
Pairs: TypeAlias = list[tuple[Answer, Answer]]
Said: TypeAlias = tuple[list[Answer], list[Answer]]


@dataclass
class Own:
    """The same schedule of requests to either side; `shows` gives the pairs of one side's answers that show the fault.

    steps      requests one after another; those of one step are under way together, and the last is that of the pairs
    tie_share  at temperature 0: of schedules that the side which shows it alone is allowed; None: both may show it
    asks       whether the other side is asked about ties, which no rows tell
    besides    what an honest server may show as well, and leaves the claim open
    wanted     looks; 0: as many as its cost allows
    """

    by_itself: ClassVar[bool] = True
    name: str
    claim: str
    steps: Callable[[Bench, int], Sequence[Sequence[Ask]]]
    shows: Callable[[Sequence[Answer], float], Pairs]
    cost: int
    tie_share: float | None = None
    asks: bool = False
    besides: Callable[[Sequence[Answer], float], Pairs] | None = None
    wanted: int = 0

    def __post_init__(self) -> None:
        self.wanted = self.wanted or next(looks for most, looks in LOOKS_BY_COST if self.cost <= most)
        self.shown_at: list[int] = []
        self.beliefs: dict[str, Any] = {self.claim: Faults() if self.tie_share is None else Partings(self.tie_share)}

    def unit(self, bench: Bench, k: int) -> None:
        steps = self.steps(bench, k)
        said = self.asked(bench, steps)
        on, off, witness = self.judged(bench, steps, said)
        if on and not off:
            self.shown_at.append(k)
        (belief,) = self.beliefs.values()
        if isinstance(belief, Faults):
            belief.add(on, off, witness)
        else:
            belief.add(on and not off, witness)
        if self.besides:
            belief.add_besides(*(bool(self.besides(answers, bench.noise.nats)) for answers in said))

    def tried(self, bench: Bench, steps: Sequence[Sequence[Ask]]) -> Shows:
        """(whether it shows with speculation, whether it does without, what was asked and said)."""
        return self.judged(bench, steps, self.asked(bench, steps))

    def asked(self, bench: Bench, steps: Sequence[Sequence[Ask]]) -> Said:
        """The answers of the side with speculation, and of the other."""
        said: Said = ([], [])
        for asks in steps:
            here, there = bench.each(asks)
            said[0].extend(here)
            said[1].extend(there)
            for ask, mine, theirs in zip(asks, here, there, strict=True):
                if not (ask.hang_up or ask.wrong):
                    bench.inspect(ask, mine, theirs, sampled=True)
        return said

    def judged(self, bench: Bench, steps: Sequence[Sequence[Ask]], said: Said) -> Shows:
        shown_on, shown_off = (self.shows(answers, bench.noise.nats) for answers in said)
        if self.asks and not shown_off:
            shown_on = [pair for pair in shown_on if not either_way(bench, steps[-1][-1], *pair)]
        on, off = bool(shown_on), bool(shown_off)
        witness = {
            "requests": [[ask.summary() for ask in asks] for asks in steps],
            "on": [shown(answer) for answer in said[0]],
            "off": [shown(answer) for answer in said[1]],
        }
        if shown_on:  # of several answers or choices the one that shows it
            one, other = shown_on[0]
            witness["shown by"] = [one.text, *([other.text] if other is not one else [])]
        count_far(bench, steps[-1][-1], [] if shown_off else shown_on, witness)
        return on, off, witness


def either_way(bench: Bench, ask: Ask, one: Answer, other: Answer) -> bool:
    """Whether the side without speculation, asked about it, goes on as either of two answers does."""
    return asked_tie(bench, ask, one, other) and asked_tie(bench, ask, other, one)
