"""The Gemma 4 assistant (Google 2026): four layers without keys or values of their own, which read the target's.

The target keeps, for each layer type, the keys and values of the last layer that computes any. Every layer of the
assistant only makes queries, and attends to those of its type: full layers to all rows of the prefix, sliding ones to
the last W + 1. A draft step joins the target's embedding of the newest token with a hidden state, of the target's last
row in the first step and the assistant's own afterwards. Keys and position stand still during a round: every step asks
from the anchor's position.

Transformers 5.20 - 5.23 (models/gemma4_assistant, SinglePositionMultiTokenCandidateGenerator) is followed, with three
differences. (1) There drafts are argmaxes whose raw rows are passed off as q; here they are drawn from q. (2) There a
token that the centroid head did not score keeps the least logit minus one; here its q is zero. (3) There the rows of
rejected drafts stay readable: full layers see the first L keys where L - 1 are true, so after a rejection the key of
the first rejected draft; sliding layers, past the window, the last W + 1 rows of the whole verification pass, all
rejected ones included. Here the keys are those of the prefix. `stale_keys` brings (3) back: the law does not change,
since q is drawn from all the same, but the drafts depend on more than the prefix.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import linear

from refengine.decoder.networks.layers import Heads, Weights, after_attention, attend, wide
from refengine.decoder.protocols import Pass, State, Target, Tokens, Turn, Verdict
from refengine.decoder.rows import DrawnChain, chain_rows
from refengine.engine.block import Block

Keys: TypeAlias = Mapping[str, tuple[Tensor, Tensor]]  # layer type -> keys and values, each [m, G, d]
Sees: TypeAlias = Mapping[str, Tensor] | None  # layer type -> bool [n, m]; None: every row sees every key
SLIDING = "sliding_attention"


@dataclass(frozen=True)
class Shape:
    """The sizes and switches of an assistant's checkpoint; field names as in its config.json where it has them.

    heads          by layer type
    num_centroids  0 where use_ordered_embeddings is off: the head scores every token
    """

    vocab_size: int
    hidden_size: int
    backbone_hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    layer_types: tuple[str, ...]
    heads: Mapping[str, Heads]
    sliding_window: int
    attention_bias: bool
    rms_norm_eps: float
    tie_word_embeddings: bool
    num_centroids: int
    centroid_intermediate_top_k: int


@dataclass(frozen=True)
class Backbone:
    """What the assistant takes of its target.

    stores  layer type -> the target's layer whose keys and values the assistant's layers of this type read
    embed   tokens [n] -> [n, B], scaled as the target itself scales them
    """

    target: Target
    stores: Mapping[str, int]
    embed: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Step:
    """features [n, H] that the head reads; logits [n, V] as released; scored bool [n, V]: which of them were computed;
    hidden [n, B]: what the next step takes."""

    features: Tensor
    logits: Tensor
    scored: Tensor
    hidden: Tensor


class Gemma4Assistant:
    """Drafts up to gamma tokens one by one. It has no cache: between rounds it holds the target's last hidden state."""

    def __init__(
        self, shape: Shape, tensors: Mapping[str, Tensor], backbone: Backbone, gamma: int, stale_keys: bool = False
    ) -> None:
        if gamma < 1:
            raise ValueError(f"gamma is the number of drafted tokens, at least 1, got {gamma}")
        self.shape, self.w = shape, Weights(tensors, gemma4=True)
        self.backbone, self.gamma = backbone, gamma
        self.stale_keys = stale_keys
        self.taps = (backbone.target.layers,)  # after the final norm
        self.drafted: Tokens = ()
        self.verified = 0  # with stale keys, of the last round: the rows before it,
        self.rejected: Tokens = ()  # and the drafts that did not stay

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.drafted, self.verified, self.rejected = (), 0, ()
        self.hidden = passed.taps[self.taps[0]][-1:]

    def propose(self, turn: Turn) -> Block:
        length = len(turn.prefix)
        keys, hidden = self.keys(length), self.hidden
        position = torch.tensor([length - 1], device=hidden.device)
        chain = DrawnChain(turn)
        for _ in range(self.gamma):
            step = self.step(torch.tensor([chain.newest], device=hidden.device), hidden, position, keys)
            hidden, logits = step.hidden, wide(step.logits[0])
            if not chain.draw(logits.masked_fill(~step.scored[0], float("-inf"))):
                break
        self.drafted = chain.path
        return chain.block()

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        self.hidden = kept.taps[self.taps[0]][-1:]
        if self.stale_keys:
            self.rejected = self.drafted[len(verdict.path) :]
            self.verified = int(kept.positions[0])
        self.drafted = ()

    def state(self) -> State:
        return {
            "hidden": self.hidden,
            "drafted": self.drafted,
            "pool.verified": self.verified,
            "pool.rejected": self.rejected,
        }

    def restore(self, state: State) -> None:
        self.hidden, self.drafted = state["hidden"], state["drafted"]
        self.verified, self.rejected = state["pool.verified"], state["pool.rejected"]

    # --- the network -----------------------------------------------------------------------------------------------

    def step(self, tokens: Tensor, hidden: Tensor, positions: Tensor, keys: Keys, sees: Sees = None) -> Step:
        """One step for each of n rows (tokens [n], hidden [n, B], positions [n]), none of which sees another.

        Drafting has one row at a time; training has one for each place of a text.
        """
        s = self.shape
        x = self.w.linear("pre_projection", torch.cat((self.backbone.embed(tokens), hidden), -1))
        for i, kind in enumerate(s.layer_types):
            layer, heads, (k, v) = self.w.at("model", "layers", i), s.heads[kind], keys[kind]
            attention = layer.at("self_attn")
            q = heads.queries(attention, layer.norm("input_layernorm", x, s.rms_norm_eps), positions)
            seen = attend(q, k, v, heads.scale, sees[kind] if sees else None)
            x = after_attention(layer, x, attention.linear("o_proj", seen), s.rms_norm_eps)
        x = self.w.norm("model.norm", x, s.rms_norm_eps)
        logits, scored = self.head(x)
        return Step(x, logits, scored, self.w.linear("post_projection", x))

    def head(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [n, V] of x [n, H], and which of them were computed (bool [n, V]).

        Ordered embeddings: the best centroids are picked, and their tokens alone are scored. What is not scored has the
        least scored logit of the whole call minus one, as released.
        """
        s = self.shape
        weight = self.w["model.embed_tokens.weight" if s.tie_word_embeddings else "lm_head.weight"]
        if not s.num_centroids:
            logits = linear(x, weight)
            return logits, torch.ones_like(logits, dtype=torch.bool)
        ordering = self.w["masked_embedding.token_ordering"].view(s.num_centroids, -1)
        best = self.w.linear("masked_embedding.centroids", x).topk(s.centroid_intermediate_top_k, -1).indices
        tokens = ordering[best].flatten(1)
        logits = torch.einsum("nh,nch->nc", x, weight[tokens])
        unscored = (logits.min() - 1.0).expand(len(x), s.vocab_size)
        scored = torch.zeros_like(unscored, dtype=torch.bool).scatter(1, tokens, True)
        return unscored.scatter(1, tokens, logits), scored

    # --- the target's keys -------------------------------------------------------------------------------------------

    def keys(self, length: int) -> Keys:
        """What every step of a round sees, the prefix having `length` tokens, its anchor not yet run."""
        window = self.shape.sliding_window
        # As released: a sliding layer hands out W - 1 rows older than the pass and those of the pass, and all is cut
        # after L rows. Without stale keys neither takes anything away.
        first = max(0, self.verified - (window - 1))
        keys = {}
        for kind, pair in self.rows(length - 1).items():
            k, v = (x[first:][:length][-(window + 1) :] if kind == SLIDING else x[:length] for x in pair)
            keys[kind] = k, v
        return keys

    def rows(self, kept: int) -> Keys:
        """The target's keys and values [m, G, d] of the kept rows, and of the rejected ones after them, if any."""
        target, before = self.backbone.target, None
        if self.rejected:
            before = target.state()
            target.run(chain_rows(self.rejected, kept, target.device))
            target.keep(range(len(self.rejected)))
        pairs = {kind: target.kv(self.backbone.stores[kind]) for kind in self.shape.heads}
        if before is not None:
            target.restore(before)
        return {kind: (k.transpose(0, 1), v.transpose(0, 1)) for kind, (k, v) in pairs.items()}
