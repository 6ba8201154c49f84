"""Many rounds of the engine's rules on table rows: drafts and decisions from Philox coins, one request per lane."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from refengine.audit.inputs.case import Case, case, step
from refengine.engine.block import NOTHING, Block, Round
from refengine.engine.coins import Philox
from refengine.engine.rules import RULES as ENGINE
from refengine.exact.rules import RULES
from refengine.jobs.ranges import Range, coins

Rule = Callable[[Tensor, Block, Philox], Round]
Drafter = Callable[[Case, Tensor, Philox], tuple[Tensor, Block]]
LANES = 1 << 15  # a batch
WIDTHS = (2, 2)  # of the trees


def table(seed: int, vocabulary: int, gamma: int, contexts: int = 2, lanes: int = 2) -> Case:
    """Random rows that differ by lane, position and context; some tokens rare, one forbidden."""
    generator = np.random.default_rng(seed)
    rows = generator.dirichlet(np.full(vocabulary, 0.6), size=(lanes, 2 * gamma + 1, contexts))
    rows[:, :, :, vocabulary // 2] = 0.0
    return case(f"table {seed}", rows[:, : gamma + 1], rows[:, gamma + 1 :])


def emitted(draft: Drafter, rule: Rule, item: Case, tokens: int, seed: int) -> Iterator[NDArray[np.int32]]:
    """Blocks [calls, lanes, depth + 1] until `tokens` tokens are out. Lane k of a call has the rows of lane k."""
    calls, done, request = LANES // item.lanes, 0, 0
    while done < tokens:
        out = batch(draft, rule, item, coins(seed, Range(request, calls * item.lanes)))
        request += calls * item.lanes
        done += int((out >= 0).sum())
        yield out.reshape(calls, item.lanes, -1)


def batch(draft: Drafter, rule: Rule, item: Case, coins: Philox) -> NDArray[np.int32]:
    """A round for each request, in turn with the rows of each lane: [n, depth + 1], padded with -1."""
    p, block = draft(item, coins.requests % item.lanes, coins)
    out = rule(p, block, coins).tokens
    assert bool((out[:, item.gamma + 1 :] == NOTHING).all())  # a tree leaves room for more nodes than a path has
    return out[:, : item.gamma + 1].numpy().astype(np.int32)


def chain(item: Case, lane: Tensor, coins: Philox) -> tuple[Tensor, Block]:
    """gamma drafts in a row, each drawn from q."""
    every_p, every_q = (torch.from_numpy(rows) for rows in item.float32())
    context = torch.zeros_like(lane)
    p, q, tokens = [every_p[lane, 0, context]], list[Tensor](), list[Tensor]()
    for i in range(item.gamma):
        q.append(every_q[lane, i, context])
        tokens.append(coins.choose(q[-1], ("draft", i)))
        context = step(context, tokens[-1], item.contexts)  # type: ignore[arg-type,assignment]
        p.append(every_p[lane, i + 1, context])
    parents = torch.arange(-1, item.gamma - 1).expand(len(lane), item.gamma)
    return torch.stack(p, 1), Block(torch.stack(tokens, 1), parents, torch.stack(q, 1))


def undrawn(item: Case, lane: Tensor, coins: Philox) -> tuple[Tensor, Block]:
    """The same chain handed over as candidates that nobody drew: how they came about must not matter."""
    p, block = chain(item, lane, coins)
    return p, Block(block.tokens, block.parents, None)


def iid_tree(item: Case, lane: Tensor, coins: Philox) -> tuple[Tensor, Block]:
    return _tree(item, lane, coins, distinct=False)


def distinct_tree(item: Case, lane: Tensor, coins: Philox) -> tuple[Tensor, Block]:
    return _tree(item, lane, coins, distinct=True)


def _tree(item: Case, lane: Tensor, coins: Philox, distinct: bool) -> tuple[Tensor, Block]:
    """WIDTHS[d] draws after every node of depth d, independent or without replacement."""
    every_p, every_q = (torch.from_numpy(rows) for rows in item.float32())
    contexts = [torch.zeros_like(lane)]  # of the root, then of every node
    p, q, tokens = [every_p[lane, 0, contexts[0]]], list[Tensor](), list[Tensor]()
    parents, level = list[int](), [-1]
    for depth, width in enumerate(WIDTHS):
        grown = []
        for parent in level:
            row = every_q[lane, depth, contexts[parent + 1]]
            left = row
            for _ in range(width):
                x = coins.choose(left, ("draft", depth, len(tokens)))
                left = left.scatter(1, x[:, None], 0.0) if distinct else left
                grown.append(len(tokens))
                tokens.append(x)
                parents.append(parent)
                q.append(row)
                contexts.append(step(contexts[parent + 1], x, item.contexts))  # type: ignore[arg-type]
                p.append(every_p[lane, depth + 1, contexts[-1]])
        level = grown
    up = torch.tensor(parents).expand(len(lane), len(parents))
    return torch.stack(p, 1), Block(torch.stack(tokens, 1), up, torch.stack(q, 1))


# By the kind of candidates that a rule's card names: the drafter, and how deep its blocks are.
DRAFTERS: dict[tuple[str, str | None], tuple[Drafter, int]] = {
    ("chain", "iid"): (chain, 3),
    ("tree", "iid"): (iid_tree, len(WIDTHS)),
    ("tree", "distinct"): (distinct_tree, len(WIDTHS)),
    ("tree", None): (undrawn, 3),
}
LOSSLESS: dict[str, tuple[Rule, Drafter, int]] = {
    name: (ENGINE[name], *DRAFTERS[card.shape, card.drawn]) for name, card in RULES.items() if card.law == "target"
}
