"""From a folder on disk to a target or a drafter: safetensors only, nothing downloaded, nothing unpickled."""

from collections.abc import Callable
from pathlib import Path

import torch
from transformers import PreTrainedModel

from refengine.decoder.checkpoints.layouts.block_backbone import refuse_other_target
from refengine.decoder.checkpoints.layouts.dart import load_dart
from refengine.decoder.checkpoints.layouts.deepseek_mtp import has_modules, load_deepseek_mtp
from refengine.decoder.checkpoints.layouts.deepseek_mtp import read as read_deepseek
from refengine.decoder.checkpoints.layouts.dflash import is_dflash, load_dflash
from refengine.decoder.checkpoints.layouts.dspark import DEEPSPEC as DSPARK
from refengine.decoder.checkpoints.layouts.dspark import load_dspark
from refengine.decoder.checkpoints.layouts.dspark import load_speculators as load_speculators_dspark
from refengine.decoder.checkpoints.layouts.eagle1 import load_eagle1
from refengine.decoder.checkpoints.layouts.eagle3 import DEEPSPEC as EAGLE3
from refengine.decoder.checkpoints.layouts.eagle3 import SPECFORGE, load_eagle3
from refengine.decoder.checkpoints.layouts.gemma4_assistant import ARCHITECTURES as GEMMA4_ASSISTANTS
from refengine.decoder.checkpoints.layouts.gemma4_assistant import load_gemma4_assistant
from refengine.decoder.checkpoints.layouts.medusa import load_medusa
from refengine.decoder.checkpoints.layouts.p_eagle import load_amazon as load_amazon_p_eagle
from refengine.decoder.checkpoints.layouts.p_eagle import load_p_eagle
from refengine.decoder.checkpoints.layouts.parallel_heads import is_meta_layout, load_parallel_heads, load_trunk
from refengine.decoder.checkpoints.layouts.qwen_mtp import (
    COPIES,
    check_target_experts,
    is_native,
    is_speculators,
    load_qwen_mtp,
)
from refengine.decoder.checkpoints.reading.causal_lm import load_model, within
from refengine.decoder.checkpoints.reading.config import Config, read_config
from refengine.decoder.checkpoints.reading.target_probe import refuse_unfaithful
from refengine.decoder.checkpoints.reading.tensors import tensor_shapes
from refengine.decoder.drafters.ar import AR
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.drafters.lookahead import Lookahead
from refengine.decoder.drafters.ngram import NGram
from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.protocols import Drafter, Target
from refengine.decoder.targets.bitwise import BitwiseTarget
from refengine.decoder.targets.recurrent import RecurrentTarget
from refengine.decoder.targets.transformers import ATTENTION, TransformersTarget
from refengine.errors import BadInput

# Lookahead emits at most N - 1 tokens in a round, so N is two more than the drafted depth.
WITHOUT_WEIGHTS: dict[str, Callable[[Target, int], Drafter]] = {
    "prompt_lookup": lambda target, gamma: PromptLookup(gamma, device=str(target.device)),
    "ngram": lambda target, gamma: NGram(gamma, device=str(target.device)),
    "lookahead": lambda target, gamma: Lookahead(target, level=gamma + 2),
}


def load_target(
    path: str | Path, dtype: torch.dtype | None = None, device: str = "cpu", slots: int | None = None
) -> TransformersTarget | RecurrentTarget | BitwiseTarget:
    """A causal LM of transformers. dtype: as in the file, unless given. Raises BadInput.

    slots  given: each row has one sequence of bits, however it is computed, in texts of up to so many tokens
    """
    folder = Path(path)
    check_device(device)
    if is_meta_layout(folder):
        return behind_the_protocol(load_trunk(folder, dtype).to(device), slots)
    if deepseek := has_modules(folder):
        read_deepseek(folder)  # transformers fuses experts and skips modules: its refusals would name other tensors
    if native := is_native(folder):
        check_target_experts(folder)
    model, left_over = load_model(folder, dtype)
    strays = set(left_over) - COPIES if native else within(model, left_over)
    if strays and not deepseek:
        raise BadInput(f"{folder}: tensor {min(strays)} is in the file, and the config has no place for it")
    return behind_the_protocol(model.to(device), slots)


def check_device(device: str) -> None:
    """Raises BadInput where no tensor can lie on it; before a large model has been read."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA asserts
        raise BadInput(f"device {device!r} cannot be used here: {str(error).splitlines()[0]}") from None


def load_drafter(
    path: str | Path, target: Target, gamma: int = 4, threshold: float = 0.0, ngram: Path | None = None
) -> Drafter:
    """The drafter in a folder, in the target's dtype and on its device; `architectures` says which one it is.

    path       a folder, or `prompt_lookup`, `ngram` or `lookahead`, which have no files
    gamma      drafted tokens per round, where no file fixes it (ar, gemma4_assistant, qwen_mtp, deepseek_mtp, Amazon's
               p_eagle, no files)
    threshold  confidence below which a block ends, where there is a confidence head (dspark); 0 keeps everything
    ngram      the n-gram store of a drafter that has one in another place (dart): a file, or the folder it is in
    Raises BadInput for a checkpoint that is damaged, of an unknown kind, or made for another target.
    """
    folder = Path(path)
    if gamma < 1:
        raise BadInput(f"{gamma} drafted tokens a round: there must be one")
    if str(path) in WITHOUT_WEIGHTS and not folder.exists():
        return WITHOUT_WEIGHTS[str(path)](target, gamma)
    if is_meta_layout(folder):
        return load_parallel_heads(folder, target)
    config = read_config(folder)
    if config.fields.get("medusa_num_heads") is not None:
        return load_medusa(folder, target)
    kind = config.architecture()
    if config.fields.get("draft_length") is not None:
        return load_dart(folder, target, ngram)
    if is_dflash(config):
        return load_dflash(folder, target)
    if config.fields.get("speculators_model_type") == "dspark":
        return load_speculators_dspark(folder, target, threshold)
    if kind in DSPARK:
        return _for_target(load_dspark(folder, threshold), target, folder)
    if kind in GEMMA4_ASSISTANTS:
        return load_gemma4_assistant(folder, target, gamma)
    if config.fields.get("speculators_model_type") == "peagle":
        return load_p_eagle(folder, target)
    if config.fields.get("ptd_token_id") is not None:
        return load_amazon_p_eagle(folder, target, gamma)
    if kind in (*EAGLE3, SPECFORGE) or config.fields.get("speculators_model_type") == "eagle3":
        return load_eagle3(folder, target)
    if is_speculators(config) or is_native(folder):
        return load_qwen_mtp(folder, target, gamma)
    if has_modules(folder):
        return load_deepseek_mtp(folder, target, gamma)
    if kind.endswith("ForCausalLM"):
        # SafeAILab's configs call a drafter a Llama. EAGLE-1's differs from one in the names of its tensors alone.
        if config.fields.get("draft_vocab_size") is not None:
            return load_eagle3(folder, target)
        if any(name.startswith("layers.0.") for name in tensor_shapes(folder)):
            return load_eagle1(folder, target)
        return ar(folder, target, gamma)
    model_type = config.fields.get("speculators_model_type")
    said = f"speculators_model_type is {model_type!r}" if model_type else f"architectures is {kind}"
    raise BadInput(f"{folder}/config.json: {said}, which is no drafter known here: see `refengine drafters`")


def behind_the_protocol(
    model: PreTrainedModel, slots: int | None = None
) -> TransformersTarget | RecurrentTarget | BitwiseTarget:
    """Rows are rolled back by indexing where every layer is an attention layer, otherwise by remembering."""
    types = getattr(model.config.get_text_config(), "layer_types", None) or ()
    try:
        target = TransformersTarget(model) if set(types) <= ATTENTION else RecurrentTarget(model, slots)
    except ValueError as error:
        raise BadInput(str(error)) from None
    refuse_unfaithful(target)
    return BitwiseTarget(model, slots) if slots and isinstance(target, TransformersTarget) else target


def ar(folder: Path, target: Target, gamma: int) -> AR:
    """A separate draft model: any causal LM with the target's vocabulary, which drafts token by token."""
    config = read_config(folder)
    if config.fields.get("pard_token") is not None:
        config.refuse("pard_token is given: a draft model that fills several places at once is not read here")
    loaded, left_over = load_model(folder, target.dtype)
    if left_over:
        raise BadInput(f"{folder}: tensor {left_over[0]} has no place in the model that the config describes")
    model = behind_the_protocol(loaded.to(target.device), getattr(target, "slots", None))
    if model.vocabulary != target.vocabulary:
        raise BadInput(f"{folder}: a vocabulary of {model.vocabulary} tokens, and the target has {target.vocabulary}")
    return AR(model, gamma)


def _for_target(drafter: DSpark, target: Target, folder: Path) -> DSpark:
    shape = drafter.shape
    refuse_other_target(
        Config(f"{folder}/config.json", {}),
        target,
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden_size,
        num_target_layers=shape.num_target_layers,
    )
    tensors = {name: x.to(target.device, target.dtype) for name, x in drafter.w.tensors.items()}
    return DSpark(shape, tensors, drafter.threshold)
