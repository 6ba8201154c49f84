"""Features, logits and the Bayes risk: seed 004's section on EAGLE-3."""

import math
from fractions import Fraction

import numpy as np
import sympy as sp
import torch
from safetensors.torch import load_file

from refengine.source_tree import ROOT

Q = sp.Rational
W = sp.Matrix([[1, 0, 1], [0, 1, 1], [1, 1, 2], [2, 0, 2]])  # V = 4, d = 3, rank 2
FULL = sp.Matrix([[1, 0, 1], [0, 1, 1], [1, 1, 0], [2, 0, 2]])  # V = 4, d = 3, rank 3


def rational(x: Fraction) -> sp.Expr:
    return Q(x.numerator, x.denominator)


def entropy(row: list[Fraction]) -> sp.Expr:
    return -sum((rational(x) * sp.log(rational(x)) for x in row if x), sp.S(0))


def test_only_the_row_space_reaches_the_logits() -> None:
    """Delta = par + perp, orthogonal, W perp = 0, W Delta = W par, exactly over the rationals."""
    basis = sp.Matrix.hstack(*(v.T for v in W.rowspace()))
    delta = sp.Matrix([3, -1, 5])
    par = basis * (basis.T * basis).inv() * basis.T * delta
    perp = delta - par
    assert (W * perp, W * delta) == (sp.zeros(4, 1), W * par)
    assert (par.T * perp)[0] == 0 != perp.norm()


def test_no_nullspace_without_rank_deficiency() -> None:
    """A head of rank d has Null(W) = {0}: nothing is logit-irrelevant, there is no d - r. Kills a tax for any head."""
    assert (W.rank(), len(W.nullspace())) == (2, 1)
    assert (FULL.rank(), len(FULL.nullspace())) == (3, 0)


def test_random_heads_have_full_rank() -> None:
    """V > d rows in general position: rank d, so r < d is a special property of a checkpoint, to be measured."""
    generator = np.random.default_rng(0)
    assert all(np.linalg.matrix_rank(generator.standard_normal((64, d))) == d for d in (4, 16, 63))


def heads() -> dict[str, torch.Tensor]:
    """The head of every checkpoint in fixtures/, tied ones included."""
    found = {}
    for file in sorted(ROOT.glob("fixtures/*/**/*.safetensors")):
        tensors = load_file(file)
        head = tensors.get("lm_head.weight", tensors.get("model.embed_tokens.weight"))
        if head is not None:
            found[str(file.parent)] = head.double()
    return found


def test_ranks_of_our_checkpoints() -> None:
    """Every head in fixtures/ has rank min(V, d): a null space exists where V < d only, in the tiny ones of 8 tokens.

    Kills "rank W < d" as a property of heads; released heads have V far above d, and are not here.
    """
    shapes = {name: (*head.shape, int(torch.linalg.matrix_rank(head))) for name, head in heads().items()}
    assert len(shapes) >= 3
    for name, (vocabulary, width, rank) in shapes.items():
        print(f"{name}: V = {vocabulary}, d = {width}, rank {rank}")
        assert rank == min(vocabulary, width)
    assert {vocabulary < width for vocabulary, width, _ in shapes.values()} == {True, False}


def test_softmax_hessian_kills_the_ones_vector() -> None:
    """H = diag(p) - p p^T: H 1 = 0, so H is never positive definite. Kills "Hessian H > 0"."""
    z = sp.symbols("z0:3", real=True)
    total = sum(sp.exp(x) for x in z)
    hessian = sp.hessian(sp.log(total), z)
    p = sp.Matrix([sp.exp(x) / total for x in z])
    assert (hessian - (sp.diag(*p) - p * p.T)).applyfunc(sp.simplify) == sp.zeros(3, 3)
    assert (hessian * sp.ones(3, 1)).applyfunc(sp.simplify) == sp.zeros(3, 1)


def test_an_irrelevant_direction_outside_the_nullspace() -> None:
    """W Delta = 1 changes every logit and no probability: the irrelevant space is larger than Null(W).

    Kills "only r directions matter": here rank W = d = 3, and still only 2 do.
    """
    head = sp.Matrix([[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]])
    assert head.rank() == 3
    delta = sp.Matrix([1, 0, 0])
    assert head * delta == sp.ones(4, 1)
    f = sp.Matrix(sp.symbols("f0:3"))
    assert (softmax(head * f) - softmax(head * (f + delta))).applyfunc(sp.simplify) == sp.zeros(4, 1)


def softmax(logits: sp.Matrix) -> sp.Matrix:
    weights = logits.applyfunc(sp.exp)
    return weights / sum(weights)


def test_cross_entropy_is_not_the_quadratic_form() -> None:
    """CE(p, p) = H(p) > 0 at Delta = 0, where the quadratic form is 0. The expansion is of KL = CE - H(p).

    Of any logits z of four tokens and errors d: no linear term, and the second derivatives are H. As no token is
    told from another, each entry of H is one of two of them, p (1 - p) or -p p', whatever their number.
    """
    size = 4
    z, d = (sp.Matrix(sp.symbols(f"{name}0:{size}", real=True)) for name in "zd")
    at_zero, p = dict.fromkeys(d, 0), softmax(z)
    ce = sp.log(sum(sp.exp(x) for x in z + d)) - p.dot(z + d)
    entropy_p = sp.log(sum(sp.exp(x) for x in z)) - p.dot(z)
    kl = ce - entropy_p
    assert float(ce.subs(at_zero).subs(dict.fromkeys(z, 0))) == math.log(size)
    assert sp.simplify(kl.subs(at_zero)) == 0
    assert all(sp.simplify(sp.diff(kl, x).subs(at_zero)) == 0 for x in d)
    second = sp.hessian(kl, list(d)).subs(at_zero) - (sp.diag(*p) - p * p.T)
    assert second.applyfunc(sp.simplify) == sp.zeros(size)


def test_lambda_stands_at_the_wrong_term() -> None:
    """|Delta|^2 + lambda CE is, to second order, Delta^T (I + lambda/2 W^T H W) Delta: lambda scales the token term.

    Kills Delta^T (W^T H W + lambda I) Delta: where W^T H W is no multiple of the identity, the two are proportional
    for no positive lambda but sqrt(2), as their coefficients then have to be; on this head so.
    """
    x, delta = sp.symbols("lambda", positive=True), sp.Matrix(sp.symbols("d0:2", real=True))
    head, feature = sp.Matrix([[1, 0], [0, 1], [1, 1]]), sp.Matrix([0, sp.log(2)])
    p, q = (sp.Matrix([sp.exp(z) for z in head * f]) for f in (feature, feature + delta))
    p, q = p / sum(p), q / sum(q)
    objective = delta.dot(delta) - x * sum(a * sp.log(b) for a, b in zip(p, q, strict=True))
    form = head.T * (sp.diag(*p) - p * p.T) * head
    found = sp.hessian(objective, list(delta)).subs(dict.fromkeys(delta, 0)) / 2
    assert sp.simplify(found - (sp.eye(2) + x / 2 * form)) == sp.zeros(2)
    printed = form + x * sp.eye(2)
    assert sp.solve(sp.simplify(found[0, 0] * printed[0, 1] - found[0, 1] * printed[0, 0]), x) == [sp.sqrt(2)]
    times = sp.symbols("times", positive=True)
    assert sp.solve([1 - times * x, x / 2 - times], [x, times]) == [(sp.sqrt(2), sp.sqrt(2) / 2)]


def test_the_surrogate_has_lambda_at_its_feature_term() -> None:
    """1/2 D^T W^T H W D + lambda/2 |D|^2 = 1/2 D^T (W^T H W + lambda I) D, for every Delta, H symmetric, lambda.

    Kills one symbol lambda read as the same factor here and in the objective of Proposition 3.1.
    """
    x, delta = sp.symbols("lambda"), sp.Matrix(sp.symbols("d0:3"))
    hessian = sp.Matrix(4, 4, lambda i, j: sp.Symbol(f"h{min(i, j)}{max(i, j)}"))
    form = W.T * hessian * W
    surrogate = (delta.T * form * delta)[0] / 2 + x / 2 * (delta.T * delta)[0]
    assert sp.expand(surrogate - (delta.T * (form + x * sp.eye(3)) * delta)[0] / 2) == 0


def test_more_features_cannot_raise_the_bayes_risk() -> None:
    """E H(Y|Z_H) >= E H(Y|Z_H, Z_M) on a joint law P(z_m, y), strictly where Z_M tells more; logarithms symbolic."""
    joint = {
        0: [Fraction(3, 8), Fraction(1, 8)],
        1: [Fraction(1, 8), Fraction(3, 8)],
    }  # (z_h, z_m) -> P(., y)
    fine = sum(sum(row) * entropy([x / sum(row) for x in row]) for row in joint.values())
    merged = [sum(column, Fraction(0)) for column in zip(*joint.values(), strict=True)]
    coarse = entropy(merged)
    assert sp.simplify(coarse - sp.log(2)) == 0
    assert (coarse - fine).evalf() > 0.1


def test_bayes_identity() -> None:
    """E[-log q] = E H(Y|Z) + E KL(p || q), minimal at q = p: for every row, symbolically."""
    p, q = sp.symbols("p q", positive=True)
    ce = -p * sp.log(q) - (1 - p) * sp.log(1 - q)
    risk = -p * sp.log(p) - (1 - p) * sp.log(1 - p)
    kl = p * sp.log(p / q) + (1 - p) * sp.log((1 - p) / (1 - q))
    assert sp.simplify(sp.expand_log(ce - risk - kl, force=True)) == 0


CONTEXTS = {0: (0, 0), 1: (0, 1), 2: (1, 0), 3: (1, 1)}  # context -> (z_h, z_m), all equally likely
NEXT = {0: [Fraction(1, 4), Fraction(3, 4)], 1: [Fraction(2, 3), Fraction(1, 3)]}  # law of the next token given z_h
LATER = {(h, m): [Fraction(1 + 2 * m, 4), Fraction(3 - 2 * m, 4)] for h in (0, 1) for m in (0, 1)}  # the one after it


def conditional_entropy(law: object, known: object) -> sp.Expr:
    """E H(Y | known(context)) for Y ~ law(context), contexts uniform."""
    groups: dict[object, list[list[Fraction]]] = {}
    for z in CONTEXTS.values():
        groups.setdefault(known(z), []).append(law(z))  # type: ignore[operator]
    return sum(
        (
            Q(len(rows), len(CONTEXTS)) * entropy([sum(c) / len(rows) for c in zip(*rows, strict=True)])
            for rows in groups.values()
        ),
        sp.S(0),
    )


def test_extra_layers_say_nothing_about_the_next_token() -> None:
    """The next token is drawn from softmax(W Z_H), so given Z_H it is independent of Z_M: equality, never strict.

    Kills Lemma 3.4's use for x_{t+1}: its condition I(Y; Z_M | Z_H) > 0 cannot hold there.
    """
    top = conditional_entropy(lambda z: NEXT[z[0]], lambda z: z[0])
    both = conditional_entropy(lambda z: NEXT[z[0]], lambda z: z)
    assert sp.simplify(top - both) == 0


def test_extra_layers_can_help_later() -> None:
    """For the token after it the drop can be strict: this is what fused features can buy."""
    top = conditional_entropy(lambda z: LATER[z], lambda z: z[0])
    both = conditional_entropy(lambda z: LATER[z], lambda z: z)
    assert (top - both).evalf() > 0.1


def test_the_drop_of_the_bayes_risk_is_the_conditional_information() -> None:
    """E H(Y|Z_H) - E H(Y|Z_H, Z_M) = I(Y; Z_M | Z_H) = E KL(p(.|h, m) || p(.|h)), by hand: 0 for the next token and
    above 0 for a later one. Kills an inequality that is called strict where the features add nothing, or equal where
    they do.
    """
    for law, adds in ((lambda z: NEXT[z[0]], False), (lambda z: LATER[z], True)):
        top, both = (conditional_entropy(law, known) for known in (lambda z: z[0], lambda z: z))
        information = sp.S(0)
        for h, m in CONTEXTS.values():
            fine, coarse = law((h, m)), [sum(c) / 2 for c in zip(law((h, 0)), law((h, 1)), strict=True)]
            ratios = [rational(a) / rational(b) for a, b in zip(fine, coarse, strict=True)]
            information += sum((rational(a) * sp.log(r) for a, r in zip(fine, ratios, strict=True)), sp.S(0)) / 4
        assert sp.simplify(sp.expand_log(top - both - information, force=True)) == 0
        assert (information.evalf() > 0.1) == adds


def test_a_point_regression_hits_no_branch() -> None:
    """Features f_a, f_b with odds .6 : .4: the squared loss is least at their mean, the smooth L1 loss between them.

    Smooth L1 at distance 10: .6 (x - 0) = .4, x = 2/3: neither branch. Kills "the regression follows the likelier one".
    """
    x = sp.symbols("x", real=True)
    squared = Q(3, 5) * x**2 + Q(2, 5) * (x - 10) ** 2
    smooth = Q(3, 5) * x**2 / 2 + Q(2, 5) * (10 - x - Q(1, 2))  # for 0 <= x <= 1
    assert sp.solve(sp.diff(squared, x), x) == [4]
    assert sp.solve(sp.diff(smooth, x), x) == [Q(2, 3)]
