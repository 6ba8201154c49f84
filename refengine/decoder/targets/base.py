"""What all targets made of transformers models share: their sizes, and how the model is called."""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel


def sizes(model: PreTrainedModel) -> tuple[int, int, int]:
    """Vocabulary V, width H and number of layers L of a causal language model, or of the text part of a larger one."""
    config = model.config.get_text_config()
    return config.vocab_size, config.hidden_size, config.num_hidden_layers


def called(
    model: PreTrainedModel, tokens: Tensor, positions: Tensor, cache: Any, masks: Any = None,
    hidden: bool = True, judged: int | None = None, dtype: torch.dtype | None = None,
) -> Any:  # fmt: skip
    """One pass over tokens and positions [b, n], `cache` being written to: transformers' output.

    hidden: all hs with it. judged: logits of the last so many rows alone, if the model can leave the others out.
    dtype: the model's, which walks through its modules when it is asked
    """
    inputs = {"input_ids": tokens, "position_ids": positions, "past_key_values": cache}
    if masks is not None:
        inputs["attention_mask"] = masks
    if judged is not None and model._supports_logits_to_keep():  # type: ignore[operator]
        inputs["logits_to_keep"] = judged
    with torch.inference_mode(), Float64() if (dtype or model.dtype) is torch.float64 else nullcontext():
        return model(**inputs, use_cache=True, output_hidden_states=hidden)


def widened(logits: Tensor) -> Tensor:
    """Policies and rules never see half precision."""
    return logits if logits.dtype is torch.float64 else logits.float()


class Float64(TorchFunctionMode):
    """Every float32 that a model asks for by name is float64.

    Models compute norms, softmax and rotary angles "in float32", whatever their weights are: rounding to it in the
    middle of a float64 pass would leave 1e-8 where exact laws need 1e-15.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        args = tuple(torch.float64 if arg is torch.float32 else arg for arg in args)
        named = {k: torch.float64 if arg is torch.float32 else arg for k, arg in (kwargs or {}).items()}
        return func(*args, **named)
