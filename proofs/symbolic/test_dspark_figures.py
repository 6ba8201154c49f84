"""Building DSpark: the numbers that the notebook prints, held to each other and to published sizes."""

import itertools
import operator

import numpy as np
import pytest

from refengine.selfcheck.documents.child import loaded


def rounds_to(printed: str, low: float, high: float) -> bool:
    """Some value in [low, high] is printed as `printed`."""
    digits = len(printed.partition(".")[2])
    half = 0.5 * 10**-digits
    return float(printed) - half <= high + 1e-12 and low - 1e-12 <= float(printed) + half


@pytest.mark.parametrize(
    ("proposed", "tau", "printed"),
    [("7.00", "4.27", "1.88"), ("5.92", "4.27", "1.62"), ("4.48", "4.11", "1.34"), ("2.67", "3.31", "1.11")],
)
def test_printed_costs(proposed: str, tau: str, printed: str) -> None:
    """(gamma + 1) / tau from the printed, rounded numbers. Kills a cost of gamma / tau."""
    low = (float(proposed) - 0.005 + 1) / (float(tau) + 0.005)
    high = (float(proposed) + 0.005 + 1) / (float(tau) - 0.005)
    assert rounds_to(printed, low, high)
    assert not rounds_to(printed, low - 1 / float(tau), high - 1 / float(tau))


def test_a_third_less() -> None:
    """1.88 -> 1.34 and 1.11: 29 and 41 % less, for 4 and 22 % of tau. Kills a saving of proposed lengths."""
    none, (tau, lower) = (1.88, 4.27), ((1.34, 4.11), (1.11, 3.31))
    assert [round(100 * (1 - x / none[0])) for x, _ in (tau, lower)] == [29, 41]
    assert [round(100 * (1 - y / none[1])) for _, y in (tau, lower)] == [4, 22]


def test_the_block_shrinks_faster_than_tau() -> None:
    """Shares of the unpruned block and of its tau at each printed threshold. Kills a sweep read column by column."""
    blocks, taus = (7.00, 5.92, 4.48, 2.67), (4.27, 4.27, 4.11, 3.31)
    assert all(block / blocks[0] < tau / taus[0] for block, tau in zip(blocks[1:], taus[1:], strict=True))


def test_printed_means_and_ratios() -> None:
    """Means of tau 2.59 and 4.54; speeds 0.85x, 3.66x; 63 tokens in 4.11 s = 15.3 per s. Kills a misprint."""
    assert round((2.30 + 3.06 + 2.40) / 3, 2) == 2.59
    assert round((3.25 + 6.40 + 3.96) / 3, 2) == 4.54
    assert rounds_to("0.85", 13.05 / 15.35, 13.15 / 15.25)
    assert rounds_to("3.66", 56.05 / 15.35, 56.15 / 15.25)
    assert round(63 / 4.11, 1) == 15.3


def test_printed_survival() -> None:
    """The running product of the printed confidences is the printed survival. Kills a product that skips a position."""
    confidences = ["1.0", "0.998", "1.0", "0.928", "0.775", "0.585", "0.406"]
    printed = ["1.0", "0.998", "0.998", "0.927", "0.718", "0.42", "0.171"]
    low = high = 1.0
    for confidence, survival in zip(confidences, printed, strict=True):
        low, high = low * (float(confidence) - 0.0005), high * min(1.0, float(confidence) + 0.0005)
        assert low - 0.0005 <= float(survival) <= high + 0.0005
    assert not low - 0.0005 <= float(printed[-2]) * 0.585 <= high + 0.0005
    own = [round(x, 3) for x in itertools.accumulate(map(float, confidences), operator.mul)]
    assert own == [1, 0.998, 0.998, 0.926, 0.718, 0.42, 0.17]


@pytest.mark.parametrize(
    ("loss", "ce", "l1", "bce"),
    [
        (2.097, 5.642, 0.959, 0.669),
        (1.330, 2.437, 0.688, 0.468),
        (1.210, 2.904, 0.759, 0.237),
        (1.219, 2.135, 0.740, 0.339),
        (1.494, 5.140, 0.933, 0.141),
        (1.071, 2.046, 0.710, 0.227),
    ],
)
def test_printed_losses(loss: float, ce: float, l1: float, bce: float) -> None:
    """0.1 CE + 0.9 L1 + BCE of the printed parts, each rounded to 3 digits. Kills weights that change places."""
    rounding = 0.0005 * (1 + 0.1 + 0.9 + 1) + 1e-12
    assert abs(0.1 * ce + 0.9 * l1 + bce - loss) <= rounding
    assert abs(0.9 * ce + 0.1 * l1 + bce - loss) > rounding


def test_low_rank_bias() -> None:
    """Rank 256 instead of V x V: 77.8M instead of 23.1G numbers at V = 151,936. Kills a factor of V forgotten."""
    vocabulary, rank = 151_936, 256
    assert (round(2 * vocabulary * rank / 1e6, 1), round(vocabulary**2 / 1e9, 1)) == (77.8, 23.1)


def counts(tau: str) -> list[tuple[int, int]]:
    """(tokens, rounds) of a prompt that print as this tau: blocks of 7, and 96 tokens or an end before them."""
    return [(n, rounds) for rounds in range(1, 96) for n in range(rounds, 104) if f"{n / rounds:.2f}" == tau]


def test_two_means_of_the_same_runs() -> None:
    """tau of 3.25, 6.40 and 3.96 has the mean 4.54 over prompts; over rounds, which L divides by, the same runs can
    have the 4.27 that the sweep prints without a cut, and 4.54 only with 13 tokens in four rounds first, whatever their
    lengths (never all equal). Kills one number read as the other.
    """
    threes = list(itertools.product(counts("3.25"), counts("6.40"), counts("3.96")))
    pooled = {three: f"{sum(n for n, _ in three) / sum(rounds for _, rounds in three):.2f}" for three in threes}
    assert "4.27" in pooled.values()
    assert {three[0] for three, tau in pooled.items() if tau == "4.54"} == {(13, 4)}
    assert not any(len({n for n, _ in three}) == 1 for three in threes)


VOCABULARY, HEAD = 151_936, 128


def layers(count: int, hidden: int, wide: int, heads: int, shared: int) -> int:
    """Parameters of Qwen3 layers: attention with `shared` heads of keys and values, feed-forward, norms."""
    attention = hidden * HEAD * 2 * (heads + shared) + 2 * HEAD
    return count * (attention + 3 * hidden * wide + 2 * hidden)


def test_printed_memory_is_two_bytes_a_parameter() -> None:
    """8.1 GB (Qwen3-4B), 9.3 with Qwen3-0.6B, 8.1 without it, 10.9 with the draft: two bytes for each parameter by the
    published sizes, and at most 0.1 GB of anything else. In float32 the target alone is above a T4's 16 GB. Kills a
    draft that borrows the target's embedding and head (1.6 GB less), and a third model that is still held.
    """
    target = VOCABULARY * 2560 + layers(36, 2560, 9728, 32, 8) + 2560
    small = VOCABULARY * 1024 + layers(28, 1024, 3072, 16, 8) + 1024
    heads = 2 * VOCABULARY * 256 + (2560 + 256 + 1)
    draft = 2 * VOCABULARY * 2560 + layers(5, 2560, 9728, 32, 8) + 5 * 2560 * 2560 + 2 * 2560 + heads
    assert round(target / 1e9, 1) == 4.0
    for held, printed in ((target, 8.1), (target + small, 9.3), (target + draft, 10.9)):
        assert 0 <= printed - 2 * held / 1e9 <= 0.1
    assert 4 * target / 1e9 > 16


def test_a_position_that_was_not_reached_reads_as_a_rate_of_zero() -> None:
    """The printed record, every round of which keeps one draft of seven: of the second place each draft is refused, and
    the five behind it are judged never. acc / max(tot, 1) has 0 for all six, and their mean is 1/7, not 1/2 of the two
    places with a rate. Kills a mean over positions taken for an accept rate.
    """
    printed = loaded("dspark", [])
    record = printed._accept_record(7)
    for _ in range(4):
        printed._record(record, 7, 1)
    rates = record["acc"] / np.maximum(record["tot"], 1)  # lines 516-517 and 524
    assert record["tot"].tolist() == [4, 4, 0, 0, 0, 0, 0]
    assert rates.tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert rates.mean() == pytest.approx(1 / 7)
    assert rates[record["tot"] > 0].mean() == 0.5
