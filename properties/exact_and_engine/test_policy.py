"""Policies: the orders and ties that are stated, and engine == exact on integer weights."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from refengine.engine import policy as engine
from refengine.exact import policy as exact
from refengine.exact.row import row

F = Fraction
Tokens = tuple[int, ...]

# name -> (exact step, engine step); weights are integers, penalties their logarithms.
STEPS: dict[str, tuple[exact.Policy, engine.Step]] = {
    "greedy": (exact.greedy(), engine.greedy()),
    "temperature 1": (exact.temperature(1), engine.temperature(1.0)),
    "temperature 1/2": (exact.temperature(2), engine.temperature(0.5)),
    "top-k 1": (exact.top_k(1), engine.top_k(1)),
    "top-k 2": (exact.top_k(2), engine.top_k(2)),
    "top-k 9": (exact.top_k(9), engine.top_k(9)),
    "top-p 0.6": (exact.top_p(F(6, 10)), engine.top_p(0.6)),
    "top-p 0.9": (exact.top_p(F(9, 10)), engine.top_p(0.9)),
    "top-p 1": (exact.top_p(F(1)), engine.top_p(1.0)),
    "min-p 0": (exact.min_p(F(0)), engine.min_p(0.0)),
    "min-p 0.3": (exact.min_p(F(3, 10)), engine.min_p(0.3)),
    "min-p 1": (exact.min_p(F(1)), engine.min_p(1.0)),
    "repetition": (exact.repetition_penalty(2), engine.repetition_penalty(2.0)),
    "presence": (exact.presence_penalty(F(1, 3)), engine.presence_penalty(math.log(3))),
    "frequency": (exact.frequency_penalty(F(1, 3)), engine.frequency_penalty(math.log(3))),
    "bias": (exact.logit_bias({0: F(5), 2: F(0)}), engine.logit_bias({0: math.log(5), 2: engine.BANNED})),
    "bad words": (exact.bad_words([(1,), (0, 2), (2, 0, 3)]), engine.bad_words([(1,), (0, 2), (2, 0, 3)])),
    "grammar": (
        exact.grammar({0: {0: 0, 1: 1}, 1: {2: 0, 3: 1}}),
        engine.grammar({0: {0: 0, 1: 1}, 1: {2: 0, 3: 1}}),
    ),
    "grammar from 1": (exact.grammar({1: {2: 1}}, start=1), engine.grammar({1: {2: 1}}, start=1)),
}
WEIGHTS = [(16, 4, 1, 4), (1, 1, 1, 1), (F(1, 4), 9, 9, 0), (4, F(1, 9), 25, 1)]
HISTORIES = [
    (prompt, prefix)
    for prompt in ((), (2,), (2, 0), (1, 0, 0))
    for length in range(3)
    for prefix in product(range(4), repeat=length)
]
# A count, a state or a window that is right for a few tokens only.
HISTORIES += [((2,) * 5, (0, 3) * 140), ((), (0, 1, 2, 0, 1, 3)), ((3, 1), (0,) * 9 + (2, 0, 3) * 3 + (2, 0))]


def logits(weights: tuple[Any, ...]) -> torch.Tensor:
    return torch.tensor([math.log(w) if w else -math.inf for w in weights], dtype=torch.float64)


def same(names: tuple[str, ...], weights: tuple[Any, ...], prompt: Tokens, prefix: Tokens) -> None:
    """Equal support, and equal probabilities up to the rounding of log, exp and one sum: a few ulps, so 1e-14."""
    exact_policy = exact.pipeline(*(STEPS[n][0] for n in names))
    engine_policy = engine.pipeline(*(STEPS[n][1] for n in names))
    try:
        expected = exact_policy([F(w) for w in weights], prompt, prefix)
    except ValueError:
        with pytest.raises(ValueError, match="bans every token"):
            engine_policy(logits(weights), prompt, prefix)
        return
    got = engine_policy(logits(weights), prompt, prefix).tolist()
    assert [g > 0 for g in got] == [e > 0 for e in expected], (names, weights, prompt, prefix)
    assert max(abs(g - float(e)) for g, e in zip(got, expected, strict=True)) < 1e-14, (names, weights, prompt, prefix)


@pytest.mark.parametrize("name", STEPS)
def test_engine_policy_is_the_exact_one(name: str) -> None:
    """Kills a step that looks at the wrong history, breaks a tie otherwise, or keeps one token more or fewer."""
    for weights in WEIGHTS:
        for prompt, prefix in HISTORIES:
            same((name,), weights, prompt, prefix)


def test_engine_pipelines_keep_the_stated_order() -> None:
    """Kills steps that are applied from right to left: each of these pairs does not commute."""
    for pair in (
        ("top-k 2", "top-p 0.6"),
        ("repetition", "temperature 1/2"),
        ("bias", "top-k 2"),
        ("presence", "greedy"),
    ):
        for names in (pair, pair[::-1]):
            for weights in WEIGHTS:
                for prompt, prefix in HISTORIES[:20]:
                    same(names, weights, prompt, prefix)


@pytest.mark.parametrize(
    ("step", "weights", "history", "expected"),
    [
        (exact.greedy(), (1, 3, 3, 2), ((), ()), (0, 1, 0, 0)),
        (exact.temperature(3), (1, 2, 3, 0), ((), ()), (1, 8, 27, 0)),
        (exact.top_k(2), (5, 7, 5, 7), ((), ()), (0, 7, 0, 7)),
        (exact.top_k(3), (5, 7, 5, 7), ((), ()), (5, 7, 0, 7)),
        (exact.top_p(F(1, 2)), (1, 1, 1, 1), ((), ()), (1, 1, 0, 0)),
        (exact.top_p(F(3, 4)), (1, 5, 1, 1), ((), ()), (1, 5, 0, 0)),
        (exact.top_p(F(76, 100)), (1, 5, 1, 1), ((), ()), (1, 5, 1, 0)),
        (exact.top_p(F(1)), (1, 0, 1, 2), ((), ()), (1, 0, 1, 2)),
        (exact.min_p(F(1, 2)), (4, 2, 1, 3), ((), ()), (4, 2, 0, 3)),
        (exact.repetition_penalty(2), (4, F(1, 2), 9, 1), ((0, 3), (1,)), (2, F(1, 4), 9, 1)),
        (exact.repetition_penalty(2), (F(4, 9), F(9, 4), 9, 1), ((0,), (1,)), (F(16, 81), F(3, 2), 9, 1)),
        (exact.presence_penalty(F(1, 2)), (4, 4, 4, 4), ((0,), (1, 2, 2)), (4, 2, 2, 4)),
        (exact.frequency_penalty(F(1, 2)), (4, 4, 4, 4), ((0,), (1, 2, 2)), (4, 2, 1, 4)),
        (exact.logit_bias({1: F(3), 2: F(0)}), (1, 1, 1, 1), ((), ()), (1, 3, 0, 1)),
        (exact.bad_words([(0, 1), (3,)]), (1, 1, 1, 1), ((2, 0), ()), (1, 0, 1, 0)),
        (exact.bad_words([(0, 1), (3,)]), (1, 1, 1, 1), ((0,), (2,)), (1, 1, 1, 0)),
        (exact.bad_words([(0, 1, 2)]), (1, 1, 1, 1), ((0,), (1,)), (1, 1, 0, 1)),
        (exact.bad_words([(0, 1, 2)]), (1, 1, 1, 1), ((), (1,)), (1, 1, 1, 1)),
        (exact.grammar({0: {1: 1}, 1: {0: 1, 2: 0}}), (1, 1, 1, 1), ((3,), ()), (0, 1, 0, 0)),
        (exact.grammar({0: {1: 1}, 1: {0: 1, 2: 0}}), (1, 1, 1, 1), ((3,), (1, 0)), (1, 0, 1, 0)),
        (exact.grammar({0: {1: 1}, 1: {0: 1, 2: 0}}), (1, 1, 1, 1), ((), (3, 1)), (1, 1, 1, 1)),
    ],
)
def test_exact_policies_by_hand(
    step: exact.Policy, weights: Any, history: tuple[Tokens, Tokens], expected: Any
) -> None:
    """Kills a definition that is wrong in both texts: ties to the lowest id, the token that crosses p, the history."""
    assert tuple(step([F(w) for w in weights], *history)) == tuple(F(w) for w in expected)


def test_exact_pipeline_renormalises_at_the_end_and_only_there() -> None:
    """Kills a repetition penalty that sees normalised weights, of which every logit is negative."""
    policy = exact.pipeline(exact.repetition_penalty(2), exact.top_k(2))
    assert policy([F(16), F(9), F(1)], (0,), ()) == row([4, 9, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: exact.temperature(0), "1/0"),
        (lambda: exact.top_k(0), "at least one"),
        (lambda: exact.top_p(F(0)), "top_p"),
        (lambda: exact.top_p(F(11, 10)), "top_p"),
        (lambda: exact.min_p(F(-1, 10)), "min_p"),
        (lambda: exact.min_p(F(11, 10)), "min_p"),
        (lambda: exact.bad_words([()]), "at least one token"),
        (lambda: exact.bad_words([(0,), ()]), "at least one token"),
        (lambda: exact.repetition_penalty(2)([F(2), F(1)], (0,), ()), "token 0.*no rational 2th root"),
        (lambda: engine.temperature(0.0), "positive"),
        (lambda: engine.temperature(math.nan), "positive"),
        (lambda: engine.temperature(math.inf), "finite"),
        (lambda: engine.top_k(0), "at least one"),
        (lambda: engine.top_p(0.0), "top_p"),
        (lambda: engine.top_p(1.1), "top_p"),
        (lambda: engine.min_p(-0.1), "min_p"),
        (lambda: engine.min_p(1.1), "min_p"),
        (lambda: engine.repetition_penalty(0.0), "positive"),
        (lambda: engine.bad_words([(0,), ()]), "at least one token"),
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], object], message: str) -> None:
    """Kills a setting that is quietly clamped or turns every row into NaN."""
    with pytest.raises(ValueError, match=message):
        make()


def test_min_p_compares_in_float64() -> None:
    """Kills a threshold that is compared in the precision of the row: a token just below it is kept in float16."""
    logits = torch.tensor([0.0, -1.2], dtype=torch.float16)
    share = float(logits[1].double().exp()) + 1e-5
    assert engine.min_p(share)(logits, (), ()).tolist() == [0.0, -torch.inf]
    assert engine.min_p(share - 2e-5)(logits, (), ())[1] == logits[1]


def test_limits_of_settings_are_allowed() -> None:
    """Kills a range check that is off by its own edge."""
    flat = torch.zeros(3, dtype=torch.float64)
    assert (engine.min_p(0.0)(flat, (), ()) == 0).all()
    assert (engine.min_p(1.0)(flat, (), ()) == 0).all()
    assert exact.top_k(1)([F(1), F(2)], (), ()) == (0, 2)
    assert exact.min_p(F(1))([F(1), F(2)], (), ()) == (0, 2)
    for root in (12372095619620395, 13544634657223011):  # a root in float64 is one too low, one too high
        assert exact.repetition_penalty(2)([F(root**2)], (0,), ()) == (root,)
    assert exact.greedy()([F(0), F(0)], (), ()) == (0, 0)  # a greedy step that names token 0 where all are banned


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    value=st.floats(5e-324, 1.7e308),
    logits=st.lists(st.floats(-(2.0**127), 2.0**127, width=32), min_size=1, max_size=5),
    banned=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_any_temperature_gives_a_row(value: float, logits: list[float], banned: bool, dtype: torch.dtype) -> None:
    """Kills a quotient that overflows to NaN, that rounds every token to a ban or a banned one back to life, and a
    temperature that the dtype of the logits cannot hold."""
    allowed = len(logits)
    asked = torch.tensor([*logits, *([engine.BANNED] if banned else [])], dtype=dtype)
    row = engine.pipeline(engine.temperature(value))(asked, (), ()).tolist()
    assert all(map(math.isfinite, row))
    assert not any(row[allowed:])
    assert all(row[i] >= row[j] for i in range(allowed) for j in range(allowed) if logits[i] >= logits[j])
    behind = [(Fraction(x) - Fraction(max(logits))) / Fraction(value) for x in logits]
    weights = [math.exp(x) if x > -800 else 0.0 for x in behind]
    # An exponent is off by as many roundings as it, and what it is counted from, are long: a weight by that share.
    roundings = 4 * (1 + max(map(abs, logits)) / value)
    if (slack := roundings * torch.finfo(dtype).eps) < 0.1:
        assert all(abs(p - w / sum(weights)) <= 2 * slack for p, w in zip(row, weights, strict=False))


def test_exact_edges_of_top_p_on_float_rows() -> None:
    """Kills `<=` for `<` where the head reaches p exactly, and a p of 1 that drops what rounding cannot see."""
    flat = torch.zeros(4, dtype=torch.float64)
    for p, kept in ((0.25, 1), (0.5, 2), (0.500001, 3), (1.0, 4)):
        assert (engine.top_p(p)(flat, (), ()) == 0).tolist() == [i < kept for i in range(4)]
    for dtype in (torch.float32, torch.bfloat16):  # the mass is counted in float64, whatever the logits are in
        for size, k in ((3, 1), (7, 4), (1000, 501), (1000, 999)):
            for p, kept in ((k / size - 1e-9, k), (k / size + 1e-9, k + 1)):
                assert int((engine.top_p(p)(torch.zeros(size, dtype=dtype), (), ()) == 0).sum()) == kept
    tail = torch.tensor([0.0, -60.0], dtype=torch.float64)
    assert engine.pipeline(engine.top_p(1.0))(tail, (), ())[1] > 0
    batch = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    assert engine.head(batch, 0.75).tolist() == [[True, True, False], [True, False, True]]


def test_rows_follow_the_path_of_each_node() -> None:
    """Kills a history that follows the order of nodes instead of their parents, and a row that is off by one."""
    seen: list[tuple[Tokens, Tokens, float]] = []

    def policy(values: torch.Tensor, prompt: Tokens, prefix: Tokens) -> torch.Tensor:
        seen.append((prompt, prefix, float(values[0])))
        return values + 1

    values = torch.arange(5.0)[:, None].expand(5, 2)
    out = engine.rows(policy, values, (9,), (8,), [5, 6, 7, 4], [-1, -1, 0, 1])
    assert [prefix for _, prefix, _ in seen] == [(8,), (8, 5), (8, 6), (8, 5, 7), (8, 6, 4)]
    assert [value for _, _, value in seen] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert {prompt for prompt, _, _ in seen} == {(9,)}
    assert torch.equal(out, values + 1)


TEXTLESS = [name for name, (_, step) in STEPS.items() if isinstance(step, engine.Textless)]
QUARTERS = st.integers(-9, 9).map(lambda x: x / 4)  # ties among them; what one row's heaviest cuts of another, and not
EXTREMES = st.sampled_from([-math.inf, -3e38, 3e38])
BLOCKS = st.lists(st.lists(QUARTERS, min_size=4, max_size=4), min_size=2, max_size=4)


@pytest.mark.parametrize("name", STEPS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    before=st.lists(st.sampled_from(TEXTLESS), max_size=1),
    block=BLOCKS | st.lists(st.lists(QUARTERS | EXTREMES, min_size=4, max_size=4), min_size=2, max_size=4),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_rows_of_a_block_have_the_bits_of_single_rows(
    name: str, before: list[str], block: list[list[float]], dtype: torch.dtype
) -> None:
    """Kills a step that lets one row of a block feel another, a step between others too, and a block that one empty row
    spoils: plain decoding makes its rows one by one."""
    policy = engine.pipeline(*(STEPS[step][1] for step in (*before, name)))
    given = torch.tensor(block, dtype=dtype)
    tokens, parents = [0] * (len(block) - 1), list(range(-1, len(block) - 2))
    made = engine.rows(policy, given, (1,), (), tokens, parents)
    lenient = engine.or_zeros(policy)
    alone = [lenient(logits, (1,), (0,) * depth) for depth, logits in enumerate(given)]
    assert torch.equal(made, torch.stack(alone))


TINY, HUGE = torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max
TEXTLESS_STEPS = {
    **{name: STEPS[name][1] for name in TEXTLESS},
    "temperature, the least": engine.temperature(TINY),
    "temperature, the largest": engine.temperature(HUGE),
}


@pytest.mark.parametrize("name", TEXTLESS_STEPS)
def test_a_step_without_text_takes_the_rows_of_a_block_at_once(name: str) -> None:
    """Kills a step over the wrong axis, which leaves other rows empty, so that every block is made row by row; and a
    row that is scaled otherwise because one beside it overflows, or is none."""
    step = TEXTLESS_STEPS[name]
    block = torch.tensor([[1e-38, 0.5, 2, 2], [3, 1, -1, 0], [10, 3e38, -3e38, 0], [1, math.nan, 0, 0]])
    for rows in (block[:3], block[[0, 3]]):
        alone = torch.stack([step(row, (), ()) for row in rows])
        assert torch.equal(
            step(rows, (), ()).nan_to_num(7.0, math.inf, -math.inf), alone.nan_to_num(7.0, math.inf, -math.inf)
        )


def test_a_block_of_which_one_row_is_banned_has_zeros_there_alone() -> None:
    """Kills a block that is asked whether all of its rows are empty, or whether one of its columns is."""
    flat, banned = [0.0, 0.0], [engine.BANNED] * 2
    policy, block = engine.pipeline(engine.temperature(1.0)), torch.tensor([flat, banned, flat])
    with pytest.raises(engine.NothingLeft):
        policy(block, (), ())
    assert engine.rows(policy, block, (), (), [0, 0], [-1, 0]).tolist() == [[0.5, 0.5], [0.0, 0.0], [0.5, 0.5]]


def test_rows_keep_the_dtype_of_the_logits() -> None:
    """Kills a row in another precision than the one that is reported: the q-contract is about bits."""
    for dtype in (torch.float32, torch.float64):
        for _, step in STEPS.values():
            assert engine.pipeline(step)(torch.zeros(4, dtype=dtype), (0,), ()).dtype == dtype


def test_a_policy_that_leaves_nothing_says_so_and_judges_with_a_row_of_zeros() -> None:
    """Kills a row of NaN where every token is banned, and a block whose rows cannot be made for one node's sake."""
    policy = engine.pipeline(engine.grammar({0: {1: 1}, 1: {}}))
    flat = torch.zeros(3, 2, dtype=torch.float64)
    with pytest.raises(engine.NothingLeft, match=r"every token after 2 \+ 1 tokens"):
        policy(flat[0], (0, 0), (1,))
    assert engine.rows(policy, flat, (0, 0), (), [1, 0], [-1, -1]).tolist() == [[0.0, 1.0], [0.0, 0.0], [0.5, 0.5]]
    for logits, parents in ((flat[:2], [-1]), (flat[:2], [-1, -1])):
        with pytest.raises(ValueError, match="zip"):
            engine.rows(policy, logits, (), (), [1, 0], parents)


def test_temperatures_that_float32_cannot_hold() -> None:
    """Kills a quotient by a temperature that was rounded to the dtype of the logits first."""
    for heavy, value in ((1e38, 1e39), (float(torch.tensor(1e-44)), 1e-45)):
        scaled = engine.temperature(value)(torch.tensor([heavy, 0.0]), (), ())
        assert float(scaled[0] - scaled[1]) == pytest.approx(heavy / value, rel=1e-6)


def test_large_rows_in_sixteen_bits_keep_the_stated_tokens() -> None:
    """Kills a cumulative sum in the row's own bits, and a sort that mixes equal tokens."""
    flat = torch.zeros(4096, dtype=torch.bfloat16)
    assert (engine.top_p(0.5)(flat, (), ()) == 0).tolist() == [x < 2048 for x in range(4096)]
    assert (engine.top_k(1000)(flat, (), ()) == 0).tolist() == [x < 1000 for x in range(4096)]
    assert engine.head(torch.tensor([4.0, 2.0, 1.0, 1.0]), 0.75).tolist() == [True, True, False, False]


def test_a_repetition_penalty_turns_at_zero() -> None:
    """Kills a sign that is read at another logit than 0, and a penalty below 1 that is refused."""
    asked = torch.tensor([0.5, -0.5, 2.0, -2.0, 3.0])
    assert engine.repetition_penalty(2.0)(asked, (0, 1), (2, 3)).tolist() == [0.25, -1.0, 1.0, -4.0, 3.0]
    assert engine.repetition_penalty(0.5)(asked, (0, 1), (2, 3)).tolist() == [1.0, -0.25, 4.0, -1.0, 3.0]


PENALTY, BANS = engine.presence_penalty(1.5), engine.bad_words([(1,), (2, 0)])


@pytest.mark.parametrize("before", [(), (PENALTY,), (BANS, PENALTY)])
def test_the_token_of_a_greedy_policy_is_where_its_row_has_its_mass(before: tuple[engine.Step, ...]) -> None:
    """Kills a step that is left out before the choice, a tie that goes to a later id, and a token of no row at all."""
    policy = engine.Pipeline((*before, engine.greedy()))
    for values in product((0.0, 1.0, 2.0, -math.inf), repeat=3):
        for prefix in ((), (2,), (0, 1)):
            row = engine.or_zeros(policy)(torch.tensor(values), (1,), prefix)
            assert policy.token(torch.tensor(values), (1,), prefix) == (int(row.argmax()) if row.any() else None)
    for number in (math.nan, math.inf):
        assert policy.token(torch.tensor([0.0, 1.0, number]), (), ()) is None
    for other in ((), (engine.greedy(), engine.temperature(1.0)), (engine.top_k(1),)):
        assert engine.Pipeline(other).token(torch.tensor([0.0, 1.0]), (), ()) is None
