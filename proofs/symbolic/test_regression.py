"""Theta(d/n) against Theta(r/n): what feature regression really pays. n samples of k inputs, d features, rank-r head.

Least squares treats every output coordinate by itself. So the risk *summed over features* is sigma^2 d k / (n - k - 1)
and that *summed over r logit directions* is sigma^2 r k / (n - k - 1): the rates of the text. But they measure different
things: read off in the logits, regressing features and regressing logits are the same estimator, and pay the same.
A price appears only where capacity is short, and then it does not vanish with n.
"""

import numpy as np

from proofs.symbolic.tolerance import chebyshev

K, D, R, N = 3, 8, 2, 30  # inputs, features, rank of the head, samples
TRIALS = 2000


def fits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors [trial, d, k] of feature regression and [trial, r, k] of logit regression, and the head W [r, d]."""
    generator = np.random.default_rng(seed)
    head = np.linalg.qr(generator.standard_normal((D, R)))[0].T  # orthonormal rows: r logit directions
    truth = generator.standard_normal((D, K))
    inputs = generator.standard_normal((TRIALS, N, K))
    features = inputs @ truth.T + generator.standard_normal((TRIALS, N, D))
    solve = np.linalg.pinv(inputs)  # [trial, k, n]
    by_features = np.swapaxes(solve @ features, 1, 2) - truth
    by_logits = np.swapaxes(solve @ (features @ head.T), 1, 2) - head @ truth
    return by_features, by_logits, head


def test_rates() -> None:
    """Means over 2000 fits against sigma^2 (directions) k / (n - k - 1), exact for Gaussian inputs; Chebyshev, 1e-4.

    The trace of an inverse Wishart has variance below its squared mean here, times 2/directions for the noise; 4 covers
    both. Kills d and r exchanged, and a formula without -1.
    """
    features, logits, _ = fits(seed=0)
    for errors, directions in ((features, D), (logits, R)):
        expected = directions * K / (N - K - 1)
        risk = (errors**2).sum((1, 2))
        assert risk.var() < 4 * expected**2
        assert abs(risk.mean() - expected) < chebyshev(TRIALS, float(risk.var()))
        assert chebyshev(TRIALS, float(risk.var())) < expected  # the check can fail
    assert features.shape[1] * K / (N - K - 1) == 4 * logits.shape[1] * K / (N - K - 1)


def test_no_tax_on_the_logits() -> None:
    """W times the feature regression is the logit regression, sample by sample: the tax is zero, not Theta((d-r)/n).

    1e-9: both are n = 30 dot products of float64 numbers of size 10. Kills the sample-complexity gap of Lemma 3.3.
    """
    features, logits, head = fits(seed=1)
    assert np.abs(head @ features - logits).max() < 1e-9


def test_short_capacity_pays_and_never_recovers() -> None:
    """One-dimensional drafter, features (f1, f2), Var f2 = 4 Var f1, the head reads f1 only; inputs = (f1, f2).

    The best rank-one map for the features follows f2, and all of f1 is lost; trained on logits it follows f1 and loses
    nothing. Population risks, so no n repairs it. Kills "optimising features costs nothing".
    """
    covariance = np.diag([1.0, 4.0])
    values, vectors = np.linalg.eigh(covariance)
    best_for_features = np.outer(vectors[:, -1], vectors[:, -1])  # the rank-one projection with least squared error
    assert values[-1] == 4.0
    head = np.array([[1.0, 0.0]])
    lost = head @ (np.eye(2) - best_for_features)
    assert float(lost @ covariance @ lost.T) == 1.0  # the whole variance of the logit
    best_for_logits = np.outer([1.0, 0.0], [1.0, 0.0])
    kept = head @ (np.eye(2) - best_for_logits)
    assert float(kept @ covariance @ kept.T) == 0.0
