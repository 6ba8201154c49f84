"""Parallel heads at other shapes than the fixture's, against Llamas of transformers: heads that share keys, other
widths, angles and epsilons."""

import pytest
import torch
from torch import Tensor

from refengine.decoder.checkpoints.layouts.parallel_heads import llama, table
from refengine.decoder.drafters.parallel_heads import ParallelHeads, Shape
from refengine.decoder.loop import begin
from refengine.decoder.targets.transformers import TransformersTarget

TEXT = (4, 3, 2, 0, 3, 10, 4, 3, 1, 6)
LAYERS, HEADS = 2, 2  # blocks of the target; heads beside it


def shaken(shape: Shape) -> dict[str, Tensor]:
    """Tensors of this shape, none of which is nearly inert."""
    made = torch.Generator().manual_seed(0)
    scales = {name: 1.0 if len(size) == 1 else size[-1] ** -0.5 for name, size in table(shape).items()}
    return {
        name: scales[name] * torch.randn(size, generator=made, dtype=torch.float64)
        for name, size in table(shape).items()
    }


@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (4, 1), (4, 2), (6, 3), (3, 3)], ids=str)
@pytest.mark.parametrize(("width", "theta"), [(4, 1e4), (8, 30.0)])
@torch.inference_mode()
def test_heads_of_any_shape_are_those_of_transformers(groups: tuple[int, int], width: int, theta: float) -> None:
    """Kills queries that read the keys of another group, and rows of a projection put into another head's order."""
    heads, shared = groups
    shape = Shape(heads * width, LAYERS + HEADS, heads, shared, 11, 12, 1e-3, theta, HEADS)
    tensors = shaken(shape)
    target = TransformersTarget(llama(shape, tensors, [f"layers.{i}." for i in range(LAYERS)], None))
    drafter = ParallelHeads(shape, tensors)
    drafter.start(TEXT, begin(target, TEXT, drafter.taps))
    for k, ours in enumerate(drafter.heads()):
        peer = TransformersTarget(llama(shape, tensors, ["layers.0.", f"extra_heads.{k}."], None))
        theirs = begin(peer, TEXT, ()).logits[-1]
        # Transformers' angles are of float32 in a model of float64 too.
        assert float((ours - theirs).abs().max()) <= 1e-6 * max(1.0, float(theirs.std()))
