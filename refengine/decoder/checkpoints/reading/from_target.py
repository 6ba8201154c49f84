"""The tensors that a drafter's file leaves out because they are the target's: embeddings and head."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Embedding

from refengine.decoder.protocols import Target
from refengine.errors import BadInput


def embedding(target: Target) -> Tensor:
    """The target's token embeddings [V, H]."""
    return _weight(target, "get_input_embeddings", "embeddings")


def written_embeddings(target: Target) -> Tensor:
    """What the target's embedding module writes for each token [V, H], a factor on its weight included (Gemma).

    A norm that the module adds is left out, as in transformers' own DFlash.
    """
    model: Any = getattr(target, "model", None)
    module: Any = model.get_input_embeddings() if model is not None else None
    if module is None or type(module) is Embedding or hasattr(module, "embed_norm"):
        return embedding(target)
    with torch.no_grad():
        written: Tensor = module(torch.arange(target.vocabulary, device=target.device))
    return written


def head(target: Target) -> Tensor:
    """The target's head [V, H]."""
    return _weight(target, "get_output_embeddings", "head")


def _weight(target: Target, getter: str, what: str) -> Tensor:
    model: Any = getattr(target, "model", None)
    module: Any = getattr(model, getter)() if model is not None else None
    if module is None or not hasattr(module, "weight"):
        raise BadInput(f"the drafter's file has no {what} of its own, and this target has none to lend")
    weight: Tensor = module.weight.detach()
    return weight


def end_of_text(target: Target) -> int | None:
    """`eos_token_id` of the target's config, the first where there are several; None where it has none."""
    config: Any = getattr(getattr(target, "model", None), "config", None)
    token = getattr(config, "eos_token_id", None)
    return (token[0] if token else None) if isinstance(token, list) else token
