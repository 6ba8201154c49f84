"""Calls spent on a subject: a child, the cases, the evidence, and the rule by which effort moves."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refengine.audit.inputs.case import Case
from refengine.audit.inputs.hostile import OPENING, block_size
from refengine.audit.kernel.calls import turn
from refengine.audit.kernel.history import Past, features
from refengine.audit.sandbox.child import Child, Outcome
from refengine.evidence.e_process import LISTED, CaseEvidence, Evidence
from refengine.evidence.rows import Rows

HANG_SECONDS = 10.0  # one call that takes longer hangs
SLICE_SECONDS = 5.0  # how often a child reports back
NO_TOKENS: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
CHUNK = 256  # calls between two looks at the evidence, at most
OFTEN = 16  # and while few calls of an input have been made
EARLY = 3000  # calls in which most listed defects show
LEAD, FOLLOWED = 2.0, 2  # nats that make a lead in the opening, and the calls that follow it
AT_A_TIME = 8  # inputs that share the calls of one turn of the round
LUCK = 0.01  # what is believed of a learner before it has grown: most growth is luck


@dataclass(frozen=True)
class End:
    """Why a drive ended before its calls were spent.

    kind     impossible | broken | rejected | raised | hang | killed | adapter | clock
    """

    kind: str
    message: str = ""
    case: str = ""
    call: int = 0
    lane: int = 0


@dataclass
class Progress:
    """What is known of one case."""

    case: Case
    evidence: CaseEvidence
    past: Past
    reach: Rows  # visits to each place [S] that are expected of a call
    calls: int = 0


@dataclass
class Drive:
    """Runs cases against one subject in one child and keeps the evidence.

    `seed` decides every draft and every generator; call t of a case has seeds of its own, so any call can be run alone.
    """

    child: Child
    signature: str
    seed: int
    alpha: float
    until: float  # time.monotonic() at which the clock ends it
    cases: dict[str, Progress] = field(default_factory=dict)
    evidence: Evidence = field(init=False)
    chance: np.random.Generator = field(init=False)  # decides which defect is looked for next
    curve: list[tuple[int, float]] = field(default_factory=list)  # (calls, log evidence)
    calls: int = 0
    skipped: dict[str, str] = field(default_factory=dict)  # case -> what the subject raised there
    # The first calls of a case on which noise shows: more answers than it has lanes.
    first: tuple[str, NDArray[np.int32]] = ("", NO_TOKENS)
    last: dict[str, Any] = field(default_factory=dict)  # the last reply, for the witness of a single call

    def add(self, case: Case) -> Outcome:
        """Make a case known to both sides."""
        self.adopt(case, CaseEvidence(case.p, case.q, features(case), sizes=case.sizes))
        p, q = case.float32()
        return self.child.ask({"op": "case", "name": case.name, "p": p, "q": q, "noise": case.noise}, 60)

    def adopt(self, case: Case, found: CaseEvidence) -> None:
        """Take a case on this side, with evidence that starts from nothing."""
        if not self.cases:
            self.evidence = Evidence(tuple(features(case)), self.alpha)
            self.chance = np.random.default_rng(self.seed & (2**64 - 1))
        batch = self.signature == "verify_batch"
        lane_of = None if batch else partial(turn, lanes=case.lanes)
        reach = case.reach() if batch else case.reach() / case.lanes
        self.cases[case.name] = Progress(case, found, Past(case, lane_of), reach)
        self.evidence.cases[case.name] = found

    def run(self, name: str, count: int, stop: bool = True) -> End | None:
        """`count` more calls of a case. None when they are done and nothing is decided; with `stop` off, evidence is
        only gathered, which is what diagnosis wants."""
        progress, last = self.cases[name], self.cases[name].calls + count
        while progress.calls < last:
            until_look = min(CHUNK, max(OFTEN, progress.calls // 4))
            reply = self._chunk(progress, min(until_look, last - progress.calls))
            if isinstance(reply, End):
                return reply
            end = self._count(progress, reply)
            if end is not None and (stop or end.kind == "broken"):
                return end
        return None

    def _chunk(self, progress: Progress, count: int) -> dict[str, Any] | End:
        """The reply to `count` calls. A slow child sends it in slices, which are put together before anybody looks:
        when the evidence is looked at must not depend on the machine."""
        name, first = progress.case.name, progress.calls
        slices: list[dict[str, Any]] = []
        done = 0
        while done < count:
            left = self.until - monotonic()
            if left <= 0:
                return End("clock")
            request = {
                "op": "run",
                "name": name,
                "seeds": seeds(self.seed, name, first + done, count - done),
                "start": first + done,
                "fresh": done == 0,
                "seconds": min(left, SLICE_SECONDS),
            }
            outcome = self.child.ask(request, SLICE_SECONDS + HANG_SECONDS)
            if not outcome.ok:
                return End(outcome.kind, str(outcome), name, first + done)
            slices.append(outcome.value)
            done += len(outcome.value["tokens"])
            if outcome.value["broken"]:
                break
        joined = {key: np.concatenate([part[key] for part in slices]) for key in ("tokens", "drafts")}
        cells = progress.case.narrow(joined["tokens"])
        return {**joined, "ids": joined["tokens"], "tokens": cells, "broken": slices[-1]["broken"]}

    def _count(self, progress: Progress, reply: dict[str, Any]) -> End | None:
        """Add a reply to the evidence."""
        tokens, name, start = reply["tokens"], progress.case.name, progress.calls
        if len(tokens):
            draws = progress.past.draws(tokens, start)
            self.last = {"start": start, **reply}
            if start == 0 and not self.first[0] and len(np.unique(tokens, axis=0)) > progress.case.lanes:
                self.first = (name, tokens)
            impossible = progress.evidence.impossible(draws)
            progress.calls += len(tokens)
            self.calls += len(tokens)
            progress.evidence.add(draws)
            if impossible.any():
                call, lane, position = _locate(tokens, int(np.argmax(impossible)))
                message = f"token {reply['ids'][call, lane, position]} has p = 0"
                return End("impossible", message, name, start + call, lane)
        if reply["broken"]:
            return End("broken", reply["broken"]["message"], name, reply["broken"]["call"])
        self.curve.append((self.calls, self.evidence.log_evidence()))
        return End("rejected", case=name) if self.evidence.rejects() else None

    def last_call(self, end: End) -> dict[str, Any]:
        """Draft and tokens of the lane that ended the drive, where they came back."""
        offset = end.call - self.last.get("start", 0)
        if end.kind == "broken" or not self.last or offset >= len(self.last["tokens"]):
            return {}
        tokens, draft = self.last["ids"][offset, end.lane], self.last["drafts"][offset, end.lane]
        return {"draft": draft.tolist(), "tokens": [int(t) for t in tokens if t >= 0]}

    # --- where effort goes -------------------------------------------------------------------------------------------

    def schedule(self, total: int) -> Iterator[tuple[str, int]]:
        """(case, calls): first the opening cases once, each lead being followed for a call or two. Then the turns are
        divided between what would show a listed defect fastest, where something learned grew fastest, and a round of
        all. The listed ones have most while little is spent; then the round has more, for what nobody listed. Looks at
        the past only."""
        spent = 0
        for name in list(self.cases)[:OPENING]:
            spent += 1
            yield name, 1
            for _ in range(FOLLOWED):
                if self.evidence.log_evidence() > LEAD:
                    spent += 1
                    yield self._fastest_listed(), 1
        one, listed, learned = self._fastest_for_one, self._fastest_listed, self._fastest_learned
        early, late = cycle((one, listed, one, None, one, learned)), cycle((listed, None, one, None, learned))
        while True:
            choose = next(early if spent < EARLY else late)
            if spent >= total or len(self.skipped) == len(self.cases):
                return
            names = [choose()] if choose else self._least_called()[: max(1, spent // 12)]
            before = spent
            for name in names:
                count = max(1, block_size(self.cases[name].case, before) // len(names))
                spent += count
                yield name, count

    def _open(self) -> list[str]:
        return [name for name in self.cases if name not in self.skipped]

    def _least_called(self) -> list[str]:
        """Several at a time, so that every input is met soon."""
        return sorted(self._open(), key=lambda name: self.cases[name].calls)[:AT_A_TIME]

    def _fastest_listed(self) -> str:
        """Where the listed defects would show fastest, weighed by what is believed of each."""
        posterior = self.evidence.posterior()[: len(LISTED)]
        return self._fastest(posterior / posterior.sum())

    def _fastest_for_one(self) -> str:
        """Where one listed defect would show fastest, drawn by what is believed of each: the mean above is governed by
        the crudest."""
        posterior = self.evidence.posterior()[: len(LISTED)]
        one = int(self.chance.choice(len(LISTED), p=posterior / posterior.sum()))
        return self._fastest(np.arange(len(LISTED)) == one)

    def _fastest(self, belief: Rows) -> str:
        def growth(name: str) -> float:
            return float(belief @ self.cases[name].evidence.growth @ self._visits(self.cases[name]))

        return max(self._open(), key=growth)

    @staticmethod
    def _visits(progress: Progress) -> Rows:
        """How often a call gets to each place: as it was seen, beginning with every draft kept as often as p and q
        can agree on it."""
        seen = progress.evidence.counts[0].sum(1)
        return np.asarray((seen + progress.reach) / (progress.calls + 1))

    def _fastest_learned(self) -> str:
        """Where a learner grew fastest, less what is likely to be luck."""

        def growth(name: str) -> float:
            progress = self.cases[name]
            learned = float(progress.evidence.log_wealth[0, -len(progress.evidence.learners) :].max())
            real = LUCK / (LUCK + float(np.exp(-learned)))
            return real * learned / max(progress.calls, 1)

        return max(self._open(), key=growth)


def seeds(seed: int, name: str, start: int, count: int) -> NDArray[np.int64]:
    """[count, 3] seeds of calls start, start + 1, ...: a 64-bit mix (splitmix64) of seed, case, call and use."""
    call = np.arange(start, start + count, dtype=np.uint64)[:, None]
    use = np.arange(3, dtype=np.uint64)[None, :]
    with np.errstate(over="ignore"):
        key = np.uint64(seed & (2**64 - 1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(zlib.crc32(name.encode()))
        x = key + (call * np.uint64(4) + use + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return np.asarray(x >> np.uint64(33), dtype=np.int64)  # 31 bits: what every generator takes as a seed


def _locate(tokens: NDArray[np.int32], index: int) -> tuple[int, int, int]:
    """(call, lane, position) of the index-th emitted token of a block."""
    call, lane, position = np.argwhere(tokens >= 0)[index]
    return int(call), int(lane), int(position)
