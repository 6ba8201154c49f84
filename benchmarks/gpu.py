"""Everything that needs a GPU, in one call of at most eight minutes: `make gpu`, or

    PYTHONPATH=. python benchmarks/gpu.py [--out benchmarks/results/gpu.json] [--minutes 7.5]

Needs torch with CUDA, transformers, pytest and hypothesis; this package need not be installed. Parts are processes of
their own: one that fails, crashes or runs out of time leaves the figures of the others, and its own up to there. Tests
come first, beside each other; then what is timed, alone. Without a device it says so and writes nothing.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

import torch

from refengine.report.canonical import write_atomic
from refengine.selfcheck.gpu import digest
from refengine.source_tree import RESULTS, ROOT

DECODER, ENGINE = "properties/decoder/test_cuda.py", "properties/exact_and_engine"
TESTS = {
    "the decoder in float64": [DECODER, "-k", "cuda_decodes"],
    "the decoder in 32 and 16 bits": [DECODER, "-k", "networks_compute"],
    "bits of histories": [DECODER, "-k", "history_on_cuda or kernel_shape or company"],
    "bits of speculative output, float32": [DECODER, "-k", "plain_output_on_cuda and float32"],
    "bits of speculative output, bfloat16": [DECODER, "-k", "plain_output_on_cuda and bfloat16"],
    "exact laws of the loop": [DECODER, "-k", "exact_law"],
    "coins and kernels of the engine": [ENGINE],
    "a million full rows": ["statistical_tests/test_cuda.py"],
}
TIMED = {
    "speed of the engine": ["benchmarks/engine_throughput.py", "--device", "cuda"],
    "cost of the bitwise mode": ["benchmarks/bitwise.py", "--device", "cuda"],
}
INSTALLED = any(point.name == "refengine" for point in entry_points(group="pytest11"))
OPTIONS = ["-m", "gpu", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "benchmarks.recorded"]
OPTIONS += [] if INSTALLED else ["-p", "refengine.pytest_plugin"]
ALONE = 60  # seconds that are kept for each timed part


@dataclass
class Part:
    """A process, and where it writes what it finds."""

    process: subprocess.Popen[bytes]
    figures: Path
    words: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu.json")
    parser.add_argument("--minutes", type=float, default=7.5)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("not tested: this machine has no CUDA device")
        return
    run(arguments.out, time.monotonic() + 60 * arguments.minutes)


def run(out: Path, end: float) -> None:
    """All parts; what is known is written whenever one more has ended."""
    found: dict[str, Any] = {**machine(), "digest": digest(), "parts": {}}
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        tests = {name: start(here, name, ["-m", "pytest", *OPTIONS, *asked]) for name, asked in TESTS.items()}
        for name, part in tests.items():
            found["parts"][name] = ended(part, end - ALONE * len(TIMED))
            save(out, found)
        for number, (name, command) in enumerate(TIMED.items(), 1):
            if not (ROOT / command[0]).exists():
                found["parts"][name] = {"outcome": f"not tested: there is no {command[0]}"}
                continue
            part = start(here, name, [*command, "--out", str(here / f"{name}.figures")])
            found["parts"][name] = ended(part, end - ALONE * (len(TIMED) - number))
            save(out, found)
    for name, part in found["parts"].items():
        print(f"{part['outcome']:<24} {name}")
    for part in found["parts"].values():
        failed = [test for test, one in part.get("tests", {}).items() if one["outcome"] == "failed"]
        print("\n".join([*(f"failed: {test}" for test in failed), *part.get("last words", [])]))
    print(f"{out} written")


def machine() -> dict[str, str]:
    return {
        "device": torch.cuda.get_device_name(),
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "transformers", "numpy")},
    }


def start(folder: Path, name: str, command: list[str]) -> Part:
    words = folder / f"{name}.words"
    figures = folder / f"{name}.figures"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    environment["RECORDED"] = str(figures)
    with words.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT
        )
    return Part(process, figures, words)


def ended(part: Part, end: float) -> dict[str, Any]:
    """What a part found, and how it went. Waits for it until `end`."""
    try:
        code = part.process.wait(max(1.0, end - time.monotonic()))
        outcome = "passed" if code == 0 else f"failed ({code})"  # 5: nothing was collected
    except subprocess.TimeoutExpired:
        part.process.kill()
        part.process.wait()
        outcome = "ran out of time"
    found: dict[str, Any] = {"outcome": outcome}
    text = part.figures.read_text() if part.figures.exists() else ""
    if text.startswith('{"test":'):
        found["tests"] = {one.pop("test"): one for one in map(json.loads, text.splitlines())}
    elif text:
        found["figures"] = json.loads(text)
    if outcome != "passed":
        found["last words"] = part.words.read_text(errors="replace").splitlines()[-12:]
    return found


def save(out: Path, found: dict[str, Any]) -> None:
    write_atomic(out, json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
