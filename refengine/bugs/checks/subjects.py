"""The lossless pairs of drafter and rule, each enumerated once per table: every check of a round reads these runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from refengine.bugs.checks import oracle
from refengine.bugs.checks.tables import Path, Row, tables
from refengine.exact import drafters
from refengine.exact.block import Block, Drafter, Round, Rule
from refengine.exact.card import Card
from refengine.exact.chance import Chance, Decision, runs
from refengine.exact.rules import RULES
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.rules.truncation import causal, stopping
from refengine.source_edits.imports import touched

MakeDrafter: TypeAlias = Callable[[Callable[[Path], Row], int], Drafter]


@dataclass(frozen=True)
class Subject:
    """A drafter, made from a draft's rows and gamma, and the rule that judges it."""

    name: str
    drafter: MakeDrafter
    rule: Rule
    null: Callable[[Sequence[Fraction]], tuple[Fraction, ...]] = tuple  # what the emitted tokens should follow
    drafts: str = drafters.__name__  # the module that the drafter comes from


@dataclass(frozen=True)
class Run:
    """One branch of one round: what was drafted, what came out, with which probability and by which decisions."""

    block: Block
    round: Round
    weight: Fraction
    trace: tuple[Decision, ...]
    draft_decisions: int  # the first so many decisions of the trace were the drafter's


def tree_of(grow: Callable[[Callable[[Path], Row], Sequence[int]], Drafter], width: int) -> MakeDrafter:
    """Siblings at the root and below it, within few nodes: `width` where three tokens make that mean something."""

    def drafter(q: Callable[[Path], Row], gamma: int) -> Drafter:
        two_tokens = len(q(())) == 2
        return grow(q, {1: (width,), 2: (2, 2) if two_tokens else (1, width), 3: (2, 1, 2)}[gamma])

    return drafter


def argmax_chain(q: Callable[[Path], Row], gamma: int) -> Drafter:
    """The draft's argmax at every depth: nothing is drawn."""

    def block_of(prefix: Path) -> tuple[Sequence[int], Sequence[int]]:
        tokens: Path = ()
        for _ in range(gamma):
            tokens = (*tokens, oracle.heaviest(q(prefix + tokens)))
        return tokens, range(-1, gamma - 1)

    return drafters.fixed(block_of)


def ranked_tree(q: Callable[[Path], Row], gamma: int) -> Drafter:
    """The two heaviest tokens at the root, each followed by its argmax; the first sibling repeated at the end."""

    def block_of(prefix: Path) -> tuple[Sequence[int], Sequence[int]]:
        ranked = sorted(range(len(q(prefix))), key=lambda x: (-q(prefix)[x], x))[:2]
        if gamma == 1:
            return (*ranked, ranked[0]), (-1, -1, -1)
        return (*ranked, *(oracle.heaviest(q((*prefix, x))) for x in ranked), ranked[0]), (-1, -1, 0, 1, -1)

    return drafters.fixed(block_of)


def cut_before_odd(q: Callable[[Path], Row], gamma: int) -> Drafter:
    """Stops before any position whose previous token is odd: causal, so still lossless."""
    return causal(q, lambda path: Fraction(int(path[-1:] != (1,))), Fraction(1, 2), gamma)


def stop_after_first(q: Callable[[Path], Row], gamma: int) -> Drafter:
    """Stops after drawing token 0, which is kept."""
    return stopping(q, lambda path: path[-1:] == (0,), gamma)


# By the kind of candidates that a rule's card names: part of the subject's name -> drafter.
DRAFTERS: dict[tuple[str, str | None], dict[str, MakeDrafter]] = {
    ("chain", "iid"): {"": drafters.sampled_chain},
    ("tree", "iid"): {"": tree_of(drafters.iid_tree, 2)},
    ("tree", "distinct"): {"": tree_of(drafters.without_replacement_tree, 3)},
    ("tree", None): {"": argmax_chain, ", tree": ranked_tree, ", drawn tree": tree_of(drafters.iid_tree, 2)},
}


def subjects_of(card: Card) -> list[Subject]:
    null = oracle.one_hot if card.law == "argmax" else tuple
    ways = DRAFTERS[card.shape, card.drawn].items()
    return [Subject(card.name + way, drafter, card.rule, null) for way, drafter in ways]


EVERY = (
    *(subject for card in RULES.values() if card.lossless for subject in subjects_of(card)),
    Subject("leviathan, causal truncation", cut_before_odd, leviathan, drafts=causal.__module__),
    Subject("leviathan, stopping truncation", stop_after_first, leviathan, drafts=stopping.__module__),
)


# An edit of this process can change what these do, and no other.
SUBJECTS = tuple(subject for subject in EVERY if touched((subject.rule.__module__, subject.drafts)))


@cache
def enumerated(subject: Subject, number: int) -> tuple[Run, ...]:
    """Every run of one round of `subject` on table `number`."""
    table = tables()[number]
    draft = subject.drafter(table.q, table.gamma)
    counts: list[int] = []

    def one_round(chance: Chance) -> tuple[Block, Round]:
        block = draft((), chance)
        counts.append(len(chance.trace))  # type: ignore[attr-defined]  # runs() hands over Enumerate
        p = [table.p(block.path(node)) for node in range(-1, len(block.tokens))]
        return block, subject.rule(p, block, chance)

    out = []
    for (block, emitted), weight, trace in runs(one_round):
        out.append(Run(block, emitted, weight, tuple(trace), counts[-1]))
    return tuple(out)
