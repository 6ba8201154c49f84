"""The document on speculators and MTP: the step weights of FastMTP, Eq. 2; which models have a module."""

import re
from fractions import Fraction

import pytest
import sympy as sp
import torch
from torch import nn


def step_weights(beta: Fraction, steps: int) -> list[Fraction]:
    """beta^(k-1) / sum over j of beta^(j-1)."""
    powers = [beta**k for k in range(steps)]
    return [power / sum(powers) for power in powers]


def test_step_weights() -> None:
    """beta = .6, 3 steps: 25/49, 15/49, 9/49 = .51, .31, .18. Kills weights that are not normalised (1, .6, .36)."""
    weights = step_weights(Fraction(3, 5), 3)
    assert weights == [Fraction(25, 49), Fraction(15, 49), Fraction(9, 49)]
    assert [round(float(w), 2) for w in weights] == [0.51, 0.31, 0.18]
    assert sum(weights) == 1


def test_first_step_is_emphasised_iff_beta_below_one() -> None:
    """Weights fall iff beta < 1 and tend to equal ones as beta tends to 1. Kills a decay the wrong way round."""
    b = sp.symbols("b", positive=True)
    assert sp.limit(1 / (1 + b + b**2), b, 1) == sp.Rational(1, 3)
    assert step_weights(Fraction(1, 2), 4) == sorted(step_weights(Fraction(1, 2), 4), reverse=True)
    assert step_weights(Fraction(2), 4) == sorted(step_weights(Fraction(2), 4))


def test_conversion_by_names_can_be_silently_wrong() -> None:
    """FastMTP projects [hidden; embedding], Qwen's native layer [embedding; hidden]: same names and shapes, other map.

    Kills "converted to speculators format" as a promise that the names carry: the halves of the weight have to be
    exchanged, and then the map is the same. float64, 1e-12: eight products of size one.
    """
    generator = torch.Generator().manual_seed(0)
    layer = nn.Linear(8, 4, bias=False, dtype=torch.float64)
    hidden, embedding = torch.randn(2, 4, generator=generator, dtype=torch.float64)
    theirs = layer(torch.cat([hidden, embedding]))
    loaded = nn.Linear(8, 4, bias=False, dtype=torch.float64)
    assert not any(loaded.load_state_dict(layer.state_dict()))  # no missing and no unexpected names
    assert (loaded(torch.cat([embedding, hidden])) - theirs).abs().max() > 0.01
    with torch.no_grad():
        loaded.weight.copy_(torch.cat([layer.weight[:, 4:], layer.weight[:, :4]], dim=1))
    assert (loaded(torch.cat([embedding, hidden])) - theirs).abs().max() < 1e-12


@pytest.mark.parametrize("name", ["Qwen3NextForCausalLM", "Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM"])
def test_the_library_expects_modules_in_files_of_these_models(name: str) -> None:
    """Kills a module of a model whose files have none: tensors `mtp.*` are passed over by name, others are not."""
    model = getattr(pytest.importorskip("transformers", reason="not tested: needs transformers 5"), name)
    passed_over = [
        tensor
        for tensor in ("mtp.fc.weight", "mtp.layers.0.mlp.gate_proj.weight", "model.norm.weight", "lm_head.weight")
        if any(re.search(pattern, tensor) for pattern in model._keys_to_ignore_on_load_unexpected)
    ]
    assert passed_over == ["mtp.fc.weight", "mtp.layers.0.mlp.gate_proj.weight"]
