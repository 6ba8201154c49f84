"""A row of the table of drafters: one drafter on its tiny fixture, and what it is put through."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from refengine.decoder.checkpoints.load import load_drafter
from refengine.decoder.protocols import Drafter, Target, Tokens
from refengine.selfcheck.drafters.planted_bugs import Plant
from refengine.source_tree import FIXTURES

CHECKS = {
    "loads": "each tensor of the checkpoint is needed or implied by another, named when damaged, and matters",
    "agrees": "logits and drafts are those of independent code",
    "incremental": "after any accepts and rejects the state is that of a recompute",
    "q-contract": "draws have the law that is reported",
    "law": "the real loop's exact law is the target's",
    "greedy": "greedy output is plain greedy output, stops included",
    "acceptance": "acceptance is what p and q allow",
    "self-draft": "with p for q everything is accepted",
}
NO_WEIGHTS = {"loads": "it has no weights to load"}
NO_ROWS = {"self-draft": "its candidates are not drawn from rows that could be made equal to the target's"}


def as_it_is(drafter: Any) -> Any:
    return drafter


@dataclass(frozen=True)
class Row:
    """One drafter.

    prompt      after it the drafter accepts, rejects, rolls back and stops inside a block: found by trying
    plants      state bugs, of the drafter and of its target, which must show
    folder      the checkpoint, under fixtures/; empty for drafters without weights
    options     what it is loaded with: see `load_drafter`
    read        from its folder and the target, where there is no folder
    target      a folder under fixtures/
    rules       those under which it is lossless; the first stands for it
    lossy       those of its released modes that change the law by design
    rounds      of a cell, and the length of the output that is compared
    threshold   a confidence below which blocks end, in cells of their own
    remembered  the same drafter, the passes of its networks remembered: see `memo.py`
    not_tested  check -> the reason why it is not run

    Tests that hold it to independent code say so where they stand, with `@pytest.mark.peer(NAME)`: see `peers.py`.
    """

    prompt: Tokens
    plants: tuple[Plant, ...]
    folder: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[..., Drafter] = load_drafter
    target: str = "tiny/target"
    rules: tuple[str, ...] = ("leviathan", "block")
    lossy: tuple[str, ...] = ()
    rounds: int = 3
    length: int = 5
    threshold: float = 0.0
    remembered: Callable[[Any], Drafter] = as_it_is
    not_tested: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := self.not_tested.keys() - CHECKS.keys():
            raise ValueError(f"there is no check {min(unknown)!r}: one of {', '.join(CHECKS)}")
        if not self.plants or not self.rules:
            raise ValueError("a row has a rule that fits its drafts and state bugs that show")

    def load(self, target: Target, **options: Any) -> Drafter:
        """The drafter in the target's dtype and on its device."""
        return self.read(FIXTURES / self.folder, target, **self.options, **options)
