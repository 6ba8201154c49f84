"""A target that is larger than the memory its process may take, under a limit of the system."""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.rows import chain_rows

MIB = 1 << 20
# Else glibc's allocator keeps freed tensors in its heap, as many as chance has it: what it holds is not what is held.
FREED_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
CHILD = """
import json, resource, sys
import torch
from transformers.models.qwen3 import modeling_qwen3
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.checkpoints.streamed import stream_target
from refengine.decoder.rows import chain_rows

folder, budget, room = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
(torch.ones(64, 64) @ torch.ones(64, 64)).sum()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
held = int(status["VmData"].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (held + room, held + room))

def logits(target):
    return [x.hex() for x in target.run(chain_rows((1, 2, 3), 0, target.device)).logits.flatten().tolist()]

print(json.dumps(logits(stream_target(folder, torch.float32, budget, lambda *_: None))), flush=True)
try:
    logits(load_target(folder, torch.float32))
except Exception:
    sys.exit(9)
"""


def generated(folder: Path, width: int, layers: int) -> int:
    """A random target in shards of a layer each; returns the bytes of its weights."""
    config = Qwen3Config(
        vocab_size=64,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=width // 4,
    )
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config)
    model.save_pretrained(folder, max_shard_size=18 * width * width * 4)
    return sum(x.numel() * 4 for x in model.parameters())


def holds_in(folder: Path, size: int, smaller: int, beside: int) -> None:
    """Weights of `size` bytes are run by a process that may take a part of them and `beside` for what torch and
    transformers take: with the bits of a whole load, which under that limit cannot be."""
    budget = size // smaller
    arguments = [sys.executable, "-c", CHILD, str(folder), str(budget), str(budget + beside)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env={**os.environ, **FREED_AT_ONCE})
    assert done.returncode == 9, done.stderr
    whole = load_target(folder, torch.float32)
    wanted = whole.run(chain_rows((1, 2, 3), 0, whole.device)).logits
    assert json.loads(done.stdout) == [x.hex() for x in wanted.flatten().tolist()]
