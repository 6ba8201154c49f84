"""A checkpoint folder that is read once, and what a released layout is: how it is recognised, and how it is loaded."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch import Tensor

from refengine.decoder.checkpoints.reading.config import Config, read_config
from refengine.decoder.checkpoints.reading.tensors import Shape, Table, read_tensors, tensor_headers
from refengine.decoder.protocols import Drafter

PARAMS = "params.json"  # what stands for config.json among files in Meta's own layout


@dataclass(frozen=True)
class Checkpoint:
    """A folder. Its config and the headers of its weights are each read when they are first asked for, and once."""

    folder: Path

    @cached_property
    def config(self) -> Config:
        return read_config(self.folder, PARAMS if self.is_metas else "config.json")

    @cached_property
    def is_metas(self) -> bool:
        return (self.folder / PARAMS).is_file() and not (self.folder / "config.json").is_file()

    @cached_property
    def shapes(self) -> Mapping[str, Shape]:
        """Names and shapes of its tensors."""
        return {name: shape for name, (shape, _) in self._headers.items()}

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """Names and dtypes of its tensors, as safetensors spells them: F32, BF16, I64."""
        return {name: kind for name, (_, kind) in self._headers.items()}

    @cached_property
    def _headers(self) -> Mapping[str, tuple[Shape, str]]:
        return tensor_headers(self.folder)

    def read(
        self,
        table: Table,
        config: Config | None = None,
        within: tuple[str, ...] = ("",),
        unused: Collection[str] = (),
    ) -> dict[str, Tensor]:
        """Its tensors, held to `table`: see `read_tensors`. config: the object that declares their dtype, if not all
        of it."""
        return read_tensors(self.folder, table, config or self.config, within, unused)


@dataclass(frozen=True)
class Layout:
    """A released layout.

    name     as the release is known
    matches  whether a checkpoint is of this layout; what tensors it has is asked only where the config leaves it open
    load     (checkpoint, target, options by name) -> the drafter. Its keywords are the options that the layout takes
    general  it gives way to any other that matches: any causal language model can be a separate draft model
    """

    name: str
    matches: Callable[[Checkpoint], bool]
    load: Callable[..., Drafter]
    general: bool = False


def says(field: str, *values: object) -> Callable[[Checkpoint], bool]:
    """Whether a config has a field with one of these values; without values, whether it has it at all."""

    def matches(checkpoint: Checkpoint) -> bool:
        value = checkpoint.config.fields.get(field)
        return value in values if values else value is not None

    return matches


def named(*architectures: str) -> Callable[[Checkpoint], bool]:
    """Whether the first of a config's architectures is one of these. (A config of speculators says what it is in a
    field of its own, beside the same names.)"""

    def matches(checkpoint: Checkpoint) -> bool:
        return checkpoint.config.architecture() in architectures and not says("speculators_model_type")(checkpoint)

    return matches
