"""The tables of a drafter's real network, and many rounds on them.

The real loop is played on the tiny networks; at a few of its prefixes everything that the drafter can propose is
enumerated, with the target's rows at every node. A round then takes one of the prefixes, one of its blocks by the odds
of the draft, and the engine's rule with Philox coins: the law of the real loop's round, at the speed of a table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from refengine.decoder.loop import Session, nodes
from refengine.decoder.protocols import Tokens, Turn
from refengine.decoder.rows import tree_rows
from refengine.engine.block import Block
from refengine.engine.coins import Branching, Philox, Shifted
from refengine.engine.policy import rows as policy_rows
from refengine.exact.block import Block as Candidates
from refengine.exact.chance import Chance, runs
from refengine.selfcheck.drafters.laws.cells import CELLS, session

PREFIXES = 6
NEW_TOKENS = 40
LANES = 1 << 15


@dataclass(frozen=True)
class Drawn:
    """One block that the drafter can propose after a prefix, its probability, and the target's rows [n + 1, V]."""

    prefix: int
    mass: float
    block: Block
    p: Tensor

    def exact(self) -> tuple[list[tuple[Fraction, ...]], Candidates]:
        """The same in the exact text."""
        tokens, parents = nodes(self.block)
        q = [None] * len(tokens) if self.block.q is None else [_row(row) for row in self.block.q[0]]
        sites = [("draft", j) if row is not None else None for j, row in enumerate(q)]
        return [_row(row) for row in self.p], Candidates(tokens, parents, tuple(q), tuple(sites))


def _row(row: Tensor) -> tuple[Fraction, ...]:
    weights = [Fraction(x) for x in row.double().tolist()]
    return tuple(w / sum(weights) for w in weights)


def tables(drafter: str, rule: str) -> list[Drawn]:
    """Every block at PREFIXES prefixes that the real loop comes to, at temperature 1 on three tokens."""
    cell = CELLS[f"{drafter}/{rule}/temperature-1"]
    loop, found, coins = session(cell), [], Philox(8, torch.tensor([0]))
    loop.max_new_tokens = NEW_TOKENS
    loop.begin(cell.prompt, coins)
    for prefix in range(PREFIXES):
        found += [Drawn(prefix, mass, block, p) for mass, block, p in _blocks(loop)]
        loop.play(coins)
        assert not loop.done, "the loop ended before enough prefixes were seen"
    return found


def _blocks(loop: Session) -> list[tuple[float, Block, Tensor]]:
    """Everything that may be proposed where the loop stands now, which it then still does."""
    out, state, prompt = loop.out, loop.state(), loop.prompt
    seen: list[tuple[Block, Tensor]] = []

    def propose(chance: Chance) -> int:
        loop.restore(prompt, out, state)
        prefix = prompt + out
        block = loop.drafter.propose(Turn(prompt, prefix, loop.policy, Shifted(Branching(chance), len(prefix))))
        tokens, parents = nodes(block)
        passed = loop.target.run(tree_rows(prefix[-1], tokens, parents, len(prefix) - 1, loop.target.device))
        seen.append((block, policy_rows(loop.policy, passed.logits, prompt, out, tokens, parents)))
        return len(seen) - 1

    ways = [(float(mass), *seen[index]) for index, mass, _ in runs(propose)]
    loop.restore(prompt, out, state)
    return ways


@dataclass(frozen=True)
class Rounds:
    """Rounds of one block: which, and what each emitted: tokens [n, depth + 1] and path [n, depth], padded with -1."""

    drawn: int
    tokens: NDArray[np.int64]
    path: NDArray[np.int64]


def rounds(found: list[Drawn], rule: Any, tokens: int, seed: int) -> Iterator[Rounds]:
    """Rounds until so many tokens are out; the prefix is drawn evenly, the block by its odds."""
    odds = torch.tensor([drawn.mass for drawn in found], dtype=torch.float64)[None]
    done = request = 0
    while done < tokens:
        coins = Philox(seed, torch.arange(request, request + LANES))
        which = coins.choose(odds.expand(LANES, -1), ("draft", 0))
        for index, drawn in enumerate(found):
            lanes = (which == index).nonzero()[:, 0]
            if not len(lanes):
                continue
            coins = Philox(seed + 1, request + lanes)
            out = rule(drawn.p.expand(len(lanes), -1, -1), _spread(drawn.block, len(lanes)), coins)
            done += int(out.length.sum())
            yield Rounds(index, out.tokens.numpy(), out.path.numpy())
        request += LANES


def _spread(block: Block, lanes: int) -> Block:
    tokens, parents = (x.expand(lanes, -1) for x in (block.tokens, block.parents))
    return Block(tokens, parents, None if block.q is None else block.q.expand(lanes, -1, -1), block.sites)


def path_tokens(block: Block, path: Any) -> Tokens:
    return tuple(int(block.tokens[0, node]) for node in path if node >= 0)
