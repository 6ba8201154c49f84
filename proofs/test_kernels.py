"""The text of the compiled rules (`engine/kernels/lane.py`) is the batched text: it runs as Python, not compiled.

What the compiler makes of it is held by `properties/exact_and_engine/test_kernels.py`, with wide rows.
"""

import random
from dataclasses import replace
from types import ModuleType

import pytest
import torch
from torch import Tensor

pytest.importorskip("numba", reason="not tested: numba is not installed")

import numba

from proofs.test_larger_blocks import sure
from properties.exact_and_engine.test_kernels import (  # noqa: F401 (the way to a compiled rule)
    test_checked_rows,
    test_compiled_choices,
    test_compiled_is_the_rule_for_every_kind_of_input,
    test_lanes_are_the_same_in_any_number_of_threads,
)
from refengine.bugs.checks.batches import EVERY, Pair, batch, cases, made
from refengine.engine.block import Block, Round
from refengine.engine.coins import Philox, Recorded, Shifted
from refengine.engine.kernels import cpu
from refengine.source_edits.loader import source_path
from refengine.source_tree import commit_seed

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:overflow encountered")]  # words wrap, as they should

LANE = "refengine.engine.kernels.lane"
PAIRS = [pair for pair in EVERY if pair.name in cpu.lane.RULES]


@pytest.mark.parametrize("tile", [8, 16])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_kernel_says_what_the_batched_text_says(pair: Pair, tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: another site, counter, odds, order of addition or edge of a tile, in the text that is compiled."""
    monkeypatch.setattr(cpu, "lane", read(monkeypatch, source_path(LANE).read_text(), tile))
    assert difference(pair) == ""


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_kernel_says_it_of_long_chains(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a coin that is used again from some place on."""
    monkeypatch.setattr(cpu, "lane", read(monkeypatch, source_path(LANE).read_text(), 8))
    numbers, chain = random.Random(pair.name), tuple(range(-1, 99))
    assert told(pair, *batch([sure(made(pair, chain, numbers, 4, 5), sure_of) for sure_of in (100, 80, 40)])) == ""


@pytest.mark.parametrize(("bits", "nodes"), [(17, 70), (40, 30)])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_kernel_says_it_of_seldom_drafts(pair: Pair, bits: int, nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: odds that are multiplied, on both sides, by how likely what is kept was: 0 in floats behind so many drafts
    of a uniform row over 131,072 tokens, and behind fewer that are more seldom."""
    monkeypatch.setattr(cpu, "lane", read(monkeypatch, source_path(LANE).read_text(), 8))
    seldom, lanes = 2.0**-bits, 16
    row = torch.tensor([seldom, 1 - seldom], dtype=torch.float64)
    p, q = row.repeat(lanes, nodes + 2, 1), row.repeat(lanes, nodes + 1, 1)
    p[:, nodes], q[:, nodes], p[:, nodes + 1] = (torch.tensor([x, 1 - x]) for x in (0.625, 0.5, 0.25))
    tokens = torch.tensor([[0] * nodes + [1]]).repeat(lanes, 1)
    block = Block(tokens, torch.arange(-1, nodes).repeat(lanes, 1), q if pair.drawn else None)
    assert told(pair, p, block) == ""
    ours = cpu.verify(pair.name, p, block, cpu.from_philox(Philox(1, torch.arange(lanes)), 0))
    assert ours is not None
    if pair.drawn:
        assert set(ours.length.tolist()) == {nodes + 1, nodes + 2}, "the last draft is kept in some lanes"


def test_a_kernel_says_it_of_many_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: lanes that have one another's place in their text from some number on."""
    monkeypatch.setattr(cpu, "lane", read(monkeypatch, source_path(LANE).read_text(), 8))
    (pair,) = (pair for pair in PAIRS if pair.name == "leviathan")
    numbers = random.Random(pair.name)
    assert told(pair, *batch([made(pair, (-1,), numbers, 4, 3) for _ in range(5_000)])) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("u * den < num", "u * den <= num"),
        ('KINDS["emit"]', 'KINDS["draft"]'),
        ("coins.starts[lane] * DEPTHS", "coins.starts[lane]"),
        ("if bar >= past_left and", "if bar > past_left and"),
        ("mass, mass + den - num, kept - 1", "mass, mass + den, kept - 1"),
        ("sums[half] = wanted(p, q, a, b, len(p) - 1)", "pass"),
    ],
)
def test_a_mistake_in_a_kernel_is_seen(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: an equality of texts that never read the edited one."""
    text = source_path(LANE).read_text()
    assert old in text
    monkeypatch.setattr(cpu, "lane", read(monkeypatch, text.replace(old, new, 1), 8))
    assert any(map(difference, PAIRS))


def read(monkeypatch: pytest.MonkeyPatch, text: str, tile: int) -> ModuleType:
    """The kernels' file with functions of Python in the place of compiled ones, and few tokens in a tile."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    module = ModuleType(LANE)
    exec(compile(text, LANE, "exec"), vars(module))
    module.TILE = tile  # type: ignore[attr-defined]
    return module


def difference(pair: Pair) -> str:
    """Where a kernel's rounds are others than the plain text's, on rows of one tile and of more; "" where nowhere."""
    few, many = batch(cases(pair, 6, bits=4)), batch(cases(pair, 3, bits=5, vocabulary=19))
    q = many[1].q
    stored = (
        few,
        many,
        (many[0].bfloat16(), replace(many[1], q=None if q is None else q.bfloat16())),
        (unrounded(many[0]), replace(many[1], q=None if q is None else unrounded(q))),
    )
    return next(filter(None, (told(pair, *rows) for rows in stored)), "")


def unrounded(rows: Tensor) -> Tensor:
    """Rows like these, in float64, with all of its bits."""
    weights = rows.double() ** 1.1
    return weights / weights.sum(-1, keepdim=True)


def told(pair: Pair, p: Tensor, block: Block) -> str:
    """The same of some rows: with Philox's coins, and with uniforms on the edges of dyadic rows."""
    lanes, n = block.tokens.shape
    numbers = random.Random(commit_seed())
    philox = Philox(numbers.getrandbits(64), torch.tensor([numbers.getrandbits(32) for _ in range(lanes)]))
    for start in (0, torch.tensor([numbers.getrandbits(31) for _ in range(lanes)])):
        ours = cpu.verify(pair.name, p, block, cpu.from_philox(philox, start))
        if wrong := other(ours, pair.batched(p, block, Shifted(philox, start))):
            return f"Philox: {wrong}"
    draw = torch.tensor([[numbers.randrange(16) / 16 for _ in range(2 * n + 1)] for _ in range(lanes)]).double()
    accept, emit = draw.split([n, n + 1], 1)
    table = {("emit", depth): emit[:, depth] for depth in range(n + 1)}
    for j in range(n):
        table |= {("accept", j): accept[:, j]} | {("accept", depth, j): accept[:, j] for depth in range(n)}
    ours = cpu.verify(pair.name, p, block, cpu.given(accept.contiguous(), emit.contiguous()))
    return other(ours, pair.batched(p, block, Recorded(table)))


def other(ours: Round | None, plain: Round) -> str:
    parts = ("tokens", "path", "length")
    return next((p for p in parts if ours is None or not torch.equal(getattr(ours, p), getattr(plain, p))), "")
