"""`audit trace`: recorded rounds held to their own rows, by bets that are fair whatever the rows do."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from refengine.audit.trace import audit_trace
from refengine.errors import BadInput
from refengine.evidence.e_process_of_rounds import RoundEvidence
from refengine.evidence.naming import BROKEN_CONTRACT, ZERO_MASS
from refengine.evidence.rows import Rows

pytestmark = pytest.mark.on_record

GAMMA = 3


def rows(generator: np.random.Generator, count: int, vocabulary: int) -> Rows:
    """Rows with a few likely tokens, none impossible."""
    return 0.99 * generator.dirichlet(np.full(vocabulary, min(0.5, 3 / vocabulary)), count) + 0.01 / vocabulary


def record(defect: str, rounds: int, vocabulary: int = 6, seed: int = 0) -> dict[str, Tensor]:
    """Rounds of the ratio rule with rows of their own, every third with one draft less."""
    generator = np.random.default_rng(seed)
    p, q = np.ones((rounds, GAMMA + 1, vocabulary)), np.ones((rounds, GAMMA, vocabulary))
    draft, emitted = np.full((rounds, GAMMA), -1), np.full((rounds, GAMMA + 1), -1)
    for t in range(rounds):
        gamma = GAMMA - (t % 3 == 0)
        q[t, :gamma] = rows(generator, gamma, vocabulary)
        p[t, : gamma + 1] = rows(generator, gamma + 1, vocabulary)
        p[t, :gamma] = 0.6 * p[t, :gamma] + 0.4 * q[t, :gamma]
        drawn = [row.argmax() if defect == "argmax" else generator.choice(vocabulary, p=row) for row in q[t, :gamma]]
        draft[t, :gamma] = drawn
        for i in range(gamma + 1):
            if i < gamma and generator.random() * q[t, i, drawn[i]] < p[t, i, drawn[i]]:
                emitted[t, i] = drawn[i]
                continue
            left = p[t, i] if i == gamma or defect == "from p" else np.maximum(p[t, i] - q[t, i], 0)
            emitted[t, i] = generator.choice(vocabulary, p=left / left.sum())
            break
    tensors = {"p": torch.tensor(p).float(), "q": torch.tensor(q).float()}
    return {**tensors, "draft": torch.tensor(draft), "emitted": torch.tensor(emitted)}


def audit(tensors: dict[str, Tensor], folder: Path, **options: Any) -> Any:
    save_file(tensors, folder / "rounds.safetensors")
    (finding,) = audit_trace(str(folder / "rounds.safetensors"), **options)
    return finding


def test_rounds_of_the_ratio_rule_are_consistent(tmp_path: Path) -> None:
    """Kills a null that knows one rule's lengths, or rows of one round taken for another's."""
    finding = audit(record("", 150), tmp_path)
    assert finding.verdict == "consistent"
    assert finding.numbers["rounds"] == 150


@pytest.mark.parametrize(
    ("defect", "diagnosis"),
    [
        ("argmax", "greedy proposal, soft q: drafted by argmax, weighed against q"),
        ("from p", "resample from target: corrected from p instead of the residual"),
    ],
)
def test_a_defect_is_found_named_and_sized(defect: str, diagnosis: str, tmp_path: Path) -> None:
    """Kills evidence that starts anew with every row, and a bound on the size from the rounds that raised the alarm."""
    finding = audit(record(defect, 400), tmp_path)
    assert (finding.verdict, finding.diagnosis) == ("violated", diagnosis)
    assert finding.numbers["rounds"] < 200
    assert finding.magnitude is not None
    assert 0 < finding.magnitude.tv.value < 0.3
    assert audit_trace(**finding.recipe.arguments) == [finding]


def test_a_defect_that_nobody_listed_is_learned_at_a_wide_vocabulary(tmp_path: Path) -> None:
    """Kills no evidence where the laws of listed defects are left out. A last token that is the target's argmax, and so
    may differ from the draft, becomes the next id."""
    tensors = record("", 300, vocabulary=3000)
    best, emitted = tensors["p"].argmax(-1), tensors["emitted"]
    last = torch.arange(GAMMA + 1) == (emitted >= 0).sum(1, keepdim=True) - 1
    moved = (emitted == best) & last
    emitted[moved] = (best + 1)[moved] % 3000
    finding = audit(tensors, tmp_path)
    assert finding.verdict == "violated"
    assert finding.diagnosis.startswith("no known class fits; it shows")


@pytest.mark.parametrize("vocabulary", [4, 12])
def test_every_bet_is_fair_and_sees_no_draft(vocabulary: int) -> None:
    """Kills wealth that grows under the null: a bet made after its token, or with the row that follows the draft."""
    generator, evidence = np.random.default_rng(0), RoundEvidence(2)
    for _ in range(6):
        p, q = rows(generator, 3, vocabulary), rows(generator, 2, vocabulary)
        other = np.concatenate([p[:1], rows(generator, 2, vocabulary)])

        def wealth(target: Rows, tokens: list[int], draft: Rows = q) -> float:
            after = deepcopy(evidence)
            assert after.add(target, draft, np.array(tokens))
            return float(np.exp(after.log_evidence()))

        before = float(np.exp(evidence.log_evidence()))
        first = [wealth(p, [x]) for x in range(vocabulary)]
        assert p[0] @ first <= before * (1 + 1e-12)
        assert first == [wealth(other, [x], np.concatenate([q[:1], q[:1]])) for x in range(vocabulary)]
        assert p[1] @ [wealth(p, [0, x]) for x in range(vocabulary)] <= first[0] * (1 + 1e-12)
        evidence.add(p, q, np.array([0, 1, 2]))


def test_a_token_without_mass_ends_it(tmp_path: Path) -> None:
    """Kills a masked token weighed as evidence like any other."""
    tensors = record("", 9)
    token = int(tensors["emitted"][7, 0])
    tensors["p"][7, 0, token] = 0.0
    tensors["p"][7, 0] /= tensors["p"][7, 0].sum()
    finding = audit(tensors, tmp_path)
    assert (finding.verdict, finding.diagnosis) == ("violated", ZERO_MASS)
    assert finding.magnitude.breaks_mask
    assert finding.witness["rounds"] == 8


@pytest.mark.parametrize("drafting", [True, False])
def test_rounds_that_drafted_nothing_are_judged_too(drafting: bool, tmp_path: Path) -> None:
    """Kills a crash on a round whose drafts are all padding, or on a record without a single draft."""
    tensors = record("", 150)
    none = slice(None, None, 5 if drafting else 1)
    drawn = torch.multinomial(tensors["p"][:, 0], 1, generator=torch.Generator().manual_seed(0))[:, 0]
    tensors["draft"][none], tensors["emitted"][none] = -1, -1
    tensors["emitted"][none, 0] = drawn[none]
    if not drafting:
        widths = {"p": 1, "q": 0, "draft": 0, "emitted": 1}
        tensors = {name: tensors[name][:, :width].contiguous() for name, width in widths.items()}
    assert audit(tensors, tmp_path).verdict == "consistent"


def test_consistent_says_what_would_have_been_seen(tmp_path: Path) -> None:
    """Kills one round, which could show nothing, reported as consistent."""
    assert "TV >= 0.2" in audit(record("", 150), tmp_path).method
    few = audit(record("", 9), tmp_path)
    assert few.verdict == "not tested"
    assert "would not show a TV of 0.5" in few.reason


@pytest.mark.parametrize(("kind", "verdict"), [(torch.float16, "not tested"), (torch.bfloat16, "violated")])
def test_a_light_token_that_half_precision_rounds_to_zero_is_no_violation(
    kind: torch.dtype, verdict: str, tmp_path: Path
) -> None:
    """Kills an engine that may emit a token of 1e-8 accused because its record holds no number so small."""
    tensors = record("", 9)
    token = int(tensors["emitted"][7, 0])
    tensors["p"][7, 0, token] = 1e-9 if kind == torch.float16 else 0.0
    tensors["p"][7, 0] /= tensors["p"][7, 0].sum()
    finding = audit(tensors | {name: tensors[name].to(kind) for name in ("p", "q")}, tmp_path)
    assert finding.verdict == verdict
    assert verdict == "violated" or "record the rows as float32" in finding.reason


def test_tokens_that_no_row_was_given_for_break_the_contract(tmp_path: Path) -> None:
    """Kills tokens after a correction, judged by rows that follow another prefix."""
    tensors = record("", 9)
    tensors["draft"][5], tensors["emitted"][5] = torch.tensor([1, 2, 3]), torch.tensor([1, 4, 3, 0])
    finding = audit(tensors, tmp_path)
    assert (finding.verdict, finding.diagnosis) == ("violated", BROKEN_CONTRACT)
    assert "round 6" in finding.witness["what"]


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"q": None}, "no tensor 'q'"),
    "shape": ({"draft": torch.zeros(9, 2, dtype=torch.long)}, "draft has shape"),
    "no tokens": ({"emitted": torch.zeros(9, 4)}, "emitted is F32"),
    "logits": ({"p": torch.randn(9, 4, 6)}, "no distribution"),
    "outside": ({"draft": torch.full((9, 3), 6)}, "below 6"),
    "hole": ({"draft": torch.tensor([[0, -1, 1]] * 9)}, "padding"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_what_is_no_record_is_one_clear_line(name: str, tmp_path: Path) -> None:
    """Kills logits audited as probabilities, or a traceback."""
    changed, says = BROKEN[name]
    tensors = {key: value for key, value in {**record("", 9), **changed}.items() if value is not None}
    with pytest.raises(BadInput, match=says) as error:
        audit(tensors, tmp_path)
    assert "\n" not in str(error.value)


def test_another_record_is_not_taken_for_the_one_that_was_audited(tmp_path: Path) -> None:
    """Kills a finding made again from a file that has changed since."""
    finding = audit(record("", 5), tmp_path)
    save_file(record("", 6), tmp_path / "rounds.safetensors")
    with pytest.raises(BadInput, match="not the record"):
        audit_trace(**finding.recipe.arguments)
