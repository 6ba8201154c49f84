"""Theta(d/n) against Theta(r/n): what feature regression really pays. n samples of k inputs, d features, rank-r head.

Least squares treats every output coordinate by itself. So the risk *summed over features* is sigma^2 d k / (n - k - 1)
and that *summed over r logit directions* is sigma^2 r k / (n - k - 1): the rates of the text. But they measure
different things: read off in the logits, regressing features and regressing logits are one estimator and pay the same.
A price appears only where capacity is short, and then it does not vanish with n.
"""

import numpy as np

from proofs.symbolic.tolerance import of_batches

K, D, R, N = 3, 8, 2, 30  # inputs, features, rank of the head, samples
TRIALS = 10_000


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
    """Mean risk of 10 000 fits against sigma^2 (directions) k / (n - k - 1), exact for Gaussian inputs; alpha = 1e-9.

    Kills d and r exchanged (a factor 4), and n - k for n - k - 1 (3.8 %, seen by the features' mean).
    """
    features, logits, _ = fits(seed=0)
    for errors, directions in ((features, D), (logits, R)):
        risk = (errors**2).sum((1, 2))
        assert abs(risk.mean() - directions * K / (N - K - 1)) < of_batches(risk)
    assert of_batches((features**2).sum((1, 2))) < D * K / (N - K - 1) - D * K / (N - K)


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
    assert (lost @ covariance @ lost.T).item() == 1.0  # the whole variance of the logit
    best_for_logits = np.outer([1.0, 0.0], [1.0, 0.0])
    kept = head @ (np.eye(2) - best_for_logits)
    assert (kept @ covariance @ kept.T).item() == 0.0
