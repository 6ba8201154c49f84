"""DeepSeek-V3's multi-token prediction (DeepSeek-AI 2024, section 2.2): modules that the target's checkpoint carries.

A module joins the embedding of a token with the hidden state of the position before it, and runs the pair through one
decoder layer of the target's own kind: latent attention and a mixture of experts, with a cache of its own. Row i of
module k is the pair (x_{i+k+1}, h_i), where h_i comes from the target after its final norm (k = 0) or from module
k - 1; its logits are about x_{i+k+2}. Embedding and head are the target's. The paper joins hidden state first; what
was released has the embedding first.

There is one module in every release, and how to draft a second token with it is the engine's choice. That is a
recurrence over features, EAGLE's in `networks/feature_recurrence.py`: row i + 1 is the drafted token with the output of
row i, one position on, and sees the rows before it. Two conventions have been published for what that output is:

"normed"  after the module's own `shared_head.norm`, as the target's states are after theirs: SGLang, transformers
          (between modules), vLLM since its #45895
"raw"     before it, and the norm is a part of the head: vLLM until then (03356f8)

They agree about the first token and differ from the second on. Training knows neither: it is a matter of acceptance.
vLLM also blanks the embedding of row 0; nobody else does, and nor do we.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from refengine.decoder.networks.cache import Cache
from refengine.decoder.networks.experts import Routing, mixture
from refengine.decoder.networks.latent_attention import LatentHeads, latent_attention
from refengine.decoder.networks.layers import Weights, wide
from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.decoder.rows import DrawnChain
from refengine.engine.block import Block

Recycled: TypeAlias = Literal["normed", "raw"]


@dataclass(frozen=True)
class Shape:
    """Sizes of the modules; names as in config.json. The modules are layers num_hidden_layers, ... of the file."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_nextn_predict_layers: int
    moe_intermediate_size: int
    n_shared_experts: int
    rms_norm_eps: float
    attention_bias: bool
    heads: LatentHeads
    routing: Routing


class Module:
    """One module, which is the network of `refengine.decoder.networks.feature_recurrence.Network`.

    tensors  by their names in the file
    depth    which module, from 0
    """

    def __init__(self, shape: Shape, tensors: Mapping[str, Tensor], depth: int = 0, recycled: Recycled = "normed"):
        self.shape, self.recycled = shape, recycled
        self.w = Weights(tensors).at("model.layers", shape.num_hidden_layers + depth)
        self.taps = (shape.num_hidden_layers,)  # after the final norm

    def fused(self, features: Tensor) -> Tensor:
        return features

    def rows(
        self, tokens: Tensor, hidden: Tensor, positions: Tensor, past: Cache, sees: Tensor, text: int | None = None
    ) -> tuple[Tensor, Cache]:
        s, w, eps = self.shape, self.w, self.shape.rms_norm_eps
        embedded = w.norm("enorm", w.embed("embed_tokens", tokens), eps)
        x = w.linear("eh_proj", torch.cat((embedded, w.norm("hnorm", hidden, eps)), -1))
        normed = w.norm("input_layernorm", x, eps)
        attended, latents = latent_attention(w.at("self_attn"), s.heads, normed, positions, past[0], sees)
        x = x + attended
        x = x + mixture(w.at("mlp"), s.routing, w.norm("post_attention_layernorm", x, eps))
        return (self._normed(x) if self.recycled == "normed" else x), (latents,)

    def logits(self, hidden: Tensor) -> Tensor:
        normed = hidden if self.recycled == "normed" else self._normed(hidden)
        return self.w.linear("shared_head.head", normed)

    def empty(self) -> Cache:
        return (self.shape.heads.empty(self.w["eh_proj.weight"]),)

    def _normed(self, x: Tensor) -> Tensor:
        return self.w.norm("shared_head.norm", x, self.shape.rms_norm_eps)


class ModuleChain:
    """A drafter: several modules, each for its own depth and none used twice, as they were trained.

    Cache of module k: the rows whose tokens are all in prefix[:-1], one fewer than module k - 1 has. `waiting[k]` is
    the hidden state of its next row, [1, H], or none where the prefix is too short.
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules, self.taps = tuple(modules), modules[0].taps
        self.caches: list[Cache] = []
        self.waiting: list[Tensor] = []
        self._forget()

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self._forget()
        self._extend(passed)

    def propose(self, turn: Turn) -> Block:
        chain = DrawnChain(turn)
        hidden = self.waiting[0][:0]
        for depth, module in enumerate(self.modules):
            # A deeper module has more rows to catch up with: all those that the anchor and the drafts complete.
            hidden, _ = self._run(depth, (turn.prefix[-1], *chain.path), torch.cat((self.waiting[depth], hidden)))
            if not chain.draw(wide(module.logits(hidden[-1:]))[0]):
                break
        return chain.block()

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        self._extend(kept)

    def state(self) -> State:
        held: dict[str, Tensor] = {}
        for k, (waiting, ((latents, keys),)) in enumerate(zip(self.waiting, self.caches, strict=True)):
            held |= {f"waiting.{k}": waiting, f"latents.{k}": latents, f"keys.{k}": keys}
        return held

    def restore(self, state: State) -> None:
        count = range(len(self.modules))
        self.waiting = [state[f"waiting.{k}"] for k in count]
        self.caches = [((state[f"latents.{k}"], state[f"keys.{k}"]),) for k in count]

    def _forget(self) -> None:
        self.caches = [module.empty() for module in self.modules]
        self.waiting = [module.w["eh_proj.weight"].new_empty(0, module.shape.hidden_size) for module in self.modules]

    def _extend(self, kept: Pass) -> None:
        """Append what the rows that the target kept complete: the tokens are new to every module."""
        tokens, hidden = tuple(kept.tokens.tolist()), kept.taps[self.taps[0]]
        for depth in range(len(self.modules)):
            inputs = torch.cat((self.waiting[depth], hidden[:-1]))
            self.waiting[depth] = hidden[-1:]
            hidden, self.caches[depth] = self._run(depth, tokens, inputs)

    def _run(self, depth: int, tokens: Tokens, inputs: Tensor) -> tuple[Tensor, Cache]:
        """The next rows of a module: these hidden states with the last as many of the tokens."""
        past, count = self.caches[depth], len(inputs)
        old, device = len(past[0][0]), inputs.device
        ids = torch.tensor(tokens[len(tokens) - count :], dtype=torch.long, device=device)
        sees = torch.ones(count, old + count, dtype=torch.bool, device=device).tril(old)
        return self.modules[depth].rows(ids, inputs, torch.arange(old, old + count, device=device), past, sees)
