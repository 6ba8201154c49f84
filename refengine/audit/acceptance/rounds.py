"""What an engine says of some rounds of speculation, in one form whatever the source."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from refengine.errors import BadInput
from refengine.evidence.e_process_of_shares import Share

FEWEST_REQUESTS = 20  # from which it is estimated how alike the rounds of a request are


@dataclass(frozen=True)
class Rounds:
    """Of a request, of a line of a log, or of a server's life.

    kept      by position: in how many rounds a draft was kept there, and so all before it
    count     the rounds that drafted anything; None where tokens alone are counted
    drafted   tokens, in all of them
    accepted  tokens, in all of them
    """

    kept: tuple[int, ...]
    count: int | None
    drafted: int
    accepted: int

    def check(self, where: str) -> "Rounds":
        """Itself. Raises BadInput for numbers that no speculation can have."""
        numbers = (*self.kept, self.drafted, self.accepted, self.count or 0)
        if any(number < 0 for number in numbers):
            raise BadInput(f"{where}: a count is negative")
        if self.accepted > self.drafted:
            raise BadInput(f"{where}: {self.accepted} tokens are accepted of {self.drafted} drafted")
        whole = (*self.kept,) if self.count is None else (self.count, *self.kept)
        for position, (before, here) in enumerate(pairwise(whole)):
            if here > before:
                at = f"position {position + (self.count is not None)}"
                raise BadInput(f"{where}: more drafts are kept at {at} ({here}) than are reached there ({before})")
        return self

    def judged(self, position: int) -> tuple[int, int]:
        """Between how many and how many rounds judged a draft there (0 is the first): those that kept all before it,
        less those that drafted fewer. Of the drafts that are missing from whole blocks, a round that ends before this
        position misses at least all from here on."""
        reached = (self.count or 0) if position == 0 else self.kept[position - 1]
        missing = len(self.kept) * (self.count or 0) - self.drafted
        shorter = max(0, missing) // (len(self.kept) - position)
        return max(self.kept[position], reached - shorter), reached


@dataclass(frozen=True)
class Told:
    """What one source says of one model.

    requests  whether each of `parts` is that of a single request
    twice     accepted tokens, as the positions add up and in all, where an engine counts both
    """

    model: str
    parts: tuple[Rounds, ...]
    requests: bool = False
    notes: tuple[str, ...] = ()
    twice: tuple[int, int] | None = None


@dataclass(frozen=True)
class Place:
    """A position of a block, or what a whole block keeps on average. share: the drafts that were judged and kept.

    fewest  of the rounds that may have judged a draft there; share.judged is the most
    alike   the design effect: how many rounds of a request are worth one that stands alone
    noise   the same of this very share, where it was computed and not counted; else that is `alike`
    """

    name: str
    share: Share
    fewest: float
    alike: float = 1.0
    noise: float | None = None


@dataclass
class Sums:
    """The parts of one model together."""

    parts: list[Rounds] = field(default_factory=list)
    requests: bool = True
    notes: list[str] = field(default_factory=list)
    twice: list[tuple[int, int]] = field(default_factory=list)

    def add(self, told: Told) -> None:
        self.parts += told.parts
        self.requests &= told.requests
        self.notes += told.notes
        self.twice += [told.twice] if told.twice else []

    def places(self, draft_tokens: int | None, where: str) -> list[Place]:
        """One for each position; one for the mean where tokens alone are counted. Raises BadInput."""
        counted = [part for part in self.parts if part.drafted]
        if not counted:
            raise BadInput(f"{where} counts no draft: was anything decoded, with speculation?")
        if all(part.kept for part in counted):
            depth = max(len(part.kept) for part in counted)
            return [self._position(counted, position) for position in range(depth)]
        if draft_tokens is None:
            raise BadInput(
                f"{where} counts drafted tokens and not rounds: say how many tokens a round drafts, --draft-tokens N"
            )
        blocks = [Share(part.accepted / draft_tokens, part.drafted / draft_tokens) for part in counted]
        return [self._place("the mean of a block", blocks, [block.judged for block in blocks])]

    def _position(self, counted: Sequence[Rounds], position: int) -> Place:
        reach = [part for part in counted if len(part.kept) > position]
        shares = [Share(part.kept[position], part.judged(position)[1]) for part in reach]
        return self._place(f"position {position + 1}", shares, [part.judged(position)[0] for part in reach])

    def _place(self, name: str, shares: Sequence[Share], fewest: Sequence[float]) -> Place:
        together = Share(sum(s.kept for s in shares), sum(s.judged for s in shares))
        alike = design_effect(shares, together) if self.requests else 1.0
        return Place(name, together, sum(fewest), alike)


def design_effect(shares: Sequence[Share], together: Share, least: float = 1.0) -> float:
    """The variance of a share whose requests differ, over that of as many independent coins; not below `least`."""
    alone = together.judged * together.rate * (1 - together.rate)
    if len(shares) < FEWEST_REQUESTS or alone <= 0:
        return 1.0
    squares = sum((share.kept - together.rate * share.judged) ** 2 for share in shares)
    return max(least, squares * len(shares) / (len(shares) - 1) / alone)
