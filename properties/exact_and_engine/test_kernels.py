"""The compiled rules are the plain text bit for bit: on a CPU, on CUDA, and in Triton's interpreter without a device.

The plain text is held to the definition by its own tests; what can go wrong here is an order of addition, the edge of a
tile, a counter, a stored type, or a row that should not have been read.
"""

import inspect
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from refengine.bugs.checks.batches import EVERY, Case, batch, cases
from refengine.engine.block import NOTHING, ROOT, Block, Round
from refengine.engine.coins import Philox, Recorded, Shifted
from refengine.engine.kernels import CompiledPhilox, compiled

pytestmark = pytest.mark.on_record

BACKENDS = {"lane": "numba", "cuda": "triton"}  # the modules that list what they compile, with what compiles it
KERNELS: dict[str, set[str]] = {
    module: set(import_module(f"refengine.engine.kernels.{module}").RULES)
    for module, needs in BACKENDS.items()
    if find_spec(needs) is not None
}
RULES = sorted(set().union(*KERNELS.values()))
PAIRS = {pair.name: pair for pair in EVERY}
CUDA = torch.cuda.is_available()
ONE_OF_EACH = ("leviathan", "block", "without_replacement")


@dataclass(frozen=True)
class Compiled:
    """One rule as one backend compiles it."""

    rule: str
    module: str
    device: str = "cpu"

    def kernels(self) -> ModuleType:
        """Triton's run in its interpreter where there is no device: conftest.py sees to that."""
        return import_module(f"refengine.engine.kernels.{self.module}")

    def way(self) -> str:
        return "numba" if self.module == "cpu" else "interpreted" if self.device == "cpu" else "cuda"

    def lanes(self, count: int) -> int:
        """The interpreter takes hundredths of a second for a lane."""
        return max(4, count // 4) if self.way() == "interpreted" else count

    def everything(self) -> bool:
        """Whether it runs what all kernels have from the same lines: one of each kind does, and a device's all. numba
        compiles a rule for every kind of rows, which takes seconds, and so does a run in the interpreter."""
        return self.way() == "cuda" or self.rule in ONE_OF_EACH

    def plain(self) -> Callable[..., Round]:
        return PAIRS[self.rule].batched

    def run(self, p: Tensor, block: Block, uniforms: object) -> Round | None:
        out: Round | None = self.kernels().verify(self.rule, p, block, uniforms)
        return out


def backends() -> Iterator[Any]:
    no_numba = pytest.mark.skipif(find_spec("numba") is None, reason="not tested: numba is not installed")
    no_triton = pytest.mark.skipif(find_spec("triton") is None, reason="not tested: triton is not installed")
    no_cuda = pytest.mark.skipif(not CUDA, reason="not tested: this machine has no CUDA device")
    there_is = pytest.mark.skipif(CUDA, reason="the kernels run on the device itself")
    on_device = [no_triton, no_cuda, pytest.mark.gpu]
    for rule in RULES:
        for how, marks in (
            (Compiled(rule, "cpu"), [no_numba]),
            (Compiled(rule, "cuda"), [no_triton, there_is]),
            (Compiled(rule, "cuda", "cuda"), on_device),
        ):
            yield pytest.param(how, marks=marks, id=f"{rule}, {how.way()}")


every_backend = pytest.mark.parametrize("how", list(backends()))
WORDS: dict[Any, list[str]] = {}  # of Triton's language, by the part that has them, before any is replaced
LEVELS, AT_ONCE = 4, 5  # of the interpreter: tiles of 16 tokens, launches of 5 lanes


@pytest.fixture(autouse=True)
def small_and_used(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Neither the size of a tile nor that of a launch makes a difference, nor what new memory holds."""
    how = getattr(request.node, "callspec", None) and request.node.callspec.params.get("how")
    if how and how.module == "cuda" and not CUDA:
        interpret_fast(monkeypatch)
        monkeypatch.setattr(how.kernels(), "LEVELS", LEVELS)
        monkeypatch.setattr(how.kernels(), "AT_ONCE", AT_ONCE)
        monkeypatch.setattr(Tensor, "new_empty", lambda like, *size, **kind: like.new_zeros(*size, **kind).add_(3))


def interpret_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's interpreter looks through all of its language at every call of a function: here once for each part."""
    interpreter = import_module("triton.runtime.interpreter")
    is_builtin, replaced = import_module("triton.language.core").is_builtin, interpreter._patch_attr

    def patched(part: Any, builder: Any, scope: Any) -> None:
        if part not in WORDS:
            WORDS[part] = [name for name, member in inspect.getmembers(part) if is_builtin(member)]
        for name in WORDS[part]:
            if is_builtin(member := getattr(part, name)):  # else it is replaced already
                replaced(part, name, member, builder, scope)

    monkeypatch.setattr(interpreter, "_patch_builtin", patched)


def assert_same(got: Round | None, want: Round) -> None:
    assert got is not None, "the kernel gave the block back"
    for name in ("length", "path", "tokens"):
        assert torch.equal(getattr(got, name).cpu(), getattr(want, name).cpu()), name


def forest(how: Compiled, lanes: int, n: int, vocabulary: int, seed: int = 0) -> tuple[Tensor, Block]:
    """Random float32 rows, p near q, with lanes of 0 to n drafts; chains for rules of chains, else random trees."""
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    p = torch.randn(lanes, n + 1, vocabulary, generator=generator).mul_(2).softmax(-1)
    q = torch.empty(lanes, n, vocabulary)
    tokens, parents = torch.full((lanes, n), NOTHING), torch.arange(-1, n - 1).repeat(lanes, 1)
    for lane in range(lanes):
        for j in range(n if lane % 4 == 0 else rng.randrange(n + 1)):
            up = j - 1 if PAIRS[how.rule].shape == "chain" or rng.random() < 0.3 else rng.randrange(ROOT, j)
            siblings = [i for i in range(j) if parents[lane, i] == up]
            noise = torch.randn(vocabulary, generator=generator).mul_(0.5).exp_()
            q[lane, j] = (
                q[lane, siblings[0]] if siblings else (p[lane, up + 1] * noise).div_((p[lane, up + 1] * noise).sum())
            )
            weights = q[lane, j].clone()
            if PAIRS[how.rule].drawn == "distinct":
                weights[tokens[lane, siblings]] = 0.0
                if not weights.sum() > 0:
                    break
            parents[lane, j], tokens[lane, j] = up, torch.multinomial(weights, 1, generator=generator)[0]
    drafted = (tokens != NOTHING)[:, :, None]
    return p, Block(tokens, parents, q.where(drafted, float("nan")))


def several(how: Compiled, count: int, bits: int) -> list[Case]:
    """Blocks of the rule's kind with dyadic rows, of every shape."""
    every = cases(PAIRS[how.rule], count, bits)
    return every[:: len(every) // count][:count]


def both(how: Compiled, p: Tensor, block: Block, seed: int = 2**63 + 5, start: int | Tensor = 0) -> None:
    """The kernel and the plain text on the same rows with the same Philox coins."""
    lanes = len(p)
    requests = torch.arange(lanes) * 41 + 2**32 - 1 - 41 * lanes
    want = how.plain()(p, block, Shifted(Philox(seed, requests), start))
    there = Block(*(None if t is None else t.to(how.device) for t in (block.tokens, block.parents, block.q)))
    coins = Philox(seed, requests.to(how.device))
    moved = start if isinstance(start, int) else start.to(how.device)
    assert_same(how.run(p.to(how.device), there, how.kernels().from_philox(coins, moved)), want)


@pytest.mark.skipif(find_spec("numba") is None, reason="not tested: numba is not installed")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("vocabulary", [1, 7, 1024, 1025, 32000])
def test_compiled_choices(vocabulary: int, dtype: torch.dtype) -> None:
    """Kills a choice with another site's coin, one that drops a candidate, and another order of addition."""
    lanes = 12
    weights = torch.randn(lanes, vocabulary, generator=torch.Generator().manual_seed(1)).mul_(3).exp_().to(dtype)
    weights[0] = 0.0
    weights[1:3, : vocabulary // 2] = 0.0
    places, nodes = torch.arange(lanes) * 7, torch.arange(lanes) % 3
    given = 2**63 + 5, torch.arange(lanes) * 41 + 2**32 - 1 - 41 * lanes
    plain, fast = Philox(*given), CompiledPhilox(*given)
    for site in (("emit", 3), ("draft", 3), ("agree", places), ("draft", 2, 0), ("draft", places, nodes)):
        for shift in (0, 19):
            want = Shifted(plain, shift).choose(weights, site)
            assert torch.equal(Shifted(fast, shift).choose(weights, site), want), site
            assert want[0] == NOTHING


@pytest.mark.parametrize("module", BACKENDS)
def test_every_backend_has_every_rule(module: str) -> None:
    """Kills a rule that only one of them compiles."""
    if module not in KERNELS:
        pytest.skip(f"not tested: {BACKENDS[module]} is not installed")
    assert KERNELS[module] == set(RULES)


@pytest.mark.skipif(find_spec("triton") is None, reason="not tested: triton is not installed")
def test_the_compiler_takes_every_kernel_and_fuses_no_product(tmp_path: Path) -> None:
    """Kills what only the interpreter takes, and a product fused with a sum, which rounds once instead of twice."""
    child = Path(__file__).parents[1] / "helpers" / "triton_compile.py"
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, str(child), "3"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert run.returncode == 0, run.stdout
    fused = {name: int(products) for name, products in map(str.split, run.stdout.splitlines())}
    per_lane = {"block", "greedy", "agreement", "point_mass", "siblings"}
    assert fused == dict.fromkeys({"judge", "masses", "emit", "sound"} | per_lane, 0)


@every_backend
def test_ragged_dyadic_lanes(how: Compiled) -> None:
    """Kills a wrong site, counter, offset or key, `<=` for `<`, and a place without a draft that is read."""
    lanes = how.lanes(40)
    p, block = batch(several(how, lanes, bits=4))
    both(how, p, block, start=torch.arange(lanes) * 7919)


@every_backend
def test_uniforms_on_the_edges_of_dyadic_rows(how: Compiled) -> None:
    """Kills a comparison that is not strict and a wrong uniform: every edge is a sixteenth, and so is every uniform."""
    lanes, rng = how.lanes(96), random.Random(3)
    p, block = batch(several(how, lanes, bits=2))
    n = block.tokens.shape[1]
    draw = [[rng.randrange(16) / 16 for _ in range(2 * n + 1)] for _ in range(lanes)]
    accept, emit = torch.tensor(draw, dtype=torch.float64).split([n, n + 1], 1)
    table = {("emit", depth): emit[:, depth] for depth in range(n + 1)}
    for j in range(n):
        table |= {("accept", j): accept[:, j]} | {("accept", depth, j): accept[:, j] for depth in range(n)}
    want = how.plain()(p, block, Recorded(table))
    there = Block(*(None if t is None else t.to(how.device) for t in (block.tokens, block.parents, block.q)))
    given = how.kernels().given(accept.contiguous().to(how.device), emit.contiguous().to(how.device))
    assert_same(how.run(p.to(how.device), there, given), want)


TILES = {"numba": 1024, "interpreted": 1 << LEVELS, "cuda": 4096}
DTYPES = {
    "float32": (torch.float32, torch.float32),
    "bfloat16": (torch.bfloat16, torch.bfloat16),
    "float64": (torch.float64, torch.float64),
    "float16": (torch.float16, torch.float32),
}


def stored_rows() -> Iterator[Any]:
    """Each backend with what it reads; all rules float32, which shows a number that is not made float64."""
    for one in backends():
        (how,) = one.values
        for stored in DTYPES:
            if stored == "float32" or how.everything():
                yield pytest.param(how, stored, marks=one.marks, id=f"{stored}-{one.id}")


@pytest.mark.parametrize(("how", "stored"), list(stored_rows()))
def test_rows_off_the_grid_at_the_edges_of_tiles(how: Compiled, stored: str) -> None:
    """Kills a tile cut short or read twice, a rounding in float32, and bits of a bfloat16 taken for a number."""
    p_type, q_type = DTYPES[stored]
    if not how.kernels().serves(how.rule, torch.empty(0, dtype=p_type), torch.empty(0, dtype=q_type)):
        assert (how.module, stored) == ("cpu", "float16")  # left to the plain text
        return
    tile = TILES[how.way()]
    for vocabulary in (1, tile - 1, tile, tile + 1, 5 * tile + 3) if stored == "float32" else (5 * tile + 3,):
        p, block = forest(how, how.lanes(16), 4, vocabulary, seed=vocabulary)
        assert block.q is not None
        both(how, p.to(p_type), replace(block, q=block.q.to(q_type)), seed=vocabulary)


def rows_of_models() -> Iterator[Any]:
    """Each backend with vocabularies of 8, 38 and 64 tiles of CUDA's; the interpreter takes seconds for each."""
    for one in backends():
        (how,) = one.values
        interpreted = [32_000] * how.everything()
        for vocabulary in interpreted if how.way() == "interpreted" else (32_000, 151_936, 262_144):
            yield pytest.param(how, vocabulary, marks=one.marks, id=f"{vocabulary}-{one.id}")


@pytest.mark.parametrize(("how", "vocabulary"), list(rows_of_models()))
def test_vocabularies_of_real_models(how: Compiled, vocabulary: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a tree over tiles that is one level short, and a tile beyond the end of a row."""
    if how.module == "cuda":
        monkeypatch.setattr(how.kernels(), "LEVELS", 12)
    p, block = forest(how, how.lanes(8), 2, vocabulary, seed=vocabulary)
    both(how, p, block)
    assert block.q is not None
    if how.everything():
        both(how, p.bfloat16(), replace(block, q=block.q.bfloat16()))


@every_backend
def test_deep_and_wide_blocks(how: Compiled) -> None:
    """Kills a place, path or sibling lost beyond the first few: chains of 16 and trees of 140 nodes."""
    chain = PAIRS[how.rule].shape == "chain"
    both(how, *forest(how, how.lanes(16), 16 if chain else 140, 33))


@cache
def neighbours(vocabulary: int, lanes: int) -> list[float]:
    """Pairs of uniforms, 2^-53 apart, at which the plain text of a round without drafts goes on to the next token."""
    p = torch.randn(1, 1, vocabulary, generator=torch.Generator().manual_seed(1)).softmax(-1)
    none = torch.zeros(1, 0, dtype=torch.int64)

    def token(numerator: int) -> int:
        plain = PAIRS["leviathan"].batched(p, Block(none, none, p[:, :0]), Recorded({("emit", 0): numerator / 2**53}))
        return int(plain.tokens[0, 0])

    uniforms = []
    for lane in range(lanes // 2):
        low, high = 2**53 * lane // lanes, 2**53 - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if token(middle) == token(low) else (low, middle)
        uniforms += [low / 2**53, high / 2**53]
        assert token(low) != token(high)
    return uniforms


@every_backend
def test_a_pick_changes_at_the_same_uniform(how: Compiled) -> None:
    """Kills another order of addition: where the plain text goes from one token to the next, so does the kernel.

    Bisection finds the two neighbours among the 53-bit uniforms; off the dyadic grid the sums between them are rounded.
    """
    if how.rule == "greedy":
        pytest.skip("greedy throws no coin")
    lanes, vocabulary = how.lanes(16), 70 if how.way() == "interpreted" else 2500
    p = torch.randn(1, 1, vocabulary, generator=torch.Generator().manual_seed(1)).softmax(-1)
    emit = torch.tensor(neighbours(vocabulary, lanes), dtype=torch.float64)[:, None]
    many = torch.zeros(lanes, 0, dtype=torch.int64)
    rows = p.expand(lanes, 1, vocabulary)
    want = how.plain()(rows, Block(many, many, rows[:, :0]), Recorded({("emit", 0): emit[:, 0]}))
    assert (want.tokens[::2] != want.tokens[1::2]).all()
    given = how.kernels().given(emit[:, :0].to(how.device), emit.to(how.device))
    there = Block(many.to(how.device), many.to(how.device), rows[:, :0].to(how.device))
    assert_same(how.run(rows.to(how.device), there, given), want)


@every_backend
def test_a_refusal_that_leaves_nothing(how: Compiled) -> None:
    """Kills the 0 / 0 of a residual that rounding has emptied: the token then comes from p."""
    q = torch.tensor([[[0.25, 0.75]]]).expand(8, 1, 2)
    p = torch.stack((q[:, 0] - torch.tensor([2.0**-25, 0.0]), q[:, 0]), 1)
    block = Block(torch.zeros(8, 1, dtype=torch.int64), torch.full((8, 1), ROOT), q.contiguous())
    accept, emit = torch.full((8, 1), 1 - 2.0**-25, dtype=torch.float64), torch.arange(16).view(8, 2) / 16
    table = {("accept", 0): accept[:, 0], ("accept", 0, 0): accept[:, 0]}
    want = how.plain()(p, block, Recorded(table | {("emit", depth): emit[:, depth] for depth in (0, 1)}))
    there = Block(*(t.to(how.device) for t in (block.tokens, block.parents, block.q)))
    given = how.kernels().given(accept.to(how.device), emit.double().to(how.device))
    assert_same(how.run(p.to(how.device), there, given), want)


@pytest.mark.parametrize("how", [param for param in backends() if param.values[0].rule == "greedy"])
def test_the_first_of_equal_tokens_is_taken_in_whatever_tile_it_is(how: Compiled) -> None:
    """Kills a greatest token that a later tile takes over: at a vocabulary of one tile there is no later one."""
    tile = TILES[how.way()]
    places = ((0, tile), (5, tile + 5), (1, 3 * tile - 1), (tile, 2 * tile))
    p = torch.zeros(len(places), 1, 3 * tile, dtype=torch.float64)
    for lane, equal in enumerate(places):
        p[lane, 0, list(equal)] = 0.5
    none, coins = torch.zeros(len(places), 0, dtype=torch.int64), torch.zeros(len(places), 1, dtype=torch.float64)
    there = Block(none.to(how.device), none.to(how.device), p[:, :0].to(how.device))
    got = how.run(p.to(how.device), there, how.kernels().given(coins[:, :0].to(how.device), coins.to(how.device)))
    assert got is not None
    assert got.tokens[:, 0].tolist() == [first for first, _ in places]


@every_backend
def test_refusals_one_after_the_other(how: Compiled) -> None:
    """Kills what siblings leave of a row that is lost, or outlives the draft that is kept after them: its mass, its
    scale, the tokens that are taken out, the place where it is written."""
    lanes, n, rng = how.lanes(48), 14, random.Random(8)
    # Siblings that repeat a token come to all rules of trees, also where none is drawn twice.
    drafted = how if PAIRS[how.rule].shape == "chain" else replace(how, rule="iid_candidates")
    p, block = forest(drafted, lanes, n, 6, seed=8)
    most = 1 - 2.0**-24  # with this uniform a draft is refused wherever q is above p
    draw = [[rng.choice((0.5, most, most)) for _ in range(n)] for _ in range(lanes)]
    accept = torch.tensor(draw, dtype=torch.float64)
    emit = torch.rand(lanes, n + 1, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    table = {("emit", depth): emit[:, depth] for depth in range(n + 1)}
    for j in range(n):
        table |= {("accept", j): accept[:, j]} | {("accept", depth, j): accept[:, j] for depth in range(n)}
    there = Block(*(None if t is None else t.to(how.device) for t in (block.tokens, block.parents, block.q)))
    given = how.kernels().given(accept.to(how.device), emit.to(how.device))
    assert_same(how.run(p.to(how.device), there, given), how.plain()(p, block, Recorded(table)))


@every_backend
def test_what_lies_behind_the_path_is_not_weighed(how: Compiled) -> None:
    """Kills a row behind the first refusal, or of a sibling not judged, that counts: huge finite numbers there."""
    p, block = forest(how, how.lanes(24), 6, 40, seed=9)
    assert block.q is not None
    coins = Philox(1, torch.arange(len(p)))
    want = how.plain()(p, block, coins)
    reached = torch.cat(
        (torch.zeros(len(p), 1, dtype=torch.int64), torch.where(want.path == NOTHING, -1, want.path) + 1), 1
    )
    unread = torch.ones(len(p), 7, dtype=torch.bool).scatter(1, reached, False)
    kept = torch.zeros(len(p), 7, dtype=torch.bool).scatter(1, reached, True)[:, 1:]
    q_unread = torch.stack([unread.gather(1, block.parents[:, j : j + 1] + 1)[:, 0] for j in range(6)], 1)
    for j in range(6):  # a sibling after one that was kept is not judged
        elder = kept[:, :j] & (block.parents[:, :j] == block.parents[:, j : j + 1])
        q_unread[:, j] |= elder.any(1)
    spoilt = replace(block, q=block.q.masked_fill(q_unread[:, :, None], 3e30))
    there = Block(*(t.to(how.device) for t in (spoilt.tokens, spoilt.parents, spoilt.q)))
    rows = p.masked_fill(unread[:, :, None], 2e30).to(how.device)
    on_device = Philox(1, torch.arange(len(p), device=how.device))
    assert_same(how.run(rows, there, how.kernels().from_philox(on_device, 0)), want)


@every_backend
def test_rows_are_taken_as_they_lie(how: Compiled) -> None:
    """Kills a kernel that reads a slice or an expanded row as if it were contiguous."""
    p, block = forest(how, 6, 5, 40, seed=4)
    assert block.q is not None
    part = Block(block.tokens[::2, :3], block.parents[::2, :3], block.q[::2, :3])
    both(how, p[::2, :4], part)
    both(
        how,
        p[:1, :1].expand(4, 4, 40),
        Block(part.tokens[:1].expand(4, 3), part.parents[:1].expand(4, 3), part.q[:1].expand(4, 3, 40)),
    )


@every_backend
def test_what_a_kernel_is_not_for_is_given_back(how: Compiled) -> None:
    """Kills a read outside the rows: wrong ids, and for chains trees and gaps, are the business of the plain text."""
    p, block = forest(how, 4, 3, 40, seed=2)
    chain = PAIRS[how.rule].shape == "chain"
    faults = [] if how.rule in ("greedy", "agreement") else [(0, 0, 40, -1), (0, 2, 40, 1), (0, 1, -7, 0)]
    faults += [(0, 1, 0, -1), (0, 0, NOTHING, -1)] if chain else []
    for lane, node, token, parent in faults:
        tokens, parents = block.tokens.clone(), block.parents.clone()
        tokens[lane, node], parents[lane, node] = token, parent
        coins = how.kernels().from_philox(Philox(0, torch.arange(4, device=how.device)), 0)
        there = Block(*(t.to(how.device) for t in (tokens, parents, block.q)))
        assert how.run(p.to(how.device), there, coins) is None, (node, token, parent)


MOST = 10**6  # stands for the first id outside the vocabulary
WRONG = ((0, 1, MOST, 0), (0, 1, -2, 0), (0, 1, 0, 1), (0, 1, 0, -2), (0, 0, NOTHING, -1), (1, 1, 0, -1))


@pytest.mark.parametrize("how", [one for one in backends() if "leviathan" in str(one.id)])
def test_checked_rows(how: Compiled) -> None:
    """Kills a check that misses a fault at the edge of a tile or of a row, an id outside the vocabulary, a parent that
    comes later or was not drafted, or that looks at a place without a draft; and one that stops at q."""
    width = 2050 if how.module == "cpu" else 33
    good = torch.full((2, 3, width), 1 / width)
    tokens, parents = torch.tensor([[0, width - 1], [3, NOTHING]]), torch.tensor([[-1, 0], [-1, 77]])
    good[1, 2] = float("nan")

    def judgeable(p: Tensor, q: Tensor | None, tokens: Tensor, parents: Tensor) -> bool:
        there = Block(*(None if t is None else t.to(how.device) for t in (tokens, parents, q)))
        found: bool = how.kernels().judgeable(p.to(how.device), there, 1e-4)
        return found

    assert judgeable(good, good[:, 1:], tokens, parents)
    assert judgeable(good, None, tokens, parents)
    no_weights = [(0, value) for value in (float("nan"), float("inf"), -float("inf"))]
    for x, value in (*no_weights, *product({0, 15, 16, width // 2, width - 1}, (1 / width + 2e-4, -1e-9, -1e-30))):
        bad = good.clone()
        bad[0, 2, x] = value
        if value < 0:  # the row still sums to 1
            bad[0, 2, x - 1] += 1 / width
        assert not judgeable(bad, good[:, 1:], tokens, parents), (x, value)
        assert not judgeable(good, bad[:, 1:], tokens, parents), (x, value)
    for lane, node, token, parent in WRONG:
        wrong = tokens.clone(), parents.clone()
        wrong[0][lane, node], wrong[1][lane, node] = width if token == MOST else token, parent
        assert not judgeable(good, None, *wrong), (lane, node, token, parent)


@pytest.mark.skipif(find_spec("numba") is None, reason="not tested: numba is not installed")
def test_lanes_are_the_same_in_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills lanes left out or done twice at the edges of a thread's share, and scratch that two threads write."""
    how = Compiled("iid_candidates", "cpu")
    monkeypatch.setattr(how.kernels(), "SHARE", 1)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3, 7):
            torch.set_num_threads(count)
            both(how, *forest(how, 7, 4, 90))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.skipif(find_spec("numba") is None, reason="not tested: numba is not installed")
def test_compiled_is_the_rule_for_every_kind_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a dispatch that loses a rule's coins, offset, refusals or dtypes, and one that never reaches the kernel."""
    how = Compiled("leviathan", "cpu")
    plain, fast = how.plain(), compiled(how.plain())
    p, block = forest(how, 8, 3, 40)
    philox = Philox(3, torch.arange(8))
    recorded = {(kind, i): 0.5 for kind in ("accept", "emit") for i in range(4)}
    for coins in (philox, Shifted(philox, 5), Shifted(Shifted(philox, 2), 3)):
        assert_same(fast(p, block, coins), plain(p, block, coins))
    assert_same(fast(p, block, Recorded(recorded)), plain(p, block, Recorded(recorded)))
    assert block.q is not None
    half = replace(block, q=block.q.half())
    assert_same(fast(p.half(), half, philox), plain(p.half(), half, philox))
    for bad, words in ((replace(block, parents=block.parents * 0 - 1), "tree"), (replace(block, q=None), "point_mass")):
        with pytest.raises(ValueError, match=words):
            fast(p, bad, philox)
    monkeypatch.setattr(how.kernels(), "verify", lambda *_: "the kernel")
    assert fast(p, block, Shifted(philox, 5)) == "the kernel"
