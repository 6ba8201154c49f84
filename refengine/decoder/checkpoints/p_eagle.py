"""The layout of P-EAGLE as speculators (0.9.0) writes it: that of its EAGLE-3, a mask token and the mask's feature.

Amazon's own releases name the first layer `midlayer` and the mask token `ptd_token_id`; no such file could be opened,
and they are not read here.
"""

from pathlib import Path

from refengine.decoder.checkpoints.config import read_config
from refengine.decoder.checkpoints.eagle3 import read_shape, refuse_bad_maps, table
from refengine.decoder.checkpoints.tensors import read_tensors, tensor_shapes
from refengine.decoder.drafters.eagle3 import Eagle3
from refengine.decoder.drafters.p_eagle import MaskSlots
from refengine.decoder.drafters.plans import Chain
from refengine.decoder.drafters.recurrence import FeatureRecurrence
from refengine.decoder.protocols import Target


def load_p_eagle(folder: Path, target: Target, length: int | None = None) -> FeatureRecurrence:
    """A P-EAGLE drafter in the target's dtype and on its device; without a length, the config's. Raises BadInput."""
    config = read_config(folder)
    shape, chain = read_shape(config, target)
    assert isinstance(chain, Chain)
    token = config.integer("mask_token_id", least=0)
    if token >= shape.vocab_size:
        config.refuse(f"mask_token_id {token} is outside the vocabulary of {shape.vocab_size} tokens")
    features = len(shape.taps) * shape.target_hidden_size
    names = {**table(shape, set(tensor_shapes(folder))), "mask_hidden": (1, 1, features)}
    found = read_tensors(folder, names, config)
    refuse_bad_maps(config, shape, found)
    tensors = {
        name: x.to(target.device, target.dtype if x.is_floating_point() else x.dtype) for name, x in found.items()
    }
    network = Eagle3(shape, tensors)
    hidden = network.fused(tensors["mask_hidden"].view(1, features))
    return FeatureRecurrence(network, MaskSlots(length or chain.length, token, hidden))
