"""A causal language model that is larger than the memory for its weights: layers come from the files one at a time.

The model is built without weights. What stands beside its layers (embedding, head, norms) and as many layers as fit are
read once; every other layer is read when a pass comes to it and dropped when the pass has left it. Files are read and
never mapped, so that what is held is what is counted. A tensor has the bytes that it has in a model that is held whole,
and so have the logits.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

from refengine.decoder.checkpoints.layouts import qwen_mtp
from refengine.decoder.checkpoints.reading.causal_lm import reason, within
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint
from refengine.decoder.checkpoints.reading.target_probe import behind_the_protocol
from refengine.decoder.checkpoints.reading.tensors import check_held, weight_files
from refengine.decoder.targets.bitwise import BitwiseTarget
from refengine.decoder.targets.recurrent import RecurrentTarget
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.errors import BadInput

KINDS = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
LINE = 64  # bytes: a tensor begins where in a line it does in a mapped file, for the last bits of kernels depend on it
Tell = Callable[..., None]  # (what is going on, how much of it is done)


@dataclass(frozen=True)
class Stored:
    """Where a tensor lies: file, first byte, bytes, shape and dtype."""

    file: Path
    start: int
    size: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    def read(self, dtype: torch.dtype) -> Tensor:
        space = torch.empty(self.size + LINE, dtype=torch.uint8)
        shift = (self.start - space.data_ptr()) % LINE
        data = space[shift : shift + self.size]
        with self.file.open("rb") as opened:
            opened.seek(self.start)
            if opened.readinto(data.numpy().data) != self.size:
                raise BadInput(f"{self.file}: it ends inside a tensor")
        return data.view(self.dtype).reshape(self.shape).to(dtype)


def stored(folder: Path) -> dict[str, Stored]:
    """Every floating-point tensor of a folder's safetensors files; tensors of other types are refused."""
    found = {}
    for file in weight_files(folder):
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(length))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if entry["dtype"] not in KINDS:
                raise BadInput(f"{file}: tensor {name} is of {entry['dtype']}, which is not streamed")
            first, last = entry["data_offsets"]
            shape, kind = tuple(entry["shape"]), KINDS[entry["dtype"]]
            found[name] = Stored(file, 8 + length + first, last - first, shape, kind)
    return found


class Streamed:
    """The weights of a model whose parameters are without them, by module.

    budget  bytes that weights may take, one layer under way counted in
    held    bytes that they take at most; needed: the least that would do
    """

    def __init__(self, model: Any, where: Mapping[str, Stored], dtype: torch.dtype, budget: int, tell: Tell) -> None:
        self.model, self.where, self.dtype, self.tell = model, where, dtype, tell
        text = model.config.get_text_config()
        lists = {
            name: list(module)
            for name, module in model.named_modules()
            if isinstance(module, nn.ModuleList) and len(module) == text.num_hidden_layers
        }
        if len(lists) != 1:
            raise BadInput(f"{text.model_type}: which modules are its layers is not clear: it is not streamed")
        ((stem, layers),) = lists.items()
        self.layers = {f"{stem}.{i}.": layer for i, layer in enumerate(layers)}
        self.resident = [name for name in where if not name.startswith(tuple(self.layers))]
        sizes = {stem: self.bytes_of(self.names(stem)) for stem in self.layers}
        self.needed = self.bytes_of(self.resident) + max(sizes.values())
        if self.needed > budget:
            raise BadInput(
                f"{text.model_type}: embedding, head and one layer take {mib(self.needed)} in {_name(dtype)}, "
                f"and {mib(budget)} are there for its weights"
            )
        self.held = self.needed
        self.kept = set()
        for one, size in sizes.items():
            if self.held + size <= budget:
                self.held += size
                self.kept.add(one)

    def names(self, stem: str) -> list[str]:
        return [name for name in self.where if name.startswith(stem)]

    def bytes_of(self, names: Iterable[str]) -> int:
        return sum(math.prod(self.where[name].shape) for name in names) * self.dtype.itemsize

    def fill(self, names: Iterable[str]) -> None:
        """Read these tensors into the modules that they are of."""
        for name in names:
            owner, _, last = name.rpartition(".")
            module = self.model.get_submodule(owner)
            tensor = self.where[name].read(self.dtype)
            if last in module._parameters:
                module._parameters[last] = nn.Parameter(tensor, requires_grad=False)
            else:
                module._buffers[last] = tensor

    def drop(self, names: Iterable[str]) -> None:
        for name in names:
            owner, _, last = name.rpartition(".")
            module = self.model.get_submodule(owner)
            home = module._parameters if last in module._parameters else module._buffers
            home[last] = (
                nn.Parameter(home[last].to("meta"), False) if home is module._parameters else home[last].to("meta")
            )

    def start(self) -> None:
        """Read what stays, look at everything once, and let every other layer come and go with the passes."""
        self.fill(self.resident)
        check_held({name: self.model.get_parameter(name) for name in self.resident}, "the weights beside the layers")
        for number, (stem, layer) in enumerate(self.layers.items()):
            self.tell(f"reading layer {number + 1} of {len(self.layers)}", number / len(self.layers))
            names = self.names(stem)
            self.fill(names)
            check_held(layer.state_dict(), f"layer {number}")
            if stem in self.kept:
                continue
            self.drop(names)
            layer.register_forward_pre_hook(partial(self._comes, number, names))
            layer.register_forward_hook(partial(self._goes, names), always_call=True)

    def _comes(self, number: int, names: list[str], *_: Any) -> None:
        self.tell(f"layer {number + 1} of {len(self.layers)}")
        self.fill(names)

    def _goes(self, names: list[str], *_: Any) -> None:
        self.drop(names)


def stream_target(
    path: str | Path, dtype: torch.dtype, budget: int, tell: Tell, slots: int | None = None
) -> TransformersTarget | RecurrentTarget | BitwiseTarget:
    """What `load_target` gives, on the CPU, with no more than `budget` bytes of weights at a time. Raises BadInput.

    tell  is told which layer is read
    """
    checkpoint = Checkpoint(Path(path))
    if checkpoint.is_metas:
        raise BadInput(f"{path}: files in Meta's own layout are not streamed")
    model, left_over, _ = load_streamed(checkpoint, dtype, budget, tell)
    strays = set(left_over) - qwen_mtp.COPIES if qwen_mtp.is_native(checkpoint) else within(model, left_over)
    if strays:
        raise BadInput(f"{path}: tensor {min(strays)} is in the file, and the config has no place for it")
    return behind_the_protocol(model, slots)


def load_streamed(
    checkpoint: Checkpoint, dtype: torch.dtype, budget: int, tell: Tell
) -> tuple[Any, list[str], Streamed]:
    """The model, the tensors that it has no place for, and what moves its weights. Raises BadInput.

    Only for checkpoints whose tensors are named as the model's own: what transformers renames, splits or fuses while it
    loads (experts) is refused by the name that is missing.
    """
    folder = checkpoint.folder
    auto: Any = AutoModelForCausalLM
    configs: Any = AutoConfig
    try:
        config = configs.from_pretrained(folder, local_files_only=True)
        with torch.device("meta"):
            model: Any = auto.from_config(
                config, dtype=dtype, attn_implementation="eager", experts_implementation="eager"
            )
    except Exception as error:  # transformers raises whatever its parts raise
        raise BadInput(f"{folder}: transformers cannot build it: {reason(error)}") from error
    where, wanted, tied = stored(folder), model.state_dict(), set(model.all_tied_weights_keys)
    for name in sorted(wanted.keys() - where.keys() - tied):
        raise BadInput(f"{folder}: tensor {name} is missing, or named otherwise: it is not streamed")
    for name, tensor in sorted(wanted.items()):
        if name in where and where[name].shape != tuple(tensor.shape):
            raise BadInput(
                f"{folder}: tensor {name} has shape {list(where[name].shape)}, the config asks for {list(tensor.shape)}"
            )
    _make_buffers(model, set(wanted))
    used = {name: entry for name, entry in where.items() if name in wanted}
    streamed = Streamed(model, used, dtype, budget, tell)
    streamed.start()
    model.tie_weights()
    return model.eval().requires_grad_(False), sorted(where.keys() - wanted.keys()), streamed


def _make_buffers(model: Any, in_files: set[str]) -> None:
    """What no file has and every model computes: angles, factors on embeddings. By transformers' own hand."""
    for stem, module in model.named_modules():
        lacking = [name for name in module._buffers if f"{stem}.{name}".lstrip(".") not in in_files]
        for name in lacking:
            module._buffers[name] = torch.empty_like(module._buffers[name], device="cpu")
        if lacking:
            model._init_weights(module)


def mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
