"""`audit generate` on functions that are not ours, and the evidence on pairs that it shares with `audit endpoint`."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from refengine.audit.paired.functions import audit_generate
from refengine.evidence.alpha import NATS
from refengine.evidence.e_process_of_pairs import Pairs
from refengine.report.canonical import canonical
from refengine.report.finding import Finding
from refengine.report.report import make_report
from refengine.source_tree import FIXTURES

SUBJECTS = str(FIXTURES / "subjects")


def audit(on: str, row: bool = True, pairs: int = 200) -> list[Finding]:
    named = "generators:row" if row else None
    off = "generators:plain"
    return audit_generate(f"generators:{on}", off, named, SUBJECTS, prompts=("ab",), pairs=pairs, seconds=300)


def test_right_speculation_is_consistent() -> None:
    """Kills another use of the seed taken for another law."""
    assert [finding.verdict for finding in audit("speculative")] == ["consistent", "consistent"]


def test_a_wrong_law_is_found() -> None:
    """Kills a generator whose rows nobody gave cannot be held to anything."""
    greedy, sampling = audit("corrected_from_p", pairs=4000)
    assert [greedy.verdict, sampling.verdict] == ["consistent", "violated"]
    assert sampling.witness is not None
    assert sampling.witness["counts"]


def test_a_greedy_defect_is_told_from_a_tie_by_the_row() -> None:
    """Kills a parting decided without knowing how near the two tokens are, or by the row of another place."""
    greedy = audit("second_best", pairs=1)[0]
    assert greedy.verdict == "violated"
    assert greedy.witness is not None
    assert greedy.witness["margin"] == pytest.approx(np.log(0.3 / 0.25))
    undecided = audit("second_best", row=False, pairs=1)[0]
    assert undecided.verdict == "not tested"
    assert "tie or a defect" in undecided.reason


@pytest.mark.parametrize(("row", "verdict"), [("masked", "violated"), ("nan", "not tested")])
def test_a_row_with_masked_tokens_has_a_margin_and_one_of_nan_has_none(row: str, verdict: str, tmp_path: Path) -> None:
    """Kills a margin of infinity, which no report can hold; one that is no number, passed off as a tie."""
    (tmp_path / "masks.py").write_text(
        "on = lambda prompt, n, temperature, seed: [1] * n\n"
        "off = lambda prompt, n, temperature, seed: [2] * n\n"
        "masked = lambda prompt, tokens: [0.0 if token == 2 else float('-inf') for token in range(3)]\n"
        "nan = lambda prompt, tokens: [float('nan')] * 3\n"
    )
    greedy, sampling = audit_generate("masks:on", "masks:off", f"masks:{row}", str(tmp_path), pairs=1, seconds=300)
    assert (greedy.verdict, sampling.verdict) == (verdict, "not tested")
    assert canonical(make_report([greedy, sampling], seed=0))


NO_TOKENS = {"whole": "", "nan": "entry 0 of the answer is NaN", "many": "the answer has 1000000000 entries"}


def test_what_is_no_token_is_said(tmp_path: Path) -> None:
    """Kills NaN compared as a word; the id 2.0 of a float tensor taken for another token than 2; an answer without end
    counted to its end."""
    (tmp_path / "floats.py").write_text(
        "off = lambda prompt, n, temperature, seed: [2] * n\n"
        "whole = lambda prompt, n, temperature, seed: [2.0] * n\n"
        "nan = lambda prompt, n, temperature, seed: [float('nan')] * n\n"
        "many = lambda prompt, n, temperature, seed: range(10**9)\n"
    )
    found = [audit_generate(f"floats:{on}", "floats:off", path=str(tmp_path), pairs=1)[0] for on in NO_TOKENS]
    assert [finding.verdict for finding in found] == ["consistent", "not tested", "not tested"]
    assert all(says in finding.reason for says, finding in zip(NO_TOKENS.values(), found, strict=True))


def test_a_crash_is_never_a_detection() -> None:
    """Kills a generator that raises counted as violating the law."""
    for finding in audit("raises"):
        assert finding.verdict == "not tested"
        assert "no cache for this prompt" in finding.reason


def test_a_small_difference_at_every_prompt_adds_up() -> None:
    """Kills evidence of each prompt weighed by itself, so that five prompts see five times less of a temperature on one
    side than they could."""
    generator, pairs = np.random.default_rng(0), Pairs(prompts=5, kinds=1)
    rows = generator.dirichlet(np.full(40, 0.3), 5)
    sharper = rows ** (1 / 0.65) / (rows ** (1 / 0.65)).sum(1, keepdims=True)  # TV 0.17
    for number in range(2000):
        x, y = (int(generator.choice(40, p=law[number % 5])) for law in (sharper, rows))
        pairs.add(number % 5, {"token": x}, {"token": y})
        if pairs.log_evidence() > NATS:
            break
    assert pairs.log_evidence() > NATS  # after 1119 pairs; 4588 by each prompt alone


def test_every_bet_on_a_pair_is_fair() -> None:
    """Kills a bet that knows which outcome came from which sampler: wealth that grows under the null."""
    generator, pairs = np.random.default_rng(0), Pairs(prompts=3, kinds=2)
    for _ in range(40):
        x, y = ({"token": int(generator.integers(3)), "other": int(generator.integers(2))} for _ in range(2))
        after, place = [], int(generator.integers(3))
        for first, second in ((x, y), (y, x)):
            told = deepcopy(pairs)
            told.add(place, first, second)
            after.append(np.exp(told.log_evidence()))
        assert np.mean(after) == pytest.approx(np.exp(pairs.log_evidence()), rel=1e-12)
        pairs.add(place, x, y)
