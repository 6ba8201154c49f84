"""What ties a drafter's file to its target: sizes that must agree, the tensors that it borrows, dtype and device."""

from collections.abc import Mapping

from torch import Tensor

from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.protocols import Target
from refengine.errors import BadInput


def refuse_other_target(
    config: Config, because: str = "it was made for another target", /, **sizes: tuple[int, int]
) -> None:
    """Raise BadInput for a size of the drafter, by its name in the config, that is not the target's: (ours, theirs)."""
    for name, (ours, theirs) in sizes.items():
        if ours != theirs:
            config.refuse(f"{name} is {ours}, and the target has {theirs}: {because}")


def on_target(tensors: Mapping[str, Tensor], target: Target) -> dict[str, Tensor]:
    """Tensors in the target's dtype, integers in their own, and on its device."""
    kinds = {name: target.dtype if x.is_floating_point() else x.dtype for name, x in tensors.items()}
    return {name: x.to(target.device, kinds[name]) for name, x in tensors.items()}


def embedding(target: Target) -> Tensor:
    """The target's token embeddings [V, H]."""
    return _lent(target.lends.embedding() if target.lends else None, "embeddings")


def written_embeddings(target: Target) -> Tensor:
    """What the target's embedding module writes for each token [V, H], a factor on its weight included (Gemma)."""
    return _lent(target.lends.written_embeddings() if target.lends else None, "embeddings")


def head(target: Target) -> Tensor:
    """The target's head [V, H]."""
    return _lent(target.lends.head() if target.lends else None, "head")


def _lent(tensor: Tensor | None, what: str) -> Tensor:
    if tensor is None:
        raise BadInput(f"the drafter's file has no {what} of its own, and this target has none to lend")
    return tensor
