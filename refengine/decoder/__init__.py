"""The reference decoder: every drafter on real networks, on CPU or CUDA, one request or several in one pass (`Batch`).

target = load_target("path/to/model", torch.float32, "cpu")
drafter = load_drafter("path/to/drafter", target)
result = generate(target, drafter, leviathan, pipeline(temperature(0.7)), prompt, 64, Philox(0, torch.tensor([0])))

With `load_target(..., slots=1024)` the logits of a row have the same bits however it is computed: `targets/bitwise.py`.
Read `protocols.py` (what a target and a drafter are), `loop.py`, `rows.py`, `batch.py`; `targets/`, `networks/`,
`drafters/`, `checkpoints/`. docs/decoder.md walks through all of it.
"""

from refengine.decoder.batch import Batch
from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.loop import Result, Stop, generate, plain

__all__ = ["Batch", "Result", "Stop", "generate", "load_drafter", "load_target", "plain"]
