"""Laws of what is refused, and of what is not: rows and blocks, rules on what they are not for, options.

They stand in `every.py` beside the others.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import strategies as st

from properties.helpers.laws.of_the_engine import everywhere
from refengine.bugs.checks.batches import Pair, batch
from refengine.engine import check
from refengine.engine import policy as engine
from refengine.engine.block import NOTHING, Block
from refengine.engine.check import check_row, check_rows
from refengine.engine.coins import Recorded
from refengine.exact import policy as exact
from refengine.exact.chance import Enumerate
from refengine.strategies import Case

FAULTY_ROWS = {
    "NaN": lambda row: row.index_fill(0, torch.tensor([0]), float("nan")),
    "infinite": lambda row: row.index_fill(0, torch.tensor([0]), float("inf")),
    "too light": lambda row: row * (1 - 2e-4),
    "too heavy": lambda row: row * (1 + 2e-4),
    "negative": lambda row: torch.cat((row[:1] + 2, row[1:-1], row[-1:] - 2)),  # of two tokens at least
}
FAULTY_SHAPES: dict[str, Callable[[torch.Tensor, Block], tuple[torch.Tensor, Block]]] = {
    "rows of p": lambda p, block: (p[:, 1:], block),
    "lanes of p": lambda p, block: (torch.cat((p, p)), block),
    "numbers of p": lambda p, block: (p.long(), block),
    "one lane of p": lambda p, block: (p[0], block),
    "tokens": lambda p, block: (p, replace(block, tokens=block.tokens[:, 1:])),
    "parents": lambda p, block: (p, replace(block, parents=block.parents[:, 1:])),
    "numbers of tokens": lambda p, block: (p, replace(block, tokens=block.tokens.int())),
    "numbers of parents": lambda p, block: (p, replace(block, parents=block.parents.double())),
    "rows of q": lambda p, block: (p, replace(block, q=p)),
    "tokens of q": lambda p, block: (p, replace(block, q=torch.cat((p, p), 2)[:, 1:])),
    "numbers of q": lambda p, block: (p, replace(block, q=p[:, 1:].long())),
}


def what_no_rule_can_judge_is_refused(lanes: list[Case], data: st.DataObject) -> None:
    """One fault in a sound batch, and its lane and place are named; whatever stands where nothing was drafted is none,
    nor is what a float rounds off. With and without a compiled text, and however many lanes are looked at together."""
    p, block = batch(lanes)
    fine = data.draw(st.sampled_from((1.0, 1 - 5e-5, 1 + 5e-5)), label="what rows sum to")
    at_once = data.draw(st.sampled_from((check.AT_ONCE, 1, 2 * p[0].numel())), label="entries at once")
    compiled = data.draw(st.sampled_from((check.kernels, lambda device: None)), label="kernels")
    with patch.object(check, "AT_ONCE", at_once), patch.object(check, "kernels", compiled):
        check_rows(p * fine, block)
        check_row(p[0, 0] * fine)
        for row in (p[0], p[0, 0].long(), p[0, 0] * (1 + 2e-4)):
            with pytest.raises(ValueError, match=r"must be|lane 0"):
                check_row(row)
        shape = data.draw(st.sampled_from(["", *FAULTY_SHAPES]), label="faulty shape")
        if shape:
            with pytest.raises(ValueError, match="must be"):
                check_rows(*FAULTY_SHAPES[shape](p, block))
        where = faulty(p, block, lanes, data)
        with pytest.raises(ValueError, match=where):
            check_rows(p, block)


def faulty(p: torch.Tensor, block: Block, lanes: list[Case], data: st.DataObject) -> str:
    """Puts one fault in; where it stands."""
    lane = data.draw(st.integers(0, len(lanes) - 1), label="lane")
    parents, vocabulary = lanes[lane].block.parents, p.shape[2]
    with_children = sorted({node for node in parents if node >= 0})
    nodes = {"row of p": range(-1, len(parents)), "token": range(len(parents)), "parent": range(len(parents))}
    nodes |= {"row of q": range(len(parents) if block.q is not None else 0), "no token before its child": with_children}
    kind = data.draw(st.sampled_from([kind for kind, some in nodes.items() if some]), label="fault")
    node = data.draw(st.sampled_from(nodes[kind]), label="node")
    if kind.startswith("row"):
        rows = [name for name in FAULTY_ROWS if name != "negative" or vocabulary > 1]
        row = p[lane, node + 1] if kind == "row of p" else block.q[lane, node]
        fault = data.draw(st.sampled_from(rows), label="row")
        row.copy_(FAULTY_ROWS[fault](row.clone()))
        said = {"NaN": "holds NaN", "infinite": "holds NaN", "negative": "has negative"}.get(fault, "does not sum")
        return (
            f"row {node + 1} of p in lane {lane} {said}"
            if kind == "row of p"
            else f"row {node} of q in lane {lane} {said}"
        )
    if kind == "parent":
        beyond = sorted({node, node + 1, block.tokens.shape[1] - 1, 99, -2})
        block.parents[lane, node] = data.draw(st.sampled_from(beyond), label="parent")
    elif kind == "token":
        block.tokens[lane, node] = data.draw(st.sampled_from((-2, vocabulary)), label="token")
    else:
        block.tokens[lane, node] = NOTHING
        return f"node {parents.index(node)} in lane {lane}: its parent was not"
    return f"node {node} in lane {lane}: its {kind}"


def what_a_rule_is_not_for_is_refused(pair: Pair, weighs: bool, lanes: list[Case], given: bool) -> None:
    """A tree by a rule of chains, by both texts, and candidates that nobody drew by a rule that weighs p against q."""
    p, block = batch(lanes)
    refused = []
    for case in lanes:
        tree, none = pair.shape == "chain" and not case.block.is_chain(), (None,) * len(case.block.tokens)
        one = replace(case, block=replace(case.block, q=none if given else case.block.q))
        refused.append(tree or bool(given and weighs and none))
        if refused[-1]:
            with pytest.raises(ValueError, match=r"chains only|not drawn"):
                pair.define(one, Enumerate())
        else:
            pair.define(one, Enumerate())
    block, coins = replace(block, q=None if given else block.q), Recorded(everywhere(lanes, 0.5, 0.5))
    trees = pair.shape == "chain" and not all(case.block.is_chain() for case in lanes)
    if trees or (given and weighs):
        with pytest.raises(ValueError, match=r"chains only|nothing was drawn"):
            pair.batched(p, block, coins, **pair.floats())
    else:
        pair.batched(p, block, coins, **pair.floats())
    if pair.shape == "chain" and not trees and p.shape[1] > 2 and block.tokens[0, 1] >= 0:
        block.tokens[0, 0] = NOTHING
        with pytest.raises(ValueError, match=r"gap|chains only|nothing was drawn"):
            pair.batched(p, block, coins, **pair.floats())


NAN, INF = float("nan"), float("inf")
SHARES = st.integers(-4, 20).map(lambda n: Fraction(n, 16))
EVEN = [Fraction(1, 2)] * 2
# The values of a step, which of them are any, and which text has it.
OPTIONS: dict[str, tuple[st.SearchStrategy[Any], Any, str]] = {
    "exact temperature": (st.integers(-2, 3), lambda n: n >= 1, "temperature"),
    "engine temperature": (
        st.sampled_from((1.0, 0.5, 0.0, -1.0, NAN, INF, -INF)),
        lambda t: 0 < t < INF,
        "temperature",
    ),
    "exact top_k": (st.integers(-2, 3), lambda k: k >= 1, "top_k"),
    "engine top_k": (st.integers(-2, 3), lambda k: k >= 1, "top_k"),
    "exact top_p": (SHARES, lambda p: 0 < p <= 1, "top_p"),
    "engine top_p": (SHARES.map(float) | st.just(NAN), lambda p: 0 < p <= 1, "top_p"),
    "exact min_p": (SHARES, lambda p: 0 <= p <= 1, "min_p"),
    "engine min_p": (SHARES.map(float) | st.just(NAN), lambda p: 0 <= p <= 1, "min_p"),
    "engine repetition_penalty": (st.sampled_from((2.0, 0.5, 0.0, -1.0, NAN)), lambda p: p > 0, "repetition_penalty"),
    "exact bad_words": (st.lists(st.sampled_from(((), (0,), (1, 0))), max_size=2), all, "bad_words"),
    "engine bad_words": (st.lists(st.sampled_from(((), (0,), (1, 0))), max_size=2), all, "bad_words"),
}


def an_option_that_is_none_is_refused(name: str, data: st.DataObject) -> None:
    """By both texts, when the step is made; and no other."""
    values, sound, step = OPTIONS[name]
    value = data.draw(values, label=name)
    make = getattr(engine if name.startswith("engine") else exact, step)
    if sound(value):
        make(value)
    else:
        with pytest.raises(ValueError, match=r"temperature|top_|min_p|penalty|sequence"):
            make(value)
