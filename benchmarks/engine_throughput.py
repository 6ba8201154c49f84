"""Rows verified per second by the ratio rule at the sizes of real use, beside its peers and the speed of reading.

    python benchmarks/engine_throughput.py [--device cuda] [--vllm FILE] [--sglang FILE] [--out FILE]

A row is one row of p: a lane with gamma drafts has gamma + 1. All sides verify the same rows and drafts and throw coins
of their own; they take turns in one process, and a ratio is the median over the turns, with its smallest and largest.
`load` is that of the machine, this process included: figures of a busy one are noisy, whatever their ratios are.

    reading        a plain sum over as many bytes as the rule needs of p and q: two rows of a lane that refused a draft,
                   one of a lane that kept them all
    reading all    a plain sum over all of p and q, once
    compiled       refengine.engine.kernels.compiled(leviathan) with Philox coins
    checked        the same after check_rows, which reads all of p and q
    plain          the text in plain torch
    transformers   _speculative_sampling, which takes one request at a time and logits, at its batch of one
    vllm           on CUDA the Triton kernels of vllm/v1/sample/rejection_sampler.py, given as a file; on a CPU what
                   vLLM puts in their place there, csrc/cpu/spec_decode_utils.cpp, given as the compiled library that
                   registers it (vllm/_C*.so of a package for CPUs). It is handed probabilities and bonus tokens in the
                   types that it reads, so that its softmax, its bonus draw and its conversions are not counted
    sglang         blockwise_rejection_torch of sglang/kernels/ops/speculative/dspark/blockwise_rejection.py, given as a
                   file: the reference in torch of its kernel; it takes logits, up to LANES_OF_A_PEER requests at a time

On a CPU Triton's kernels run in an interpreter alone, a thousand times slower than what they are compiled to: there are
no times of them here. Whether they are right is `refengine audit engine vllm_kernels` and `sglang_kernels`. A peer's
version is that of the package that its file lies in.
"""

import argparse
import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, Block
from refengine.engine.check import check_rows
from refengine.engine.coins import Philox
from refengine.engine.kernels import compiled, kernels
from refengine.engine.rules.leviathan import leviathan

GAMMA = 4
DISTINCT = 32  # lanes whose rows are drawn; the others hold copies, in memory of their own
HEADROOM = 1.25  # of memory, beside the rows
LANES_OF_A_PEER = 64  # that has temporaries of the size of its rows
DISPATCHER = "triton_kernel_dispatcher_with_warmup"  # of vLLM 0.33: a launch is made by a decorator of the package
TURNS, TURN_SECONDS = 7, 0.15


@dataclass(frozen=True)
class Side:
    """What takes its turn: a call, and how many rows it verifies."""

    name: str
    call: Callable[[int], object]
    rows: int


def inputs(lanes: int, vocabulary: int, device: str) -> tuple[Tensor, Block]:
    """Random float32 rows, q near p so that about four drafts of five are kept, and drafts drawn from q."""
    generator = torch.Generator().manual_seed(0)
    some = min(lanes, DISTINCT)
    p = torch.randn(some, GAMMA + 1, vocabulary, generator=generator).mul_(2)
    q = (p[:, :-1] + torch.randn(some, GAMMA, vocabulary, generator=generator).mul_(0.5)).softmax(-1)
    p = p.softmax(-1)
    tokens = torch.multinomial(q.flatten(0, 1), 1, generator=generator).view(some, GAMMA)
    take = torch.arange(lanes) % some
    parents = torch.arange(-1, GAMMA - 1).expand(lanes, GAMMA).contiguous()
    p, q, tokens, parents, take = (t.to(device) for t in (p, q, tokens, parents, take))
    return p[take], Block(tokens[take], parents, q[take])


def sides(p: Tensor, block: Block, options: argparse.Namespace) -> tuple[list[Side], dict[str, str], int]:
    """Who takes part, why the others do not, and the bytes that the rule needs."""
    assert block.q is not None
    lanes, places, vocabulary = p.shape
    requests = torch.arange(lanes, device=p.device)
    fast = compiled(leviathan)
    length = leviathan(p[:DISTINCT], Block(block.tokens[:DISTINCT], block.parents[:DISTINCT], block.q[:DISTINCT]),
                       Philox(0, requests[:DISTINCT])).length  # fmt: skip
    mean_rows = float(torch.where(length == places, 1.0, 2.0).mean())
    needed = max(1, round(lanes * mean_rows)) * vocabulary
    flat, drafted = p.view(-1), block.q.view(-1)

    def at(turn: int) -> int:
        """Elsewhere in every turn, as the rule is: what has just been read may still lie in a cache."""
        return turn * needed % (p.numel() - needed + 1)

    def checked(turn: int) -> object:
        check_rows(p, block)
        return fast(p, block, Philox(turn, requests))

    rows = lanes * places
    taking = [
        Side("reading", lambda turn: flat[at(turn) : at(turn) + needed].sum(), rows),
        Side("reading all", lambda turn: (flat.sum(), drafted.sum()), rows),
        Side("compiled", lambda turn: fast(p, block, Philox(turn, requests)), rows),
        Side("checked", checked, rows),
        Side("plain", lambda turn: leviathan(p, block, Philox(turn, requests)), rows),
    ]
    absent = {}
    if kernels(p.device.type) is None:
        absent["compiled"] = "not measured: there is no compiler for this device (pip install refengine[fast])"
        taking = [side for side in taking if side.name != "compiled"]
    for name, peer in (("transformers", transformers), ("vllm", vllm), ("sglang", sglang)):
        found = peer(p, block, options)
        if isinstance(found, str):
            absent[name] = f"not measured: {found}"
        else:
            taking.append(found)
    return taking, absent, needed * 4


def transformers(p: Tensor, block: Block, options: argparse.Namespace) -> Side | str:
    try:
        from transformers.generation.utils import _speculative_sampling
    except ImportError:
        return "transformers is not installed"
    assert block.q is not None
    few = min(len(p), 8)
    logits, draft_logits = p[:few].log(), block.q[:few].log()

    def call(turn: int) -> object:
        b = slice(turn % few, turn % few + 1)
        return _speculative_sampling(block.tokens[b], draft_logits[b], GAMMA, logits[b])

    return Side("transformers", call, GAMMA + 1)


def vllm(p: Tensor, block: Block, options: argparse.Namespace) -> Side | str:
    if not options.vllm:
        return "no file was given (--vllm)"
    library = options.vllm.suffix != ".py"
    if library == (p.device.type == "cuda"):
        return (
            "on CUDA its file of kernels is needed, on a CPU its compiled library: Triton's interpreter times nothing"
        )
    if not library and DISPATCHER in options.vllm.read_text():
        return f"its launches go through {DISPATCHER}, for which there is no stand-in here"
    return vllm_on_cpu(p, block, options.vllm) if library else vllm_on_cuda(p, block, options.vllm)


def vllm_on_cpu(p: Tensor, block: Block, library: Path) -> Side:
    assert block.q is not None
    torch.ops.load_library(library)
    peer, lanes, vocabulary = torch.ops._C, len(p), p.shape[2]
    target, draft, ids = p[:, :-1].flatten(0, 1).contiguous(), block.q.flatten(0, 1), block.tokens.flatten()
    ends, bonus = torch.arange(GAMMA, GAMMA * lanes + 1, GAMMA), p[:, -1].argmax(-1)
    greedy = torch.zeros(lanes, dtype=torch.bool)

    def call(turn: int) -> object:
        out, recovered = torch.full((lanes, GAMMA + 1), NOTHING), torch.empty_like(ids)
        uniform = torch.rand(len(ids), dtype=torch.float64).float()
        noise = torch.empty(lanes, vocabulary).exponential_().reciprocal()
        peer.sample_recovered_tokens_kernel_impl(recovered, ends, ids, draft, target, noise, vocabulary, False)
        peer.rejection_random_sample_kernel_impl(
            out, ends, ids, draft, target, bonus, recovered, uniform, greedy, GAMMA, vocabulary, False
        )
        return out

    return Side("vllm", call, lanes * (GAMMA + 1))


def vllm_on_cuda(p: Tensor, block: Block, file: Path) -> Side:
    assert block.q is not None
    peer, lanes = loaded(file, "vllm"), len(p)
    target, draft = p[:, :-1].flatten(0, 1).contiguous(), block.q.flatten(0, 1)
    ids, counts = block.tokens.flatten().int(), [GAMMA] * lanes
    ends = torch.arange(GAMMA, GAMMA * lanes + 1, GAMMA, dtype=torch.int32, device=p.device)
    bonus = p[:, -1].argmax(-1).int()
    greedy, metadata = torch.zeros(lanes, dtype=torch.bool, device=p.device), MagicMock(generators={})

    def call(turn: int) -> object:
        out = torch.full((lanes, GAMMA + 1), NOTHING, dtype=torch.int32, device=p.device)
        uniform = peer.generate_uniform_probs(len(ids), counts, {}, p.device)
        recovered = peer.sample_recovered_tokens(GAMMA, counts, ends, ids, draft, target, metadata, p.device)
        peer.rejection_random_sample_kernel[(lanes,)](
            out, ends, ids, draft, target, bonus, recovered, uniform, greedy, GAMMA, p.shape[2], NO_DRAFT_PROBS=False
        )
        return out

    return Side("vllm", call, lanes * (GAMMA + 1))


def sglang(p: Tensor, block: Block, options: argparse.Namespace) -> Side | str:
    if not options.sglang:
        return "no file was given (--sglang)"
    assert block.q is not None
    peer, lanes = loaded(options.sglang, "sglang"), min(len(p), LANES_OF_A_PEER)
    ids = torch.cat([torch.zeros_like(block.tokens[:lanes, :1]), block.tokens[:lanes]], dim=1)
    target, draft = p[:lanes].log().flatten(0, 1), block.q[:lanes].log()
    ones, noise = torch.ones(lanes, device=p.device), peer.make_rejection_noise(0, p.device)

    def call(turn: int) -> object:
        return peer.blockwise_rejection_torch(
            candidates=ids,
            target_logits=target,
            draft_logits=draft,
            target_temperatures=ones,
            draft_temperatures=ones,
            noise=noise,
        )

    return Side("sglang", call, lanes * (GAMMA + 1))


def loaded(path: Path, package: str) -> ModuleType:
    """A file of a package without the package: what it imports from there is not needed by what is called."""
    import triton
    import triton.language

    stand_in = MagicMock(triton=triton, tl=triton.language)
    names = [line.split()[1] for line in path.read_text().splitlines() if line.startswith(f"from {package}")]
    for name in names:
        for end in range(1, len(name.split(".")) + 1):
            sys.modules.setdefault(".".join(name.split(".")[:end]), stand_in)
    spec = importlib.util.spec_from_file_location(f"{package}_file", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds_of(side: Side, device: str, turn: int) -> float:
    """Seconds a call, over as many calls as fill a turn."""
    calls, start = 0, now(device)
    while calls == 0 or time.perf_counter() - start < TURN_SECONDS:
        side.call(turn * 1000 + calls)
        calls += 1
    return (now(device) - start) / calls


def now(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def measured(lanes: int, vocabulary: int, options: argparse.Namespace) -> dict[str, Any]:
    """All sides at one size, in turns."""
    size: dict[str, Any] = {"vocabulary": vocabulary, "batch": lanes, "gamma": GAMMA}
    bytes_of_rows = 4 * lanes * (2 * GAMMA + 1) * vocabulary
    if bytes_of_rows * HEADROOM + (2 << 30) > free_memory(options.device):
        return size | {"not measured": f"the rows alone are {bytes_of_rows / 1e9:.0f} GB"}
    p, block = inputs(lanes, vocabulary, options.device)
    taking, absent, needed = sides(p, block, options)
    for side in taking:
        side.call(0)  # compiles, and touches every page
    turns = [
        {side.name: side.rows / seconds_of(side, options.device, turn) for side in taking} for turn in range(TURNS)
    ]
    rates = {side.name: statistics.median(turn[side.name] for turn in turns) for side in taking}
    size |= {"rows/s": {name: round(rate) for name, rate in rates.items()}, **absent}
    size["load"] = round(os.getloadavg()[0], 1)
    size["reading GB/s"] = round(needed * rates["reading"] / (lanes * (GAMMA + 1)) / 1e9, 1)
    for name in rates:
        if name != "compiled" and "compiled" in rates:
            ratios = sorted(turn["compiled"] / turn[name] for turn in turns)
            size[f"compiled / {name}"] = [round(r, 3) for r in (statistics.median(ratios), ratios[0], ratios[-1])]
    return size


def free_memory(device: str) -> int:
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def versions(device: str, peers: dict[str, Path | None]) -> dict[str, str]:
    """What it ran on."""
    found = {"python": platform.python_version(), "torch": torch.__version__, "device": device}
    found |= {name: version_of(name, file) for name, file in peers.items() if file}
    for name in ("numba", "triton", "transformers"):
        if importlib.util.find_spec(name):
            found[name] = __import__(name).__version__
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())  # fmt: skip
    where = torch.cuda.get_device_name() if device == "cuda" else f"{cpu}, {os.cpu_count()} cores"
    return found | {"where": where, "threads": str(torch.get_num_threads())}


def version_of(package: str, file: Path) -> str:
    """Of the package that a file lies in: its metadata stands beside the folder of its name."""
    beside = [folder.parent for folder in file.absolute().parents if folder.name == package]
    names = [found.name for folder in beside for found in folder.glob(f"{package}-*.dist-info")]
    return names[0].removeprefix(f"{package}-").removesuffix(".dist-info") if names else "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vocabularies", type=int, nargs="+", default=[32_000, 151_936])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64, 256, 4096])
    parser.add_argument("--vllm", type=Path, help="vLLM's rejection_sampler.py; on a CPU its compiled library")
    parser.add_argument("--sglang", type=Path, help="SGLang's blockwise_rejection.py")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found: dict[str, Any] = {
        "versions": versions(options.device, {"vllm": options.vllm, "sglang": options.sglang}),
        "sizes": [],
    }
    print("  ".join(found["versions"].values()))
    for vocabulary in options.vocabularies:
        for lanes in options.batches:
            size = measured(lanes, vocabulary, options)
            found["sizes"].append(size)
            print(json.dumps(size), flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
