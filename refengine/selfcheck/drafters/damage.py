"""Whether a checkpoint is read strictly: each of its tensors is damaged in turn, and each must matter.

Nothing here knows a layout. A copy of the checkpoint lacks a tensor, has one too many, or one of another shape or
dtype: the reader must refuse it and name the tensor; without one that another implies (`t2d`, beside `d2t`) it may read
the same drafter. A tensor of zeros, and two of one shape that change places, must move the logits or the blocks that
come out, or be refused: some layouts store copies, which are held to the original.
"""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.overrides import TorchFunctionMode

from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.checkpoints.reading.tensors import tensor_headers, weight_files
from refengine.decoder.loop import Session, fitting
from refengine.decoder.protocols import Drafter, Target, Tokens
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature
from refengine.errors import BadInput

ROUNDS = 6  # so many that a router asks each of its experts
# Float64 logits of order 1 carry roundings of about 1e-15; a tensor that matters moves them by 1e-3 and more here.
# (In float32 a router's near tie may be broken by the threads of one run, and then the same weights move the logits.)
MOVED = 1e-5
MISSING = "missing"
UNWRITTEN = (torch.empty, torch.empty_like, Tensor.new_empty)  # whose results hold what lay in the memory
THRESHOLD = 0.5  # where there is a confidence head, so that it is computed

Tensors: TypeAlias = dict[str, Tensor]
Read: TypeAlias = Callable[[Path], tuple[Target, Drafter]]


@dataclass
class Strictness:
    """What was tried and what went unnoticed, one line each."""

    tensors: int = 0
    refused: int = 0
    implied: int = 0
    moved: int = 0
    unnoticed: list[str] = field(default_factory=list)


@torch.inference_mode()
def strictness(folder: Path, target: Target | None, prompt: Tokens) -> Strictness:
    """Damage every tensor of a checkpoint. target: float64; None where the checkpoint holds both."""
    found = Strictness()
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / folder.name
        shutil.copytree(folder, copy)
        (file,) = weight_files(copy)
        tensors = load_file(file)
        read: Read = partial(_read, target=target)
        found.tensors = len(tensors)
        right = trace(*read(copy), prompt)
        if moved(right, trace(*read(copy), prompt)):
            raise RuntimeError(f"{folder}: the same files twice give two traces, beside which any damage would show")
        for name, what, damaged in refusable(tensors):
            save_file(damaged, file)
            _refused(found, lambda: trace(*read(copy), prompt), right, name, what)
        held: set[str] = set()  # tensors that may not change alone
        for names, what, changed in noticeable(tensors):
            if names <= held and len({tensors[name].numpy().tobytes() for name in names}) == 1:
                continue  # two copies in each other's place are the same file
            save_file(changed, file)
            try:
                showed = moved(right, trace(*read(copy), prompt))
            except BadInput:
                held, showed = held | names, True
            if showed:
                found.moved += 1
            else:
                found.unnoticed.append(f"{what}: no logit moves")
    return found


def _read(folder: Path, target: Target | None) -> tuple[Target, Drafter]:
    judge = load_target(folder, torch.float64) if target is None else target
    confident = any(name.startswith("confidence_head.") for name in tensor_headers(folder))
    return judge, load_drafter(folder, judge, threshold=THRESHOLD if confident else None)


def refusable(tensors: Tensors) -> Iterator[tuple[str, str, Tensors]]:
    """Every damage that a strict reader refuses: the tensor it must name, what was done, the damaged file."""
    for name, tensor in tensors.items():
        yield name, MISSING, {other: x for other, x in tensors.items() if other != name}
        yield name, "one row longer", tensors | {name: torch.cat([tensor, tensor[-1:]])}
        other = tensor.long() if tensor.is_floating_point() else tensor.float()
        yield name, f"of dtype {other.dtype}", tensors | {name: other}
    yield "stray.weight", "one too many", tensors | {"stray.weight": torch.zeros(2)}


def noticeable(tensors: Tensors) -> Iterator[tuple[set[str], str, Tensors]]:
    """Changes of values that must show: each tensor of zeros, and each in the place of the next of its shape.

    Yields the tensors that are changed, what was done, the changed file.

    Integers are maps of tokens, of which a reader refuses all but one.
    """
    free = {name: x for name, x in tensors.items() if x.is_floating_point()}
    for name, x in free.items():
        yield {name}, f"{name} of zeros", tensors | {name: torch.zeros_like(x)}
    for shape in {x.shape: None for x in free.values()}:
        alike = [name for name, x in free.items() if x.shape == shape]
        for a, b in itertools.pairwise(alike):
            yield {a, b}, f"{a} and {b} swapped", tensors | {a: free[b], b: free[a]}


def _refused(found: Strictness, traced: Callable[[], list[Tensor]], right: list[Tensor], name: str, what: str) -> None:
    try:
        changed = moved(right, traced())
    except BadInput as error:
        if name in str(error) and "\n" not in str(error):
            found.refused += 1
        else:
            found.unnoticed.append(f"{name} {what}: refused with another reason: {error}")
        return
    if what == MISSING and not changed:
        found.implied += 1
    else:
        found.unnoticed.append(f"{name} {what}: accepted")


# --- what a drafter computes, seen from below ------------------------------------------------------------------------


def trace(target: Target, drafter: Drafter, prompt: Tokens) -> list[Tensor]:
    """Every logits-like tensor and every probability of a switch (sigmoid) that some rounds compute, and the blocks."""
    seen = Seen(target.vocabulary)
    play = Session(target, drafter, fitting, pipeline(temperature(1.0)), 10**6)
    coins = Philox(0, torch.tensor([0], device=target.device))
    with seen:
        play.begin(prompt, coins)
        for _ in range(ROUNDS):
            play.play(coins)
    blocks = [x for played in play.rounds for x in (played.block.tokens, played.block.parents)]
    return [*seen.outputs, *blocks]


class Seen(TorchFunctionMode):
    """Keeps the result of every operation whose last axis is the vocabulary, and of every sigmoid."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.outputs: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.is_floating_point() and not _unwritten(func, result, args):
            switch = func in (torch.sigmoid, Tensor.sigmoid, torch.nn.functional.sigmoid)
            self.outputs += [result.clone()] * (switch or result.shape[-1:] == (self.vocabulary,))
        return result


def _unwritten(func: Any, result: Tensor, args: Any) -> bool:
    """Whether it may hold what lay in the memory: a new tensor that nobody has filled, or a part of a tensor."""
    whole = args[0] if args and isinstance(args[0], Tensor) else None
    part = whole is not None and whole.untyped_storage().data_ptr() == result.untyped_storage().data_ptr()
    return part or func in UNWRITTEN


def moved(a: list[Tensor], b: list[Tensor]) -> bool:
    """Whether two traces differ by more than rounding."""
    if [x.shape for x in a] != [x.shape for x in b]:
        return True
    pairs = [(x.double(), y.double()) for x, y in zip(a, b, strict=True) if x.numel()]
    return any(float((x - y).nan_to_num(0.0).abs().max()) > MOVED for x, y in pairs)
