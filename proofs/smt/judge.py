"""What z3 is asked: is the round lossless for every row, and if not, at which."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import z3

from proofs.smt.chance import ONE, ZERO, SymbolicChance
from proofs.smt.real import Atom, Leaf, Real, Term, World, asked
from refengine.exact.block import Drafter, Rule, target_rows

Tokens = tuple[int, ...]


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
            free = [z3.Real(f"{label}[{x}]") for x in range(self.size - 1)]
            terms = [*free, z3.simplify(1 - z3.Sum(free))]
            self.world.assumed.extend(x >= 0 for x in terms)
            self.known[prefix] = tuple(Real(x, self.world) for x in terms)
        return self.known[prefix]


@dataclass
class Game:
    """All targets p and all drafts q over a vocabulary of `size` tokens."""

    size: int
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.p = Rows(self.world, "p", self.size)
        self.q = Rows(self.world, "q", self.size)

    def rounds(self, drafter: Drafter, rule: Rule) -> list[Leaf]:
        """Every path of one round; the result of a path is what it emits."""

        def one_round() -> Tokens:
            chance = SymbolicChance(self.world)
            block = drafter((), chance)
            return rule(target_rows(self.p, (), block), block, chance).tokens  # type: ignore[arg-type]

        return self.world.leaves(one_round)

    def differences(self, leaves: Sequence[Leaf]) -> list[Atom]:
        """For each prefix s that can be emitted and each token x: P(s x ...) is not p(x | s) P(s and more)."""
        emitted = {leaf.result for leaf in leaves}
        prefixes = sorted({tokens[:n] for tokens in emitted for n in range(len(tokens))})
        return [
            probability(leaves, begins((*s, x))) != self.p(s)[x].term * probability(leaves, extends(s))
            for s in prefixes
            for x in range(self.size)
        ]


def begins(s: Tokens) -> Callable[[Tokens], bool]:
    return lambda tokens: tokens[: len(s)] == s


def extends(s: Tokens) -> Callable[[Tokens], bool]:
    return lambda tokens: tokens[: len(s)] == s and len(tokens) > len(s)


def probability(leaves: Sequence[Leaf], event: Callable[[Tokens], bool], depth: int = 0) -> Term:
    """The probability of an event as a function of the rows, from the leaves below one node of the tree of paths.

    Chance that the event does not depend on is not expanded: the odds at a node sum to one.
    """
    outcomes = {event(leaf.result) for leaf in leaves}
    if len(outcomes) == 1:
        return ONE if outcomes.pop() else ZERO
    below: dict[int, list[Leaf]] = {}
    for leaf in leaves:
        below.setdefault(leaf.path[depth].side, []).append(leaf)
    masses = {side: probability(group, event, depth + 1) for side, group in below.items()}
    if all(mass.eq(masses[min(masses)]) for mass in masses.values()):
        return masses[min(masses)]
    if (atom := leaves[0].path[depth].atom) is not None:
        return z3.If(atom, masses[0], masses[1])
    return z3.simplify(z3.Sum([group[0].path[depth].probability * masses[side] for side, group in below.items()]))


@dataclass(frozen=True)
class Difference:
    """Rows, by prefix, at which a round does not emit the target's law."""

    p: dict[Tokens, tuple[Fraction, ...]]
    q: dict[Tokens, tuple[Fraction, ...]]


def difference(size: int, drafter_of: Callable[[Rows], Drafter], rule: Rule) -> Difference | None:
    """None where z3 proves the round lossless for all real rows over `size` tokens, else rows where it is not.

    `drafter_of(q)` makes the drafter from the symbolic draft rows. Raises GaveUp where z3 cannot tell.
    """
    game = Game(size)
    for condition in game.differences(game.rounds(drafter_of(game.q), rule)):
        model = asked([*game.world.assumed, condition])
        if model is not None:
            return Difference(values(game.p, model), values(game.q, model))
    return None


def values(rows: Rows, model: z3.ModelRef) -> dict[Tokens, tuple[Fraction, ...]]:
    """The rows of a model; an irrational number is cut to 20 decimals, and the last token takes up the slack."""
    found = {}
    for prefix, row in rows.known.items():
        free = [model.eval(x.term, model_completion=True) for x in row[:-1]]
        exact = [x if z3.is_rational_value(x) else x.approx(20) for x in free]
        head = [Fraction(x.numerator_as_long(), x.denominator_as_long()) for x in exact]
        found[prefix] = (*head, 1 - sum(head, Fraction(0)))
    return found
