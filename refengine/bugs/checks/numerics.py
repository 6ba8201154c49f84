"""Checks of the batched rules where dyadic rows of a few bits see nothing: precision, underflow, rounding, defaults."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import torch

from refengine.bugs.checks.batches import EVERY, Case, Pair, cases, unpadded
from refengine.bugs.checks.tables import share
from refengine.bugs.checks.violation import Case as Claim
from refengine.bugs.checks.violation import Violation, first, refused
from refengine.engine.block import Block
from refengine.engine.coins import Branching, Recorded
from refengine.engine.rules import RULES as ENGINE
from refengine.engine.rules import block as block_rule
from refengine.engine.rules import leviathan, nucleus, point_mass, typical
from refengine.exact import block as exact
from refengine.exact.chance import runs
from refengine.exact.rules import RULES
from refengine.source_edits.imports import touched

NAN = float("nan")
# 3/4 - 2^-30 needs more bits than float32 has. What q has too much is within what rows may be off by.
_WANTED = share((3, 1, 0))
_SUPPLIED = (Fraction(1, 1 << 30), Fraction(1, 1 << 31), Fraction(1))
LOPSIDED = Case((_WANTED, _WANTED), exact.Block((2,), (-1,), (_SUPPLIED,), (None,)))
# The sum of q is 1 - 2^-25, which float32 does not have: a rule that divides by it shows what it summed in.
_SHORT = (Fraction(1, 1 << 26), Fraction(1, 1 << 26), 1 - Fraction(1, 1 << 24))
SHORT = Case((share((1, 2, 1)),) * 2, exact.Block((2,), (-1,), (_SHORT,), (None,)))
HIGH = 1 - 2.0**-24  # the largest coin of an accept


def precise() -> Violation | None:
    """On float32 rows of 20 bits, whose products float32 cannot hold, the law is the exact one within 2^-40."""
    for pair in EVERY:
        if pair.drawn and touched((pair.batched.__module__,)):
            for case in [LOPSIDED, SHORT, *(c for c in cases(pair, 1, bits=20) if len(c.block.tokens) <= 3)]:
                fault = imprecise(pair, case)
                if fault:
                    return Violation(f"{pair.name}: {fault}", {"rule": pair.name, "tokens": str(case.block.tokens)})
    return None


def imprecise(pair: Pair, case: Case) -> str:
    """The first branch whose probability is off by more than rounding in float64; "" where there is none."""
    have: dict[Any, float] = {}
    for result, weight, _ in runs(lambda chance: pair.run([case], Branching(chance))[0]):
        have[result] = have.get(result, 0.0) + float(weight)
    want: dict[Any, Fraction] = {}
    for result, weight, _ in runs(lambda chance: pair.define(case, chance)):
        want[result] = want.get(result, Fraction(0)) + weight
    for result in sorted(have.keys() | want.keys()):
        got, right = have.get(result, 0.0), float(want.get(result, Fraction(0)))
        if abs(got - right) > 2.0**-40:
            return f"{result} has probability {got}, not {right}"
    return ""


def edges() -> Violation | None:
    """Long products do not underflow, rounding never empties a choice, impossible drafts, defaults, chains only."""
    return first(_edges())


def _edges() -> Iterator[Claim]:
    yield from _long()
    yield from _rounding()
    yield from _typical()
    p, q = torch.tensor([[[0.0, 0.5, 0.5]] * 2]), torch.tensor([[[0.0, 0.0, 1.0]]])
    for token, kept in ((0, 0), (1, 1)):  # q cannot have drawn either: it passes iff the target wants it
        drafted = Block(torch.tensor([[token]]), torch.tensor([[-1]]), q)
        for rule in (leviathan.leviathan, block_rule.block):
            coins = Recorded({("accept", 0): HIGH, ("emit", 0): 0.0, ("emit", 1): 0.0})
            yield f"{rule.__name__} keeps an impossible {token}", int(rule(p, drafted, coins).length[0]) - 1, kept
    tree = Block(torch.tensor([[1, 2]]), torch.tensor([[-1, -1]]), q.repeat(1, 2, 1))
    for rule in (leviathan.leviathan, block_rule.block):
        yield refused(lambda r=rule: r(p[:, [0, 0, 0]], tree, Recorded({})), "judges chains only")  # type: ignore[misc]
    # The default 0.8 keeps tokens 0 and 2 of (11, 2, 3) / 16, and token 1 is never agreed with.
    row = torch.tensor([[share_of((11, 2, 3))] * 2])
    for token, kept in ((2, 1), (1, 0)):
        drafted = Block(torch.tensor([[token]]), torch.tensor([[-1]]), None)
        # Of the filtered (11, 0, 3) / 14 the coin means token 2; of the whole row, 0.75 would mean token 1.
        u = 0.75 if token == 1 else 0.9
        coins = Recorded({("agree", 0, 0): u, ("emit", 0): 0.0, ("emit", 1): 0.0})
        yield f"nucleus with its default, token {token}", int(nucleus.nucleus(row, drafted, coins).length[0]) - 1, kept

    # 0.7 + 0.1 is below 0.8 in float64 and not in float32: the head has a third token, the first of those with 0.1.
    row = torch.tensor([[[0.1, 0.7, 0.1, 0.1]] * 2])
    coins = Recorded({("agree", 0, 0): 0.95, ("emit", 0): 0.0, ("emit", 1): 0.0})
    drafted = Block(torch.tensor([[2]]), torch.tensor([[-1]]), None)
    yield "nucleus sums its head in float64", int(nucleus.nucleus(row, drafted, coins).length[0]) - 1, 1


def share_of(weights: tuple[int, ...]) -> list[float]:
    return [float(w) for w in share(weights)]


def _long() -> Iterator[Claim]:
    """p(x) = q(x) / 2 along 100 drafts: the prefix weights are 2^-n, though the products of q are below 2^-10000.

    Each q(x) = 2^-140 is a subnormal float32, and its reciprocal is none at all.
    """
    n = 100
    p, q = torch.full((1, n + 1, 2), 2.0**-141), torch.full((1, n, 2), 2.0**-140)
    drafted = Block(torch.zeros(1, n, dtype=torch.long), torch.arange(-1, n - 1)[None], q)
    num, den = block_rule.prefix_weights(p, drafted)
    yield "prefix weights of a long block", (num / den)[0].tolist(), [2.0**-i for i in range(n + 1)]


def _rounding() -> Iterator[Claim]:
    """No token wants more than it was supplied, and yet the draft is refused: the correction comes from p itself."""
    below = 1 - 2.0**-24
    p = torch.tensor([[[0.5 * below, 0.5 * below]] * 2])
    q = torch.full((1, 1, 2), 0.5)
    drafted = Block(torch.tensor([[0]]), torch.tensor([[-1]]), q)
    for card in (card for card in RULES.values() if card.drawn):
        site = ("accept", 0) if card.shape == "chain" else ("accept", 0, 0)
        for u, token in ((0.25, 0), (0.75, 1)):
            verdict = ENGINE[card.name](p, drafted, Recorded({site: HIGH, ("emit", 0): u}))
            yield f"{card.name} where rounding leaves nothing over", unpadded(verdict), [((token,), ())]
    sure = torch.tensor([[[1.0, 0.0]] * 2])
    drafted = Block(torch.tensor([[0]]), torch.tensor([[-1]]), None)
    verdict = point_mass.point_mass(sure, drafted, Recorded({("accept", 0, 0): HIGH, ("emit", 1): 0.5}))
    yield "point_mass at p(x) = 1", unpadded(verdict), [((0, 0), (0,))]


def _typical() -> Iterator[Claim]:
    """A candidate on either side of its threshold by one part in 10^10, with rows in float32; and the defaults."""
    row = torch.tensor([0.5, 0.3, 0.2])
    drafted = Block(torch.tensor([[1]]), torch.tensor([[-1]]), None)
    for rule, inside in ((typical.typical, 1e-5), (typical.typical_inclusive, 0.0)):
        entropy = -sum(w * math.log(w + inside) for w in row.tolist())
        for slack, kept in ((1 - 1e-10, 1), (1 + 1e-10, 0)):
            delta = row.tolist()[1] * math.exp(entropy) * slack
            verdict = rule(row.repeat(1, 2, 1), drafted, Recorded({}), 9.0, delta)
            yield f"{rule.__name__} at {slack:.10f} of its threshold", int(verdict.length[0]) - 1, kept
        flat = torch.full((1, 2, 16), 1 / 16)  # entropy makes the default threshold 0.3 / 16
        verdict = rule(flat, Block(torch.tensor([[3]]), torch.tensor([[-1]]), None), Recorded({}))
        yield f"{rule.__name__} with its defaults on a flat row", unpadded(verdict), [((3, 0), (0,))]
        thin = torch.tensor([[share_of((59, 5))] * 2])  # 5 / 64 is below epsilon = 0.09, which is below 0.3 exp(-H)
        verdict = rule(thin, Block(torch.tensor([[1]]), torch.tensor([[-1]]), None), Recorded({}))
        yield f"{rule.__name__} with its defaults on a thin candidate", unpadded(verdict), [((0,), ())]
