"""Accepted lengths: depth-dependent alpha, context-dependent alpha, confidences along a draft. Exact, then sampled."""

import random
from fractions import Fraction

import pytest

from proofs.symbolic.speed import emitted
from proofs.symbolic.tolerance import hoeffding
from refengine.exact.block import Rule, target_rows
from refengine.exact.chance import Chance, Sample
from refengine.exact.drafters import sampled_chain
from refengine.exact.law import law
from refengine.exact.row import Row, overlap, row
from refengine.exact.rules.agreement import agreement
from refengine.exact.rules.block import block
from refengine.exact.rules.leviathan import leviathan

Tokens = tuple[int, ...]
P, Q = row([5, 3, 2]), row([2, 3, 5])  # overlap 7/10
EVEN, FIRST, SECOND = row([1, 1]), row([1, 0]), row([0, 1])


def mean_length(target: object, draft: object, gamma: int, rule: Rule = leviathan) -> Fraction:
    """Exact expected number of emitted tokens of one round."""

    def tokens(chance: Chance) -> Tokens:
        drafted = sampled_chain(draft, gamma)((), chance)  # type: ignore[arg-type]
        return rule(target_rows(target, (), drafted), drafted, chance).tokens  # type: ignore[arg-type]

    return sum((mass * len(out) for out, mass in law(tokens).items()), Fraction(0))


def test_depth_dependent_acceptance() -> None:
    """1 + sum over i of prod over j <= i of alpha_j, alpha depending on depth alone. Kills a plain sum."""
    rows = [(P, Q), (row([1, 1, 2]), row([1, 2, 1])), (row([1, 0, 0]), row([1, 1, 0]))]
    alphas = [overlap(p, q) for p, q in rows]

    def at(k: int) -> object:
        return lambda prefix: rows[len(prefix)][k] if len(prefix) < 3 else P

    assert mean_length(at(0), at(1), 3) == emitted(alphas)


def test_context_dependent_acceptance_lies_between_its_bounds() -> None:
    """Between the lengths of the least and the greatest alpha at each depth, strictly. Kills a rule that keeps more."""

    def at(k: int) -> object:
        pairs = [(P, Q), (row([1, 1, 2]), row([1, 2, 1]))]
        return lambda prefix: pairs[len(prefix) and prefix[-1] % 2][k]

    low, high = sorted((overlap(P, Q), overlap(row([1, 1, 2]), row([1, 2, 1]))))
    first = overlap(P, Q)
    assert emitted([first, low, low]) < mean_length(at(0), at(1), 3) < emitted([first, high, high])


def target(prefix: Tokens) -> Row:
    return FIRST


def draft(prefix: Tokens) -> Row:
    """Accepted with probability 1/2 at depth 0; at depth 1 always after token 0 and never after token 1."""
    return EVEN if not prefix else FIRST if prefix[-1] == 0 else SECOND


def test_m_in_a_row_is_not_the_product_of_mean_acceptances() -> None:
    """p = (1, 0), q = (1/2, 1/2): only token 0 survives, and after it q = p. P(2 in a row) = 1/2, the product is 1/4.

    Kills "the chance of accepting m in a row is prod (1 - TV_i)" with TV_i averaged over contexts.
    """
    mean_alphas = [overlap(target(()), draft(()))]
    mean_alphas.append(sum((draft(())[x] * overlap(target((x,)), draft((x,))) for x in range(2)), Fraction(0)))
    assert mean_alphas == [Fraction(1, 2), Fraction(1, 2)]
    assert mean_length(target, draft, 2) == 1 + Fraction(1, 2) + Fraction(1, 2) != emitted(mean_alphas)


def test_confidences_do_not_multiply_to_survival() -> None:
    """Exact confidences c_k = 1 - TV along drafts from q average to 1/4; the drafts survive with probability 1/2.
    Summed over the places the products are 3/4, and the accepted drafts 1.

    Kills "the running product of the c_i estimates the accepted run" and "the sum of these products is its length":
    they condition on drafted, not on accepted tokens.
    """
    product = sum(
        (draft(())[x] * overlap(target(()), draft(())) * overlap(target((x,)), draft((x,))) for x in range(2)),
        Fraction(0),
    )
    survival = mean_length(target, draft, 2) - mean_length(target, draft, 1)
    assert (product, survival) == (Fraction(1, 4), Fraction(1, 2))
    assert overlap(target(()), draft(())) + product == Fraction(3, 4) != mean_length(target, draft, 2) - 1 == 1


def test_products_may_hold_where_acceptance_looks_at_tokens() -> None:
    """q is p at the first place; after it the acceptance is 1 or 1/2, by the token. The product of the means is 3/4,
    and so is the survival of two drafts. Kills "only where acceptance depends on depth alone".
    """

    def q(prefix: Tokens) -> Row:
        return EVEN if not prefix or prefix[-1] == 0 else FIRST

    alphas = [overlap(EVEN, q((x,))) for x in range(2)]
    mean = sum((EVEN[x] * alphas[x] for x in range(2)), Fraction(0))
    survival = mean_length(lambda prefix: EVEN, q, 2) - mean_length(lambda prefix: EVEN, q, 1)
    assert alphas == [1, Fraction(1, 2)]
    assert overlap(EVEN, q(())) * mean == survival == Fraction(3, 4)


def test_one_mtp_module() -> None:
    """1 + A_2 tokens per pass, A_2 = 1 - TV, at most 2. Kills a count that forgets the bonus."""
    assert mean_length(lambda prefix: P, lambda prefix: Q, 1) == 1 + overlap(P, Q) == Fraction(17, 10)
    assert mean_length(lambda prefix: P, lambda prefix: P, 1) == 2


def test_accepted_is_one_less_than_emitted() -> None:
    """sum of prods counts accepted drafts; as a speed factor it lacks the bonus: with alpha = 0 it says 0, not 1."""
    assert mean_length(lambda prefix: FIRST, lambda prefix: SECOND, 3) == 1
    assert emitted([Fraction(0)] * 3) - 1 == 0


def test_order_of_the_rules() -> None:
    """agreement <= leviathan <= block on random contexts, each strictly somewhere. Kills rules exchanged by name."""
    source = random.Random(1)
    strict = set()
    for _ in range(20):
        table = {
            k + prefix: row([source.randint(0, 4) for _ in range(2)] + [1]) for k in ("p", "q") for prefix in PATHS
        }
        lengths = [
            mean_length(lambda h, t=table: t["p" + name(h)], lambda h, t=table: t["q" + name(h)], 2, rule)
            for rule in (agreement, leviathan, block)
        ]
        assert lengths == sorted(lengths)
        strict |= {i for i in range(2) if lengths[i] < lengths[i + 1]}
    assert strict == {0, 1}


PATHS = ["", "0", "1", "2"] + [f"{a}{b}" for a in range(3) for b in range(3)]


def name(prefix: Tokens) -> str:
    return "".join(map(str, prefix))


@pytest.mark.parametrize("gamma", [1, 4])
def test_sampled_length(gamma: int) -> None:
    """The running rule with sampled coins: mean emitted = (1 - a^(gamma+1)) / (1 - a). Kills a biased Sample chance.

    n = 6000 rounds, lengths in [1, gamma + 1], alpha = 1e-9 by Hoeffding: at gamma = 4 the tolerance is 0.17.
    """
    n, coins = 6000, Sample(random.Random(7))

    def constant(which: Row) -> object:
        return lambda prefix: which

    drafter = sampled_chain(constant(Q), gamma)  # type: ignore[arg-type]
    total = 0
    for _ in range(n):
        drafted = drafter((), coins)
        total += len(leviathan([P] * (gamma + 1), drafted, coins).tokens)
    assert abs(total / n - float(emitted([overlap(P, Q)] * gamma))) < hoeffding(n, gamma)
