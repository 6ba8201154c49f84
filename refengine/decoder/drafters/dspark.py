"""DSpark (DeepSeek 2025): a block-parallel backbone over fused target features, a sequential Markov head, a confidence
head that shortens the block. With both heads off it is DeepSpec's form of DFlash. Qwen3 layers.

Where the paper and the released code differ, the released code is followed: a checkpoint obeys it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.decoder.layers import Weights, attend, gated_mlp, rotate, wide
from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.decoder.rows import chain_block
from refengine.engine.block import Block
from refengine.exact.chance import Site


@dataclass(frozen=True)
class Shape:
    """The sizes and switches of a DSpark checkpoint; field names as in its config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    attention_bias: bool
    rms_norm_eps: float
    rope_theta: float
    num_target_layers: int
    target_layer_ids: tuple[int, ...]
    block_size: int
    mask_token_id: int
    markov_rank: int
    markov_head_type: str  # "" where markov_rank is 0
    enable_confidence_head: bool
    confidence_head_with_markov: bool


class DSpark:
    """Drafts up to `block_size` tokens after the anchor. Cache: keys and values of the context rows prefix[:-1].

    threshold  the block ends before the first position whose confidence is below it; 0 keeps every position
    """

    def __init__(self, shape: Shape, tensors: dict[str, Tensor], threshold: float = 0.0) -> None:
        if threshold > 0 and not shape.enable_confidence_head:
            raise ValueError("a confidence threshold was given, and this checkpoint has no confidence head")
        self.shape, self.threshold, self.w = shape, threshold, Weights(tensors)
        self.taps = tuple(
            layer + 1 for layer in shape.target_layer_ids
        )  # layer l writes hs[l + 1]; -1 is the embedding
        self._forget()

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self._forget()
        self._extend(passed)

    def propose(self, turn: Turn) -> Block:
        hidden = self.block(turn.prefix[-1], len(turn.prefix) - 1)
        base = self.w.linear("lm_head", hidden)
        memory = hidden.new_zeros(self.shape.markov_rank)
        path: Tokens = ()
        q: list[Tensor] = []
        sites: list[Site] = []
        for k in range(self.shape.block_size):
            before = self.before((turn.prefix + path)[-1])
            # Decided before x_k is drawn: a position may never be dropped because of the token that stands there.
            if self.threshold > 0 and float(self.confidence(hidden[k], before)) < self.threshold:
                break
            bias, memory = self.markov(hidden[k], before, memory)
            q.append(turn.row(wide(base[k] + bias), path))
            sites.append(("draft", k))
            path = (*path, turn.draw(q[-1], sites[-1]))
        return chain_block(path, q, sites, wide(base[0]))

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        self._extend(kept)

    def state(self) -> State:
        layers = enumerate(zip(self.keys, self.values, strict=True))
        return {f"kv.{i}.{name}": x for i, kv in layers for name, x in zip("kv", kv, strict=True)}

    def restore(self, state: State) -> None:
        layers = range(self.shape.num_hidden_layers)
        self.keys = [state[f"kv.{i}.k"] for i in layers]
        self.values = [state[f"kv.{i}.v"] for i in layers]

    # --- the backbone ----------------------------------------------------------------------------------------------

    def context(self, kept: Pass) -> Tensor:
        """The fused context C [n, H] = norm(fc(taps side by side)). Every layer attends to this same C."""
        features = torch.cat([kept.taps[j] for j in self.taps], -1)
        return self.w.norm("hidden_norm", self.w.linear("fc", features), self.shape.rms_norm_eps)

    def block(self, anchor: int, start: int) -> Tensor:
        """Hidden states [B, H] of the block [anchor, MASK, MASK, ...] at positions start, start + 1, ...

        Slot k is about position start + k + 1. Every row sees the whole context and the whole block, both directions.
        """
        s, device = self.shape, self.w["embed_tokens.weight"].device
        tokens = torch.tensor([anchor] + [s.mask_token_id] * (s.block_size - 1), device=device)
        positions = torch.arange(start, start + s.block_size, device=device)
        hidden = self.w.embed("embed_tokens", tokens)
        for i in range(s.num_hidden_layers):
            layer = self.w.at("layers", i)
            normed = layer.norm("input_layernorm", hidden, s.rms_norm_eps)
            q = self._heads(layer.at("self_attn"), "q", normed, positions)
            k, v = self._keys_and_values(layer.at("self_attn"), normed, positions)
            k, v = torch.cat((self.keys[i], k)), torch.cat((self.values[i], v))
            hidden = hidden + layer.linear("self_attn.o_proj", attend(q, k, v, s.head_dim**-0.5))
            normed = layer.norm("post_attention_layernorm", hidden, s.rms_norm_eps)
            hidden = hidden + gated_mlp(layer.at("mlp"), normed)
        return self.w.norm("norm", hidden, s.rms_norm_eps)

    def _forget(self) -> None:
        empty = self.w["fc.weight"].new_empty(0, self.shape.num_key_value_heads, self.shape.head_dim)
        self.keys = [empty] * self.shape.num_hidden_layers
        self.values = [empty] * self.shape.num_hidden_layers

    def _extend(self, kept: Pass) -> None:
        """Append the rows that the target has kept. Block rows never enter the cache, so nothing is rolled back."""
        context = self.context(kept)
        for i in range(self.shape.num_hidden_layers):
            k, v = self._keys_and_values(self.w.at("layers", i, "self_attn"), context, kept.positions)
            self.keys[i], self.values[i] = torch.cat((self.keys[i], k)), torch.cat((self.values[i], v))

    def _keys_and_values(self, attention: Weights, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        v = attention.linear("v_proj", x).view(len(x), -1, self.shape.head_dim)
        return self._heads(attention, "k", x, positions), v

    def _heads(self, attention: Weights, which: str, x: Tensor, positions: Tensor) -> Tensor:
        """Queries or keys [n, heads, d]: projected, normed per head, rotated."""
        heads = attention.linear(f"{which}_proj", x).view(len(x), -1, self.shape.head_dim)
        normed = attention.norm(f"{which}_norm", heads, self.shape.rms_norm_eps)
        return rotate(normed, positions, self.shape.rope_theta)

    # --- the heads -------------------------------------------------------------------------------------------------

    def before(self, token: int) -> Tensor:
        """The Markov embedding [r] of the token before a position; empty where there is no Markov head."""
        if self.shape.markov_rank == 0:
            return self.w["fc.weight"].new_empty(0)
        return self.w["markov_head.markov_w1.weight"][token]

    def markov(self, hidden: Tensor, before: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The bias [V] that the token before adds to a slot's base logits, and the memory [r] after it (rnn only)."""
        head = self.w.at("markov_head")
        if self.shape.markov_rank == 0:
            return hidden.new_zeros(self.shape.vocab_size), memory
        latent = before
        if self.shape.markov_head_type == "gated":
            latent = torch.sigmoid(head.linear("gate_proj", torch.cat((hidden, before)))) * before
        elif self.shape.markov_head_type == "rnn":
            gate, candidate, output = head.linear("joint_proj", torch.cat((memory, before, hidden))).chunk(3)
            memory = torch.sigmoid(gate) * memory + (1 - torch.sigmoid(gate)) * torch.tanh(candidate)
            latent = torch.tanh(output)
        return head.linear("markov_w2", latent), memory

    def confidence(self, hidden: Tensor, before: Tensor) -> Tensor:
        """The predicted probability that the target accepts this slot, from what precedes the slot's token. Scalar."""
        features = torch.cat((hidden, before)) if self.shape.confidence_head_with_markov else hidden
        return torch.sigmoid(wide(self.w.linear("confidence_head.proj", features)[0]))
