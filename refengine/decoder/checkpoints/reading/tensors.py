"""Reading weights: safetensors only, and exactly the tensors that the config asks for, each of its shape and dtype."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from refengine.decoder.checkpoints.reading.config import Config
from refengine.errors import BadInput

Shape: TypeAlias = tuple[int, ...]
# name -> shape of a floating-point tensor in the checkpoint's dtype, or (shape, dtype) of an integer or boolean one
Table: TypeAlias = Mapping[str, Shape | tuple[Shape, torch.dtype]]

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
FLOATING = ("F64", "F32", "BF16", "F16")  # the same, as safetensors spells them
PACKED = ("qweight", "weight_packed", "weight_q", "blocks")  # GPTQ and AWQ, compressed-tensors, HQQ, MXFP4
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")


def read_tensors(
    folder: Path,
    table: Table,
    config: Config,
    within: tuple[str, ...] = ("",),
    unused: Collection[str] = (),
) -> dict[str, Tensor]:
    """Every tensor of the folder's safetensors file(s), held to `table`: none missing, none left over, all finite.

    within  the beginnings of the names that are read, where the file holds the target too
    unused  names whose values do not matter
    Raises BadInput with one line that names the first thing that is wrong.
    """
    files = weight_files(folder)
    found: dict[str, Tensor] = {}
    for file in files:
        for name, tensor in _tensors(file, within):
            if name in found:
                raise BadInput(f"{file}: tensor {name} is stored twice")
            found[name] = tensor
    where = files[0] if len(files) == 1 else folder
    check(found, table, str(where), _declared_dtype(config))
    refuse_infinite({name: x for name, x in found.items() if name not in unused}, str(where))
    return found


def check(found: Mapping[str, Tensor], table: Table, where: str, dtype: torch.dtype | None) -> None:
    """Hold tensors to a table. dtype: what the config declares; None: any floating-point dtype, but one for all."""
    for name, expected in table.items():
        if name not in found:
            raise BadInput(f"{where}: tensor {name} is missing{_instead(name, found)}")
        shape, kind = expected if isinstance(expected[0], tuple) else (expected, None)
        tensor = found[name]
        if tuple(tensor.shape) != shape:
            raise BadInput(f"{where}: tensor {name} has shape {list(tensor.shape)}, the config asks for {list(shape)}")
        if kind is None:
            if not tensor.is_floating_point():
                raise BadInput(f"{where}: tensor {name} has dtype {_name(tensor.dtype)}, expected floating point")
            if tensor.dtype not in FLOATS:
                raise BadInput(f"{where}: tensor {name} is quantised, to {_name(tensor.dtype)}: dequantise it first")
            kind = dtype = dtype or tensor.dtype
        if tensor.dtype is not kind:
            raise BadInput(f"{where}: tensor {name} has dtype {_name(tensor.dtype)}, expected {_name(kind)}")
    if left_over := sorted(found.keys() - table.keys()):
        more = f" (and {len(left_over) - 1} more)" if len(left_over) > 1 else ""
        raise BadInput(f"{where}: tensor {left_over[0]} is in the file, and the config has no place for it{more}")


def _instead(name: str, there: Iterable[str]) -> str:
    """What the file may have in the place of a tensor that it lacks: a packed one, or one behind a prefix."""
    stem = name.rpartition(".")[0]
    for other in sorted(there):
        if other.rpartition(".")[0] == stem and other.rpartition(".")[2] in PACKED:
            return f" (it is stored quantised, as {other}: dequantise it first)"
        if other.endswith(f".{name}"):
            return f" (the file has {other})"
    return ""


def check_held(held: Mapping[str, Tensor], where: str) -> None:
    """Hold what a model of transformers was loaded with to plain finite numbers."""
    for name, tensor in held.items():
        if tensor.is_floating_point() and tensor.dtype not in FLOATS:
            raise BadInput(f"{where}: tensor {name} is quantised, to {_name(tensor.dtype)}: dequantise it first")
    refuse_infinite(held, where)


def refuse_infinite(tensors: Mapping[str, Tensor], where: str) -> None:
    """Raise BadInput for a NaN or an infinity: rows that are made of one are no distributions."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise BadInput(f"{where}: tensor {name} holds a NaN or an infinity")


def weight_files(folder: Path) -> Sequence[Path]:
    """The safetensors files of a folder: one, or the shards that an index names."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            placed = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
            shards = sorted(set(placed.values()))
            if not shards or any(Path(shard).name != shard for shard in shards):
                raise ValueError(shards)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadInput(f"{index}: not an index of shards in this folder") from None
        if missing := [shard for shard in shards if not (folder / shard).is_file()]:
            raise BadInput(f"{index}: shard {missing[0]} is missing")
        there = {shard: set(_names(folder / shard)) for shard in shards}
        for name, shard in sorted(placed.items()):
            if name not in there[shard]:
                raise BadInput(f"{index}: tensor {name} is not in {shard}, where the index has it")
        return [folder / shard for shard in shards]
    files = sorted(folder.glob("*.safetensors"))
    if len(files) > 1:
        raise BadInput(f"{folder}: {len(files)} safetensors files and no index that says which belong together")
    if not files:
        refuse_pickle(folder)
        raise BadInput(f"{folder}: no safetensors file")
    return files


def refuse_pickle(folder: Path) -> None:
    """Raise BadInput, with the command that helps, where a folder has its weights in a pickle."""
    pickles = sorted(file for file in folder.iterdir() if file.suffix in PICKLES)
    if pickles:
        raise BadInput(
            f"{pickles[0]} is a pickle, which can run code when it is read: "
            f"convert it with `refengine checkpoint convert {pickles[0]} {folder / 'model.safetensors'}`"
        )


def _tensors(file: Path, within: tuple[str, ...] = ("",)) -> Iterator[tuple[str, Tensor]]:
    names = [name for name in _names(file) if name.startswith(within)]
    with safe_open(str(file), framework="pt") as opened:
        for name in names:
            yield name, opened.get_tensor(name)


def _names(file: Path) -> list[str]:
    try:
        with safe_open(str(file), framework="pt") as opened:
            return list(opened.keys())
    except SafetensorError as error:
        raise BadInput(f"{file}: truncated, or no safetensors file: {error}") from None


def tensor_headers(folder: Path) -> dict[str, tuple[Shape, str]]:
    """Shape and dtype of every tensor, as safetensors spells it (F32, BF16, I64); no values are read."""
    found: dict[str, tuple[Shape, str]] = {}
    for file in weight_files(folder):
        try:
            with safe_open(str(file), framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 (safe_open is no mapping)
                    header = opened.get_slice(name)
                    found[name] = tuple(header.get_shape()), header.get_dtype()
        except SafetensorError as error:
            raise BadInput(f"{file}: truncated, or no safetensors file: {error}") from None
    return found


def _declared_dtype(config: Config) -> torch.dtype | None:
    """`dtype` (transformers 5) or `torch_dtype` (transformers 4); None where neither is given."""
    name = config.fields.get("dtype") or config.fields.get("torch_dtype")
    if name is None:
        return None
    dtype = getattr(torch, str(name), None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise BadInput(f"{config.path}: dtype is {name!r}, which is no floating-point dtype")
    return dtype


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
