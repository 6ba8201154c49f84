"""The two maps of a draft vocabulary, held to each other: see `networks/draft_vocabulary.py`."""

from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from refengine.decoder.checkpoints.reading.config import Config


class Vocabularies(Protocol):
    """The sizes of the draft's vocabulary and of the target's."""

    @property
    def draft_vocab_size(self) -> int: ...

    @property
    def vocab_size(self) -> int: ...


def refuse_larger(config: Config, s: Vocabularies) -> None:
    """Raise BadInput for a draft vocabulary of more tokens than the target has."""
    if s.draft_vocab_size > s.vocab_size:
        config.refuse(f"draft_vocab_size is {s.draft_vocab_size}, and vocab_size is {s.vocab_size}")


def refuse_bad_maps(config: Config, s: Vocabularies, found: dict[str, Tensor]) -> None:
    """d2t and t2d say the same thing twice, and must agree."""
    if "d2t" not in found:
        return
    targets = torch.arange(s.draft_vocab_size) + found["d2t"]
    where = Path(config.path).with_name("model.safetensors")
    maps = Config(str(where), {})
    if bool(((targets < 0) | (targets >= s.vocab_size)).any()):
        maps.refuse(f"tensor d2t leads outside the vocabulary of {s.vocab_size} tokens")
    if len(set(targets.tolist())) < len(targets):
        maps.refuse("tensor d2t leads two draft tokens to one token of the target")
    member = torch.zeros(s.vocab_size, dtype=torch.bool)
    member[targets] = True
    if "t2d" in found and not torch.equal(member, found["t2d"]):
        maps.refuse("tensors d2t and t2d disagree about which tokens can be drafted")
