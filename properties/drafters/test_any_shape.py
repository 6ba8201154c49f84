"""Drafters of sizes that no fixture has, against the layers of transformers: every layout of EAGLE, P-EAGLE, DFlash,
DSpark, DART and Medusa, written as released, loaded and played through whole rounds in float64."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from properties.helpers.any_shape import Peer, Sizes, draft_vocabulary, linear, random_target, recurrence, rest, shaken
from properties.helpers.any_shape import attended as attention
from properties.helpers.coins import COINS
from refengine.decoder import load_drafter
from refengine.decoder.checkpoints.layouts.dart_ngrams import write_trie
from refengine.decoder.drafters.dart import TreeSearch
from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.drafters.medusa import Medusa
from refengine.decoder.loop import Session
from refengine.decoder.networks.feature_recurrence import Draft
from refengine.decoder.targets.base import Float64
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.policy import pipeline, temperature
from refengine.selfcheck.drafters.checks import along

LAYERS = 7  # of every target: layers 2, L / 2 and L - 3 are three
PROMPT = (3, 8, 1, 1, 5, 0, 7, 2)
THRESHOLD = 0.4  # of a confidence
TURNS = (((0, 0), 4), ((), 6))  # what is accepted of a round, and the token behind it


def causal(count: int) -> Tensor:
    return torch.ones(count, count, dtype=torch.bool).tril()


def named(prefix: str, module: Any) -> dict[str, Tensor]:
    return {f"{prefix}{name}": x for name, x in module.state_dict().items()}


def maybe(source: Random, **fields: Any) -> dict[str, Any]:
    """Fields that a config may leave out, or leave null but for flags. The values are those that it has then."""
    said = {}
    for name, value in fields.items():
        if (way := source.randrange(3)) < 2:
            said[name] = value if way or isinstance(value, bool) else None
    return said


def capped(logits: Tensor, cap: float | None) -> Tensor:
    return logits if cap is None else torch.tanh(logits / cap) * cap


# --- EAGLE ----------------------------------------------------------------------------------------------------------


def eagle1(source: Random, model: Any) -> Peer:
    bias, qkv_bias, layers = source.random() < 0.5, source.random() < 0.5, source.choice((1, 2, 3))
    sizes = Sizes(source, model.config.hidden_size, even=True, layers=layers, scaled=False)
    theta = maybe(source, rope_theta=1e4) if source.random() < 0.5 else {"rope_theta": sizes.rope["rope_theta"]}
    sizes.config.rope_parameters = {"rope_type": "default", "rope_theta": theta.get("rope_theta") or 1e4}
    if source.random() < 0.3:
        theta |= {"rope_theta": 77.0, "rope_scaling": {"type": "linear", "factor": 3.0}}
        sizes.config.rope_parameters = {"rope_type": "linear", "factor": 3.0, "rope_theta": 1e4}
    fields = {**sizes.fields, **theta, **(maybe(source, bias=True) if bias else {"bias": False})}
    fields |= {"qkv_bias": True} if qkv_bias else maybe(source, qkv_bias=False)
    if sizes.groups == sizes.heads:
        fields |= maybe(source, num_key_value_heads=sizes.groups)
    hidden, vocabulary = sizes.hidden, model.config.vocab_size
    fc, stack = shaken(linear(2 * hidden, hidden, bias), source), []
    for i in range(layers):
        layer = sizes.layer()
        for name in ("q_proj", "k_proj", "v_proj"):
            old = getattr(layer.self_attn, name)
            setattr(layer.self_attn, name, linear(hidden, old.out_features, qkv_bias))
        layer.input_layernorm = layer.input_layernorm if i else torch.nn.Identity()
        stack.append(shaken(layer, source))
    tensors = named("fc.", fc)
    for i, layer in enumerate(stack):
        tensors |= named(f"layers.{i}.", layer)
    embedding = model.get_input_embeddings().weight
    if source.random() < 0.5:
        embedding = tensors["embed_tokens.weight"] = torch.randn(embedding.shape, dtype=torch.float64)

    def rows(tokens: Tensor, features: Tensor, anchor: int) -> Tensor:
        x = fc(torch.cat((embedding[tokens], features), -1))
        for layer in stack:
            x = rest(layer, x, attention(layer, layer.input_layernorm(x), sizes, causal(len(x))))
        return x

    config = {"architectures": ["LlamaForCausalLM"], **fields, "vocab_size": vocabulary, "dtype": "float64"}
    return Peer(config, tensors, (LAYERS,), recurrence(lambda x: x, rows, lambda x: x @ model.lm_head.weight.T))


def eagle3(kind: str, source: Random, model: Any) -> Peer:
    """The released layouts by what they have: see `refengine/decoder/checkpoints/layouts/eagle3.py`."""
    theirs, vocabulary = model.config.hidden_size, model.config.vocab_size
    coin = lambda *kinds: kind in kinds and source.random() < 0.5  # noqa: E731
    deepspec = kind in ("deepspec", "gemma4")
    family = "qwen3" if kind == "deepspec" or coin("speculators") else "gemma4" if kind == "gemma4" else "llama"
    several = source.choice((1, 2, 3)) if kind not in ("safeailab", "specforge", "dart") else 1
    biased = coin("deepspec", "gemma4", "speculators", "peagle", "amazon")
    mlp_bias = family == "llama" and coin("speculators", "peagle")
    own = deepspec or kind in ("speculators", "peagle", "amazon") or (kind != "dart" and source.random() < 0.5)
    hidden = source.choice((12, 24)) if own and not deepspec else theirs
    free = kind in ("safeailab", "dart")  # these turn in a way of their own
    sizes = Sizes(
        source, hidden, family, even=kind == "safeailab", layers=several, head_bias=biased, mlp_bias=mlp_bias,
        scaled=not free,
    )  # fmt: skip
    before_fc, norm_output = coin("speculators", "peagle"), coin("speculators", "peagle")
    fc_norm, residual = coin("speculators", "peagle", "specforge"), coin("speculators", "peagle", "amazon")
    head_norm = not coin("specforge")
    sliding = [coin("speculators", "peagle") for _ in range(several)]
    window = source.choice((1, 2, 3)) if any(sliding) else None
    taps: tuple[int, ...] = (2, 3, 4)
    count, maps, spread = draft_vocabulary(source, vocabulary) if not deepspec else (vocabulary, {}, None)
    fields = {**sizes.fields, "vocab_size": vocabulary, "dtype": "float64"}
    if free and kind != "dart":
        said = maybe(source, rope_theta=1e4) if source.random() < 0.5 else {"rope_theta": sizes.rope["rope_theta"]}
        sizes.config.rope_parameters = {"rope_type": "default", "rope_theta": said.get("rope_theta") or 1e4}
    else:
        said = sizes.said_rope()
    fields |= said
    if sizes.groups == sizes.heads and kind in ("safeailab", "specforge", "amazon", "dart"):
        fields |= maybe(source, num_key_value_heads=sizes.groups)
    if theirs != hidden:
        fields["target_hidden_size"] = theirs
    if deepspec or kind in ("speculators", "amazon", "peagle"):
        fields |= {"attention_bias": True} if biased else maybe(source, attention_bias=False)
    mask, length = source.randrange(vocabulary), 5

    cap = 0.8 if coin("gemma4") else None
    if deepspec:
        taps = tuple(source.sample(range(LAYERS), source.choice((1, 2, 4))))
        fields |= {"final_logit_softcapping": cap} if cap else {}
        name = "Gemma4Eagle3Model" if kind == "gemma4" else "Qwen3Eagle3Model"
        config = fields | {"architectures": [name], "num_target_layers": LAYERS, "ttt_length": length}
        config["target_layer_ids"] = [tap - 1 for tap in taps]
    elif kind in ("speculators", "peagle"):
        layer_fields = {key: x for key, x in fields.items() if key != "target_hidden_size"}
        layer_fields |= {"model_type": family} | ({"mlp_bias": True} if mlp_bias else maybe(source, mlp_bias=False))
        if window is not None:
            types = ["sliding_attention" if slides else "full_attention" for slides in sliding]
            layer_fields |= {"layer_types": types, "sliding_window": window, "use_sliding_window": True}
        switches = {
            "norm_before_fc": before_fc, "fc_norm": fc_norm, "norm_output": norm_output,
        }  # fmt: skip
        config = {
            "architectures": ["x"], "speculators_model_type": "eagle3" if kind == "speculators" else "peagle",
            "transformer_layer_config": layer_fields, "draft_vocab_size": count, "dtype": "float64",
            "norm_before_residual": residual,
            "speculators_config": {"proposal_methods": [{"speculative_tokens": length}]},
        }  # fmt: skip
        for name, value in switches.items():
            config |= {name: True} if value else maybe(source, **{name: False})
        if theirs != hidden or source.random() < 0.5:
            config["target_hidden_size"] = theirs
        if source.random() < 0.7:
            taps = tuple(source.sample(range(LAYERS), source.choice((1, 2, 4))))
            config["eagle_aux_hidden_state_layer_ids"] = list(taps)
        if kind == "peagle":
            config["mask_token_id"] = mask
    elif kind == "amazon":
        config = fields | {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": count, "ptd_token_id": mask}
        config |= {"norm_before_residual": True} if residual else maybe(source, norm_before_residual=False)
    else:
        name = {"safeailab": "LlamaForCausalLM", "specforge": "LlamaForCausalLMEagle3", "dart": "x"}[kind]
        config = fields | {"architectures": [name], "draft_vocab_size": count}
        config |= {"draft_length": length - 1} if kind == "dart" else {}
        if kind == "specforge":
            config |= {"norm_output": False} if not head_norm else maybe(source, norm_output=True)
            config |= {"fc_norm": True} if fc_norm else maybe(source, fc_norm=False)
            if source.random() < 0.5:
                taps = tuple(sorted(source.sample(range(LAYERS), 3)))
                config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": [tap - 1 for tap in reversed(taps)]}

    joined = several if deepspec else 1
    stack = [shaken(sizes.layer(2 * hidden if i < joined else None), source) for i in range(several)]
    hidden_norms = [shaken(sizes.norm(), source) for _ in range(joined)]
    fc, head = shaken(linear(len(taps) * theirs, hidden), source), shaken(linear(hidden, count), source)
    norm, input_norm = shaken(sizes.norm(), source), shaken(sizes.norm(len(taps) * theirs), source)
    fc_norms = [shaken(sizes.norm(theirs), source) for _ in taps]
    embedding = model.get_input_embeddings().weight
    tensors = {**named("fc.", fc), **named("norm.", norm), **named("lm_head.", head), **maps}
    if own:
        embedding = tensors["embed_tokens.weight"] = torch.randn(vocabulary, hidden, dtype=torch.float64)
    tensors |= named("input_norm.", input_norm) if before_fc else {}
    for j, one in enumerate(fc_norms if fc_norm else ()):
        tensors |= named(f"fc_norm.{j}.", one)
    for i, layer in enumerate(stack):
        prefix = f"layers.{i}." if i or deepspec or kind in ("speculators", "peagle") else "midlayer."
        tensors |= named(prefix, layer) | (named(f"{prefix}hidden_norm.", hidden_norms[i]) if i < joined else {})

    def fused(features: Tensor) -> Tensor:
        if before_fc:
            features = input_norm(features)
        if fc_norm:
            features = torch.cat([one(x) for one, x in zip(fc_norms, features.split(theirs, -1), strict=True)], -1)
        out: Tensor = fc(features)
        return out

    def sees(count: int, anchor: int) -> Tensor:
        """In a sliding layer. A round's rows stand at `anchor` and after it."""
        seen = causal(count)
        if window is not None:
            for row in range(count):
                first = row if row < anchor or kind == "peagle" else anchor
                seen[row, : max(0, min(first - window + 1, anchor))] = False
        return seen

    def rows(tokens: Tensor, x: Tensor, anchor: int) -> Tensor:
        embedded = sizes.written(embedding)[tokens]
        for i, layer in enumerate(stack):
            normed = layer.input_layernorm(embedded if i < joined else x)
            if i < joined:
                feature = hidden_norms[i](x)
                normed, x = torch.cat((normed, feature), -1), feature if residual else x
            seen = sees(len(x), anchor) if sliding[i] else causal(len(x))
            x = rest(layer, x, attention(layer, normed, sizes, seen))
        return norm(x) if norm_output else x

    def logits(x: Tensor) -> Tensor:
        own = capped(head(norm(x) if head_norm and not norm_output else x), cap)
        return spread(own) if spread else own

    chain = recurrence(fused, rows, logits)
    if kind in ("peagle", "amazon"):
        masked = shaken(linear(len(taps) * theirs, 1), source).weight
        tensors["mask_hidden"] = masked.reshape((1, 1, -1) if kind == "peagle" else (-1,))

        def chain(features: Tensor, prefix: Any, drafted: Any) -> Tensor:
            tokens = torch.tensor([*prefix[1:], *(mask for _ in drafted)])
            hidden = torch.cat((fused(features), fused(masked).expand(len(drafted), -1)))
            return logits(rows(tokens, hidden, len(prefix) - 2)[len(prefix) - 2 :])

    if kind == "dart":
        blank = shaken(linear(2 * hidden, 1), source).weight[0]
        tensors["midlayer.mask_rep"] = blank

        def chain(features: Tensor, prefix: Any, drafted: Any) -> Tensor:
            layer, x = stack[0], fused(features)
            pairs = torch.cat((layer.input_layernorm(embedding[torch.tensor(prefix[1:])]), hidden_norms[0](x)), -1)
            pairs = torch.cat((pairs, blank.expand(length - 1, -1)))
            x = torch.cat((x, blank[:hidden].expand(length - 1, -1)))
            x = rest(layer, x, attention(layer, pairs, sizes, causal(len(x))))
            return spread(head(norm(norm(x[-length:]))))  # type: ignore[misc]

    return Peer(config, tensors, taps, chain)


# --- blocks ---------------------------------------------------------------------------------------------------------


def block(kind: str, source: Random, model: Any) -> Peer:
    """DFlash of z-lab, of transformers and of speculators; DSpark of DeepSpec ("gemma4": of its other family), and of
    speculators ("heads")."""
    hidden, vocabulary, layers = model.config.hidden_size, model.config.vocab_size, source.choice((1, 2, 3))
    deepspec, speculators = kind in ("deepspec", "gemma4"), kind in ("speculators", "heads")
    biased, factors = source.random() < 0.5, dict[str, float]()
    sizes = Sizes(source, hidden, "gemma4" if kind == "gemma4" else "qwen3", layers=layers, head_bias=biased)
    slots, mask, near = source.randrange(2, 8), source.randrange(vocabulary), source.choice((1, 2, 4))
    sliding = [not deepspec and source.random() < 0.5 for _ in range(layers)]
    taps = tuple(source.sample(range(LAYERS), source.choice((1, 2, 4))))
    cap = 0.8 if kind == "gemma4" and source.random() < 0.5 else None
    shifted, causal_block, count, maps, spread = deepspec, True, vocabulary, dict[str, Tensor](), lambda x: x
    fields = {**sizes.fields, **sizes.said_rope()} | ({"attention_bias": True} if biased else {})
    types = ["sliding_attention" if slides else "full_attention" for slides in sliding]
    windows: dict[str, Any] = {"sliding_window": near, "use_sliding_window": True} if any(sliding) else {}
    if sliding == sorted(sliding) and source.random() < 0.5:  # as Qwen's configs were before there were types
        windows |= {"max_window_layers": layers - sum(sliding)}
    elif windows or source.random() < 0.5:
        windows |= {"layer_types": types}
    config: dict[str, Any]
    if kind == "zlab":
        inner = {"target_layer_ids": [tap - 1 for tap in taps], "mask_token_id": mask}
        config = {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", **fields, **windows}
        config |= {"num_target_layers": LAYERS, "vocab_size": vocabulary, "dflash_config": inner}
        for name in ("input_embedding_scale", "output_multiplier"):
            if source.random() < 0.5:
                factors[name] = source.choice((config, inner))[name] = 0.3 + source.random()
        source.choice((config, inner))["block_size"] = slots
        if not (causal_block := source.random() < 0.5):
            config["is_causal"] = False
    elif kind == "transformers":
        config = {"architectures": ["MuseGlimmerAssistantModel"], **fields, "sliding_window": near}
        config |= {"mask_token_id": mask, "block_size": slots, "target_layer_ids": [tap - 1 for tap in taps]}
        config |= {} if all(sliding) else {"layer_types": types}
    elif speculators:
        count, maps, spread = draft_vocabulary(source, vocabulary)
        causal_block, shifted = source.random() < 0.5, source.random() < 0.5
        config = {"architectures": ["x"], "aux_hidden_state_layer_ids": list(taps), "draft_vocab_size": count}
        config |= {"speculators_model_type": "dspark" if kind == "heads" else "dflash"}
        config["transformer_layer_config"] = {**fields, **windows, "model_type": "qwen3", "vocab_size": vocabulary}
        config |= {"block_size": slots, "mask_token_id": mask}
        config |= (
            maybe(source, sliding_window_non_causal=False) if causal_block else {"sliding_window_non_causal": True}
        )
        usual = shifted is (kind == "heads")
        config |= maybe(source, sample_from_anchor=shifted) if usual else {"sample_from_anchor": shifted}
    else:
        name = "Gemma4DSparkModel" if kind == "gemma4" else "Qwen3DSparkModel"
        config = {"architectures": [name], **fields, "vocab_size": vocabulary, "block_size": slots}
        config |= {"final_logit_softcapping": cap} if cap else {}
        config |= {"num_target_layers": LAYERS, "target_layer_ids": [tap - 1 for tap in taps], "mask_token_id": mask}
    slots_drafted = slots if shifted else slots - 1
    length = slots_drafted if deepspec or source.random() < 0.5 else source.randrange(1, slots_drafted + 1)
    if speculators and (length < slots_drafted or source.random() < 0.5):
        config["speculators_config"] = {"proposal_methods": [{"speculative_tokens": length}]}
    elif not speculators:
        length = slots_drafted

    stack = [shaken(sizes.layer(), source) for _ in range(layers)]
    fc, head = shaken(linear(len(taps) * hidden, hidden), source), shaken(linear(hidden, count), source)
    norm, hidden_norm = shaken(sizes.norm(), source), shaken(sizes.norm(), source)
    embedding = model.get_input_embeddings().weight
    if "input_embedding_scale" in factors:
        embedding = embedding * factors["input_embedding_scale"]
    elif not speculators:  # what the target's own module writes
        embedding = model.get_input_embeddings()(torch.arange(vocabulary))
    behind = ("encoder.fc.", "encoder.output_norm_enc.") if kind == "transformers" else ("fc.", "hidden_norm.")
    tensors = {**named(behind[0], fc), **named(behind[1], hidden_norm), **named("norm.", norm), **maps}
    for i, layer in enumerate(stack):
        tensors |= named(f"layers.{i}.", layer)
    if deepspec or (speculators and source.random() < 0.5):
        embedding = tensors["embed_tokens.weight"] = torch.randn(vocabulary, hidden, dtype=torch.float64)
        tensors |= named("lm_head.", head)
    else:
        head = linear(hidden, count)
        drafted_rows = maps["t2d"] if maps else slice(None)
        head.weight.data = model.lm_head.weight[drafted_rows] * factors.get("output_multiplier", 1.0)

    def sees(context: int) -> Tensor:
        """Of the block's rows alone, in a sliding layer; bool [slots, context + slots]."""
        rows, keys = torch.arange(context, context + slots)[:, None], torch.arange(context + slots)
        if kind == "transformers":
            return (rows - keys).abs() <= near
        seen = rows - keys < near if kind == "zlab" else keys >= context - near
        if causal_block:
            return seen & (keys <= rows)
        return seen & (keys - rows < near) if kind == "zlab" else seen

    def slotted(features: Tensor, anchor: int) -> Tensor:
        context = hidden_norm(fc(features))
        x = sizes.written(embedding)[torch.tensor([anchor] + [mask] * (slots - 1))]
        for layer, slides in zip(stack, sliding, strict=True):
            seen = torch.ones(len(context) + slots, len(context) + slots, dtype=torch.bool)
            seen[len(context) :] = sees(len(context)) if slides else True
            both = torch.cat((context, layer.input_layernorm(x)))
            x = rest(layer, x, attention(layer, both, sizes, seen)[len(context) :])
        out: Tensor = norm(x)
        return out

    if deepspec or kind == "heads":
        reads = lambda x: capped(head(x), cap)  # noqa: E731
        return sequential(source, config, tensors, taps, slotted, reads, (count, hidden), spread, shifted, length)

    def chain(features: Tensor, prefix: Any, drafted: Any) -> Tensor:
        return spread(head(slotted(features, prefix[-1])[0 if shifted else 1 :]))

    return Peer(config, tensors, taps, chain, lambda *_: length)


def sequential(
    source: Random, config: Any, tensors: Any, taps: Any, slotted: Any, head: Any, sizes: tuple[int, int], spread: Any,
    shifted: bool, most: int,
) -> Peer:  # fmt: skip
    """DSpark's heads on what the slots put out."""
    rank, (count, hidden) = source.choice((0, 3, 5)), sizes
    kind = source.choice(("vanilla", "gated", "rnn")) if rank else ""
    confident = source.random() < 0.7
    with_markov = confident and rank > 0 and source.random() < 0.5
    config |= {"markov_rank": rank, "enable_confidence_head": confident} | ({"markov_head_type": kind} if rank else {})
    config |= {"confidence_head_with_markov": with_markov} if confident else {}
    vocabulary = spread(torch.zeros(1, count, dtype=torch.float64)).shape[1]
    first = shaken(torch.nn.Embedding(vocabulary, max(rank, 1)), source)
    second = shaken(linear(max(rank, 1), count), source)
    wide = (2 * rank + hidden, 3 * rank) if kind == "rnn" else (hidden + rank, rank)
    joint = shaken(linear(*wide, bias=True), source) if rank else second
    confidence = shaken(linear(hidden + (rank if with_markov else 0), 1, True), source)
    if rank:
        tensors |= named("markov_head.markov_w1.", first) | named("markov_head.markov_w2.", second)
    if kind in ("gated", "rnn"):
        tensors |= named(f"markov_head.{'gate' if kind == 'gated' else 'joint'}_proj.", joint)
    if confident:
        tensors |= named("confidence_head.proj.", confidence)

    def both(features: Tensor, prefix: Any, drafted: Any) -> tuple[Tensor, list[float]]:
        memory, rows, odds = torch.zeros(rank, dtype=torch.float64), list[Tensor](), list[float]()
        before = [prefix[-1], *drafted] if shifted else [prefix[-1], prefix[-1], *drafted]
        slots = slotted(features, prefix[-1])[: most if shifted else most + 1]
        for slot, token in zip(slots, before, strict=False):
            own, latent = head(slot), first(torch.tensor(token))
            odds.append(float(confidence(torch.cat((slot, latent)) if with_markov else slot).sigmoid()))
            if kind == "gated":
                latent = joint(torch.cat((slot, latent))).sigmoid() * latent
            elif kind == "rnn":
                gate, candidate, out = joint(torch.cat((memory, latent, slot))).chunk(3)
                memory, latent = gate.sigmoid() * memory + (-gate).sigmoid() * candidate.tanh(), out.tanh()
            rows.append(own + second(latent) if rank else own)
        skipped = 0 if shifted else 1
        return spread(torch.stack(rows[skipped:])), odds[skipped:]

    def length(*of: Any) -> int:
        odds = both(*of)[1]
        return next((place for place, one in enumerate(odds) if confident and one < THRESHOLD), most)

    return Peer(config, tensors, taps, lambda *of: both(*of)[0], length)


def medusa(source: Random, model: Any) -> Peer:
    heads, layers = source.choice((1, 2, 4)), source.choice((0, 1, 2, 3))
    hidden, vocabulary = model.config.hidden_size, model.config.vocab_size
    tensors, stacks = dict[str, Tensor](), list[list[Any]]()
    for i in range(heads):
        stack = [shaken(linear(hidden, hidden, True), source) for _ in range(layers)]
        stacks.append([*stack, shaken(linear(hidden, vocabulary), source)])
        for j, one in enumerate(stack):
            tensors |= named(f"{i}.{j}.linear.", one)
        tensors |= named(f"{i}.{layers}.", stacks[-1][-1])

    def chain(features: Tensor, prefix: Any, drafted: Any) -> Tensor:
        rows = []
        for stack in stacks:
            x = features[-1]
            for one in stack[:-1]:
                x = x + torch.nn.functional.silu(one(x))
            rows.append(stack[-1](x))
        return torch.stack(rows)

    return Peer({"medusa_num_heads": heads, "medusa_num_layers": layers}, tensors, (LAYERS,), chain)


MADE: dict[str, Callable[[Random, Any], Peer]] = {
    "EAGLE-1": eagle1,
    **{
        f"EAGLE-3 of {kind}": lambda source, model, kind=kind: eagle3(kind, source, model)  # type: ignore[misc]
        for kind in ("safeailab", "specforge", "deepspec", "gemma4", "speculators")
    },
    "P-EAGLE of speculators": lambda source, model: eagle3("peagle", source, model),
    "P-EAGLE of Amazon": lambda source, model: eagle3("amazon", source, model),
    "DART": lambda source, model: eagle3("dart", source, model),
    "Medusa": medusa,
    **{
        f"DFlash of {kind}": lambda source, model, kind=kind: block(kind, source, model)  # type: ignore[misc]
        for kind in ("zlab", "transformers", "speculators")
    },
    "DSpark of DeepSpec": lambda source, model: block("deepspec", source, model),
    "DSpark of gemma4": lambda source, model: block("gemma4", source, model),
    "DSpark of speculators": lambda source, model: block("heads", source, model),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "EAGLE-1": {"plan": Chain(5)},
    "EAGLE-3 of safeailab": {"plan": Chain(5)},
    "EAGLE-3 of specforge": {"plan": Chain(5)},
    "P-EAGLE of Amazon": {"gamma": 5},
    "DFlash of zlab": {"greedy": False},
}


def undrawn(drafter: Any, anchor: int) -> Tensor | None:
    """The logits that a drafter looks at which draws nothing from them."""
    if isinstance(drafter, Medusa):
        return drafter.heads(drafter.hidden)
    if isinstance(getattr(drafter, "plan", None), TreeSearch):
        draft = Draft(drafter.network, drafter.cache, drafter.length, anchor, drafter.feature)
        return drafter.plan.levels(draft)  # type: ignore[no-any-return]
    return None


@cache
def model_of(seed: int) -> Any:
    return random_target(Random(seed), LAYERS)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", MADE)
@torch.inference_mode()
def test_rounds_are_those_of_the_official_layers(name: str, seed: int, tmp_path: Path) -> None:
    """Kills a size that stands for another of the same value, a bias, a norm, an epsilon or a window that is read in
    the fixtures' shapes alone, and a default that no fixture leaves out."""
    source, model = Random(f"{name} {seed}"), model_of(seed)
    torch.manual_seed(seed)
    peer = MADE[name](source, model)
    target = TransformersTarget(model)
    options = {"threshold": THRESHOLD} if peer.config.get("enable_confidence_head") else OPTIONS.get(name, {})
    folder = peer.write(tmp_path / "drafter")
    write_trie(Trie.of([[1, 2, 1, 3]]), folder / "full.trie")
    drafter = load_drafter(folder, target, **options)
    session = Session(target, drafter, along((), 0), pipeline(temperature(1.0)), 10**6)
    session.begin(tuple(x % target.vocabulary for x in PROMPT), COINS)
    for turns, token in TURNS:
        prefix = session.prompt + session.out
        found = undrawn(drafter, prefix[-1])
        session.rule = along(turns, token)
        session.play(COINS)
        block = session.rounds[-1].block
        with Float64():
            states = model(torch.tensor([prefix[:-1]]), output_hidden_states=True, use_cache=False).hidden_states
            features = torch.cat([states[tap][0] for tap in peer.taps], -1)
            drafted = block.tokens[0].tolist()
            wanted = peer.chain(features, prefix, drafted).softmax(-1)
        if block.q is not None:
            assert len(drafted) == peer.length(features, prefix, drafted)
            found, wanted = block.q[0], wanted[: len(drafted)]
        assert found is not None
        assert torch.allclose(found if block.q is not None else found.softmax(-1), wanted, rtol=0, atol=1e-9)
