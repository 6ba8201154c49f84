"""Laws with equal states merged are the laws of the walk: equal Fractions on every rule, drafter and family."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from refengine.exact import drafters, merged, unknowns
from refengine.exact.block import target_rows
from refengine.exact.chance import Shifted
from refengine.exact.law import completed, target_law, tv
from refengine.exact.law import law as walked
from refengine.exact.rules import RULES
from refengine.exact.tables import FAMILIES, tables

SHAPES = {"sampled_chain": 2, "iid_tree": (2, 1), "without_replacement_tree": (2, 1)}
LOOKING_BACK = (1, None)


def ways(name: str) -> list[str]:
    """The ways of drafting that a rule judges."""
    card = RULES[name]
    if card.shape == "chain":
        return ["sampled_chain"]
    return ["sampled_chain", "without_replacement_tree" if card.drawn == "distinct" else "iid_tree"]


CASES = [(name, way) for name in RULES for way in ways(name)]


def rounds(name: str, way: str, family: str, memory: int | None, vocabulary: int = 2) -> merged.Rounds:
    target, draft = tables(family, vocabulary, 3)
    return merged.Rounds(target, draft, way, SHAPES[way], RULES[name].rule, memory)


def walk_of(loop: merged.Rounds, count: int) -> Any:
    """The same rounds for `law.law`: the texts as they stand, on rows of known tokens."""
    draft = getattr(drafters, loop.drafter)(lambda prefix: loop.draft(loop.seen(prefix)), loop.shape)

    def program(chance: Any) -> tuple[int, ...]:
        out: tuple[int, ...] = (0,)
        for _ in range(count):
            here = Shifted(chance, len(out))
            block = draft(out, here)
            out += loop.rule(target_rows(loop.plain, out, block), block, here).tokens
        return out[1:]

    return program


def law_or_error(made: Any) -> Any:
    try:
        return made()
    except ValueError:
        return "refused"


@pytest.mark.parametrize("memory", LOOKING_BACK)
@pytest.mark.parametrize(("name", "way"), CASES)
def test_one_round_has_the_walks_law_on_every_family(name: str, way: str, memory: int | None) -> None:
    """Kills: a factor forgotten, summed twice or over a token that a later row looks at; a case of no probability
    that raises, or one of probability that is left out."""
    for family in FAMILIES:
        loop = rounds(name, way, family, memory, vocabulary=3 if way == "sampled_chain" else 2)
        merged_law = law_or_error(lambda loop=loop: merged.law(lambda chance: loop.one((0,), chance)))
        assert merged_law == law_or_error(lambda loop=loop: walked(walk_of(loop, 1))), family


@pytest.mark.parametrize("memory", LOOKING_BACK)
@pytest.mark.parametrize("name", [name for name in RULES if name not in ("nucleus", "without_replacement")])
def test_rounds_have_the_walks_law(name: str, memory: int | None) -> None:
    """Kills: rounds that merge by fewer tokens than the rows look back at, and a finished history that plays on."""
    loop = rounds(name, "sampled_chain", "generic", memory)
    whole = walked(walk_of(loop, 2))
    for length in (1, 3, 6):
        cut: dict[tuple[int, ...], Fraction] = {}
        for tokens, mass in whole.items():
            cut[tokens[:length]] = cut.get(tokens[:length], Fraction(0)) + mass
        assert loop.law((0,), 2, length) == cut
        assert loop.completed((0,), 2, length) == completed(whole, loop.plain, (0,), length)


def test_eight_tokens_six_drafts_three_rounds() -> None:
    """Kills: a walk in disguise. Three rounds of six drafts at V = 8 are 10^7 paths for each context and round; merged
    they are 7 runs for each of 8 contexts and 3 lengths, less those that cannot occur."""
    target, draft = tables("generic", 8, 1)
    loop = merged.Rounds(target, draft, "sampled_chain", 6, RULES["leviathan"].rule, memory=1)
    runs: list[int] = []
    law = loop.completed((0,), 3, 3, runs)
    assert sum(runs) <= 7 * 8 * 3
    assert tv(law, target_law(loop.plain, (0,), 3)) == 0


def looked_back_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """States merge by the last token although rows look at two."""
    seen = merged.Rounds.seen
    monkeypatch.setattr(merged.Rounds, "seen", lambda self, prefix: seen(self, prefix)[-1:])


def first_case_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row after an unknown token is that after its first value: tokens merge that lead to different rows."""
    after = unknowns.pointwise

    def one_case(function: Any, *arguments: Any) -> Any:
        found = after(function, *arguments)
        if isinstance(found, unknowns.Value) and all(isinstance(a, unknowns.Token) for a in arguments):
            return unknowns.Value(found.walk, found.axes, dict.fromkeys(found.cells, next(iter(found.cells.values()))))
        return found

    monkeypatch.setattr(unknowns, "pointwise", one_case)


def turns_without_a_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison splits the run and leaves the mass of both parts in each."""
    turn = merged.Merging.turn

    def unweighed(self: merged.Merging, cases: unknowns.Value) -> Any:
        parts = list(self.factors.parts)
        outcome = turn(self, cases)
        self.factors.parts = parts
        return outcome

    monkeypatch.setattr(merged.Merging, "turn", unweighed)


@pytest.mark.parametrize("plant", [looked_back_too_little, first_case_stands_for_all, turns_without_a_factor])
def test_a_wrong_merge_is_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a comparison with the walk that unequal states, merged, pass."""

    def agrees() -> bool:
        cases = [("leviathan", "sampled_chain"), ("greedy", "iid_tree"), ("agreement", "sampled_chain")]
        for name, way in cases:
            loop = rounds(name, way, "generic", 2)
            made = law_or_error(lambda loop=loop: loop.law((0,), 2, 9))
            target, _ = tables("generic", 2, 3)
            right = SimpleNamespace(**vars(loop))
            right.seen = lambda prefix: prefix[-2:]
            right.plain = lambda prefix, target=target: target(prefix[-2:])
            if made != walked(walk_of(right, 2)):  # type: ignore[arg-type]
                return False
        return True

    assert agrees()
    plant(monkeypatch)
    assert not agrees()


def test_a_rule_that_refuses_is_refused() -> None:
    """Kills: mass that reaches no answer and is passed over in silence."""
    loop = rounds("iid_candidates", "sampled_chain", "generic", 1)
    broken = unknowns.table(
        lambda prefix: (Fraction(0), Fraction(0)) if prefix[-1:] == (1,) else loop.target(prefix), 1
    )

    def program(chance: Any) -> Any:
        first = chance.choose(loop.target((0,)), ("emit", 0))
        return (first, chance.choose(broken((first,)), ("emit", 1)))

    with pytest.raises(ValueError, match="no answer where there is probability"):
        merged.law(program)
