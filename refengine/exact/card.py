"""A rule's card: what is to be known about it to run it, said once beside its text.

Whatever runs rules reads `refengine.exact.rules.RULES`, the listing of the cards: laws and vectors, the comparison with
the engine, the decoder's `--rule`, the checks, the claims, the large samples. So a new rule stands in no list.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from inspect import signature
from typing import Any, Literal, TypeAlias

from refengine.exact.block import Block, Round
from refengine.exact.chance import Chance
from refengine.exact.row import Row, row

Options: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A small case on which a rule that is lossy by design shows it: one row everywhere, one set of candidates.

    p        weights of the target's row
    tokens   the candidates, and their parents
    options  of the rule, numbers as text
    tv       total variation between the next token's law and p, as text
    """

    p: tuple[int, ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    tv: str
    options: Mapping[str, str] = field(default_factory=dict)

    def target(self, prefix: tuple[int, ...]) -> Row:
        return row(self.p)

    def draft(self, prefix: tuple[int, ...], chance: Chance) -> Block:
        """The candidates, which nobody drew."""
        none = (None,) * len(self.tokens)
        return Block(self.tokens, self.parents, none, none)


@dataclass(frozen=True, kw_only=True)
class Card:
    """What one rule is for.

    rule        the exact text; the engine's has the same name, in the file of the same name
    source      where it was published, or released
    shape       "chain", or "tree" for a rule that judges both
    drawn       how candidates are drawn from q: "iid", siblings independently of one another; "distinct", siblings
                without replacement; None where the rule does not look at q, and they may come about in any way
    law         what emitted tokens follow: the "target", its "argmax"; or where a rule that is lossy by design shows it
    thresholds  options, numbers as text, under which rows of integers / 2^k lie exactly on what the rule compares with
    """

    rule: Callable[..., Round]
    source: str
    shape: Literal["chain", "tree"]
    drawn: Literal["iid", "distinct"] | None
    law: Literal["target", "argmax"] | Loss
    thresholds: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.rule.__name__

    @property
    def file(self) -> str:
        """The name of the file that holds the rule, the same in both texts."""
        return self.rule.__module__.rpartition(".")[2]

    @property
    def lossless(self) -> bool:
        return not isinstance(self.law, Loss)

    def settings(self) -> list[Options]:
        """What the two texts are compared under: the defaults, and the thresholds with every switch turned on."""
        switches = {name: True for name, given in signature(self.rule).parameters.items() if given.default is False}
        return [{}, {**numbers(self.thresholds), **switches}] if self.thresholds else [{}]


def numbers(options: Mapping[str, str]) -> dict[str, Fraction]:
    """Options that are written as text."""
    return {name: Fraction(value) for name, value in options.items()}
