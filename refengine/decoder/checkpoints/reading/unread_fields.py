"""Fields of a config that change what a network computes, and that its reader does not read: refused by name.

A file may ask for more than the layout that it is read as has: a factor on embeddings, a cap on logits, half of a head
turned. Without those the drafter still loads and drafts, only badly. What a file's tensors show (biases, experts, norms
with a weight) need not be here, nor what no network computes with (ids, dropout, initialisation).
"""

from collections.abc import Mapping

from refengine.decoder.checkpoints.reading.config import Config

# Name, and the values that ask for nothing; null does so everywhere. As configs of transformers have them, and of:
SWITCHES: Mapping[str, tuple[object, ...]] = {
    # Granite, MiniCPM, Cohere, Falcon-H1, z-lab's later DFlash
    "embedding_multiplier": (1,),
    "residual_multiplier": (1,),
    "attention_multiplier": (),
    "logits_scaling": (1,),
    "logit_scale": (1,),
    "lm_head_multiplier": (1,),
    "key_multiplier": (1,),
    "attention_in_multiplier": (1,),
    "attention_out_multiplier": (1,),
    "mlp_multipliers": (1,),
    "scale_emb": (1,),
    "scale_depth": (),
    "dim_model_base": (),
    "input_embedding_scale": (1,),
    "output_multiplier": (1,),
    # Gemma, gpt-oss, OLMo, Llama 4
    "final_logit_softcapping": (0,),
    "attn_logit_softcapping": (0,),
    "query_pre_attn_scalar": (),
    "hidden_activation": ("silu",),
    "swiglu_limit": (),
    "clip_qkv": (),
    "attention_chunk_size": (),
    "attn_temperature_tuning": (False,),
    "use_qk_norm": (False,),
    "qk_norm": (False,),
    "use_parallel_residual": (False,),
    # angles
    "partial_rotary_factor": (1,),
    "rotary_pct": (1,),
    "rope_interleave": (False,),
    "rope_interleaved": (False,),
    "rope_local_base_freq": (),
    "no_rope_layers": (1,),  # 1 where a layer turns
    # EAGLE-3 of other readers
    "norm_before_residual": (False,),
    "norm_before_fc": (False,),
    "fc_norm": (False,),
    "norm_output": (False,),
    "use_aux_hidden_state": (True,),
    "use_input_layernorm_in_first_layer": (True,),
    "use_last_layernorm": (True,),
    "use_mtp_layernorm": (False,),
    "eagle_aux_hidden_state_layer_ids": (),
    "eagle_config": (),
    # block drafters of other readers
    "dflash_config": (),
    "projector_type": (),
    "attention_mode": ("gqa",),
    "shift_label": (False,),
    "pure_draft_prefix_len": (0,),
    "parallel_drafting": (False,),
    "pard_token": (),
    "ptd_token_id": (),
}
QUANTISED = ("quantization_config", "compression_config")


def refuse_unread(config: Config, *read: str) -> None:
    """Raise BadInput for a field that asks for something. read: those that the layout's reader reads itself."""
    for name in QUANTISED:
        if config.fields.get(name):
            config.refuse(f"{name} is given, and quantised weights are not read here: dequantise them first")
    for name, nothing in SWITCHES.items():
        value = config.fields.get(name)
        asked = value if isinstance(value, list) else [value]
        if name not in read and any(x is not None and x not in nothing for x in asked):
            config.refuse(
                f"{name} is {value!r}, which changes what a drafter computes, and this layout has no such thing"
            )
