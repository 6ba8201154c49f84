"""What a drafter promises beside losslessness: its draws have the law q that it reports, and acceptance is what p and q
allow.

The law of a round is enumerated on prefixes that a seeded run of the loop visits. The checks know a block and its rows
alone; how a drafter makes them does not matter.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from refengine.decoder.loop import Played, Session, Stop, nodes
from refengine.decoder.protocols import Drafter, State, Target, Tokens, Turn
from refengine.decoder.rows import chain_rows
from refengine.engine.block import ROOT, Block
from refengine.engine.coins import Branching, Philox, Shifted
from refengine.exact.chance import runs
from refengine.selfcheck.drafters.cells import EXACT, Cell, session

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


def acceptance(cell: Cell) -> tuple[Contract, float, float]:
    """Mean accepted tokens of a round, enumerated, and by the formula on the rows of the same blocks.

    The formula: a child x that its parent's row r and its own q judge is accepted with min(1, r(x) / q(x)), after which
    what is left of r is max(r - q, 0). For a chain that is the sum over i of the mass of min(p, q) along the block.
    Returns what was found, then both means per round.
    """
    blocks, worst, realised, promised, rounds = 0, 0.0, 0.0, 0.0, 0
    for play, prefix in visited(cell):
        mean, formula = accepted(play)
        blocks, rounds, worst = blocks + 1, rounds + 1, max(worst, abs(mean - formula))
        realised, promised = realised + mean, promised + formula
        if abs(mean - formula) > EXACT:
            witness = {"prefix": prefix, "accepted": mean, "formula": formula}
            return Contract(blocks, worst, witness), realised / rounds, promised / rounds
    return Contract(blocks, worst), realised / rounds, promised / rounds


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


def accepted(play: Session) -> tuple[float, float]:
    """Mean accepted tokens of the next round: as enumerated, and by the formula."""
    known: dict[Any, float] = {}
    mean = formula = 0.0
    for played, weight, _ in runs(partial(_played, play, play.out, play.state())):
        mean += float(weight) * len(played.verdict.path)
        key = (nodes(played.block), None if played.block.q is None else played.block.q.numpy().tobytes())
        if key not in known:
            known[key] = _below(ROOT, played.block, played.p)
        formula += float(weight) * known[key]
    return mean, formula


def _below(node: int, block: Block, p: Tensor) -> float:
    """Expected accepted tokens under a node that was reached, its children judged in order."""
    tokens, parents = nodes(block)
    left, reached, expected, taken = p[node + 1].clone(), 1.0, 0.0, list[int]()
    for child in [j for j, parent in enumerate(parents) if parent == node]:
        x = tokens[child]
        if block.q is None:
            q = torch.nn.functional.one_hot(torch.tensor(x), len(left)).to(left)
        else:
            q = block.q[0, child].index_fill(0, torch.tensor(taken, dtype=torch.long), 0.0)
            q = q / q.sum()
        kept = min(1.0, float(left[x] / q[x]))
        expected += reached * kept * (1 + _below(child, block, p))
        reached *= 1 - kept
        left = (left - q).clamp(min=0)
        if float(left.sum()) <= 0:
            break
        left, taken = left / left.sum(), [*taken, x]
    return expected


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
