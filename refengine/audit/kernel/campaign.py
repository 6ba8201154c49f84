"""A campaign of sampled calls: a child, the inputs, the evidence, and the schedule of calls over the inputs."""

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from time import monotonic
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from refengine.audit.inputs.case import Case, turn
from refengine.audit.inputs.hostile import OPENING_INPUTS, block_size
from refengine.audit.kernel.history import History, features
from refengine.audit.sandbox.child import Child, Failure
from refengine.evidence.e_process import LISTED, CaseEvidence, Evidence
from refengine.evidence.rows import Rows

HANG_SECONDS = 60.0  # one call that takes longer hangs
SLICE_SECONDS = 5.0  # how often a child reports back
SENDING_SECONDS = 60.0  # for a child to take over the rows of an input
NO_TOKENS: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
CALLS_BETWEEN_LOOKS = 256  # at the evidence, at most
CALLS_BEFORE_FIRST_LOOK = 16
EARLY_CALLS = 3000  # calls in which most listed defects show
LEAD_NATS, CALLS_AFTER_LEAD = 2.0, 2  # what makes a lead among the first calls, and the calls that follow it
INPUTS_A_TURN = 8  # that share the calls of one turn of the round
PRIOR_OF_GROWTH = 0.01  # that the growth of a learner is no luck


@dataclass(frozen=True)
class End:
    """Why a campaign ended before its calls were spent.

    impossible  a token of probability zero was emitted
    broken      an answer is no list of emitted tokens
    rejected    the evidence reached 1/alpha
    raised, hang, killed, adapter  the end of a request to the child (sandbox/child.py)
    clock       the time was up

    answer  draft and tokens of the lane that ended it; of a broken answer, the call and what was expected
    """

    kind: Literal["impossible", "broken", "rejected", "clock"] | Failure
    message: str = ""
    case: str = ""
    call: int = 0
    lane: int = 0
    answer: dict[str, Any] = field(default_factory=dict)


@dataclass
class Tried:
    """One input with what is known of the subject there."""

    case: Case
    evidence: CaseEvidence
    history: History
    reach: Rows  # expected visits to each site [S] in a call
    calls: int = 0
    lanes: Counter[tuple[int, ...]] = field(default_factory=Counter)  # how often a lane, by its number, emitted what


@dataclass
class Campaign:
    """Runs inputs against one subject in one child and keeps the evidence.

    `seed` decides every draft and every generator; call t of an input has seeds of its own, so any call can be run
    alone.
    """

    child: Child
    signature: str
    seed: int
    alpha: float
    until: float  # time.monotonic() at which the clock ends it
    cases: dict[str, Tried] = field(default_factory=dict)
    evidence: Evidence = field(init=False)
    generator: np.random.Generator = field(init=False)  # decides which defect is looked for next
    curve: list[tuple[int, float]] = field(default_factory=list)  # (calls, log evidence)
    calls: int = 0
    skipped: dict[str, str] = field(default_factory=dict)  # case -> what the subject raised there
    # The first calls of an input on which noise shows: more answers than it has lanes.
    first: tuple[str, NDArray[np.int32]] = ("", NO_TOKENS)
    last: dict[str, Any] = field(default_factory=dict)  # the last reply of the child

    def add(self, case: Case) -> None:
        """Make an input known to both sides."""
        self.adopt(case, CaseEvidence(case.p, case.q, features(case), sizes=case.sizes))
        send(self.child, case)

    def adopt(self, case: Case, found: CaseEvidence) -> None:
        """Make an input known on this side, with evidence that starts from nothing."""
        if not self.cases:
            self.evidence = Evidence(tuple(features(case)), self.alpha)
            self.generator = np.random.default_rng(self.seed & (2**64 - 1))
        batch = self.signature == "verify_batch"
        lane_of = None if batch else partial(turn, lanes=case.lanes)
        reach = case.reach().ravel() / (1 if batch else case.lanes)
        self.cases[case.name] = Tried(case, found, History(case, lane_of), reach)
        self.evidence.cases[case.name] = found

    def run(self, name: str, count: int, stop: bool = True) -> End | None:
        """`count` more calls of an input. None when they are done and nothing is decided; with `stop` off, evidence is
        gathered and decides nothing, for a diagnosis."""
        tried, last = self.cases[name], self.cases[name].calls + count
        while tried.calls < last:
            until_look = min(CALLS_BETWEEN_LOOKS, max(CALLS_BEFORE_FIRST_LOOK, tried.calls // 4))
            reply = self._replies(tried, min(until_look, last - tried.calls))
            if isinstance(reply, End):
                return reply
            end = self._count(tried, reply)
            if end is not None and (stop or end.kind == "broken"):
                return end
        return None

    def _replies(self, tried: Tried, count: int) -> dict[str, Any] | End:
        """The reply to `count` calls. A slow child sends it in slices, which are joined before the evidence is looked
        at: when it is looked at must not depend on the machine."""
        name, first = tried.case.name, tried.calls
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
            outcome = self.child.ask(request, HANG_SECONDS)
            if outcome.kind != "result":
                return End(outcome.kind, str(outcome), name, first + done)
            slices.append(outcome.value)
            done += len(outcome.value["tokens"])
            if outcome.value["broken"]:
                break
        joined = {key: np.concatenate([part[key] for part in slices]) for key in ("tokens", "drafts")}
        cells = tried.case.narrow(joined["tokens"])
        return {**joined, "ids": joined["tokens"], "tokens": cells, "broken": slices[-1]["broken"]}

    def _count(self, tried: Tried, reply: dict[str, Any]) -> End | None:
        """Add a reply to the evidence."""
        tokens, name, start = reply["tokens"], tried.case.name, tried.calls
        if len(tokens):
            draws = tried.history.draws(tokens, start)
            self.last = reply
            if start == 0 and not self.first[0] and len(np.unique(tokens, axis=0)) > tried.case.lanes:
                self.first = (name, tokens)
            impossible = tried.evidence.impossible(draws)
            tried.lanes.update(tried.history.lanes(tokens, start))
            tried.calls += len(tokens)
            self.calls += len(tokens)
            tried.evidence.add(draws)
            if impossible.any():
                return _impossible(name, start, reply, int(np.argmax(impossible)))
        if broken := reply["broken"]:
            asked = {key: broken[key] for key in ("call made", "expected")}
            return End("broken", broken["message"], name, broken["call"], answer=asked)
        self.curve.append((self.calls, self.evidence.log_evidence()))
        return End("rejected", case=name) if self.evidence.rejects() else None

    # --- where effort goes -------------------------------------------------------------------------------------------

    def schedule(self, total: int) -> Iterator[tuple[str, int]]:
        """(input, calls): first the opening inputs once, each lead being followed for a call or two. Then turns are
        divided between the input that would show a listed defect fastest, the one on which a learner grew fastest, and
        a round of all. Listed defects get most turns while few calls were spent; then the round gets more, for defects
        that nobody listed. The schedule depends on calls that are over alone."""
        spent = 0
        for name in list(self.cases)[:OPENING_INPUTS]:
            spent += 1
            yield name, 1
            for _ in range(CALLS_AFTER_LEAD):
                if self.evidence.log_evidence() > LEAD_NATS:
                    spent += 1
                    yield self._fastest_listed(), 1
        one, listed, learned = self._fastest_for_one, self._fastest_listed, self._fastest_learned
        early, late = cycle((one, listed, one, None, one, learned)), cycle((listed, None, one, None, learned))
        while True:
            choose = next(early if spent < EARLY_CALLS else late)
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
        """Several at a time, so that every input is tried soon."""
        return sorted(self._open(), key=lambda name: self.cases[name].calls)[:INPUTS_A_TURN]

    def _fastest_listed(self) -> str:
        """The input on which the listed defects would show fastest, weighed by the belief in each."""
        posterior = self.evidence.posterior()[: len(LISTED)]
        return self._fastest(posterior / posterior.sum())

    def _fastest_for_one(self) -> str:
        """The input on which one listed defect would show fastest, drawn by the belief in each: the crudest defects
        govern the mean of `_fastest_listed`."""
        posterior = self.evidence.posterior()[: len(LISTED)]
        one = int(self.generator.choice(len(LISTED), p=posterior / posterior.sum()))
        return self._fastest(np.arange(len(LISTED)) == one)

    def _fastest(self, belief: Rows) -> str:
        def growth(name: str) -> float:
            return float(belief @ self.cases[name].evidence.growth @ self._visits(self.cases[name]))

        return max(self._open(), key=growth)

    @staticmethod
    def _visits(tried: Tried) -> Rows:
        """How often a call visits each site: the observed frequency, which starts from drafts that are kept as often
        as p and q can agree on them."""
        observed = tried.evidence.counts[0].sum(1)
        return np.asarray((observed + tried.reach) / (tried.calls + 1))

    def _fastest_learned(self) -> str:
        """The input on which a learner grew fastest, less the growth that is likely to be luck."""

        def growth(name: str) -> float:
            tried = self.cases[name]
            learned = float(tried.evidence.log_wealth[0, -len(tried.evidence.learners) :].max())
            real = PRIOR_OF_GROWTH / (PRIOR_OF_GROWTH + float(np.exp(-learned)))
            return real * learned / max(tried.calls, 1)

        return max(self._open(), key=growth)


def send(child: Child, case: Case) -> None:
    """The rows of an input, for the child to keep under its name."""
    p, q = case.float32()
    child.ask({"op": "case", "name": case.name, "p": p, "q": q, "noise": case.noise}, SENDING_SECONDS)


def seeds(seed: int, name: str, start: int, count: int) -> NDArray[np.int64]:
    """[count, 3] seeds of calls start, start + 1, ...: a 64-bit mix of seed, input, call and use (splitmix64: Steele,
    Lea, Flood, "Fast splittable pseudorandom number generators", 2014)."""
    call = np.arange(start, start + count, dtype=np.uint64)[:, None]
    use = np.arange(3, dtype=np.uint64)[None, :]
    with np.errstate(over="ignore"):
        key = np.uint64(seed & (2**64 - 1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(zlib.crc32(name.encode()))
        x = key + (call * np.uint64(4) + use + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return np.asarray(x >> np.uint64(33), dtype=np.int64)  # 31 bits: what every generator takes as a seed


def _impossible(name: str, start: int, reply: dict[str, Any], index: int) -> End:
    """The end where the index-th emitted token of a reply has no mass."""
    call, lane, position = (int(i) for i in np.argwhere(reply["tokens"] >= 0)[index])
    tokens, draft = reply["ids"][call, lane], reply["drafts"][call, lane]
    answer = {"draft": draft.tolist(), "tokens": [int(t) for t in tokens if t >= 0], "position": position}
    return End("impossible", f"token {tokens[position]} has p = 0", name, start + call, lane, answer)
