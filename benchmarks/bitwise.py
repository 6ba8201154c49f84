"""What the bitwise mode costs: seconds of its passes over those of the ordinary mode, on layers of a real model's size.

    python benchmarks/bitwise.py [--device cuda] [--out benchmarks/results/bitwise_cpu.json]

    prompt    CONTEXT tokens; the ordinary mode runs them in one pass, the bitwise mode `lanes` rows at a time
    token     one token after them: plain decoding
    verify    an anchor and four drafts after them: still one pass in either mode

Random weights, four layers of Qwen2.5-0.5B's size (CUDA: of Qwen3-4B's, in bfloat16 too) and its vocabulary. The modes
take turns in one process; a ratio is the median over the turns, with its smallest and largest.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from refengine.decoder.protocols import Target
from refengine.decoder.rows import chain_rows
from refengine.decoder.targets.bitwise import BitwiseTarget
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.report.canonical import write_atomic

CONTEXT, SLOTS, DRAFTS, TURNS = 256, 1024, 4, 5
SIZES = {
    "cpu": (896, 4864, 14, 2, 64, ("float32",)),
    "cuda": (2560, 9728, 32, 8, 128, ("float32", "bfloat16")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=SIZES, default="cpu")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found = {dtype: measured(arguments.device, getattr(torch, dtype)) for dtype in SIZES[arguments.device][-1]}
    text = json.dumps({"context": CONTEXT, "slots": SLOTS, "drafts": DRAFTS, "turns": TURNS, **found}, indent=1) + "\n"
    print(text, end="")
    if arguments.out:
        write_atomic(arguments.out, text)


def measured(device: str, dtype: torch.dtype) -> dict[str, Any]:
    """Ratios by what is run, and how many lanes the bitwise mode found to hold."""
    model = made(device, dtype)
    modes: dict[str, Any] = {"ordinary": TransformersTarget(model), "bitwise": BitwiseTarget(model, SLOTS)}
    times: dict[str, dict[str, list[float]]] = {mode: {"prompt": [], "token": [], "verify": []} for mode in modes}
    for _ in range(TURNS + 1):  # the first warms up
        for mode, target in modes.items():
            for what, seconds in turn(target, device).items():
                times[mode][what].append(seconds)
    ratios = {}
    for what, ordinary in times["ordinary"].items():
        each = [b / a for a, b in zip(ordinary[1:], times["bitwise"][what][1:], strict=True)]
        low, middle, high = min(each), statistics.median(each), max(each)
        ratios[what] = {"ratio": round(middle, 2), "from": round(low, 2), "to": round(high, 2)}
    return {"lanes": modes["bitwise"].lanes, **ratios}


def made(device: str, dtype: torch.dtype) -> Any:
    hidden, inner, heads, groups, width, _ = SIZES[device]
    config = Qwen3Config(
        vocab_size=151_936, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=4, head_dim=width,
        num_attention_heads=heads, num_key_value_heads=groups, attn_implementation="eager",
    )  # fmt: skip
    torch.manual_seed(0)
    with torch.device(device):
        return Qwen3ForCausalLM(config).to(dtype).eval().requires_grad_(False)


def turn(target: Target, device: str) -> dict[str, float]:
    """Seconds of each of the three, in order, after one another in one request."""
    target.reset()

    def ran(count: int, start: int) -> float:
        rows = chain_rows([(7 * i) % 1000 for i in range(start, start + count)], start, target.device)
        seconds = timed(lambda: target.run(rows), device)
        target.keep(range(count))
        return seconds

    return {"prompt": ran(CONTEXT, 0), "token": ran(1, CONTEXT), "verify": ran(1 + DRAFTS, CONTEXT + 1)}


def timed(call: Callable[[], object], device: str) -> float:
    before = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - before


if __name__ == "__main__":
    main()
