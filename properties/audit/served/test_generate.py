"""`audit generate` on functions that are not ours, and the evidence on pairs that it shares with `audit endpoint`."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from refengine.audit.served.endpoint import audit_generate
from refengine.errors import BadInput
from refengine.evidence.alpha import NATS
from refengine.evidence.e_process_of_pairs import Pairs
from refengine.report.finding import Finding
from refengine.source_tree import FIXTURES

SUBJECTS = str(FIXTURES / "subjects")


def audit(on: str, off: str = "generators:plain", only: str = "", requests: int = 600) -> list[Finding]:
    return audit_generate(f"generators:{on}", off, SUBJECTS, requests, only=only)


def test_right_speculation_is_consistent() -> None:
    """Bug: another use of the seed taken for another law; a parameter that the function lacks called untested."""
    found = audit("speculative")
    assert not [f.id for f in found if f.verdict == "violated"]
    (parameters,) = (f for f in found if f.id == "audit.generate/parameters")
    assert any("takes no frequency_penalty" in note or "refused" in note for note in parameters.notes)


@pytest.mark.parametrize(("on", "only"), [("corrected_from_p", "law/temperature 0.7"), ("second_best", "greedy")])
def test_a_wrong_law_and_a_wrong_token_are_found(on: str, only: str) -> None:
    """Bug: a generator whose rows nobody gave cannot be held to anything."""
    found = audit(on, only=only, requests=4000)
    assert any(f.verdict == "violated" and f.id.startswith(f"audit.generate/{only}") for f in found)


NO_TOKENS = {"nan": "entry 0 of the answer is NaN", "many": "the answer has 1000000000 entries", "raises": "no cache"}


@pytest.mark.parametrize("name", NO_TOKENS)
def test_a_breakdown_is_never_a_detection(name: str, tmp_path: Path) -> None:
    """Bug: NaN compared as a word; an answer without end counted to its end; an exception taken for another law."""
    (tmp_path / "floats.py").write_text(
        "off = lambda prompt, n, temperature, seed: [2.0] * n\n"
        "nan = lambda prompt, n, temperature, seed: [float('nan')] * n\n"
        "many = lambda prompt, n, temperature, seed: range(10**9)\n"
        "def raises(prompt, n, temperature, seed): raise ValueError('no cache for this prompt')\n"
    )
    with pytest.raises(BadInput, match=NO_TOKENS[name]):
        audit_generate(f"floats:{name}", "floats:off", str(tmp_path), 50)
    assert not [f for f in audit_generate("floats:off", "floats:off", str(tmp_path), 300) if f.verdict == "violated"]


def test_a_small_difference_at_every_prompt_adds_up() -> None:
    """Bug: evidence of each prompt weighed by itself, so that five prompts see five times less of a temperature on one
    side than they could."""
    generator, pairs = np.random.default_rng(0), Pairs(prompts=5, kinds=1)
    rows = generator.dirichlet(np.full(40, 0.3), 5)
    sharper = rows ** (1 / 0.65) / (rows ** (1 / 0.65)).sum(1, keepdims=True)  # TV 0.17
    for number in range(2000):
        x, y = (int(generator.choice(40, p=law[number % 5])) for law in (sharper, rows))
        pairs.add(number % 5, [{"token": x}], [{"token": y}])
        if pairs.log_evidence() > NATS:
            break
    assert pairs.log_evidence() > NATS  # after 1119 pairs; 4588 by each prompt alone


def test_every_bet_on_a_pair_is_fair() -> None:
    """Bug: a bet that knows which outcome came from which sampler: wealth that grows under the null."""
    generator, pairs = np.random.default_rng(0), Pairs(prompts=3, kinds=2)
    for _ in range(40):
        x, y = (
            [{"token": int(generator.integers(3)), "other": int(generator.integers(2))} for _ in range(2)]
            for _ in range(2)
        )
        after, place = [], int(generator.integers(3))
        for first, second in ((x, y), (y, x)):
            told = deepcopy(pairs)
            told.add(place, first, second)
            after.append(np.exp(told.log_evidence()))
        assert np.mean(after) == pytest.approx(np.exp(pairs.log_evidence()), rel=1e-12)
        pairs.add(place, x, y)
