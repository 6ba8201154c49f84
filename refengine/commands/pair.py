"""The two sides of `checkpoint verify`: folders here, or repositories that are fetched; and whether they fit."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from refengine.commands import hub, memory
from refengine.commands.decode import load_tokenizer
from refengine.commands.released import pairs
from refengine.decoder.checkpoints.load import WITHOUT_WEIGHTS
from refengine.errors import BadInput


@dataclass(frozen=True)
class Side:
    """A target or a drafter.

    name   that makes these very files again: the folder as it was given, or a repository at a commit
    title  for people: the last part of a folder's name, or the repository
    line   commit and hashes of what was fetched; "" of a folder
    """

    name: str
    title: str
    folder: Path
    line: str = ""

    @staticmethod
    def of(name: str) -> "Side":
        if not hub.on_the_hub(name):
            return Side(name, Path(name).name, Path(name))
        found = hub.fetch(name)
        return Side(found.pinned, found.repository, found.folder, found.line())


@dataclass(frozen=True)
class Pair:
    """Both sides, and the plan for their memory."""

    drafter: Side
    target: Side
    plan: memory.Plan

    @staticmethod
    def of(
        drafter: str, target: str, dtype: torch.dtype, device: str, mib: int | None, tell: Callable[[str], None]
    ) -> "Pair":
        """Fetch what is not here, and say what was fetched and how it fits. Raises BadInput."""
        sides = []
        for name in (drafter, target):
            sides.append(Side.of(name))
            if sides[-1].line:
                tell(sides[-1].line)
        first, second = sides
        weightless = drafter in WITHOUT_WEIGHTS and not first.folder.exists()
        if not weightless:
            refuse_other_words(first.folder, second.folder)
        plan = memory.plan(second.folder, None if weightless else first.folder, dtype, mib and mib << 20)
        if mib is not None or not plan.fits:
            tell(plan.line(str(dtype).removeprefix("torch.")))
        if not plan.fits and device != "cpu":
            raise BadInput(f"{target}: {memory.mib(plan.target)} do not fit, and layers are streamed on the CPU alone")
        return Pair(first, second, plan)

    @property
    def notes(self) -> list[str]:
        """What was fetched, and what was published of the pair."""
        return [side.line for side in (self.drafter, self.target) if side.line] + self.published()

    def published(self) -> list[str]:
        """Figures of the released pair of these names; of folders their last parts are compared."""
        for one in pairs():
            if _same(self.drafter.title, one.drafter) and _same(self.target.title, one.target):
                lines = [line for figures in one.figures for line in figures.lines()]
                return [f"published: {line}" for line in lines] or ["published figures: unknown"]
        return []


def refuse_other_words(drafter: Path, target: Path) -> None:
    """Raise BadInput where both have a tokenizer and a token means one word here and another there. Tokens that were
    added to either may differ."""
    if drafter.resolve() == target.resolve():
        return
    ours, theirs = load_tokenizer(drafter), load_tokenizer(target)
    if ours is None or theirs is None:
        return
    added = ours.get_added_vocab().keys() | theirs.get_added_vocab().keys()
    words = {number: word for word, number in theirs.get_vocab().items()}
    for word, number in sorted(ours.get_vocab().items(), key=lambda one: one[1]):
        if words.get(number, word) != word and not {word, words[number]} & added:
            raise BadInput(
                f"{drafter}: token {number} is {word!r}, and {words[number]!r} in the target's tokenizer: "
                "it was made for another target"
            )


def _same(title: str, repository: str) -> bool:
    return title in (repository, repository.partition("/")[2])
