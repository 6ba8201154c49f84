"""What drafters borrow of a target that is a model of transformers. None: the model has no such thing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Embedding
from transformers import PreTrainedModel


@dataclass(frozen=True)
class Store:
    """A layer that computes keys and values of its own, and their sizes."""

    layer: int
    head_dim: int
    key_value_heads: int


@dataclass(frozen=True)
class Lent:
    """Of one model."""

    model: PreTrainedModel

    def embedding(self) -> Tensor | None:
        """Its token embeddings [V, H]."""
        return _weight(self.model.get_input_embeddings())

    def head(self) -> Tensor | None:
        """Its head [V, H]."""
        model: Any = self.model
        return _weight(model.get_output_embeddings())

    def embed(self, tokens: Tensor) -> Tensor:
        """What its embedding module writes for tokens [n]: [n, H]."""
        module: Any = self.model.get_input_embeddings()
        written: Tensor = module(tokens)
        return written

    def written_embeddings(self) -> Tensor | None:
        """The same for every token [V, H], a factor on its weight included (Gemma).

        A norm that the module adds is left out, as in transformers' own DFlash.
        """
        module: Any = self.model.get_input_embeddings()
        if module is None or type(module) is Embedding or hasattr(module, "embed_norm"):
            return self.embedding()
        with torch.no_grad():
            return self.embed(torch.arange(self.model.config.get_text_config().vocab_size, device=self.model.device))

    def eos(self) -> int | None:
        """Its end-of-text token, the first where there are several."""
        token: Any = getattr(self.model.config, "eos_token_id", None)
        return (token[0] if token else None) if isinstance(token, list) else token

    def positions(self) -> int | None:
        """How many positions its config declares."""
        return getattr(self.model.config, "max_position_embeddings", None)

    def stores(self) -> Mapping[str, Store]:
        """By type of layer: the last one that computes keys and values of its own."""
        text: Any = self.model.config.get_text_config()
        types = list(getattr(text, "layer_types", None) or ())
        own = types[: len(types) - (getattr(text, "num_kv_shared_layers", 0) or 0)]
        last = {kind: layer for layer, kind in enumerate(own)}
        by_layer = getattr(text, "per_layer_config", None)  # Gemma 4, whose layers differ in sizes
        return {kind: _store(layer, by_layer[layer] if by_layer else text) for kind, layer in last.items()}


def _store(layer: int, sizes: Any) -> Store:
    width = getattr(sizes, "head_dim", None) or sizes.hidden_size // sizes.num_attention_heads
    return Store(layer, width, sizes.num_key_value_heads)


def _weight(module: Any) -> Tensor | None:
    return module.weight.detach() if hasattr(module, "weight") else None
