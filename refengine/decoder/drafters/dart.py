"""DART (arXiv 2601.19278; released as fvliang/DART 13f34a5): one causal layer over a row of MASKs, in one pass.

Real rows are EAGLE-3's: the next token's embedding beside the fused features of a low, a middle and a high layer.
Behind the anchor's row come `draft_length` MASK rows, with one learned vector in the place of the normed pair and its
first half in the place of the feature. Row l is about the token at depth l; it has seen the MASKs before it but no
drafted token, so every path of a tree reads the same logits, and an n-gram store says which tokens follow each other.
MASK rows never enter the cache. `networks/feature_recurrence.py` holds what is shared with EAGLE, `dart_ngrams.py` the
n-gram store.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.decoder.drafters.eagle3 import Shape
from refengine.decoder.drafters.eagle_trees import likeliest
from refengine.decoder.networks.cache import Cache
from refengine.decoder.networks.draft_vocabulary import drafted_tokens, spread
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence, self_attention
from refengine.decoder.networks.layers import Heads, Weights, gated_mlp, wide
from refengine.decoder.protocols import Tokens, Turn
from refengine.decoder.rows import point_block
from refengine.engine.block import ROOT, Block

MASK = -1  # stands for the token of a MASK row; no such token has an embedding
FLOOR = 1e-10  # what an unseen n-gram counts as


class Dart:
    """The network of `refengine.decoder.networks.feature_recurrence.Network`. Tensors under their released names."""

    def __init__(self, shape: Shape, tensors: Mapping[str, Tensor]) -> None:
        self.shape, self.w, self.taps = shape, Weights(tensors), shape.taps
        self.heads = Heads(shape.num_key_value_heads, shape.head_dim, shape.rope, shape.rms_norm_eps)
        self.targets = drafted_tokens(shape.draft_vocab_size, tensors)

    def fused(self, features: Tensor) -> Tensor:
        return self.w.linear("fc", features)

    def rows(
        self, tokens: Tensor, hidden: Tensor, positions: Tensor, past: Cache, sees: Tensor, text: int | None = None
    ) -> tuple[Tensor, Cache]:
        eps, layer, mask = self.shape.rms_norm_eps, self.w.at("midlayer"), self.w["midlayer.mask_rep"]
        masked = (tokens == MASK)[:, None]
        token = layer.norm("input_layernorm", self.w.embed("embed_tokens", tokens.clamp(min=0)), eps)
        pair = torch.cat((token, layer.norm("hidden_norm", hidden, eps)), -1)
        hidden, pair = torch.where(masked, mask[: self.shape.hidden_size], hidden), torch.where(masked, mask, pair)
        attended, both = self_attention(layer.at("self_attn"), self.heads, pair, positions, past[0], sees)
        hidden = hidden + attended
        return hidden + gated_mlp(layer.at("mlp"), layer.norm("post_attention_layernorm", hidden, eps)), (both,)

    def logits(self, hidden: Tensor) -> Tensor:
        return spread(self.draft_logits(hidden), self.targets, self.shape.vocab_size)

    def draft_logits(self, hidden: Tensor) -> Tensor:
        """Logits over the draft vocabulary, [n, Vd]. The released code norms twice, with one weight."""
        eps = self.shape.rms_norm_eps
        return self.w.linear("lm_head", self.w.norm("norm", self.w.norm("norm", hidden, eps), eps))

    def empty(self) -> Cache:
        return (self.heads.empty(self.w["fc.weight"]),)


@dataclass(frozen=True)
class TreeSearch:
    """The released tree: a beam over the levels' likeliest tokens, of which the `total` best paths stay.

    A path's score adds, for its token at level l, (l + 1)^-0.7 * (0.9^l log p + 0.5 log g): p is the token's
    probability among the level's `top_k` alone, g its frequency after the order - 1 tokens before it, which level 0
    does without. A function of the prefix at any policy: nothing is drawn, and `point_mass` judges it.

    masks  how many MASK rows there are; the tree has one level more
    eos    a path that ends in this token is grown only where the beam has nothing else
    """

    masks: int
    store: Trie
    eos: int | None
    top_k: int = 25
    beam: int = 20
    total: int = 60

    def __post_init__(self) -> None:
        # The released code looks back to the last round's first token and no further; a round emits one token at least.
        if self.store.order > 4:
            raise ValueError(f"a store of order {self.store.order} lets a tree depend on how its prefix was reached")

    def __call__(self, draft: Draft, turn: Turn) -> Block:
        # In the order of the released judgement: siblings by their token.
        paths = sorted(self.scores(self.levels(draft), turn.prefix), key=lambda path: (len(path), path))
        places = {(): ROOT} | {path: place for place, path in enumerate(paths)}
        parents = tuple(places[path[:-1]] for path in paths)
        return point_block(tuple(path[-1] for path in paths), parents, draft.device)

    def levels(self, draft: Draft) -> Tensor:
        """Logits [masks + 1, V] of every level."""
        nothing = draft.out.new_zeros(self.masks, draft.out.shape[-1])  # a MASK row has no feature
        return wide(torch.cat((draft.first[None], draft.append([MASK] * self.masks, nothing))))

    def scores(self, levels: Tensor, prefix: Tokens) -> dict[Tokens, float]:
        """The paths that stay, and their scores.

        Ties go to the path that was there first, a parent before its children, so that what stays is always a tree.
        (The released sort is unstable, and may leave a child without its parent.)
        """
        pool: dict[Tokens, float] = {}
        beam: dict[Tokens, float] = {(): 0.0}
        for level, logits in enumerate(levels.cpu()):
            tokens = [x for x in likeliest(logits, self.top_k) if logits[x] > float("-inf")]
            p, grown = _log(logits[tokens].softmax(-1)), dict[Tokens, float]()
            for path, above in beam.items():
                gain = p * 0.9**level
                if level > 0:
                    gain = gain + 0.5 * self._log_frequency((*prefix, *path), tokens, gain.dtype)
                score = above + (level + 1) ** -0.7 * gain
                grown |= {(*path, x): s for x, s in zip(tokens, score.tolist(), strict=True)}
            pool |= grown
            ranked = sorted(grown, key=lambda path: (path[-1] == self.eos, -grown[path]))
            beam = {path: grown[path] for path in ranked[: self.beam]}
        return {path: pool[path] for path in sorted(pool, key=lambda path: -pool[path])[: self.total]}

    def _log_frequency(self, before: Tokens, tokens: list[int], dtype: torch.dtype) -> Tensor:
        followed, seen = (torch.from_numpy(x).to(dtype) for x in self.store.following(before, tokens))
        return _log(followed * (1 / seen))  # as released: not quite the quotient


def drafter(shape: Shape, tensors: Mapping[str, Tensor], search: TreeSearch) -> FeatureRecurrence:
    """The whole drafter: the recurrence keeps the real rows, and the search adds the MASK rows of a round."""
    return FeatureRecurrence(Dart(shape, tensors), search)


def _log(x: Tensor) -> Tensor:
    """log(x + FLOOR), never above 0: a path may not be worth more than its parent."""
    return (x + FLOOR).clamp(max=1.0).log()
