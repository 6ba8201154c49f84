"""How far honest rounding moves the choice between two tokens after a text: measured in the model, not in our loop.

The row is the model's own, without a cache of ours, a mask, a draft or a verify pass. A pass of another shape adds in
another order, so each layer writes a result that is off by a rounding or two of its dtype; what comes of that at the
logits depends on the text. So the text is run once in a batch, in which every lane but the first has what each layer
writes off by one random rounding, as in a pass of another shape. The range of the difference of the two logits over the
lanes is the noise there. A state that our loop spoiled is in none of it, and can excuse nothing.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from refengine.decoder.protocols import Tokens
from refengine.decoder.targets.base import Float64
from refengine.evidence.ties import tied

LANES = 9  # one as the model computes it, the others each with a rounding more


@dataclass(frozen=True)
class Parting:
    """Two tokens after one text, in the model's own row.

    margin  the logit of the first less that of the second
    noise   the range of that difference over the lanes
    """

    margin: float
    noise: float

    @property
    def tie(self) -> bool:
        return tied(self.margin, self.noise)


def parting(model: Any, text: Tokens, one: int, other: int) -> Parting:
    """Of a causal language model of transformers, which runs the text once."""
    source = torch.Generator().manual_seed(0)
    rows = torch.tensor([text] * LANES, device=model.device)
    hooks = [module.register_forward_hook(_rounded(source)) for module in _writers(model)]
    try:
        with torch.no_grad(), Float64() if model.dtype is torch.float64 else torch.no_grad():
            logits = model(input_ids=rows, use_cache=False).logits[:, -1].double()
    finally:
        for hook in hooks:
            hook.remove()
    apart = logits[:, one] - logits[:, other]
    rounding = torch.finfo(model.dtype).eps * float(logits[0, [one, other]].abs().max())  # of the head's own result
    return Parting(float(apart[0]), float(apart.max() - apart.min()) + rounding)


def _writers(model: Any) -> list[nn.Module]:
    """What writes into the residual stream: the embedding, and all that a layer consists of."""
    text = model.config.get_text_config()
    lists = [x for x in model.modules() if isinstance(x, nn.ModuleList) and len(x) == text.num_hidden_layers]
    return [model.get_input_embeddings(), *(part for layer in lists[0] for part in (*layer.children(), layer))]


def _rounded(source: torch.Generator) -> Any:
    def hook(module: nn.Module, inputs: Any, output: Any) -> Any:
        written = output[0] if isinstance(output, tuple) else output
        if not isinstance(written, Tensor) or not written.is_floating_point():
            return output
        signs = torch.rand(written.shape, generator=source, dtype=torch.float64) * 2 - 1
        signs[0] = 0.0
        step = (written.double() * (1 + torch.finfo(written.dtype).eps * signs.to(written.device))).to(written.dtype)
        return (step, *output[1:]) if isinstance(output, tuple) else step

    return hook
