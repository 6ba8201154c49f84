"""A vocabulary of the draft's own: which tokens of the target it can draft, and its logits over the target's."""

from collections.abc import Mapping

import torch
from torch import Tensor


def drafted_tokens(count: int, tensors: Mapping[str, Tensor]) -> Tensor:
    """The target's ids of the `count` draft tokens. d2t is an offset: draft token i is the target's i + d2t[i]."""
    places = torch.arange(count, device=tensors["fc.weight"].device)
    return places + tensors["d2t"] if "d2t" in tensors else places


def spread(own: Tensor, targets: Tensor, vocabulary: int) -> Tensor:
    """Logits [*, Vd] over the target's vocabulary, [*, V]: -inf for what cannot be drafted."""
    whole = own.new_full((*own.shape[:-1], vocabulary), float("-inf"))
    whole[..., targets] = own
    return whole
