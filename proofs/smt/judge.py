"""What z3 is asked: is the round lossless for every row, and if not, at which."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import z3

from proofs.smt.chance import SymbolicChance
from proofs.smt.real import Leaf, Real, World, literal
from refengine.exact.block import Drafter, Rule
from refengine.exact.law import target_rows

Tokens = tuple[int, ...]
PROOF_MS = 20_000


@dataclass
class Rows:
    """One unknown row per prefix: every function from prefixes to distributions over `size` tokens."""

    world: World
    name: str
    size: int
    known: dict[Tokens, tuple[Real, ...]] = field(default_factory=dict)

    def __call__(self, prefix: Tokens) -> tuple[Real, ...]:
        if prefix not in self.known:
            label = f"{self.name}({''.join(map(str, prefix))})"
            free = [self.world.unknown(f"{label}[{x}]") for x in range(self.size - 1)]
            last = Real(z3.simplify(1 - z3.Sum([x.term for x in free])), self.world)
            self.known[prefix] = (*free, last)
            for x in self.known[prefix]:
                self.world.assume(x.term >= 0)
        return self.known[prefix]


@dataclass
class Game:
    """A vocabulary size with a symbolic target and a symbolic draft."""

    size: int
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.p = Rows(self.world, "p", self.size)
        self.q = Rows(self.world, "q", self.size)

    def rounds(self, drafter: Drafter, rule: Rule) -> list[Leaf]:
        """Every path of one round: the emitted tokens, their region, their probability."""

        def one_round() -> Tokens:
            chance = SymbolicChance(self.world)
            block = drafter((), chance)
            return rule(target_rows(self.p, (), block), block, chance).tokens  # type: ignore[arg-type]

        return self.world.leaves(one_round)

    def difference(self, leaves: list[Leaf]) -> z3.ModelRef | None:
        """A model where, for some emitted prefix s and token x, P(s x ..) is not p(x | s) P(s and more); or None."""
        for known, region in regions(self.world, leaves):
            longest = max(len(leaf.result) for leaf in region)
            prefixes = sorted({leaf.result[:n] for leaf in region for n in range(longest) if len(leaf.result) > n})
            unequal = []
            for s in prefixes:
                reached = mass(leaf for leaf in region if leaf.result[: len(s)] == s and len(leaf.result) > len(s))
                for x in range(self.size):
                    emitted = mass(leaf for leaf in region if leaf.result[: len(s) + 1] == (*s, x))
                    unequal.append(emitted != self.p(s)[x].term * reached)
            for condition in unequal:
                model = satisfy([*self.world.assumed, *known, condition])
                if model is not None:
                    return model
        return None


def regions(world: World, leaves: list[Leaf]) -> Iterator[tuple[list[Any], list[Leaf]]]:
    """Cut the space of rows along every atom of the leaves: (conditions, the leaves with positive probability there)."""
    pending: list[tuple[list[Any], list[Leaf]]] = [([], leaves)]
    while pending:
        known, here = pending.pop()
        settled = {literal(side).get_id() for side in known}
        undecided = next((side[0] for leaf in here for side in leaf.region if literal(side).get_id() not in settled), None)
        if undecided is None:
            yield [literal(side) for side in known], here
            continue
        for holds in (True, False):
            more = [*known, (undecided, holds)]
            if World(assumed=world.assumed).possible(*more):
                pending.append((more, [leaf for leaf in here if (undecided, not holds) not in leaf.region]))


def mass(leaves: Iterable[Leaf]) -> Any:
    """The total probability of some leaves, as a function of the rows."""
    return z3.Sum([leaf.weight for leaf in leaves] or [z3.RealVal(0)])


def lossless(size: int, drafter_of: Callable[[Rows], Drafter], rule: Rule) -> z3.ModelRef | None:
    """None where z3 proves the round lossless for all real rows over `size` tokens, a model of a difference otherwise.

    `drafter_of(q)` makes the drafter from the symbolic draft rows. Where z3 gives up the test is skipped as not tested.
    """
    game = Game(size)
    return game.difference(game.rounds(drafter_of(game.q), rule))


def satisfy(conditions: list[Any]) -> z3.ModelRef | None:
    """A model of all the conditions, or None where there is none."""
    solver = z3.Solver()
    solver.set("timeout", PROOF_MS)
    solver.add(*conditions)
    answer = solver.check()
    if answer == z3.unknown:
        pytest.skip(f"not tested: z3 gave up after {PROOF_MS / 1000:.0f} s ({solver.reason_unknown()})")
    return solver.model() if answer == z3.sat else None
