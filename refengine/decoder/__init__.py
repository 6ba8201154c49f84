"""The reference decoder: every drafter on real networks, one request at a time, on CPU or CUDA.

target = load_target("path/to/model", torch.float32, "cpu")
drafter = load_drafter("path/to/drafter", target)
result = generate(target, drafter, leviathan, pipeline(temperature(0.7)), prompt, 64, Philox(0, torch.tensor([0])))
"""

from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.loop import Result, Stop, generate, plain

__all__ = ["Result", "Stop", "generate", "load_drafter", "load_target", "plain"]
