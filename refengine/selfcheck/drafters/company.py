"""A drafter's requests in company: who comes and goes, beside whom, what is taken back; and what each has to say.

A script is a list of events. One that does not apply is passed over, so any list is a script: drawn from a seed, found
by Hypothesis, or cut down to what fails (`shortest`).

    join       a request comes; its prompt is run in the next step
    step       one pass: a block of everyone who is here is drafted, run, judged, kept or rejected; prompts beside them
    branch     a request goes on twice, the second time with other coins
    take back  a block is drafted and run, and nothing of it is kept
    anew       caches are forgotten and computed again from the text, in passes of other shapes
    leave      before its end

In the bitwise mode every row of every pass is held against the same text computed alone: logits, and the hidden states
that the drafter looks at. In either mode a request says what it says alone; under `agreement` and greedily that is what
plain decoding says, whatever was drafted.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, TypeAlias

import torch
from torch import Tensor

from refengine.decoder.batch import Batch
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.loop import Session, nodes, opening, target_token
from refengine.decoder.protocols import Pass, Rows, Tokens
from refengine.decoder.targets import bitwise
from refengine.engine.block import ROOT, Block
from refengine.engine.coins import Coins, Philox
from refengine.engine.policy import greedy, pipeline, temperature, top_p
from refengine.engine.rules import RULES
from refengine.selfcheck.drafters.bits import Alone, Heard
from refengine.selfcheck.drafters.row import Row
from refengine.source_tree import FIXTURES

Event: TypeAlias = tuple[str, int, int]  # what, the seat, and the number of a request or of other coins
Script: TypeAlias = Sequence[Event]

SEATS, WORDS, LONGEST, EVENTS = 8, 6, 8, 60
STEP: Event = ("step", 0, 0)
SHARES = {"step": 32, "join": 44, "branch": 10, "take back": 5, "anew": 4, "leave": 5}
SAMPLED = pipeline(temperature(0.8), top_p(0.95))
# By what is said: the drafter's own rule, and two that leave no choice but plain decoding's.
MODES = {"own": SAMPLED, "agreement": SAMPLED, "greedy": pipeline(greedy())}


def drawn(source: random.Random, numbers: range, events: int = EVENTS) -> Script:
    """A random script about some of these requests."""
    kinds, shares = list(SHARES), list(SHARES.values())
    return [(what, source.randrange(SEATS), source.choice(numbers)) for what in source.choices(kinds, shares, k=events)]


@dataclass(frozen=True)
class Request:
    """What is asked, and with which coins: others from a length on at which it was branched off.

    branches  (tokens said before it, which coins from there)
    """

    number: int
    branches: tuple[tuple[int, int], ...] = ()

    def coins(self, said: int, device: torch.device) -> Philox:
        which = next((which for at, which in reversed(self.branches) if at <= said), 0)
        return Philox(9, torch.tensor([1000 * which + self.number], device=device))

    @property
    def asked(self) -> tuple[Tokens, int]:
        """The prompt, and how many tokens."""
        mine = random.Random(self.number)
        prompt = tuple(mine.randrange(WORDS) for _ in range(mine.choice((1, 2, 3, 5, 7, 12))))
        return prompt, mine.randint(1, LONGEST)


@dataclass
class Life:
    """A request that is here. way: all that became of it, so that histories can be told apart."""

    request: Request
    way: list[tuple[Any, ...]] = field(default_factory=list)
    anew: bool = False


@dataclass
class Watched(Session):
    """A session that reports every row it sees run, with the text that the row stands for by the session's account."""

    hear: Callable[[Tokens, Tensor], None] | None = None

    def begun(self, passed: Pass, coins: Coins) -> None:
        self.told(self.prompt, passed)
        super().begun(passed, coins)

    def weigh(self, block: Block, passed: Pass) -> Tensor:
        self.told_of_block(block, passed)
        return super().weigh(block, passed)

    def take_back(self, coins: Coins) -> int:
        """Draft and run a block, and keep nothing; returns how many rows that were."""
        before = self.drafter.state()
        _, block, rows = self.propose(coins)
        self.told_of_block(block, self.target.run(rows, self.drafter.taps))
        self.target.keep(())
        self.drafter.restore(before)
        return len(rows.tokens)

    def anew(self) -> int:
        """What `rebuild` does, heard; returns how many rows that were."""
        cached = (self.prompt + self.out)[:-1]
        passed = self.target.run(opening(self.target, cached, 1), self.drafter.taps)
        self.target.keep(range(len(cached)))
        self.told(cached, passed)
        self.drafter.start(cached, passed)
        return len(cached)

    def told(self, tokens: Tokens, passed: Pass) -> None:
        if self.hear:
            for end, values in enumerate(looked_at(passed), 1):
                self.hear(tokens[:end], values)

    def told_of_block(self, block: Block, passed: Pass) -> None:
        if self.hear:
            texts = [self.prompt + self.out]
            for token, parent in zip(*nodes(block), strict=True):
                texts.append((*texts[parent - ROOT], token))
            for text, values in zip(texts, looked_at(passed), strict=True):
                self.hear(text, values)


def looked_at(passed: Pass) -> Tensor:
    """Logits and tapped hidden states of every row, behind each other."""
    return torch.cat([passed.logits, *(passed.taps[j] for j in sorted(passed.taps))], -1)


class Looking:
    """A target whose logits are all that a drafter looks at."""

    def __init__(self, target: Any, taps: Sequence[int]) -> None:
        self.target, self.taps = target, tuple(taps)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    def run(self, rows: Rows) -> Pass:
        passed: Pass = self.target.run(rows, self.taps)
        return replace(passed, logits=looked_at(passed))


class Company:
    """A drafter in `SEATS` sessions of one model, and what every request says alone.

    slots  given: in the bitwise mode
    lanes  of its passes, where the model's rows do not feel them; None: as many as usual
    mode   by which rule and policy: see `MODES`
    code   the module of the bitwise target: the real one, or one with a defect in it
    """

    def __init__(
        self,
        row: Row,
        dtype: torch.dtype,
        slots: int | None = None,
        lanes: int | None = None,
        mode: str = "own",
        device: str = "cpu",
        code: ModuleType = bitwise,
    ) -> None:
        first: Any = load_target(FIXTURES / row.target, dtype, device, slots)
        if lanes and isinstance(first, bitwise.BitwiseTarget):
            first.lanes = bitwise.lanes_that_hold(first, lanes)
        self.mode, self.policy, self.slots = mode, MODES[mode], slots
        self.first, self.counted, self.histories = first, Counter[str](), set[tuple[Any, ...]]()
        rule = RULES["agreement" if mode == "agreement" else row.rules[0]]
        targets = [self.target(code) for _ in range(SEATS + 1)]  # the last is always by itself
        drafters = [row.load(target) for target in targets]
        taps = drafters[0].taps
        self.one = Alone(Looking(self.target(bitwise), taps))  # type: ignore[arg-type]
        self.heard = Heard(self.one)
        hear = self.heard if slots else None
        pairs = zip(targets, drafters, strict=True)
        self.sessions = [Watched(target, drafter, rule, self.policy, 0, hear=hear) for target, drafter in pairs]
        self.said: dict[Request, Tokens] = {}

    def target(self, code: ModuleType) -> Any:
        """Another of the same model."""
        if isinstance(self.first, bitwise.BitwiseTarget):
            return code.BitwiseTarget(self.first.model, self.first.slots, self.first.lanes)
        return type(self.first)(self.first.model, **({"slots": self.slots} if self.slots else {}))

    # --- what a request says alone -----------------------------------------------------------------------------------

    def alone(self, request: Request) -> Tokens:
        """In a session by itself; in the bitwise mode, where no draft matters, by plain decoding."""
        if request not in self.said:
            plainly = self.slots and self.mode != "own"
            self.said[request] = self.plainly(request) if plainly else self.by_itself(request)
        return self.said[request]

    def by_itself(self, request: Request) -> Tokens:
        (prompt, length), device = request.asked, self.first.device
        session = self.sessions[-1]
        session.max_new_tokens = length
        session.begin(prompt, request.coins(0, device))
        while not session.done:
            session.play(request.coins(len(session.out), device))
        return session.out

    def plainly(self, request: Request) -> Tokens:
        prompt, length = request.asked
        out: Tokens = ()
        while len(out) < length:
            row = self.policy(self.one(prompt + out)[: self.first.vocabulary], prompt, out)
            coins = request.coins(len(out), self.first.device)
            out = (*out, target_token(row, coins, len(prompt) + len(out)))
        return out

    # --- together ----------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def play(self, script: Script) -> list[str]:
        """One schedule, to the end of everyone who is still there; what was otherwise than alone, a line each."""
        self.batch, self.here, self.wrong = Batch(), dict[int, Life](), list[str]()
        differing = len(self.heard.differing)
        events = {"join": self.join, "branch": self.branch, "take back": self.take_back, "anew": self.anew}
        for what, seat, number in script:
            if what == "step":
                self.step()
            elif what == "leave":
                self.leave(seat)
            elif (seat in self.here) == (what != "join"):
                events[what](seat, number)
        while self.here:
            self.step()
        self.counted["schedules"] += 1
        self.counted["rows compared"] = self.heard.compared
        return self.wrong + [f"other bits after {list(text)}" for text in self.heard.differing[differing:]]

    def fails(self, script: Script) -> bool:
        return bool(self.play(script))

    def join(self, seat: int, number: int) -> None:
        request, session = Request(number), self.sessions[seat]
        prompt, session.max_new_tokens = request.asked
        session.prompt, session.out, session.done = (), (), False
        self.here[seat] = Life(request)
        self.batch.join(session, prompt, request.coins(0, self.first.device))

    def branch(self, seat: int, number: int) -> None:
        parent, life = self.sessions[seat], self.here[seat]
        free = next((other for other in range(SEATS) if other not in self.here), None)
        if free is None or not parent.prompt:
            return
        request = replace(life.request, branches=(*life.request.branches, (len(parent.out), 1 + number % 2)))
        session = self.sessions[free]
        session.max_new_tokens = parent.max_new_tokens
        session.restore(parent.prompt, parent.out, parent.state())
        self.here[free] = Life(request, [*life.way, ("branch", None)], life.anew)
        self.batch.live.append((session, request.coins(len(parent.out), self.first.device)))
        self.counted["branches"] += 1

    def take_back(self, seat: int, number: int) -> None:
        session, life = self.sessions[seat], self.here[seat]
        if session.prompt:
            rows = session.take_back(life.request.coins(len(session.out), self.first.device))
            life.way.append(("taken back", rows, None))
            self.counted["passes taken back"] += 1

    def anew(self, seat: int, number: int) -> None:
        session, life = self.sessions[seat], self.here[seat]
        if session.prompt:
            life.way.append(("anew", session.anew(), None))
            life.anew = True
            self.counted["computed anew"] += 1

    def leave(self, seat: int) -> None:
        if seat in self.here:
            self.batch.leave(self.sessions[seat])
            self.counted["left before the end"] += 1
            self.end(seat)

    def step(self) -> None:
        """One pass; of every request is noted which of its rows that were, and what was kept of them."""
        seats = {id(self.sessions[seat]): seat for seat in self.here}
        live = [seats[id(session)] for session, _ in self.batch.live]
        joining = [seats[id(session)] for session, *_ in self.batch.joining]
        self.batch.step()
        sizes = [1 + len(self.sessions[seat].rounds[-1].block.tokens[0]) for seat in live]
        sizes += [len(self.sessions[seat].prompt) for seat in joining]
        for at, seat in enumerate(live + joining):
            path = self.sessions[seat].rounds[-1].verdict.path if at < len(live) else None
            self.here[seat].way.append((sum(sizes[:at]), sizes[at], sum(sizes), path))
            if path is not None:
                self.counted["rounds"] += 1
                self.counted["drafts kept"] += len(path)
                self.counted["drafts rejected"] += sizes[at] - 1 - len(path)
            if self.sessions[seat].done:
                self.end(seat)

    def end(self, seat: int) -> None:
        """Said what it says alone? After a recomputation a drafter that learns as it goes may draft otherwise, and its
        own rule then decide otherwise: such a request is held to its bits alone."""
        session, life = self.sessions[seat], self.here.pop(seat)
        if any(event[-1] is not None for event in life.way):  # a block was judged
            self.histories.add((life.request, *life.way))
        if not session.prompt or (life.anew and self.mode == "own"):
            return
        self.counted["requests whose tokens were compared"] += 1
        if session.out != self.alone(life.request)[: len(session.out)]:
            self.wrong.append(f"{life.request}: {session.out}, alone {self.alone(life.request)}")
        if session.done and len(session.out) != session.max_new_tokens:
            self.wrong.append(f"{life.request}: {len(session.out)} tokens of {session.max_new_tokens}")


def shortest(fails: Callable[[Script], bool], script: Script) -> Script:
    """A script that still fails and no event of which can be left out."""
    size = len(script)
    while size:
        cuts = ([*script[:at], *script[at + size :]] for at in range(0, len(script), size))
        shorter = next((cut for cut in cuts if fails(cut)), None)
        if shorter is None:
            size //= 2
        else:
            script, size = shorter, min(size, len(shorter))
    return script
