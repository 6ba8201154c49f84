"""A target that is answered for another text than it was asked about is refused when it is loaded."""

from typing import Any

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MptConfig,
    MptForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from refengine.decoder.checkpoints.load import behind_the_protocol
from refengine.decoder.checkpoints.reading.target_probe import TEXT, in_pieces, one_pass
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.errors import BadInput

MPT: dict[str, Any] = {"vocab_size": 16, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}
MAMBA: dict[str, Any] = {"vocab_size": 16, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}
LLAMA: dict[str, Any] = {
    "vocab_size": 16, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip


def made(build: Any, config: Any) -> Any:
    torch.manual_seed(0)
    model = build(config).eval()
    for parameter in model.parameters():  # as released weights are: far from what is nearly zero
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model


@pytest.mark.parametrize(
    ("build", "config"),
    [(MptForCausalLM, MptConfig(**MPT)), (MambaForCausalLM, MambaConfig(**MAMBA))],
    ids=["keys placed by their order", "a state of its own"],
)
def test_a_model_that_cannot_be_rolled_back_is_refused(build: Any, config: Any) -> None:
    """Kills a draft model or target whose rows are about another text: nothing would raise, and no rule would know."""
    with pytest.raises(BadInput, match="rows that are run in pieces are off by") as raised:
        behind_the_protocol(made(build, config))
    assert "\n" not in str(raised.value)


SIZED: dict[str, Any] = LLAMA | {"num_key_value_heads": 2, "head_dim": 8}
SLIDES = {"sliding_window": 3}
PATTERNS: dict[str, Any] = {
    "none slides": (LlamaForCausalLM, LlamaConfig(**SIZED)),
    "all slide, by a width alone": (MistralForCausalLM, MistralConfig(**SIZED, **SLIDES)),
    "all slide, by their types": (
        Qwen3ForCausalLM,
        Qwen3Config(**SIZED, **SLIDES, use_sliding_window=True, layer_types=["sliding_attention"] * 2),
    ),
    "some slide": (
        Qwen3ForCausalLM,
        Qwen3Config(**SIZED, **SLIDES, use_sliding_window=True, layer_types=["sliding_attention", "full_attention"]),
    ),
    "a width that is switched off": (Qwen3ForCausalLM, Qwen3Config(**SIZED, **SLIDES, use_sliding_window=False)),
}


@pytest.mark.parametrize("slots", [None, 16])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_row_sees_what_it_sees_in_the_model(pattern: str, slots: int | None) -> None:
    """Kills a window that is off by one or forgotten, in any way that a config says which layers slide."""
    target: Any = behind_the_protocol(made(*PATTERNS[pattern]), slots)
    tokens = (3, 10, 1, 8, 15, 6, 13, 4)
    whole, pieces = one_pass(target, tokens), in_pieces(target, tokens)
    assert float((whole - pieces).abs().max()) < 1e-5 * float(whole.abs().max())
    wide = made(PATTERNS[pattern][0], type(PATTERNS[pattern][1])(**SIZED, sliding_window=None))
    assert torch.equal(one_pass(TransformersTarget(wide), tokens), whole) == (pattern not in SLIDING)


SLIDING = {"all slide, by a width alone", "all slide, by their types", "some slide"}


def test_pieces_are_the_rows_of_one_pass() -> None:
    """Kills a probe that compares other rows, and one that leaves its own behind."""
    target = behind_the_protocol(made(LlamaForCausalLM, LlamaConfig(**LLAMA)))
    assert isinstance(target, TransformersTarget)
    assert target.past == ()
    assert target.kept == 0
    tokens = (3, 10, 1, 8, 15, 6, 13, 4)
    whole, pieces = one_pass(target, tokens), in_pieces(target, tokens)
    assert float((whole - pieces).abs().max()) < 1e-5 * float(whole.abs().max())
    shifted = in_pieces(target, (*tokens[:TEXT], 0, *tokens[TEXT + 1 :]))
    assert float((whole - shifted).abs()[TEXT:].amax(-1).min()) > 1e-3
