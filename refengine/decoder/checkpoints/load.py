"""From a folder on disk to a target or a drafter: safetensors only, nothing downloaded, nothing unpickled."""

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from refengine.decoder.checkpoints import layouts
from refengine.decoder.checkpoints.layouts import deepseek_mtp, parallel_heads, qwen_mtp
from refengine.decoder.checkpoints.reading.causal_lm import load_model, within
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout
from refengine.decoder.checkpoints.reading.target_probe import behind_the_protocol
from refengine.decoder.drafters.lookahead import Lookahead
from refengine.decoder.drafters.ngram import NGram
from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.protocols import Drafter, Target
from refengine.decoder.targets.bitwise import BitwiseTarget
from refengine.decoder.targets.recurrent import RecurrentTarget
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.errors import BadInput


def _no_folder(checkpoint: Checkpoint) -> bool:
    return False


# Every file of `layouts/` says what it registers, one that only serves others nothing.
LAYOUTS: tuple[Layout, ...] = tuple(
    layout
    for module in pkgutil.iter_modules(layouts.__path__)
    for layout in import_module(f"{layouts.__name__}.{module.name}").LAYOUTS
)
# Drafters without files, by name. Lookahead of level N drafts N - 2 tokens.
WITHOUT_WEIGHTS: dict[str, Callable[..., Drafter]] = {
    "prompt_lookup": lambda _, target, gamma=4: PromptLookup(gamma, device=str(target.device)),
    "ngram": lambda _, target, gamma=4: NGram(gamma, device=str(target.device)),
    "lookahead": lambda _, target, gamma=4: Lookahead(target, level=gamma + 2),
}


def load_target(
    path: str | Path, dtype: torch.dtype | None = None, device: str = "cpu", slots: int | None = None
) -> TransformersTarget | RecurrentTarget | BitwiseTarget:
    """A causal LM of transformers. dtype: as in the file, unless given. Raises BadInput.

    slots  given: each row has one sequence of bits, however it is computed, in texts of up to so many tokens
    """
    checkpoint = Checkpoint(Path(path))
    check_device(device)
    if checkpoint.is_metas:
        return behind_the_protocol(parallel_heads.load_trunk(checkpoint, dtype).to(device), slots)
    if deepseek := deepseek_mtp.has_modules(checkpoint):
        deepseek_mtp.read(checkpoint)  # transformers fuses experts and skips modules: its refusals name other tensors
    if native := qwen_mtp.is_native(checkpoint):
        qwen_mtp.check_target_experts(checkpoint)
    model, left_over = load_model(checkpoint, dtype)
    strays = set(left_over) - qwen_mtp.COPIES if native else within(model, left_over)
    if strays and not deepseek:
        raise BadInput(f"{path}: tensor {min(strays)} is in the file, and the config has no place for it")
    return behind_the_protocol(model.to(device), slots)


def check_device(device: str) -> None:
    """Raises BadInput where no tensor can lie on it; before a large model has been read."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA asserts
        raise BadInput(f"device {device!r} cannot be used here: {str(error).splitlines()[0]}") from None


def load_drafter(path: str | Path, target: Target, **options: Any) -> Drafter:
    """The drafter in a folder, in the target's dtype and on its device, by the one layout that the folder matches.

    path     a folder, or `prompt_lookup`, `ngram` or `lookahead`, which have no files
    options  those that the layout's `load` takes, in its file in `layouts/`; None is an option that is not given.
             gamma      drafted tokens a round, where no file fixes them; 4 unless given
             threshold  confidence below which a block ends, where there is a confidence head (DSpark)
             markov     False: without the bias of the Markov head (DSpark)
             ngram      the n-gram store of a drafter that has one in another place (DART): a file, or its folder
    Raises BadInput for a checkpoint that is damaged, of no known layout or of several, or made for another target, and
    for an option that the layout does not take.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("gamma", 1) < 1:
        raise BadInput(f"{given['gamma']} drafted tokens a round: there must be one")
    checkpoint = Checkpoint(Path(path))
    if str(path) in WITHOUT_WEIGHTS and not checkpoint.folder.exists():
        layout = Layout(str(path), _no_folder, WITHOUT_WEIGHTS[str(path)])
    else:
        layout = layout_of(checkpoint)
    for name in given.keys() - set(options_of(layout)):
        takes = " or ".join(options_of(layout)) or "no option"
        takers = " or ".join(other.name for other in LAYOUTS if name in options_of(other)) or "no drafter"
        raise BadInput(f"{path}: {name} is for {takers}, and this drafter ({layout.name}) takes {takes}")
    return layout.load(checkpoint, target, **given)


def options_of(layout: Layout) -> list[str]:
    """The options that a layout takes: what its `load` takes after checkpoint and target."""
    return list(inspect.signature(layout.load).parameters)[2:]


def layout_of(checkpoint: Checkpoint) -> Layout:
    """The one layout that a checkpoint matches; a general one only where nothing else does. Raises BadInput."""
    matching = [layout for layout in LAYOUTS if layout.matches(checkpoint)]
    special = [layout for layout in matching if not layout.general] or matching
    if len(special) == 1:
        return special[0]
    config = checkpoint.config
    if special:
        config.refuse(f"it can be read as {' or as '.join(layout.name for layout in special)}")
    model_type = config.fields.get("speculators_model_type")
    said = f"speculators_model_type is {model_type!r}" if model_type else f"architectures is {config.architecture()}"
    return config.refuse(f"{said}, which is no drafter known here: see `refengine drafters`")
