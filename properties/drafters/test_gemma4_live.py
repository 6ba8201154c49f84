"""The Gemma 4 assistant against the installed transformers: checkpoints it writes, drafts it makes."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from properties.helpers.checkpoints.gemma4_example import FULL, PROMPT
from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.gemma4_assistant import read_shape
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.drafters.gemma4_assistant import SLIDING, Backbone
from refengine.decoder.loop import Session, nodes
from refengine.decoder.networks.rope import Proportional, Unscaled
from refengine.engine.policy import greedy, pipeline
from refengine.engine.rules.leviathan import leviathan

pytest.importorskip("transformers.models.gemma4_assistant", reason="not tested: this transformers has no Gemma 4")
LIVE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {  # target, assistant's text, assistant
    "shared keys, two head counts, untied, biased": (
        {"layer_types": [SLIDING, FULL, SLIDING, FULL], "num_kv_shared_layers": 2, "attention_k_eq_v": True,
         "num_global_key_value_heads": 1},
        {"layer_types": [SLIDING, SLIDING, FULL], "attention_bias": True, "tie_word_embeddings": False,
         "attention_k_eq_v": True, "num_global_key_value_heads": 1, "rope_parameters": {
             SLIDING: {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
             FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1e5}}},
        {"tie_word_embeddings": False},
    ),
    "nothing shared, centroids": (
        {"layer_types": [SLIDING, FULL, FULL], "num_kv_shared_layers": 0},
        {"layer_types": [FULL, SLIDING, FULL]},
        {"use_ordered_embeddings": True, "num_centroids": 6, "centroid_intermediate_top_k": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LIVE)
def test_the_installed_library_drafts_the_same(case: str, tmp_path: Path) -> None:
    """Kills whatever a recording of one size cannot show: groups, untied heads, biases, other rotary embeddings."""
    with constructible():
        calls, ids = written_and_run(case, tmp_path)
    target = load_target(tmp_path / "target", torch.float32)
    drafter = load_drafter(tmp_path / "assistant", target, gamma=3, stale_keys=True)
    session = Session(target, drafter, leviathan, pipeline(greedy()), 10**6)
    session.begin(PROMPT, COINS)
    for length in sorted({position + 1 for position, *_ in calls}):
        of_round = [call for call in calls if call[0] == length - 1]
        assert session.prompt + session.out == ids[:length]
        drafter.gamma = len(of_round)  # the library drafts less where less is left to emit
        session.play(COINS)
        assert nodes(session.rounds[-1].block)[0] == tuple(int(logits.argmax()) for *_, logits in of_round)
        for position, joined, keys, logits in of_round:
            embedded, hidden = joined.split(target.width, -1)
            there = drafter.backbone
            drafter.backbone = Backbone(target, there.stores, lambda tokens, x=embedded: x)  # type: ignore[misc]
            step = drafter.step(torch.tensor([0]), hidden, torch.tensor([position]), keys)
            drafter.backbone = there
            assert float((step.logits[0] - logits).abs().max()) <= 1e-5 * max(1.0, float(logits.std()))


@pytest.mark.parametrize(
    "fields",
    [
        {"num_hidden_layers": 13},  # every sixth layer is full, and the last
        {"num_global_key_value_heads": 2, "global_head_dim": 20},
        {"num_global_key_value_heads": 2, "global_head_dim": 20, "attention_k_eq_v": True},
        {"layer_types": [FULL, SLIDING, FULL], "per_layer_config": {"0": {"head_dim": 6}, "2": {"head_dim": 6}}},
        {"layer_types": [FULL, SLIDING, FULL], "per_layer_config": {}},
    ],
)
def test_what_a_config_leaves_out_is_what_the_library_fills_in(fields: dict[str, Any]) -> None:
    """Kills a default of layer types, head widths, groups or rotary embeddings that is not the released class's."""
    from transformers import Gemma4TextConfig

    given: dict[str, Any] = {
        "vocab_size": 24, "hidden_size": 12, "intermediate_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 4, "head_dim": 6, "sliding_window": 5, "rms_norm_eps": 1e-6,
        "hidden_activation": "gelu_pytorch_tanh", **fields,
    }  # fmt: skip
    ours = read_shape(Config("config.json", {"backbone_hidden_size": 20, "text_config": given}))
    theirs = Gemma4TextConfig(**given)
    assert list(ours.layer_types) == theirs.layer_types
    for i, kind in enumerate(ours.layer_types):
        heads, layer, rope = ours.heads[kind], theirs.per_layer_config[i], theirs.rope_parameters[kind]
        assert (heads.width, heads.key_value_heads) == (layer.head_dim, layer.num_key_value_heads)
        assert heads.rope.theta == rope["rope_theta"]
        assert heads.rope.scaling == (Proportional(0.25) if rope["rope_type"] == "proportional" else Unscaled())


def constructible() -> Any:
    """transformers 5.23 refuses a model all of whose layers share, and stores no keys where none does: one property."""
    from transformers import Gemma4TextConfig

    released: Any = Gemma4TextConfig.__dict__.get("kv_sharing_modes")
    if released is None:
        return nullcontext()

    def sharing(config: Any) -> Any:
        count, types = config.num_hidden_layers, config.layer_types
        if config.num_kv_shared_layers == count:
            return ["reuse"] * count
        if config.num_kv_shared_layers == 0:
            return ["store" if kind not in types[i + 1 :] else None for i, kind in enumerate(types)]
        return released.fget(config)

    return patch.object(Gemma4TextConfig, "kv_sharing_modes", property(sharing))


def written_and_run(case: str, folder: Path) -> tuple[list[tuple[int, Tensor, Any, Tensor]], tuple[int, ...]]:
    """Both checkpoints as the library writes them; (position, inputs, keys seen, logits) of each draft; the output."""
    from transformers import Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4ForCausalLM, Gemma4TextConfig

    of_target, of_text, of_assistant = LIVE[case]
    common: dict[str, Any] = {
        "vocab_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "global_head_dim": 12,
        "sliding_window": 5, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip
    ple = {"hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 24}
    nothing = dict.fromkeys(ple, 0)
    stores = Gemma4TextConfig(
        **{
            **common,
            "hidden_size": 20,
            "intermediate_size": 24,
            "num_hidden_layers": len(of_target["layer_types"]),
            **ple,
            **of_target,
        }
    )
    reads = Gemma4TextConfig(
        **{**common, "hidden_size": 12, "intermediate_size": 16, "num_hidden_layers": 3, **nothing, **of_text}
    )
    torch.manual_seed(7)
    target: Any = filled(Gemma4ForCausalLM(stores))
    drafter: Any = filled(
        Gemma4AssistantForCausalLM(Gemma4AssistantConfig(text_config=reads, backbone_hidden_size=20, **of_assistant))
    )
    drafter.generation_config.num_assistant_tokens = 3
    target.save_pretrained(folder / "target")
    drafter.save_pretrained(folder / "assistant")
    calls, forward = [], type(drafter).forward

    def watched(self: Any, **inputs: Any) -> Any:
        out = forward(self, **inputs)
        keys = {
            kind: tuple(x[0].transpose(0, 1)[-6 if kind == SLIDING else 0 :] for x in pair)
            for kind, pair in inputs["shared_kv_states"].items()
        }
        calls.append((int(inputs["position_ids"]), inputs["inputs_embeds"][0], keys, out.logits[0, 0]))
        return out

    ids = torch.tensor([PROMPT])
    options = {"attention_mask": torch.ones_like(ids), "do_sample": False, "max_new_tokens": 24}
    with patch.object(type(drafter), "forward", watched):
        out = target.generate(ids, assistant_model=drafter, **options)
    return calls, tuple(out[0].tolist())


def filled(model: Any) -> Any:
    """Random weights, norms and scalars away from 1; a permutation where tokens are ordered."""
    for name, x in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith("token_ordering"):
            x.data = torch.randperm(len(x))
        elif not name.endswith(("inv_freq", "embed_scale")):
            one = float(name.endswith(("norm.weight", "scalar")))
            x.data = torch.randn_like(x) * (x.shape[-1] ** -0.5 if x.ndim > 1 else 0.2) + one
    return model.eval()
