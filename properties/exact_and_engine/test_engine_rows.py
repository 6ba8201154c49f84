"""What the engine does to rows: rounding is survived, and bad rows are named."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from refengine.bugs.checks.batches import EVERY, Pair, batch, cases, unpadded
from refengine.engine import check
from refengine.engine.block import NOTHING, Block
from refengine.engine.check import check_row, check_rows
from refengine.engine.coins import Philox, Recorded
from refengine.engine.path import child, path_of
from refengine.engine.row import correction, rescaled
from refengine.engine.rules import RULES as ENGINE
from refengine.engine.rules.block import block as block_rule
from refengine.engine.rules.block import prefix_weights
from refengine.engine.rules.point_mass import point_mass
from refengine.engine.rules.without_replacement import without_replacement
from refengine.engine.sums import total
from refengine.exact.block import chain
from refengine.exact.card import Card
from refengine.exact.chance import Site
from refengine.exact.law import law
from refengine.exact.row import point
from refengine.exact.rules import RULES

NAN = float("nan")


@pytest.mark.parametrize("pair", EVERY, ids=lambda pair: pair.name)
def test_float32_rows_off_the_dyadic_grid_never_leave_the_support(pair: Pair) -> None:
    """Kills a residual or total that rounding has emptied: every emitted token has p > 0, whatever the row sums to."""
    generator = torch.Generator().manual_seed(1)
    p, block = batch(cases(pair, 25, bits=4, vocabulary=5)[-150:])
    p = p * (1 + torch.randn(p.shape, generator=generator) * 2.0**-22)
    if block.q is not None:
        block = replace(block, q=block.q * (1 + torch.randn(block.q.shape, generator=generator) * 2.0**-22))
    got = unpadded(pair.batched(p, block, Philox(0, torch.arange(len(p))), **pair.floats()))
    for lane, (tokens, path) in enumerate(got):
        places = [0, *(j + 1 for j in path)]
        assert all(p[lane, place, x] > 0 for place, x in zip(places, tokens, strict=True))


def test_a_row_has_its_total_wherever_it_stands() -> None:
    """Kills sums along another axis than the last: a total of one row, of many, and of rows of rows."""
    rows = torch.rand(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    alone = torch.stack([total(row) for row in rows.reshape(6, 5)])
    assert alone.tolist() == pytest.approx([sum(row) for row in rows.reshape(6, 5).tolist()])
    assert torch.equal(total(rows), alone.reshape(2, 3))
    assert torch.equal(total(rows.reshape(6, 5)), alone)


def first_coin(card: Card) -> Site:
    """The site at which the first candidate is judged."""
    return ("accept", 0) if card.shape == "chain" else ("accept", 0, 0)


@pytest.mark.parametrize("card", [card for card in RULES.values() if card.drawn], ids=lambda card: card.name)
def test_a_refusal_that_leaves_nothing_emits_from_p(card: Card) -> None:
    """Kills the 0 / 0 of a residual that rounding has emptied (MTPLX #82): p is q but for one bit at the draft."""
    q = torch.tensor([[[0.25, 0.75]]])
    p = torch.stack((q[0, 0] - torch.tensor([2.0**-25, 0.0]), q[0, 0]))[None]
    block = Block(torch.tensor([[0]]), torch.tensor([[-1]]), q)
    for u, x in ((0.2, 0), (0.9, 1)):
        coins = Recorded({first_coin(card): 1 - 2.0**-25, ("emit", 0): u})
        assert unpadded(ENGINE[card.name](p, block, coins)) == [((x,), ())]


@pytest.mark.parametrize("card", [card for card in RULES.values() if card.drawn == "iid"], ids=lambda card: card.name)
def test_a_draft_that_q_cannot_have_drawn_passes_iff_p_wants_it(card: Card) -> None:
    """Kills a division by q = 0: with q(x) = 0 the ratio is infinite where p(x) > 0, and a refusal where p(x) = 0."""
    q = torch.tensor([[[0.0, 1.0]]])
    for wanted, expected in ((0.5, ((0, 1), (0,))), (0.0, ((1,), ()))):
        p = torch.tensor([[[wanted, 1 - wanted], [0.0, 1.0]]])
        coins = Recorded({first_coin(card): 0.0, ("emit", 0): 0.0, ("emit", 1): 0.0})
        drafted = Block(torch.tensor([[0]]), torch.tensor([[-1]]), q)
        assert unpadded(ENGINE[card.name](p, drafted, coins)) == [expected]


def test_many_distinct_siblings_do_not_underflow() -> None:
    """Kills a carried total that shrinks to 0: forty siblings, each a millionth of what was left before it."""
    n = 40
    q = torch.tensor([1e-6**x for x in range(n)], dtype=torch.float64)
    p = torch.zeros(1, n + 1, n + 1)
    p[:, :, n] = 1.0
    rows = torch.nn.functional.pad(q, (0, 1)).expand(1, n, n + 1)
    block = Block(torch.arange(n)[None], torch.full((1, n), -1), rows)
    got = without_replacement(p, block, Philox(0, torch.tensor([0])))
    assert unpadded(got) == [((n,), ())]


def test_block_weights_of_long_blocks_do_not_underflow() -> None:
    """Kills a product of draft probabilities that reaches 0 / 0: twelve tokens with p = q = 1e-38."""
    n = 12
    row = torch.tensor([1e-38, 1.0])
    block = Block(torch.zeros(1, n, dtype=torch.int64), torch.arange(-1, n - 1)[None], row.expand(1, n, 2))
    got = block_rule(row.expand(1, n + 1, 2), block, Philox(0, torch.tensor([0])))
    assert got.length.tolist() == [n + 1]


def test_a_place_without_a_draft_keeps_the_weight_before_it() -> None:
    """Kills a prefix weight that goes on into a place that is empty: what stands there is another lane's row."""
    p, q = torch.full((1, 3, 2), 0.5), torch.tensor([[[0.25, 0.75], [0.875, 0.125]]])
    num, den = prefix_weights(p, Block(torch.tensor([[1, NOTHING]]), torch.tensor([[-1, 0]]), q))
    assert (num / den).tolist() == [[1.0, 2 / 3, 2 / 3]]


def test_rescaling_is_exact_and_lands_in_one_half_to_one() -> None:
    """Kills a scale that is no power of two, which would take dyadic rows off the grid."""
    for exponent in range(-900, 900, 37):
        weights = torch.tensor([[3.0, 5.0, 0.0]], dtype=torch.float64) * 2.0**exponent
        scaled, mass = rescaled(weights)
        assert scaled.tolist() == [[3 / 8 / 2, 5 / 8 / 2, 0.0]]
        assert mass.tolist() == [0.5]


def test_row_helpers_on_plain_numbers() -> None:
    """Kills a correction that forgets to clamp or falls back too early, a wrong total, and a path out of order."""
    p, q = torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    assert correction(p, q).tolist() == [[0.0, 0.25], [0.5, 0.5]]
    assert total(torch.tensor([[1.0, 2.0, 4.0]])).tolist() == [7.0]
    assert total(torch.ones(0, 3)).tolist() == []  # no lane of a batch was refused
    kept = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    assert path_of(kept).tolist() == [[0, 2, NOTHING], [NOTHING] * 3, [0, 1, 2]]
    block = Block(torch.tensor([[4, 4, 5]]), torch.tensor([[-1, -1, 0]]), None)
    found = {(at, x): child(block, torch.tensor([at]), torch.tensor([x])).item() for at in (-1, 0, 2) for x in (4, 5)}
    assert found == {(-1, 4): 0, (-1, 5): NOTHING, (0, 4): NOTHING, (0, 5): 2, (2, 4): NOTHING, (2, 5): NOTHING}


def test_batched_rules_refuse_blocks_that_they_cannot_judge() -> None:
    """Kills a chain rule that reads a tree as a chain, and a ratio rule that invents a q."""
    rows = torch.full((1, 3, 2), 0.5)
    tree = Block(torch.zeros(1, 2, dtype=torch.int64), torch.tensor([[-1, -1]]), rows[:, :2])
    gap = Block(torch.tensor([[NOTHING, 0]]), torch.tensor([[-1, 0]]), rows[:, :2])
    longer = torch.full((1, 4, 2), 0.5)
    late = Block(torch.tensor([[0, NOTHING, 0]]), torch.tensor([[-1, 0, 1]]), longer[:, :3])
    given = Block(torch.zeros(1, 2, dtype=torch.int64), torch.tensor([[-1, 0]]), None)
    coins = Philox(0, torch.tensor([0]))
    for card in RULES.values():
        rule = ENGINE[card.name]
        if card.shape == "chain":
            with pytest.raises(ValueError, match="tree"):
                rule(rows, tree, coins)
            with pytest.raises(ValueError, match="gap"):
                rule(rows, gap, coins)
            with pytest.raises(ValueError, match="gap"):
                rule(longer, late, coins)
        if card.drawn:
            with pytest.raises(ValueError, match="point_mass"):
                rule(rows, given, coins)
    assert point_mass(rows, given, coins).length.shape == (1,)


@pytest.fixture(params=[(True, check.AT_ONCE), (False, check.AT_ONCE), (False, 1), (False, 30)], ids=str)
def looked_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel, and by the plain text: all lanes at once, one at a time, two at a time."""
    with_kernel, at_once = request.param
    monkeypatch.setattr(check, "AT_ONCE", at_once)
    if not with_kernel:
        monkeypatch.setattr(check, "kernels", lambda device: None)


def good() -> tuple[Tensor, Block]:
    """Two lanes, the second drafted one node fewer; unused places hold NaN and wild ids."""
    p, q = torch.full((2, 3, 2), 0.5), torch.full((2, 2, 2), 0.5)
    p[1, 2], q[1, 1] = NAN, NAN
    return p, Block(torch.tensor([[0, 1], [1, NOTHING]]), torch.tensor([[-1, 0], [-1, 77]]), q)


@pytest.mark.usefixtures("looked_at")
def test_check_rows_passes_what_is_sound() -> None:
    """Kills a check that looks at places without a draft, or refuses the rounding of a float32 softmax."""
    p, block = good()
    check_rows(p, block)
    check_rows(p, replace(block, q=None))
    check_rows(p * (1 + 5e-5), block)
    no_draft = torch.zeros(2, 0, dtype=torch.int64)
    check_rows(p[:, :1], Block(no_draft, no_draft, None))


def edited(tensor: Tensor, place: tuple[int, ...], value: float) -> Tensor:
    out = tensor.clone()
    out[place] = value
    return out


FAULTS: dict[str, tuple[Callable[[Tensor, Block], tuple[Tensor, Block]], str]] = {
    "NaN in p": (lambda p, b: (edited(p, (1, 0, 1), NAN), b), "row 0 of p in lane 1 holds NaN"),
    "inf in p": (lambda p, b: (edited(p, (1, 0, 1), float("inf")), b), "row 0 of p in lane 1 holds NaN or inf"),
    "last row of p": (lambda p, b: (edited(p, (0, 2, 0), NAN), b), "row 2 of p in lane 0"),
    "negative": (lambda p, b: (edited(edited(p, (0, 1, 0), -0.5), (0, 1, 1), 1.5), b), "row 1 of p in lane 0 has neg"),
    "sum high": (lambda p, b: (edited(p, (0, 1, 0), 0.5002), b), "row 1 of p in lane 0 does not sum to 1"),
    "sum low": (lambda p, b: (edited(p, (0, 1, 0), 0.4998), b), "row 1 of p in lane 0 does not sum to 1"),
    "NaN in q": (lambda p, b: (p, replace(b, q=edited(b.q, (1, 0, 0), NAN))), "row 0 of q in lane 1 holds NaN"),
    "q sum": (lambda p, b: (p, replace(b, q=edited(b.q, (0, 1, 0), 0.9))), "row 1 of q in lane 0 does not sum"),
    "p ragged": (lambda p, b: (p[:, :2], b), "tokens must be"),
    "p flat": (lambda p, b: (p[0], b), "p must be float"),
    "p ints": (lambda p, b: (p.nan_to_num().long(), b), "p must be float"),
    "parents ragged": (lambda p, b: (p, replace(b, parents=b.parents[:, :1])), "parents must be"),
    "tokens float": (lambda p, b: (p, replace(b, tokens=b.tokens.float())), "tokens must be"),
    "q ragged": (lambda p, b: (p, replace(b, q=b.q[:, :1])), "q must be"),
    "q ints": (lambda p, b: (p, replace(b, q=b.q.nan_to_num().long())), "q must be"),
    "token too high": (
        lambda p, b: (p, replace(b, tokens=edited(b.tokens, (0, 1), 2))),
        "node 1 in lane 0.*token.*0..1",
    ),
    "token too low": (lambda p, b: (p, replace(b, tokens=edited(b.tokens, (0, 1), -2))), "node 1 in lane 0.*token"),
    "parent later": (lambda p, b: (p, replace(b, parents=edited(b.parents, (0, 1), 1))), "node 1 in lane 0.*parent"),
    "parent low": (lambda p, b: (p, replace(b, parents=edited(b.parents, (0, 1), -2))), "node 1 in lane 0.*parent"),
    "parent absent": (
        lambda p, b: (p, replace(b, tokens=edited(b.tokens, (0, 0), NOTHING))),
        "node 1 in lane 0: its parent was not drafted",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_rows_names_the_fault(fault: str) -> None:
    """Kills bad input that is judged in silence: each fault is one line that says where."""
    spoil, message = FAULTS[fault]
    with pytest.raises(ValueError, match=message):
        check_rows(*spoil(*good()))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (torch.tensor([0.5, NAN]), "row 0 of p in lane 0 holds NaN"),
        (torch.tensor([1.5, -0.5]), "row 0 of p in lane 0 has negative mass"),
        (torch.tensor([1.0, -1e-300], dtype=torch.float64), "row 0 of p in lane 0 has negative mass"),
        (torch.tensor([0.5, 0.4998]), "row 0 of p in lane 0 does not sum to 1"),
        (torch.tensor([1, 0]), r"p must be float \[V\], got torch.int64 \[2\]"),
        (torch.tensor([[0.5, 0.5]]), r"p must be float \[V\], got torch.float32 \[1, 2\]"),
    ],
)
def test_a_single_row_is_looked_at_too(row: Tensor, message: str) -> None:
    """Kills plain decoding that draws from a row that no rule would judge."""
    check_row(torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match=message):
        check_row(row)


@pytest.mark.usefixtures("looked_at")
def test_every_row_of_every_lane_is_looked_at_and_no_place_without_a_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a fault that is missed or put in another place, where lanes are looked at in parts, and finite garbage in a
    place without a draft that is refused."""
    lanes, row = 5, torch.tensor([0.5, 0.0, 0.25, 0.25, 0.0])
    p, tokens = row.expand(lanes, 3, 5).clone(), torch.tensor([[0, 2]] * lanes)
    tokens[3, 1] = NOTHING
    p[3, 2] = 7.0
    block = Block(tokens, torch.tensor([[-1, 0]] * lanes), p[:, :2].clone())
    block.q[3, 1] = -3.0
    check_rows(p, block)
    for lane, place in itertools.product(range(lanes), range(3)):
        for value, fault in ((0.5625, "does not sum to 1 (its sum is 1.0625)"), (NAN, "holds NaN or infinity")):
            if (lane, place) != (3, 2):
                with pytest.raises(ValueError, match=re.escape(f"row {place} of p in lane {lane} {fault}")):
                    check_rows(edited(p, (lane, place, 0), value), block)
            if place < 2 and (lane, place) != (3, 1):
                with pytest.raises(ValueError, match=re.escape(f"row {place} of q in lane {lane} {fault}")):
                    check_rows(p, replace(block, q=edited(block.q, (lane, place, 0), value)))
    monkeypatch.setattr(check, "SUM_TOLERANCE", 2.0**-13)
    check_rows(edited(p, (4, 2, 0), 0.5 + 2.0**-13), block)
    with pytest.raises(ValueError, match="row 2 of p in lane 4"):
        check_rows(edited(p, (4, 2, 0), 0.5 + 2.0**-12), block)


@pytest.mark.usefixtures("looked_at")
def test_rows_are_summed_in_float64_and_none_may_be_empty() -> None:
    """Kills a sum in the row's own 16 bits, in which 1.004 is 1, and a check that falls over a batch without rows."""
    none = torch.zeros(1, 0, dtype=torch.int64)
    with pytest.raises(ValueError, match="row 0 of p in lane 0 does not sum to 1"):
        check_rows(torch.tensor([[[0.5, 0.5, 0.00390625]]], dtype=torch.bfloat16), Block(none, none, None))
    with pytest.raises(ValueError, match="row 0 of p in lane 0 does not sum to 1"):
        check_rows(torch.tensor([[[0.5]]]), Block(none, none, None))
    p, block = good()
    check_rows(p[:, :1], Block(block.tokens[:, :0], block.parents[:, :0], block.q[:, :0]))
    check_rows(p[:0], Block(block.tokens[:0], block.parents[:0], block.q[:0]))


@pytest.mark.parametrize("card", RULES.values(), ids=lambda card: card.name)
def test_lanes_that_end_at_every_depth_stand_beside_one_of_nothing(card: Card) -> None:
    """Kills a last row that is never reached without padding, and a lane that goes on after its refusal. Rows are
    certain, so that the definition has one answer; rows behind the refusal want other tokens."""
    tokens, parents = torch.tensor([[1, 2, 0]] * 4 + [[NOTHING] * 3]), torch.tensor([[-1, 0, 1]] * 5)
    wanted = torch.tensor([[1, 2, 0, 3], [3, 2, 0, 1], [1, 3, 0, 1], [1, 2, 3, 1], [2, 0, 1, 3]])
    rows = torch.nn.functional.one_hot(wanted, 4).double()
    q = torch.nn.functional.one_hot(tokens.clamp(min=0), 4).double() if card.drawn else None
    expected = [the_answer(card, p, one) for p, one in zip(wanted.tolist(), tokens.tolist(), strict=True)]
    got = ENGINE[card.name](rows, Block(tokens, parents, q), Philox(0, torch.arange(5)))
    assert [tokens for tokens, _ in unpadded(got)] == expected
    none = torch.zeros(5, 0, dtype=torch.int64)
    empty = Block(none, none, q[:, :0] if card.drawn else None)
    alone = ENGINE[card.name](rows[:, :1], empty, Philox(0, torch.arange(5)))
    assert [tokens for tokens, _ in unpadded(alone)] == [(1,), (3,), (1,), (1,), (2,)]


def the_answer(card: Card, wanted: list[int], tokens: list[int]) -> tuple[int, ...]:
    """What the definition emits where every row wants one token, and is drawn from a row that has one."""
    drafted = [token for token in tokens if token != NOTHING]
    q = [point(token, 4) if card.drawn else None for token in drafted]
    rows = [point(token, 4) for token in wanted[: len(drafted) + 1]]
    (emitted,) = law(
        lambda chance: card.rule(rows, chain(drafted, q, [("draft", i) for i in range(len(drafted))]), chance).tokens
    )
    return emitted
