"""Lookahead decoding: recordings of the official code (fixtures/golden/README.md), and its window from scratch."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.close import assert_close
from properties.helpers.coins import COINS
from refengine.decoder import load_target
from refengine.decoder.drafters.lookahead import Lookahead, in_turn, window_rows
from refengine.decoder.loop import Session, begin
from refengine.decoder.protocols import Target, Tokens, Turn
from refengine.decoder.targets.toy import ToyTarget
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.coins import Philox, Site, accept_below
from refengine.engine.policy import greedy, pipeline, temperature, top_p
from refengine.engine.rules.point_mass import point_mass
from refengine.exact.chance import DEPTHS
from refengine.source_tree import GOLDEN

GOLDEN = GOLDEN / "lookahead_A"


@pytest.fixture(scope="module")
def golden() -> dict[str, Tensor]:
    return load_file(GOLDEN / "golden.safetensors")


@pytest.fixture(scope="module")
def target() -> TransformersTarget:
    loaded = load_target(GOLDEN / "target", torch.float32)
    assert isinstance(loaded, TransformersTarget)
    return loaded


def drafter(target: Target, golden: dict[str, Tensor], run: str) -> Lookahead:
    sizes = json.loads((GOLDEN / "golden.json").read_text())["lookahead"]
    first = tuple(golden[f"{run}.init_window"].tolist())
    return Lookahead(
        target,
        sizes["LEVEL"],
        sizes["WINDOW_SIZE"],
        sizes["GUESS_SET_SIZE"],
        sizes["POOL_FROM_PROMPT"],
        repeats_last=run == "greedy",
        first_row=lambda *_: first,
    )


def steps(golden: dict[str, Tensor], run: str) -> Iterator[dict[str, Tensor]]:
    """The recorded steps from the second on: the first is the prompt's own pass, which `begin` and `start` make."""
    for i in range(1, len(golden[f"{run}.emitted_counts"])):
        yield {k.rpartition(".")[2]: v for k, v in golden.items() if k.startswith(f"{run}.s{i}.")}


def rows_of(window: Tensor) -> tuple[Tokens, ...]:
    return tuple(tuple(x for x in row if x >= 0) for row in window.tolist())


def pool_of(golden: Tensor) -> dict[int, tuple[Tokens, ...]]:
    pool: dict[int, tuple[Tokens, ...]] = {}
    for key, *gram in golden.tolist():
        pool[key] = (*pool.get(key, ()), tuple(gram))
    return pool


@pytest.mark.peer("lookahead")
def test_every_step_of_a_greedy_run(golden: dict[str, Tensor], target: TransformersTarget) -> None:
    """Kills a wrong window mask or position, a column filed under another token, a wrong eviction, a late shift."""
    looking = drafter(target, golden, "greedy")
    session = Session(target, looking, point_mass, pipeline(greedy()), 10**6)
    session.begin(tuple(golden["prompt"].tolist()), COINS)
    logits = masks = 0
    for step in steps(golden, "greedy"):
        assert len(session.prompt + session.out) == int(step["committed_len"])
        assert looking.rows == rows_of(step["window"])
        if "pool" in step:
            assert looking.pool == pool_of(step["pool"])
        anchor, start = session.out[-1], int(step["committed_len"]) - 1
        if "lookahead_logits" in step:
            assert_close(looking.look(anchor, start), step["lookahead_logits"])
            logits += 1
        if "mask" in step:
            rows = window_rows(((anchor, *looking.rows[0]), *looking.rows[1:]), start, target.device)
            count = len(rows.tokens)
            assert rows.tokens.tolist() == step["input_ids"][:count].tolist()
            assert rows.positions.tolist() == step["position_ids"][:count].tolist()
            assert rows.visible is not None
            assert torch.equal(rows.visible, step["mask"][:count, start : start + count].bool())
            assert not step["mask"][:count, start + count :].any()  # no window row sees a guess
            masks += 1
        session.play(COINS)
        emitted = step["emitted"].tolist()
        assert list(session.rounds[-1].emitted)[: len(emitted)] == emitted  # the last step was cut by the length limit
    assert min(logits, masks) > 3


class Recorded:
    """Coins of one official step: it tries every surviving guess in turn, a token again where guesses share it.

    Nodes of our block are numbered as the guesses without their last token are read, shared beginnings once.
    """

    def __init__(self, guesses: list[list[int]], uniforms: list[float], emitted: list[int]) -> None:
        paths = {tuple(guess[:length]): None for guess in guesses for length in range(1, len(guess))}
        self.tokens = [path[-1] for path in paths]
        self.guesses, self.uniforms, self.emitted = guesses, list(uniforms), emitted
        self.refused: set[int] = set()
        self.tried = 0  # guesses at this depth
        self.last: Tensor | None = None

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        depth, token = int(site[1]) % DEPTHS, self.tokens[int(site[2])]
        while self.guesses[self.tried][depth] in self.refused:  # no mass is left on it: one uniform for nothing
            self.tried += 1
            self.uniforms.pop(0)
        assert self.guesses[self.tried][depth] == token
        self.tried += 1
        u = torch.tensor([self.uniforms.pop(0)], dtype=torch.float64)
        accepted = accept_below(u, num, den)
        if bool(accepted):
            self.guesses = [guess for guess in self.guesses if guess[depth] == token]
            self.tried, self.refused = 0, set()
        else:
            self.refused.add(token)
        return accepted

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        self.last = weights[0] / weights[0].sum()
        return torch.tensor([self.emitted[-1]])


@pytest.mark.peer("lookahead")
def test_every_step_of_a_sampled_run(golden: dict[str, Tensor], target: TransformersTarget) -> None:
    """Kills guesses tried in another order, a refused token that is not taken out, and a residual of the wrong row."""
    facts = json.loads((GOLDEN / "golden.json").read_text())["sampled"]
    looking = drafter(target, golden, "sampled")
    policy = pipeline(temperature(facts["temperature"]), top_p(facts["top_p"]))
    session = Session(target, looking, point_mass, policy, 10**6)
    first = int(golden["sampled.s0.emitted"][0])
    session.begin(tuple(golden["prompt"].tolist()), Recorded([], [], [first]))
    decided = residuals = 0
    for step in steps(golden, "sampled"):
        assert looking.rows == rows_of(step["window"])
        guesses = step["guesses"].tolist() if "guesses" in step else []
        recorded = Recorded(guesses, step["uniforms"].tolist(), step["emitted"].tolist())
        anchor = session.out[-1]
        assert [list(gram) for gram in looking.pool.get(anchor, ())] == guesses
        session.play(recorded)
        assert list(session.rounds[-1].emitted) == step["emitted"].tolist()
        decided += len(guesses)
        # After all N - 2 drafted tokens the official code tries the guess's last token, where ours draws from the row.
        if recorded.last is not None and "draw_p" in step and len(step["emitted"]) < looking.level - 1:
            assert_close(recorded.last, step["draw_p"][-1])
            residuals += len(guesses) > 0
    assert decided > 10
    assert residuals > 3


# --- the window from scratch ---------------------------------------------------------------------------------------


class Plainly:
    """The same window, every element computed from a whole sequence of its own: no cache, no mask, no shared pass."""

    def __init__(self, target: Target, level: int, window: int, prompt: Tokens) -> None:
        self.target, self.level = target, level
        row = in_turn(prompt, window + level - 3)
        self.rows: tuple[Tokens, ...] = (row,)
        self.rows = (row[1:], self.after(prompt, ((*row,),)))

    def after(self, text: Tokens, grid: tuple[Tokens, ...]) -> Tokens:
        """What follows the last row: column i reads grid[0][: i + 1], then element i of every later row."""
        columns = ((*text, *grid[0][: i + 1], *(row[i] for row in grid[1:])) for i in range(len(grid[0])))
        return tuple(int(begin(self.target, column, ()).logits[-1].argmax()) for column in columns)

    def round(self, prefix: Tokens) -> None:
        new = self.after(prefix[:-1], ((prefix[-1], *self.rows[0]), *self.rows[1:]))
        if len(self.rows) < self.level - 1:
            self.rows = (*(row[1:] for row in self.rows), new[1:])
        else:
            self.rows = (self.rows[1][1:], *self.rows[2:], new)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(prompt=st.lists(st.integers(0, 3), min_size=1, max_size=5), level=st.integers(3, 5), window=st.integers(1, 4),
       seed=st.integers(0, 99))  # fmt: skip
def test_the_window_is_what_whole_sequences_make_of_it(prompt: list[int], level: int, window: int, seed: int) -> None:
    """Kills a window row that sees another column, a stale cache row, or a text position that accepts have moved."""
    coins = Philox(seed, torch.tensor([0]))
    looking = Lookahead(ToyTarget(4), level, window, 3, from_prompt=True)
    session = Session(looking.target, looking, point_mass, pipeline(temperature(0.7)), 10**6)
    session.begin(tuple(prompt), coins)
    plainly = Plainly(ToyTarget(4), level, window, tuple(prompt))
    for _ in range(6):
        assert looking.rows == plainly.rows
        plainly.round(session.prompt + session.out)
        session.play(coins)


def test_the_pool_keeps_the_newest() -> None:
    """Kills a pool that keeps the oldest, counts a repeat twice, or leaves a repeat where it stood."""
    looking = Lookahead(ToyTarget(4), level=3, guesses=2, from_prompt=True)
    looking._file_text((0, 1, 1, 0, 2, 2))
    assert looking.pool == {0: ((1, 1), (2, 2)), 1: ((1, 0), (0, 2))}
    looking._file(0, (1, 1))
    assert looking.pool[0] == ((2, 2), (1, 1))
    looking._file(0, (3, 3))
    assert looking.pool[0] == ((1, 1), (3, 3))


@pytest.mark.parametrize("repeats_last", [False, True])
def test_the_output_is_filed_once_and_as_asked(repeats_last: bool) -> None:
    """Kills output that is filed twice or not at all, and the greedy loop's repeats where they were not asked for."""
    looking = Lookahead(ToyTarget(4), level=3, from_prompt=True, repeats_last=repeats_last)
    looking.start((0, 1, 2), begin(looking.target, (0, 1, 2), ()))
    for prefix in ((0, 1, 2, 3), (0, 1, 2, 3, 1, 2)):  # rounds of one token and of two
        looking.propose(Turn((0, 1, 2), prefix, pipeline(greedy()), COINS))
    text = (0, 1, 2, 3, 2, 2) if repeats_last else (0, 1, 2, 3, 1, 2)
    assert looking.pool == {text[i]: (text[i + 1 : i + 3],) for i in range(4)}


@pytest.mark.parametrize("sizes", [{"level": 2}, {"window": 0}, {"guesses": 0}])
def test_bad_sizes_are_named(sizes: dict[str, Any]) -> None:
    """Kills a window without rows that fails later, deep inside a pass."""
    with pytest.raises(ValueError, match="level is at least 3, window and guesses at least 1"):
        Lookahead(ToyTarget(4), **sizes)
