"""The bound on what floats lose, against laws of the engine itself: every uniform of a coarse grid is run."""

from collections import Counter
from fractions import Fraction

import pytest
import torch
from torch import Tensor

from refengine.commands.rounding import (
    ADMITTED_MISS,
    PROVED,
    admitted_miss,
    block_off,
    iid_off,
    in_floats,
    levels,
    pick_off,
    point_off,
    ratio_off,
    rounded_up,
    without_off,
)
from refengine.engine.block import Block
from refengine.engine.check import SUM_TOLERANCE
from refengine.engine.coins import Recorded
from refengine.engine.rules import RULES
from refengine.engine.sums import pairs

MISS = Fraction(1, 8)
DRAWN = ("iid_candidates", "without_replacement", "block")  # two drafts are drawn: siblings, or a chain


def rough_rows(count: int, vocabulary: int, seed: int) -> list[Tensor]:
    """Float32 rows whose exact sums lie within MISS of 1, spread over that range."""
    chance = torch.Generator().manual_seed(seed)
    rows = torch.rand(count, vocabulary, generator=chance, dtype=torch.float64) ** 4
    sums = 0.88 + 0.24 * torch.rand(count, 1, generator=chance, dtype=torch.float64)
    out = list((rows / rows.sum(1, keepdim=True) * sums).float())
    assert all(abs(sum(map(Fraction, row.tolist()), Fraction(0)) - 1) <= MISS for row in out)
    return out


def shares(row: Tensor) -> list[Fraction]:
    exact = [Fraction(x) for x in row.tolist()]
    return [x / sum(exact) for x in exact]


def two_tokens(rule: str, p: list[Tensor], q: Tensor, pick_bits: int, coin_bits: int) -> Fraction:
    """TV of two tokens of the engine, all uniforms equally likely, from the normalised target's.

    The target's second row depends on the first token: p[0] first, then p[1 + x]. A round that stops after one token is
    completed from the target.
    """
    vocabulary = len(q)
    several = rule in DRAWN
    sizes = (coin_bits if rule == "point_mass" else pick_bits, coin_bits, pick_bits)
    sizes += (coin_bits, pick_bits) if several else ()  # of the second sibling, which is drawn too
    grids = [torch.arange(1 << bits, dtype=torch.float64) / (1 << bits) for bits in sizes]
    uniforms = torch.cartesian_prod(*grids)
    lanes = len(uniforms)
    coins = Recorded(
        {
            ("draft", 0): uniforms[:, 0],
            ("draft", 1): uniforms[:, -1],
            ("accept", 0): uniforms[:, 1],
            ("accept", 0, 0): uniforms[:, 1 if several else 0],
            ("accept", 0, 1): uniforms[:, 3 if several else 1],
            ("accept", 1): uniforms[:, -2],  # of block's second draft
            ("accept", 1, 1): 0.0,  # of lanes that have nothing left to decide
            ("emit", 0): uniforms[:, 2],
            ("emit", 1): uniforms[:, 0] if rule == "agreement" else uniforms[:, 2],
            ("emit", 2): uniforms[:, 2],  # the third token
        }
    )
    q_lanes = q.expand(lanes, vocabulary)
    # Agreement spends its uniforms on the target's two tokens, point_mass on two siblings; what is drafted is then
    # the likeliest of q.
    count = 2 if rule == "point_mass" or several else 1
    drafts = q_lanes.topk(count).indices
    if rule == "leviathan" or several:
        drafts[:, 0] = coins.choose(q_lanes, ("draft", 0))
    if several:
        pool = q_lanes.scatter(1, drafts[:, :1], 0.0) if rule == "without_replacement" else q_lanes
        drafts[:, 1] = coins.choose(pool, ("draft", 1))
    rows = torch.cat((p[0].expand(lanes, 1, vocabulary), torch.stack(p[1:])[drafts]), 1)
    parents = torch.arange(-1, 1) if rule == "block" else torch.full((count,), -1)
    block = Block(drafts, parents.expand(lanes, count), q_lanes[:, None].expand(lanes, count, vocabulary))
    out = RULES[rule](rows, block, coins)
    law: dict[tuple[int, int], Fraction] = {(x, y): Fraction(0) for x in range(vocabulary) for y in range(vocabulary)}
    words = Counter(map(tuple, torch.cat((out.tokens[:, :2], out.length[:, None]), 1).tolist()))
    for (first, second, length), count in words.items():
        rest = shares(p[1 + first]) if length == 1 else [Fraction(int(y == second)) for y in range(vocabulary)]
        for y in range(vocabulary):
            law[first, y] += Fraction(count, lanes) * rest[y]
    due = {(x, y): a * b for x, a in enumerate(shares(p[0])) for y, b in enumerate(shares(p[1 + x]))}
    return sum((abs(law[word] - due[word]) for word in law), Fraction(0)) / 2


@pytest.mark.parametrize("rule", [rule for rule in PROVED if rule != "greedy"])
def test_no_engine_law_is_further_off_than_the_bound(rule: str) -> None:
    """Kills a bound that leaves a term out or counts tokens wrongly; equality of its terms with Coq's is another test.

    Every uniform of coarse grids runs through the engine's own text, so the laws are exact. What is found must come
    within a factor 30 of the bound somewhere: the comparison sees something. Of block within 70: its bound counts six
    picks for each draft, and grids of three bits make them coarse.
    """
    tightest = Fraction(0)
    times = 1 if rule in DRAWN else 3  # 2^15 uniforms each
    for seed, (vocabulary, bits, coin_bits) in enumerate([(2, 4, 4), (3, 5, 3), (3, 3, 7), (5, 4, 5)] * times):
        *p, q = rough_rows(vocabulary + 2, vocabulary, seed)
        coin_bits = min(coin_bits, 4) if rule == "point_mass" else coin_bits  # it tosses two
        bits, coin_bits = (min(bits, 3), min(coin_bits, 3)) if rule in DRAWN else (bits, coin_bits)  # and draws two
        found = two_tokens(rule, p, q, bits, coin_bits)
        token = {
            "leviathan": ratio_off(vocabulary, MISS, bits, coin_bits),
            "agreement": pick_off(vocabulary, 0, bits),
            "point_mass": point_off(vocabulary, 2, bits, coin_bits),
            "iid_candidates": iid_off(vocabulary, 2, MISS, bits, coin_bits),
            "without_replacement": without_off(vocabulary, 2, MISS, bits, coin_bits),
            "block": block_off(vocabulary, 2, MISS, bits, coin_bits),
        }
        bound = 2 * token[rule]
        assert found <= bound
        tightest = max(tightest, found / bound)
    assert tightest > Fraction(1, 70 if rule == "block" else 30)


def test_a_machine_without_grids_is_seen() -> None:
    """Kills a comparison that any law passes: a coin of one bit makes 1/3 a 1/2, which 24 bits do not allow."""
    p, q = [torch.tensor([0.75, 0.25])] * 3, torch.tensor([0.25, 0.75])
    assert two_tokens("leviathan", p, q, 8, 1) > 2 * ratio_off(2, Fraction(0), 8, 24)


def test_the_levels_are_those_of_the_tree() -> None:
    """Kills a height that is one too small beside a power of two."""
    for vocabulary in (1, 2, 3, 4, 5, 63, 64, 65, 1000):
        assert len(pairs(torch.ones(1, vocabulary))[0]) == levels(vocabulary)


def test_what_is_admitted_is_what_the_check_admits() -> None:
    """Kills a tolerance that moves in one place only."""
    assert ADMITTED_MISS == SUM_TOLERANCE
    assert admitted_miss(4) == Fraction(SUM_TOLERANCE) + Fraction(4, 2**52)


def test_what_is_said() -> None:
    """Kills a bound that is rounded down, that passes 1, and a rule without a theorem that is given a number."""
    assert [rounded_up(bound) for bound in ("1/3", "1", "2/1000", "0")] == ["3.34e-1", "1.00e+0", "2.00e-3", "0"]
    assert in_floats("typical", 10, 2) is None
    blocks = in_floats("block", 1024, 7, longest=5) or {}
    assert blocks["TV at most, float32 rows that check_rows admits"] == str(7 * block_off(1024, 5, admitted_miss(1024)))
    long = in_floats("leviathan", 1 << 18, 10**6) or {}
    assert long["TV at most, float32 rows that check_rows admits"] == "1"
    assert (in_floats("greedy", 10, 2) or {})["TV at most, float32 rows that check_rows admits"] == "0"
    tree = in_floats("point_mass", 1024, 7, 3) or {}
    assert tree["TV at most, float32 rows that check_rows admits"] == str(7 * point_off(1024, 3))
    drawn = in_floats("without_replacement", 1024, 7, 3) or {}
    assert drawn["TV at most, float32 rows that sum to 1"] == str(7 * without_off(1024, 3, Fraction(0)))
    drawn = in_floats("iid_candidates", 1024, 7, 3) or {}
    assert drawn["TV at most, float32 rows that check_rows admits"] == str(7 * iid_off(1024, 3, admitted_miss(1024)))
    short = in_floats("agreement", 1024, 7) or {}
    assert short["TV at most, float32 rows that sum to 1"] == str(7 * Fraction(85, 8796093022208))
