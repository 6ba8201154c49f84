"""Speed formulas: tokens per round, latency per token, when speculation pays. Times in units of one plain target pass.

alpha   acceptance probability of one draft, the same at every depth and independent of the past (the iid case)
gamma   drafts per round
c       time of one draft pass; an autoregressive drafter pays gamma of them, a parallel drafter one
verify  time of one verification pass over gamma + 1 positions; 1 where decoding is bound by memory
"""

from collections.abc import Sequence
from typing import Any

Number = Any  # int, Fraction, float or a sympy expression


def emitted(alphas: Sequence[Number]) -> Number:
    """Expected tokens of a round where depth i is accepted with probability alphas[i] once reached."""
    total, survival = NO_DRAFT
    for alpha in alphas:
        total, survival = deeper(total, survival, alpha)
    return total


NO_DRAFT = (1, 1)  # tokens of a round, and how often all of its drafts are accepted


def deeper(total: Number, survival: Number, alpha: Number) -> tuple[Number, Number]:
    """The same with one draft more."""
    survival = survival * alpha
    return total + survival, survival


def latency(draft: Number, verify: Number, tau: Number) -> Number:
    """L = (T_draft + T_verify) / tau, tau being the emitted tokens of a round, bonus included."""
    return (draft + verify) / tau


def speedup(draft: Number, verify: Number, tau: Number) -> Number:
    """Plain latency is 1 per token."""
    return 1 / latency(draft, verify, tau)


def cost(gamma: Number, tau: Number) -> Number:
    """Target positions computed per emitted token: what a busy server pays."""
    return (gamma + 1) / tau
