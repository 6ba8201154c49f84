"""A mixture of experts: what the chosen ones put out, and how DeepSeek-V3 chooses (V3 report, section 2.1.2).

Scores are sigmoids. A learned bias moves the *choice* of experts and never their weights, and only the experts of the
best groups can be chosen.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from refengine.decoder.networks.layers import Weights, gated_mlp, wide


@dataclass(frozen=True)
class Routing:
    """Sizes of the router, named as in config.json."""

    n_routed_experts: int
    n_group: int
    topk_group: int
    num_experts_per_tok: int
    norm_topk_prob: bool
    routed_scaling_factor: float


def mixture(w: Weights, routing: Routing, x: Tensor) -> Tensor:
    """The chosen experts of each row x [n, H], weighted, and the shared ones, which every row goes through: [n, H]."""
    chosen, weights = route(w.at("gate"), routing, x)
    return weighted(w.at("experts"), chosen, weights, x) + gated_mlp(w.at("shared_experts"), x)


def weighted(w: Weights, chosen: Tensor, weights: Tensor, x: Tensor) -> Tensor:
    """The sum of what the chosen experts [n, k] make of each row x [n, H], times their weights [n, k]: [n, H]."""
    out = torch.zeros_like(x)
    for expert in sorted(set(chosen.flatten().tolist())):
        rows, places = (chosen == expert).nonzero(as_tuple=True)
        part = gated_mlp(w.at(expert), x[rows]) * weights[rows, places, None]
        out = out.index_add(0, rows, part.to(x.dtype))
    return out


def route(w: Weights, r: Routing, x: Tensor) -> tuple[Tensor, Tensor]:
    """Which experts each row goes to, int64 [n, k], and with what weights [n, k] (at least float32).

    Ties go to the lowest number. (The official code leaves them to torch.topk.)
    """
    scores = linear(wide(x), wide(w["weight"])).sigmoid()
    grouped = (scores + w["e_score_correction_bias"].to(scores.dtype)).view(
        len(x), r.n_group, r.n_routed_experts // r.n_group
    )
    value = grouped.topk(2, -1).values.sum(-1)  # a group is worth what its two best experts are
    kept = torch.zeros_like(value).scatter(1, _best(value, r.topk_group), 1.0) > 0
    chosen = _best(grouped.masked_fill(~kept[..., None], float("-inf")).flatten(1), r.num_experts_per_tok)
    weights = scores.gather(1, chosen)
    if r.norm_topk_prob:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return chosen, weights * r.routed_scaling_factor


def _best(scores: Tensor, count: int) -> Tensor:
    return scores.argsort(dim=-1, descending=True, stable=True)[:, :count]
