"""Laws of what exact rows do not have: rounding, the ends of a dtype, many siblings, kernels bit for bit.

They stand in `every.py` beside the others.
"""

import math
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

import numpy as np
import torch
from hypothesis import strategies as st

from properties.helpers.laws.of_the_engine import everywhere
from refengine.bugs.checks.batches import Pair, batch, unpadded
from refengine.decoder.loop import fits, fitting
from refengine.engine import policy as engine
from refengine.engine.block import Block
from refengine.engine.coins import Philox, Recorded, Shifted
from refengine.engine.kernels import CompiledPhilox, compiled
from refengine.engine.rules import RULES as ENGINE
from refengine.engine.rules.block import prefix_weights
from refengine.strategies import AtTheEdge, Case

FINE = st.sampled_from((1.0, 1 - 2.0**-14, 1 + 2.0**-14))  # 2^-14 off 1: rows that `check_rows` lets pass


def what_is_emitted_has_mass(pair: Pair, lanes: list[Case], off: tuple[float, float], us: tuple[float, float]) -> None:
    """Of rows that do not quite sum to 1, and at the ends of the uniforms: what is kept is a path of the block, and
    every token has mass in the target's row after the ones before."""
    p, block = batch(lanes)
    q = None if block.q is None else block.q * off[1]
    found = unpadded(pair.batched(p * off[0], replace(block, q=q), Recorded(everywhere(lanes, *us)), **pair.floats()))
    for (tokens, path), case in zip(found, lanes, strict=True):
        assert tokens[:-1] == tuple(case.block.tokens[node] for node in path)
        for up, node in zip((-1, *path), path, strict=False):
            assert case.block.parents[node] == up
        for up, token in zip((-1, *path), tokens, strict=True):
            assert case.p[up + 1][token] > 0


def the_rule_that_fits_is_that_of_the_block(lanes: list[Case], seed: int) -> None:
    """Point masses where nothing was drawn, the ratio rule on chains, siblings without replacement on trees."""
    p, block = batch(lanes)
    chains = all(case.block.is_chain() for case in lanes)
    wanted = "point_mass" if block.q is None else "leviathan" if chains else "without_replacement"
    assert fits(block) is ENGINE[wanted]
    coins = Philox(seed, torch.arange(len(lanes)))
    assert unpadded(fitting(p, block, coins)) == unpadded(ENGINE[wanted](p, block, coins))


def weights_of_prefixes_do_not_underflow(powers: list[tuple[int, int]]) -> None:
    """Those of a block whose every p(x) and q(x) is a power of two, however small their product is: exactly."""
    drafts = [(max(0, below + more), below) for below, more in powers]
    rows = [[[2.0**-power, 0.0] for power in each] for each in zip(*drafts, strict=True)]
    p, q = (torch.tensor([row], dtype=torch.float64) for row in rows)
    tokens = torch.zeros(1, len(drafts), dtype=torch.int64)
    block = Block(tokens, torch.arange(-1, len(drafts) - 1)[None], q)
    num, den = prefix_weights(torch.cat((p, p[:, :1]), 1), block)
    weight = Fraction(1)
    for (above, below), n, d in zip(drafts, num[0, 1:].tolist(), den[0, 1:].tolist(), strict=True):
        weight = min(Fraction(1), weight * Fraction(2) ** (below - above))
        assert Fraction(n) / Fraction(d) == weight


# --- the compiled text -----------------------------------------------------------------------------------------------


@cache
def uncompiled() -> ModuleType:
    """The kernels of a CPU as Python runs them, with tiles so small that a row has several."""
    numba, extending = ModuleType("numba"), ModuleType("numba.extending")
    vars(numba).update(njit=lambda of=None, **how: of or (lambda one: one), types=SimpleNamespace(uint16=None))
    vars(extending).update(overload=lambda of: lambda one: one)
    spec = find_spec("refengine.engine.kernels.lane")
    assert spec is not None
    assert spec.loader is not None
    with patch.dict(sys.modules, {"numba": numba, "numba.extending": extending}):
        spec.loader.exec_module(lane := module_from_spec(spec))
    vars(lane).update(TILE=8)
    return lane


TILED = st.sampled_from((3, 9, 10, 1, 8, 12, 19))  # tokens: less than a tile, whole ones, and every kind of rest


COMPILED = sorted(uncompiled().RULES)
DTYPES = st.sampled_from((torch.float32, torch.float64, torch.bfloat16))


def the_kernel_is_the_plain_text(rule: str, lanes: list[Case], dtype: torch.dtype, seed: int, rough: bool) -> None:
    """Bit for bit: by the same coins the same tokens, of rows whose sums are rounded too."""
    p, block = batch(lanes)
    if rough:
        noise = torch.rand(p.shape, generator=torch.Generator().manual_seed(seed))
        p, block = p * noise, replace(block, q=None if block.q is None else block.q * noise[:, 1:].flip(2))
    p, block = p.to(dtype), replace(block, q=None if block.q is None else block.q.to(dtype))
    requests, start = torch.arange(len(lanes)) + seed, seed % 7
    want = ENGINE[rule](p, block, Shifted(Philox(seed, requests), start))
    first, rows, draft = Philox(seed, requests), p[:, 0], ("draft", start)
    if find_spec("numba") is None:
        return
    from refengine.engine.kernels import cpu

    with patch.object(cpu, "lane", uncompiled()), np.errstate(over="ignore", invalid="ignore"):
        found = cpu.verify(rule, p, block, cpu.from_philox(first, start))
        for site in (("emit", start), draft, (*draft, 0), (*draft, seed % 5)):
            assert CompiledPhilox(seed, requests).choose(rows, site).tolist() == first.choose(rows, site).tolist()
        chosen = compiled(ENGINE[rule])(p, block, Shifted(first, start))
    assert found is not None
    assert unpadded(found) == unpadded(want) == unpadded(chosen)


def the_kernel_decides_as_the_definition(pair: Pair, lanes: list[Case], data: st.DataObject) -> None:
    """With uniforms beside the edges of decisions, which no generator comes upon."""
    if find_spec("numba") is None:
        return
    from refengine.engine.kernels import cpu

    p, block = batch(lanes)
    accept, emit = (torch.full((len(lanes), size), 0.5, dtype=torch.float64) for size in (p.shape[1] - 1, p.shape[1]))
    wanted = []
    for lane, case in enumerate(lanes):
        chance = AtTheEdge(data.draw)
        wanted.append(pair.define(case, chance))
        for (kind, *where), u in chance.table.items():
            (emit if kind == "emit" else accept)[lane, where[-1]] = float(u)
    with patch.object(cpu, "lane", uncompiled()):
        found = cpu.verify(pair.name, p, block, cpu.given(accept, emit))
    assert found is not None
    assert unpadded(found) == wanted


# --- temperatures ----------------------------------------------------------------------------------------------------

NUMBERS = st.lists(st.integers(-7, 7) | st.none(), min_size=1, max_size=4).filter(
    lambda n: any(x is not None for x in n)
)
ENDS = {torch.float64: ((-1060, 1000), (-1074, -1022, 1023)), torch.float32: ((-140, 120), (-200, -126, 200))}


def _powers(dtype: torch.dtype) -> st.SearchStrategy[tuple[torch.dtype, int, int]]:
    """Of logits and of a temperature: near 1, at an end of what there is, or between."""
    near = st.integers(-3, 3)
    some = (near | st.sampled_from(ends) | st.integers(min(ends), max(ends)) for ends in ENDS[dtype])
    return st.tuples(st.just(dtype), *some)


SCALES = st.sampled_from(list(ENDS)).flatmap(cache(_powers))


def a_temperature_divides(numbers: list[int | None], scale: tuple[torch.dtype, int, int]) -> None:
    """Logits n 2^a at a temperature 2^b, of any a and b: exp((n - the largest) 2^(a - b)), in proportion."""
    dtype, a, b = scale
    logits = torch.tensor([-math.inf if n is None else math.ldexp(n, a) for n in numbers], dtype=torch.float64).to(
        dtype
    )
    row = engine.pipeline(engine.temperature(math.ldexp(1, b)))(logits, (), ())
    most = max(n for n in numbers if n is not None)
    weights = [0.0 if n is None else math.exp(_quotient(n - most, a - b)) for n in numbers]
    assert row.dtype is dtype
    # Powers of two divide without rounding, so what is left is that of exp and of a sum of at most four.
    slack = 1e-12 if dtype is torch.float64 else 1e-6
    assert max(abs(x - w / sum(weights)) for x, w in zip(row.tolist(), weights, strict=True)) < slack


def _quotient(number: int, power: int) -> float:
    return math.ldexp(number, power) if abs(power) < 1000 else number * (math.inf if power > 0 and number else 0.0)
