"""The floats that the engine decides by are those that the theorems on floats speak of (design.floats_end_to_end).

The theorems say what follows from odds with so many roundings behind them; here every number that a rule hands to its
coins is held to exact arithmetic on the same float32 rows, at the sizes of vocabularies, within just those roundings.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor

import refengine.engine.row
import refengine.engine.rules.agreement
import refengine.engine.rules.block
import refengine.engine.rules.iid_candidates
import refengine.engine.rules.leviathan
import refengine.engine.rules.point_mass
import refengine.engine.rules.without_replacement
from refengine.commands.rounding import UNIT, levels
from refengine.engine.block import Block
from refengine.engine.coins import Site
from refengine.engine.row import at_token, row_at
from refengine.engine.rules import RULES
from refengine.exact.block import Block as OneBlock
from refengine.exact.row import argmax, normalised
from refengine.exact.rules import RULES as EXACT

Row = list[Fraction]
SIBLINGS = 6
SELDOM = 2.0**-70  # of a token that is drafted: beside any other number of a row it vanishes in a sum


@dataclass
class Refusing:
    """Refuses every draft, or all before one, and keeps the numbers that it was asked about, of the one lane."""

    until: int = 1000  # how many are refused
    odds: list[tuple[Fraction, Fraction]] = field(default_factory=list)
    weights: list[Row] = field(default_factory=list)

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        self.odds.append((Fraction(float(num)), Fraction(float(den))))
        return torch.full((1,), len(self.odds) > self.until)

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        self.weights.append([Fraction(x) for x in weights[0].tolist()])
        return weights.argmax(-1)


def within(computed: Row, exact: Row, roundings: int) -> bool:
    """`FloatDescent.rounded`, number by number."""
    low, high = (1 - UNIT) ** roundings, (1 + UNIT) ** roundings
    return all(low * b <= a <= high * b for a, b in zip(computed, exact, strict=True))


@dataclass
class Recalling:
    """Keeps so many drafts and refuses the others, of the one lane; what it was asked about below them, number by
    number."""

    kept: int
    drafts: list[int]
    asked: list[list[float]] = field(default_factory=list)

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        if site[1] < self.kept:
            return torch.ones(1, dtype=torch.bool)
        self.asked.append([float(num), float(den)])
        return torch.zeros(1, dtype=torch.bool)

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        if site[1] < self.kept:
            return torch.tensor([self.drafts[site[1]]])
        self.asked.append(weights[0].tolist())
        return weights.argmax(-1)


def row_of(vocabulary: int, seed: int) -> Tensor:
    weights = torch.rand(vocabulary, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) ** 6
    return (weights / weights.sum()).float()


def faults(rule: str, vocabulary: int, seed: int) -> Iterator[str]:
    """What the rule hands to its coins that the theorem does not speak of."""
    p, q = row_of(vocabulary, seed), row_of(vocabulary, seed + 1000)
    count = SIBLINGS if rule == "point_mass" else 1
    drafts = (q - p).topk(count).indices[None]
    p[drafts[0, 0]] = SELDOM
    exact_p, exact_q = ([Fraction(x) for x in row.tolist()] for row in (p, q))
    rows, draft = p.expand(1, count + 1, vocabulary), q.expand(1, count, vocabulary)
    seen = Refusing()
    RULES[rule](rows, Block(drafts, torch.full((1, count), -1), draft), seen)
    left = exact_p
    for x, (num, den) in zip(drafts[0].tolist(), seen.odds, strict=True):
        if rule == "point_mass":
            if num != left[x] or not within([den], [sum(left, Fraction(0))], levels(vocabulary)):
                yield f"the odds of token {x}"
            left = [Fraction(0) if y == x else weight for y, weight in enumerate(left)]
        else:
            if (num, den) != (left[x], exact_q[x]):
                yield f"the odds of token {x}"
            left = [max(a - b, Fraction(0)) for a, b in zip(left, exact_q, strict=True)]
    roundings = 0 if rule == "point_mass" else 1
    (emitted_from,) = seen.weights
    if not within(emitted_from, left, roundings):
        yield "the row that is emitted from"


@pytest.mark.parametrize("vocabulary", [7, 64, 3000])
@pytest.mark.parametrize("rule", ["leviathan", "point_mass"])
def test_the_odds_have_the_roundings_of_the_theorem(rule: str, vocabulary: int) -> None:
    """Kills a rule that computes in another precision or another order than the theorem about it."""
    for seed in range(2):
        assert list(faults(rule, vocabulary, seed)) == []


@dataclass
class Keeping:
    """Chooses the heaviest token, and keeps the rows that it was asked about."""

    weights: list[Row] = field(default_factory=list)

    def accept(self, num: Fraction, den: Fraction, site: object) -> bool:
        raise AssertionError("these rules toss no coin")

    def choose(self, weights: Row, site: object) -> int:
        self.weights.append([*weights])
        return argmax(weights)


def handed_over(rule: str, vocabulary: int, seed: int) -> list[list[tuple[Fraction, ...]]]:
    """The rows that the batched rule hands to its coins, and those of the exact text, of a root with some children."""
    row = row_of(vocabulary, seed)
    numbers = tuple(Fraction(x) for x in row.tolist())
    tokens = [*row.topk(SIBLINGS).indices.tolist()[::-1]]
    roots, none = (-1,) * SIBLINGS, (None,) * SIBLINGS
    seen, kept = Refusing(), Keeping()
    rows = row.expand(1, SIBLINGS + 1, vocabulary)
    RULES[rule](rows, Block(torch.tensor([tokens]), torch.tensor([roots]), None), seen)
    EXACT[rule].rule((numbers,) * (SIBLINGS + 1), OneBlock(tuple(tokens), roots, none, none), kept)
    return [[*map(normalised, rows)] for rows in (seen.weights, kept.weights)]


@pytest.mark.parametrize("rule", ["agreement", "typical", "typical_inclusive", "nucleus"])
def test_rows_are_handed_over_as_they_are(rule: str) -> None:
    """Kills a row whose last bits are lost on its way, by a sum that is taken back: no real number shows that."""
    for seed in range(2):
        given, wanted = handed_over(rule, 3000, seed)
        assert given == wanted


def test_a_row_that_was_moved_away_and_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that lets the last bits of a row go."""
    monkeypatch.setattr(refengine.engine.rules.agreement, "row_after", lambda p, at: row_at(p, at + 1) + 2.0 - 2.0)
    given, wanted = handed_over("agreement", 3000, 0)
    assert given != wanted


def test_a_seldom_token_that_is_lost_beside_others_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: rows in which no drafted token is so seldom that a sum does not change by it. No real number shows it."""

    def absorbed(weights: Tensor, x: Tensor) -> Tensor:
        found, mass = at_token(weights, x).double(), weights.double().sum(1)
        return found.where(found + mass > mass, found - found)

    monkeypatch.setattr(refengine.engine.rules.leviathan, "at_token", absorbed)
    assert list(faults("leviathan", 64, 0))
    monkeypatch.setattr(refengine.engine.rules.block, "at_token", absorbed)
    assert list(block_faults(64, 0, SIBLINGS))


def test_what_is_left_is_seen_however_little_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: rows of which so much is left after every refusal that a sum with 1 shows it."""

    def corrected(p: Tensor, q: Tensor) -> Tensor:
        rest = (p - q).clamp(min=0)
        return torch.where(rest.sum(1, keepdim=True) + 1 > 1, rest, p)

    monkeypatch.setattr(refengine.engine.rules.without_replacement, "correction", corrected)
    assert list(drawn_faults("without_replacement", 64, 0, one_drawn=True))


@pytest.mark.parametrize("bits", [2, 12, 24, 80, 120])
@pytest.mark.parametrize("rule", ["leviathan", "point_mass", "iid_candidates", "without_replacement", "block"])
def test_what_is_left_is_emitted_however_nearly_right_the_draft_was(rule: str, bits: int) -> None:
    """Kills: a power of what is left, which is 0 in floats where p and q hardly differ. No real number shows it."""
    little = 2.0**-bits
    p, q = torch.tensor([[1 - little, little, 0.0], [1 - little, 0.0, little]])
    if rule == "point_mass":
        p = torch.tensor([0.0, little, 1 - little])
    seen = Refusing()
    RULES[rule](p.expand(1, 2, 3), Block(torch.tensor([[2]]), torch.tensor([[-1]]), q[None, None]), seen)
    assert [*map(normalised, seen.weights)] == [(0, 1, 0)]


def added_up(row: list[float]) -> float:
    """`FloatRow.sum_tree`: neighbours two by two, an odd one out with a zero."""
    while len(row) > 1:
        row = [*row, 0.0] if len(row) % 2 else row
        row = [a + b for a, b in zip(row[::2], row[1::2], strict=True)]
    return row[0]


def drawn_faults(rule: str, vocabulary: int, seed: int, one_drawn: bool = False) -> Iterator[str]:
    """Where a rule of drawn candidates computes another number than `FloatSiblings.judge64`, which every float is of.

    All siblings are refused. `iid_candidates` judges one token twice, as it may be drawn. one_drawn: all but one token
    are seldom drawn, so that hardly anything is left to draw from after it.
    """
    p, q = row_of(vocabulary, seed), row_of(vocabulary, seed + 1000)
    tokens = (q - p).topk(SIBLINGS).indices
    p[tokens[0]] = SELDOM
    if one_drawn:
        q = q.mul(SELDOM).index_fill(0, tokens[:1], 1.0)
    if rule == "iid_candidates":
        tokens[1] = tokens[0]
    rows, draft = p.expand(1, SIBLINGS + 1, vocabulary), q.expand(1, SIBLINGS, vocabulary)
    seen = Refusing()
    RULES[rule](rows, Block(tokens[None], torch.full((1, SIBLINGS), -1), draft), seen)
    left, mass, pool = p.double().tolist(), 1.0, q.double().tolist()
    for x, odds in zip(tokens.tolist(), seen.odds, strict=True):
        norm = 1.0 if rule == "iid_candidates" else added_up(pool)
        wanted, supplied = [a * norm for a in left], [b * mass for b in pool]
        if odds != (Fraction(wanted[x]), Fraction(supplied[x])):
            yield f"the odds of token {x}"
        rest = [max(a - b, 0.0) for a, b in zip(wanted, supplied, strict=True)]
        corrected = rest if added_up(rest) > 0 else wanted
        _, exponent = math.frexp(added_up(corrected))
        left = [math.ldexp(a, -exponent) for a in corrected]
        mass = math.ldexp(added_up(corrected), -exponent)
        if rule == "without_replacement":
            pool[x] = 0.0
    if seen.weights != [[Fraction(a) for a in left]]:
        yield "the row that is emitted from"


@pytest.mark.parametrize("vocabulary", [7, 64, 3000])
@pytest.mark.parametrize("rule", ["iid_candidates", "without_replacement"])
def test_drawn_candidates_compute_what_the_theorem_says(rule: str, vocabulary: int) -> None:
    """Kills a rule that multiplies, subtracts, adds up or rescales in another order or precision than the theorem's."""
    for seed in range(2):
        assert list(drawn_faults(rule, vocabulary, seed)) == []
    assert list(drawn_faults(rule, vocabulary, 0, one_drawn=True)) == []


def block_faults(vocabulary: int, seed: int, until: int) -> Iterator[str]:
    """Where block verification computes another number than `FloatsBlock.block_answer`, which every float is of.

    Some drafts are likelier under p, others under q; the longest `until` prefixes are refused and the next is kept.
    """
    p = [row_of(vocabulary, seed + 100 * i) for i in range(SIBLINGS + 1)]
    q = [row_of(vocabulary, seed + 1000 + 100 * i) for i in range(SIBLINGS)]
    tokens = [int((b - a).argmax() if i % 3 else (a - b).argmax()) for i, (a, b) in enumerate(zip(p, q, strict=False))]
    p[1][tokens[1]] = SELDOM
    seen = Refusing(until)
    block = Block(torch.tensor([tokens]), torch.arange(-1, SIBLINGS - 1)[None], torch.stack(q)[None])
    RULES["block"](torch.stack(p)[None], block, seen)
    wanted, supplied = ([row.double().tolist() for row in rows] for rows in (p, q))
    weights = [(1.0, 1.0)]  # FloatWeight.carry
    for i, x in enumerate(tokens):
        n, d = weights[-1][0] * wanted[i][x], weights[-1][1] * supplied[i][x]
        _, exponent = math.frexp(d)
        weights.append((math.ldexp(n, -exponent), math.ldexp(d, -exponent)) if n < d else (float(n > 0), 1.0))
    due = [tuple(map(Fraction, weights[-1]))]
    left = wanted[-1]
    for kept in reversed(range(SIBLINGS)):  # FloatLevel.level_rest, level_mass, level_back
        n, d = weights[kept]
        rest = [max(a * n - b * d, 0.0) for a, b in zip(wanted[kept], supplied[kept], strict=True)]
        mass = added_up(rest)
        due += [(Fraction(mass), Fraction(mass + d - n))] if kept else []
        if SIBLINGS - kept == min(until, SIBLINGS):
            left = rest if mass > 0 else wanted[kept]
    if seen.odds != due[: until + 1]:
        yield "the odds"
    if seen.weights != [[Fraction(a) for a in left]]:
        yield "the row that is emitted from"


@pytest.mark.parametrize("vocabulary", [7, 64, 3000])
@pytest.mark.parametrize("until", range(SIBLINGS + 1))
def test_blocks_compute_what_the_theorem_says(vocabulary: int, until: int) -> None:
    """Kills a rule that carries, adds up or subtracts in another order than the theorem's, or tosses at the root."""
    for seed in range(2):
        assert list(block_faults(vocabulary, seed, until)) == []


BY_ITSELF = ["agreement", "greedy", "nucleus", "typical", "typical_inclusive"]  # no coin says what is kept


def asked_below(rule: str, depth: int) -> tuple[list[list[float]], int]:
    """What a rule asks its coins about below a chain of so many kept drafts, and how many drafts it kept in all.

    Below it are siblings, or one draft more where blocks are chains. Its drafts are seldom where coins keep them.
    """
    count = 1 if EXACT[rule].shape == "chain" else SIBLINGS
    p = torch.stack([row_of(64, seed) for seed in range(20 - depth, 21 + count)])
    q = torch.stack([row_of(64, seed) for seed in range(1020 - depth, 1020 + count)])
    drafts = [int(row.argmax() if rule in BY_ITSELF else row.argmin()) for row in p[:depth]]
    if rule not in BY_ITSELF:
        q[range(depth), drafts] = p[range(depth), drafts] = SELDOM
    q[depth:] = q[depth]
    tokens = [*drafts, *(q[depth] - p[depth]).topk(count).indices.tolist()]
    parents = [*range(-1, depth - 1), *[depth - 1] * count]
    seen = Recalling(depth, drafts)
    given = None if EXACT[rule].drawn is None else q[None]
    block = Block(torch.tensor([tokens]), torch.tensor([parents]), given)
    kept = RULES[rule](p[None], block, seen).length
    return seen.asked, int(kept) - 1


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "block"])
def test_what_was_kept_does_not_weigh(rule: str) -> None:
    """Kills: odds that are multiplied, on both sides, by what makes no difference among real numbers and is 0 in floats
    behind some seldom drafts. Below kept drafts a rule computes what it does at a root, to the last bit."""
    at_root, below = asked_below(rule, 0), asked_below(rule, 20)
    assert below[0] == at_root[0]
    assert below[1] == at_root[1] + 20


def test_a_weight_that_travels_with_the_odds_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison at so little depth that nothing is lost yet."""
    monkeypatch.setattr(Recalling, "accept", scaled(Recalling.accept))
    with pytest.raises(AssertionError):
        test_what_was_kept_does_not_weigh("leviathan")


def scaled(accept: Any) -> Any:
    """Both odds times the probability of all that was kept."""
    reach = [1.0]

    def of(self: Recalling, num: Tensor, den: Tensor, site: Site) -> Tensor:
        reach[0] = 1.0 if site[1] == 0 else reach[0] * SELDOM
        return accept(self, num.double() * reach[0], den.double() * reach[0], site)

    return of


def test_a_mass_of_a_block_in_single_precision_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that lets what a shorter prefix leaves be added up in float32."""
    monkeypatch.setattr(refengine.engine.rules.block, "total", lambda left: left.float().sum(-1).double())
    assert list(block_faults(3000, 0, SIBLINGS))


def test_a_weight_that_was_divided_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that lets the weight of a prefix travel as one number, a rounding more for each token."""
    module = refengine.engine.rules.block
    carried = module.prefix_weights

    def divided(p: Tensor, block: Block) -> tuple[Tensor, Tensor]:
        num, den = carried(p, block)
        return num / den, torch.ones_like(den)

    monkeypatch.setattr(module, "prefix_weights", divided)
    assert list(block_faults(64, 0, SIBLINGS))


def test_a_pool_in_single_precision_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that lets what is left of the draft's row be added up in float32."""
    module = refengine.engine.rules.without_replacement
    monkeypatch.setattr(module, "total", lambda left: left.float().sum(-1).double())
    assert list(drawn_faults("without_replacement", 3000, 0))


def test_a_division_by_the_mass_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that lets what is left be divided by its mass, a rounding more for each token."""
    module = refengine.engine.rules.iid_candidates
    monkeypatch.setattr(module, "rescaled", lambda w: (w / w.sum(-1, keepdim=True), w.sum(-1) / w.sum(-1)))
    assert list(drawn_faults("iid_candidates", 64, 0))


def test_a_total_in_single_precision_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison with a bound so wide that float32 totals pass."""
    monkeypatch.setattr(refengine.engine.rules.point_mass, "total", lambda left: left.float().sum(-1).double())
    assert list(faults("point_mass", 3000, 0))


def test_a_total_that_is_off_by_a_hundred_roundings_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that allows a rounding for every token where the tree has one for every level."""
    monkeypatch.setattr(refengine.engine.rules.point_mass, "total", lambda left: left.sum(-1) * (1 + 100 * 2.0**-53))
    assert list(faults("point_mass", 3000, 0))


def test_a_difference_in_single_precision_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that lets what is left after a refusal be rounded to float32."""
    monkeypatch.setattr(refengine.engine.row, "residual", lambda p, q: (p - q).float().double().clamp(min=0.0))
    assert list(faults("leviathan", 1000, 0))
