"""What a drafter promises beside losslessness: its draws have the law q that it reports, and acceptance is what p and q
allow.

The law of a round is enumerated on prefixes that a seeded run of the loop visits. The checks know a block and its rows
alone; how a drafter makes them does not matter.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from refengine.decoder.loop import Played, Session, Stop, nodes
from refengine.decoder.protocols import Drafter, State, Target, Tokens, Turn
from refengine.decoder.rows import chain_rows
from refengine.engine.block import ROOT, Block
from refengine.engine.coins import Branching, Philox, Shifted
from refengine.exact.chance import runs
from refengine.selfcheck.drafters.laws.cells import EXACT, Cell, session

VISITED = 12  # prefixes of a run on which a round is enumerated
PROMISED = ("temperature-1", "temperature-1/2", "top-k", "history", "mixed")


@dataclass(frozen=True)
class Contract:
    """What was found: how many blocks were enumerated, the largest deviation, and the first that was too large."""

    blocks: int
    worst: float
    witness: dict[str, Any] | None = None


def q_contract(cell: Cell) -> Contract:
    """On every visited prefix and under every policy: the law of the drawn tokens is the product of the reported rows.

    Candidates without rows must be the same in every run: nothing may be drawn for them.
    """
    blocks, worst = 0, 0.0
    for policy in PROMISED:
        for play, prefix in visited(replace(cell, policy=policy)):
            once = partial(proposed, play, play.state())
            drawn = [(block, float(weight)) for block, weight, _ in runs(once)]
            blocks += len(drawn)
            for block, weight in drawn:
                off = abs(weight - claimed(block))
                worst = max(worst, off)
                if off > EXACT:
                    tokens, parents = nodes(block)
                    where = {"policy": policy, "prefix": prefix, "tokens": tokens, "parents": parents}
                    return Contract(blocks, worst, {**where, "drawn with": weight, "reported": claimed(block)})
    return Contract(blocks, worst)


@dataclass
class Levels:
    """By depth of a block: the mean number of rounds that judge a candidate there, and that accept one."""

    judged: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)

    def add(self, depth: int, judged: float, kept: float) -> None:
        more = [0.0] * (depth + 1 - len(self.judged))
        self.judged, self.kept = self.judged + more, self.kept + more
        self.judged[depth] += judged
        self.kept[depth] += kept

    def merge(self, other: "Levels", weight: float) -> None:
        for depth, (judged, kept) in enumerate(zip(other.judged, other.kept, strict=True)):
            self.add(depth, weight * judged, weight * kept)

    @property
    def mean(self) -> float:
        """Accepted tokens of a round."""
        return sum(self.kept)

    def rate(self, depth: int) -> float:
        """How often a candidate is accepted there, where there is one and the path so far was accepted."""
        return self.kept[depth] / self.judged[depth]


def acceptance(cell: Cell) -> tuple[Contract, Levels, Levels]:
    """What a round accepts at each depth, enumerated, and by the formula on the rows of the same blocks.

    The formula: a child x that its parent's row r and its own q judge is accepted with min(1, r(x) / q(x)), after which
    what is left of r is max(r - q, 0). For a chain that is the sum over i of the mass of min(p, q) along the block.
    Returns what was found, then the means of all rounds that were looked at.
    """
    blocks, worst, every = 0, 0.0, (Levels(), Levels())
    for play, prefix in visited(cell):
        seen, promised = accepted(play)
        for sums, one in zip(every, (seen, promised), strict=True):
            sums.merge(one, 1 / VISITED)
        apart = [abs(a - b) for a, b in zip_longest(seen.kept, promised.kept, fillvalue=0.0)]
        blocks, worst = blocks + 1, max(worst, *apart, 0.0)
        if worst > EXACT:
            witness = {"prefix": prefix, "accepted by depth": seen.kept, "formula": promised.kept}
            return Contract(blocks, worst, witness), *every
    return Contract(blocks, worst), *every


def self_draft(cell: Cell) -> Contract | None:
    """With the target's own row in place of every row that is drawn from, every draft is accepted in every run.

    Of siblings the first is then accepted, so in a tree what is accepted is the path of first children. None where
    candidates are not drawn from rows, so that there is nothing to make equal.
    """
    blocks = 0
    for play, prefix in visited(cell):
        oracle = Oracle(play.drafter, play.target)
        judged = replace(play, drafter=oracle, rounds=[])
        for played, weight, _ in runs(partial(_played, judged, play.out, play.state())):
            if played.block.q is None:
                return None
            if float(weight) <= EXACT:  # p and q of two passes differ by rounding: such a refusal has a mass of 1e-16
                continue
            blocks += 1
            if played.verdict.path != (wanted := _first_children(played.block)):
                witness = {"prefix": prefix, "accepted": played.verdict.path, "all that can be": wanted}
                return Contract(blocks, float(weight), witness)
    return Contract(blocks, 0.0)


def visited(cell: Cell) -> Iterator[tuple[Session, Tokens]]:
    """The cell's loop between rounds of a seeded run, and the prefix there. Whoever looks may leave it as it likes."""
    play = replace(session(cell), max_new_tokens=10**6, stop=Stop())
    coins = Philox(5, torch.tensor([0]))
    play.begin(cell.prompt, coins)
    for _ in range(VISITED):
        state, out = play.state(), play.out
        yield play, cell.prompt + out
        play.restore(cell.prompt, out, state)
        play.play(coins)


def proposed(play: Session, state: State, chance: Any) -> Block:
    play.restore(play.prompt, play.out, state)
    return play.drafter.propose(_turn(play, chance))


def _turn(play: Session, chance: Any) -> Turn:
    prefix = play.prompt + play.out
    return Turn(play.prompt, prefix, play.policy, Shifted(Branching(chance), len(prefix)))


def claimed(block: Block) -> float:
    """The probability of a block's draws that its rows report: siblings in order, without replacement."""
    if block.q is None:
        return 1.0
    mass, gone = 1.0, dict[int, float]()
    for node, (token, parent) in enumerate(zip(*nodes(block), strict=True)):
        mass *= float(block.q[0, node, token]) / (1 - gone.get(parent, 0.0))
        gone[parent] = gone.get(parent, 0.0) + float(block.q[0, node, token])
    return mass


def accepted(play: Session) -> tuple[Levels, Levels]:
    """What the next round accepts: as enumerated, and by the formula."""
    known: dict[Any, Levels] = {}
    seen, formula = Levels(), Levels()
    for played, weight, _ in runs(partial(_played, play, play.out, play.state())):
        parents = nodes(played.block)[1]
        for depth, at in enumerate((ROOT, *played.verdict.path)):
            if at in parents:
                seen.add(depth, float(weight), float(weight) * (depth < len(played.verdict.path)))
        key = (nodes(played.block), None if played.block.q is None else played.block.q.numpy().tobytes())
        if key not in known:
            _below(ROOT, played.block, played.p, 0, 1.0, known.setdefault(key, Levels()))
        formula.merge(known[key], float(weight))
    return seen, formula


def _below(node: int, block: Block, p: Tensor, depth: int, mass: float, levels: Levels) -> None:
    """Add what is accepted under a node that `mass` rounds reach, its children judged in order."""
    tokens, parents = nodes(block)
    left, taken = p[node + 1].clone(), list[int]()
    children = [j for j, parent in enumerate(parents) if parent == node]
    if children:
        levels.add(depth, mass, 0.0)
    for child in children:
        x = tokens[child]
        if block.q is None:
            q = torch.nn.functional.one_hot(torch.tensor(x), len(left)).to(left)
        else:
            q = block.q[0, child].index_fill(0, torch.tensor(taken, dtype=torch.long), 0.0)
            q = q / q.sum()
        kept = min(1.0, float(left[x] / q[x]))
        levels.add(depth, 0.0, mass * kept)
        if kept:
            _below(child, block, p, depth + 1, mass * kept, levels)
        mass *= 1 - kept
        left = (left - q).clamp(min=0)
        if float(left.sum()) <= 0:
            break
        left, taken = left / left.sum(), [*taken, x]


def _first_children(block: Block) -> Tokens:
    path: list[int] = []
    for node, parent in enumerate(nodes(block)[1]):
        if parent == (path[-1] if path else ROOT):
            path.append(node)
    return tuple(path)


def _played(play: Session, out: Tokens, state: State, chance: Any) -> Played:
    play.restore(play.prompt, out, state)
    play.play(Branching(chance))
    return play.rounds[-1]


@dataclass
class Oracle:
    """A drafter that draws from the target's rows where it would draw from its own.

    The rows are computed from the whole prefix, on the same target, whose state is put back afterwards.
    """

    inner: Drafter
    target: Target

    @property
    def taps(self) -> Any:
        return self.inner.taps

    def propose(self, turn: Turn) -> Block:
        kept = self.target.state()
        row: Callable[[Tokens], Tensor] = lambda path: self._row(turn, path)  # noqa: E731
        block = self.inner.propose(_OracleTurn(turn.prompt, turn.prefix, turn.policy, turn.coins, row))
        self.target.restore(kept)
        return block

    def _row(self, turn: Turn, path: Tokens) -> Tensor:
        inside = self.target.state()
        self.target.reset()
        whole = self.target.run(chain_rows(turn.prefix + path, 0, self.target.device))
        self.target.restore(inside)
        return turn.row(whole.logits[-1], path)

    def start(self, tokens: Tokens, passed: Any) -> None:
        self.inner.start(tokens, passed)

    def commit(self, verdict: Any, kept: Any) -> None:
        self.inner.commit(verdict, kept)

    def state(self) -> State:
        return self.inner.state()

    def restore(self, state: State) -> None:
        self.inner.restore(state)


@dataclass(frozen=True)
class _OracleTurn(Turn):
    """A turn whose rows are the target's, whatever logits a drafter computed."""

    own: Callable[[Tokens], Tensor]

    def row(self, logits: Tensor, path: Tokens = ()) -> Tensor:
        return self.own(path)
