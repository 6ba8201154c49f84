"""Scaled rotary embeddings against transformers, and what a config may not ask for."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.rope import read_rope
from refengine.decoder.networks.rope import Rope
from refengine.errors import BadInput

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
CASES: list[dict[str, Any]] = [
    {"rope_type": "linear", "factor": 2.5},
    {"rope_type": "dynamic", "factor": 2.5},  # over the original context
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 64},
    YARN,
    {"rope_type": "yarn", "factor": 2.0},  # the original context is max_position_embeddings
    {**YARN, "beta_fast": 16, "beta_slow": 2, "truncate": False},
    {**YARN, "attention_factor": 1.3},
    {**YARN, "mscale": 0.7, "mscale_all_dim": 1.0},
    {**YARN, "mscale": 0.7},  # which is of no effect alone
    {**YARN, "mscale_all_dim": 0.7},
    {"rope_type": "proportional", "partial_rotary_factor": 0.25},
    {"rope_type": "proportional"},
]  # fmt: skip


@pytest.mark.parametrize(("scaling", "width"), itertools.product(CASES, (8, 12, 64)))
def test_frequencies_and_magnitude_are_those_of_transformers(scaling: dict[str, Any], width: int) -> None:
    """Kills a blend by the wrong wave length, a ramp over the wrong pairs, a forgotten factor on cosine and sine."""
    hold(scaling | {"rope_theta": 1e4}, width)


@pytest.mark.parametrize("scaling", [YARN, CASES[2], {"rope_type": "yarn", "factor": 2.0}])
def test_the_original_context_beside_the_parameters(scaling: dict[str, Any]) -> None:
    """Kills the other order of two places that say it, as Phi's and old Llama's configs do."""
    hold(scaling | {"rope_theta": 1e4}, 12, original_max_position_embeddings=16)


def hold(scaling: dict[str, Any], width: int, **fields: int) -> None:
    config = Qwen3Config(head_dim=width, max_position_embeddings=256, rope_parameters=dict(scaling), **fields)
    theirs, magnitude = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config)
    told = {"rope_parameters": dict(scaling)} if fields else {}  # transformers brings both into one place
    rope = read_rope(Config("config.json", config.to_dict() | told))
    x = torch.zeros(1, 1, width)
    torch.testing.assert_close(rope.angles(x, torch.tensor([1]))[0], theirs, rtol=2e-5, atol=1e-9)
    assert abs(rope.scaling.magnitude - magnitude) < 1e-12
    x[..., 0] = 1.0  # at position 0 nothing turns, and the magnitude alone is left
    assert abs(float(rope.rotate(x, torch.tensor([0]))[0, 0, 0]) - magnitude) < 1e-6


def kind(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Parameters of a kind of scaling: short and long contexts, slow and fast angles."""
    base = {"rope_type": st.just(name), "rope_theta": st.floats(10.0, 1e7), "factor": st.floats(1.0, 64.0)}
    return st.fixed_dictionaries(base | fields)


CONTEXT = st.integers(8, 1 << 20)
ANY = st.one_of(
    kind("linear"),
    kind("llama3", low_freq_factor=st.floats(0.5, 2.0), high_freq_factor=st.floats(2.5, 9.0),
         original_max_position_embeddings=CONTEXT),
    kind("yarn", beta_fast=st.floats(4.0, 64.0), beta_slow=st.floats(0.25, 3.0), truncate=st.booleans(),
         original_max_position_embeddings=CONTEXT),
    kind("proportional", partial_rotary_factor=st.floats(0.1, 1.0)),
)  # fmt: skip


@settings(max_examples=80, deadline=None, derandomize=True)
@given(scaling=ANY, width=st.integers(1, 64).map(lambda pairs: 2 * pairs))
def test_any_scaling_is_that_of_transformers(scaling: dict[str, Any], width: int) -> None:
    """Kills an end of a blend that only an unusual base, context or width reaches, and a field that is not read."""
    hold(scaling, width)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rope_parameters": {"rope_theta": 1e4, "rope_type": "longrope"}}, "rope_type is 'longrope'"),
        ({"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4}}, "factor is missing"),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4}}, "factor is missing"),
        (
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
            "max_position_embeddings is missing",
        ),
        ({"rope_parameters": {"rope_type": "linear", "factor": 0, "rope_theta": 1e4}}, "factor is 0, expected a pos"),
        ({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, "partial_rotary_factor is 0.5"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}, "rope_parameters differ by type of layer"),
        ({"rope_theta": 1e4, "rope_scaling": YARN, "max_position_embeddings": 512}, "rope_scaling stretches 64.0 by"),
        ({"rope_theta": 1e4, "rope_scaling": {**YARN, "rope_theta": 5e5}}, "but rope_scaling says 500000.0"),
        (
            {"rope_theta": 1e4, "rope_parameters": {"rope_type": "default"}, "rope_scaling": YARN},
            "rope_parameters say {'rope_type': 'default'}, and rope_scaling says",
        ),
        (
            {"rope_parameters": {**YARN, "rope_theta": 1e4}, "rope_scaling": {**YARN, "factor": 2.0}},
            "rope_parameters say .* and rope_scaling says .*'factor': 2.0",
        ),
        ({}, "rope_theta is missing"),
    ],
)
def test_what_cannot_be_read_is_named(fields: dict[str, Any], message: str) -> None:
    """Kills a scaling that is ignored, and one that transformers 4 and 5 would read differently."""
    with pytest.raises(BadInput, match=message):
        read_rope(Config("config.json", fields))


def test_a_scaling_may_be_said_twice() -> None:
    """Kills a refusal of configs that say one thing in the words of transformers 4 and of 5."""
    old = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    both = {"rope_parameters": {**YARN, "rope_theta": 1e4}, "rope_scaling": old, "rope_theta": 1e4}
    assert read_rope(Config("config.json", both)) == read_rope(
        Config("config.json", {"rope_parameters": both["rope_parameters"]})
    )


def test_dynamic_angles_end_with_the_original_context() -> None:
    """Kills angles past the context that depend on the longest text so far: a cached key would say when it was made."""
    given = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    rope = read_rope(Config("config.json", {"rope_parameters": given, "max_position_embeddings": 8}))
    x = torch.zeros(1, 1, 8)
    assert torch.equal(rope.angles(x, torch.tensor([7])), Rope(1e4).angles(x, torch.tensor([7])))
    with pytest.raises(BadInput, match="the text goes past position 7") as raised:
        rope.angles(x, torch.tensor([3, 8]))
    assert "\n" not in str(raised.value)
