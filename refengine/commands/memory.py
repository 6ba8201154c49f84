"""Whether a pair fits into the memory that is there, said before anything is loaded."""

import math
import os
import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint
from refengine.decoder.checkpoints.reading.tensors import FLOATING
from refengine.errors import BadInput

WORKING = 256 << 20  # bytes for logits, keys and values, and what transformers holds while it loads
SHARE = 0.9  # of what is free, which others use too
INTEGERS = {"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Plan:
    """Bytes of the weights in the dtype that was asked for, and those that are free for them.

    drafter  0 where it lies in the target's own folder
    """

    target: int
    drafter: int
    free: int

    @property
    def fits(self) -> bool:
        return self.target + self.drafter <= self.free

    @property
    def budget(self) -> int:
        """What is left for the target's layers beside a drafter that stays."""
        return self.free - self.drafter

    def line(self, dtype: str) -> str:
        pair = f"{mib(self.target)} of the target and {mib(self.drafter)} of the drafter in {dtype}"
        how = "held whole" if self.fits else "the target's layers are streamed, and every pass reads them again"
        return f"memory: {pair}, {mib(self.free)} free for weights: {how}"


def plan(target: Path, drafter: Path | None, dtype: torch.dtype, given: int | None = None) -> Plan:
    """From the headers of the files. given: bytes for weights, instead of what is free. Raises BadInput where the
    drafter alone is too large."""
    apart = drafter is not None and drafter.resolve() != target.resolve()
    free = max(0, int(available() * SHARE) - WORKING) if given is None else given
    found = Plan(weights(target, dtype), weights(drafter, dtype) if drafter and apart else 0, free)
    if found.budget <= 0:
        raise BadInput(f"{drafter}: {mib(found.drafter)} of weights, which stay, and {mib(free)} are free for them")
    return found


def weights(folder: Path, dtype: torch.dtype) -> int:
    """Bytes of all tensors of a checkpoint, those of floating point in this dtype."""
    checkpoint = Checkpoint(folder)
    if checkpoint.is_metas:
        return sum(file.stat().st_size for file in folder.glob("consolidated.*"))
    kinds = checkpoint.kinds
    return sum(
        math.prod(shape) * (dtype.itemsize if kinds[name] in FLOATING else INTEGERS.get(kinds[name], dtype.itemsize))
        for name, shape in checkpoint.shapes.items()
    )


def available() -> int:
    """Bytes that this process may still take: of the machine, of its control groups, of its own limits."""
    bounds = [_machine(), *_groups()]
    held = _held()
    for limit in (resource.RLIMIT_AS, getattr(resource, "RLIMIT_DATA", resource.RLIMIT_AS)):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            bounds.append(soft - held.get(limit, 0))
    return max(0, min(bounds))


def _machine() -> int:
    try:
        return _lines("/proc/meminfo")["MemAvailable"]
    except (OSError, KeyError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2  # where nothing says what is free


def _held() -> dict[int, int]:
    """What counts for each limit, now."""
    try:
        status = _lines("/proc/self/status")
        return {resource.RLIMIT_AS: status["VmSize"], resource.RLIMIT_DATA: status["VmData"]}
    except (OSError, KeyError):
        return {}


def _lines(file: str) -> dict[str, int]:
    """`name: n kB` as bytes."""
    parts = (line.split() for line in Path(file).read_text().splitlines())
    return {part[0].rstrip(":"): int(part[1]) * 1024 for part in parts if part[-1:] == ["kB"]}


def _groups(process: Path = Path("/proc/self/cgroup"), root: Path = CGROUPS) -> list[int]:
    """What the control groups of this process leave, those above it too: version 2, and the memory group of 1."""
    left = []
    try:
        lines = process.read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, most, used = root, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            base, most, used = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        below = base / path.lstrip("/")
        for group in (below, *below.parents):
            if not group.is_relative_to(base):
                break
            with suppress(OSError, ValueError):  # no such file here, or "max"
                left.append(int((group / most).read_text()) - int((group / used).read_text()) + _cached(group))
    return left


def _cached(group: Path) -> int:
    """What of its use is files that are given up for whoever asks."""
    parts = (line.split() for line in (group / "memory.stat").read_text().splitlines())
    told = {name: int(value) for name, value in parts}
    return told.get("total_inactive_file", told.get("inactive_file", 0))


def mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"
