"""A separate draft model: any causal language model with the target's vocabulary."""

from refengine.decoder.checkpoints.reading.causal_lm import load_model
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout
from refengine.decoder.checkpoints.reading.target_probe import behind_the_protocol
from refengine.decoder.drafters.ar import AR
from refengine.decoder.protocols import Target
from refengine.errors import BadInput


def matches(checkpoint: Checkpoint) -> bool:
    return checkpoint.config.architecture().endswith("ForCausalLM")


def load(checkpoint: Checkpoint, target: Target, gamma: int = 4) -> AR:
    """gamma: drafted tokens a round."""
    config, folder = checkpoint.config, checkpoint.folder
    if config.fields.get("pard_token") is not None:
        config.refuse("pard_token is given: a draft model that fills several places at once is not read here")
    loaded, left_over = load_model(checkpoint, target.dtype)
    if left_over:
        raise BadInput(f"{folder}: tensor {left_over[0]} has no place in the model that the config describes")
    model = behind_the_protocol(loaded.to(target.device), getattr(target, "slots", None))
    if model.vocabulary != target.vocabulary:
        raise BadInput(f"{folder}: a vocabulary of {model.vocabulary} tokens, and the target has {target.vocabulary}")
    return AR(model, gamma)


LAYOUTS = (Layout("a draft model of its own", matches, load, general=True),)
