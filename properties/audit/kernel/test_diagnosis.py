"""What a violation is called: shared coins where their own law fits, and otherwise the place where it shows.

The laws are enumerated from the exact rule, whose sites share coins here as a way of sharing says.
"""

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pytest

from refengine.audit.inputs.case import Case, case
from refengine.audit.kernel.campaign import Tried
from refengine.audit.kernel.diagnosis import diagnose
from refengine.audit.kernel.exact_law import ExactLaw, deviations
from refengine.audit.kernel.explain_law import explain
from refengine.audit.kernel.history import History, features
from refengine.audit.kernel.shared_coins import WAYS
from refengine.bugs.shared_coins import coupled_law
from refengine.evidence import naming
from refengine.evidence.e_process import CaseEvidence, Evidence
from refengine.evidence.naming import NO_CLASS
from refengine.exact.block import chain
from refengine.exact.row import residual, row
from refengine.exact.rules.leviathan import leviathan

GAMMA = 2
P = [row([1, 3, 8, 4]), row([3, 4, 1, 8]), row([2, 6, 7, 1])]
Q = [row([6, 4, 2, 4]), row([5, 2, 8, 1])]
Law: TypeAlias = dict[Any, Fraction]  # of the tokens of every lane
SITES: dict[str, Callable[[str, int], Any]] = {
    naming.ONE_COIN: lambda kind, i: "coin" if kind == "accept" else (kind, i),
    naming.COIN_FOR_ALL: lambda kind, i: "coin",
    naming.LAST_COIN: lambda kind, i: min(i, GAMMA - 1),
    naming.COIN_BEFORE: lambda kind, i: i - 1 if kind == "emit" else i,
    naming.FIRST_COIN: lambda kind, i: 0 if kind == "emit" else i,
}


class Renamed:
    """Chance whose sites share coins; drafts have their own."""

    def __init__(self, chance: Any, name: Callable[[str, int], Any]) -> None:
        self.chance, self.name = chance, name

    def accept(self, num: Any, den: Any, site: Any) -> bool:
        return bool(self.chance.accept(num, den, self.name(*site)))

    def choose(self, weights: Any, site: Any) -> int:
        return int(self.chance.choose(weights, self.name(*site)))


def drafted(chance: Any, lane: int = 0, gamma: int = GAMMA) -> list[int]:
    return [chance.choose(q, ("draft", lane, i)) for i, q in enumerate(Q[:gamma])]


def sharing(way: str) -> Law:
    def ratio_rule(chance: Any) -> Any:
        block = chain(drafted(chance), Q, [("draft", 0, i) for i in range(GAMMA)])
        return (leviathan(P, block, Renamed(chance, SITES[way])).tokens,)

    def agreement(chance: Any) -> Any:
        draft, out = drafted(chance), []
        for i in range(GAMMA + 1):
            out.append(chance.choose(P[i], "coin"))
            if i == GAMMA or out[-1] != draft[i]:
                break
        return (tuple(out),)

    return coupled_law(ratio_rule if way in SITES else agreement)


def behind_odd(
    chance: Any, accept: Fraction, mixed: bool, lane: int = 0, odd: bool | None = None, gamma: int = GAMMA
) -> tuple[int, ...]:
    """The ratio rule; behind an odd token a draft is kept less often, or its replacement is mixed with p."""
    draft = drafted(chance, lane, gamma)
    for i, x in enumerate(draft):
        wrong = bool(i and draft[i - 1] % 2) if odd is None else odd
        if not chance.accept(P[i][x] * (accept if wrong else 1), Q[i][x], ("accept", lane, i)):
            left = residual(P[i], Q[i])
            if wrong and mixed:
                left = row([a + b for a, b in zip(left, P[i], strict=True)])
            return *draft[:i], chance.choose(left, ("emit", lane))
    return *draft, chance.choose(P[gamma], ("emit", lane))


def rows(outcomes: list[Any]) -> Case:
    """The input of a law: as many lanes, and the drafts of its longest answer."""
    gamma = max(len(tokens) for lanes in outcomes for tokens in lanes) - 1
    p, q = (np.array([side] * len(outcomes[0]), dtype=float)[:, :, None] for side in (P[: gamma + 1], Q[:gamma]))
    return case("made here", p, q)


def enumerated(law: Law) -> str:
    outcomes = [([*map(list, tokens)], float(mass)) for tokens, mass in law.items()]
    item = rows(list(law))
    return explain([ExactLaw(item, outcomes, len(outcomes), deviations(item, outcomes))])


def sampled(law: Law, calls: int = 20_000) -> str:
    """The diagnosis of so many calls."""
    outcomes, mass = list(law), np.array(list(map(float, law.values())))
    item = rows(outcomes)
    padded = np.array([[[*t, *[-1] * (item.gamma + 1 - len(t))] for t in lanes] for lanes in outcomes], dtype=np.int32)
    tokens = padded[np.random.default_rng(1).choice(len(mass), calls, p=mass / mass.sum())]
    history = History(item, None)
    tried = Tried(item, CaseEvidence(item.p, item.q, features(item)), history, item.reach().ravel(), calls)
    tried.lanes.update(history.lanes(tokens, 0))
    tried.evidence.add(history.draws(tokens, 0))
    evidence = Evidence(tuple(features(item)), 1e-6, {item.name: tried.evidence})
    assert evidence.rejects()
    run = lambda name, count, stop: None  # noqa: E731
    told: Any = SimpleNamespace(cases={item.name: tried}, skipped={}, run=run, evidence=evidence)
    return diagnose(told)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("told", [enumerated, sampled])
def test_coins_that_are_shared_are_named_by_who_shares_them(way: str, told: Callable[[Law], str]) -> None:
    """Kills a law of shared coins that is none of a program which shares them, and one named for another."""
    assert told(sharing(way)) == way


@pytest.mark.parametrize(
    ("accept", "mixed", "half"),
    [
        (Fraction(1), True, "drafts are kept there as often as they should be; what replaces a refused one is wrong"),
        (Fraction(1, 2), False, "what replaces a refused draft is right there; how often drafts are kept is wrong"),
    ],
)
@pytest.mark.parametrize("told", [enumerated, sampled])
def test_what_depends_on_the_token_before_need_not_share_a_coin(
    accept: Fraction, mixed: bool, half: str, told: Callable[[Law], str]
) -> None:
    """Kills "positions share coins" wherever positions depend on one another: this one is wrong behind odd tokens."""
    said = told(coupled_law(lambda chance: (behind_odd(chance, accept, mixed),)))
    assert said.startswith(f"{NO_CLASS}at position 1 of a block behind ")
    assert half in said
    if told is enumerated:
        assert "block behind [1]: " in said or "block behind [3]: " in said
        assert said.endswith("it is right behind [0], [2]")
    else:
        assert "block behind token 1: " in said or "block behind token 3: " in said


def test_rows_share_coins_only_where_each_is_right_by_itself() -> None:
    """Kills "requests share coins" for a row that is replaced wrongly where the row above emitted an odd token."""

    def shared(chance: Any) -> Any:
        blocks = [chain(drafted(chance, lane, 1), Q[:1], [("draft", lane, 0)]) for lane in (0, 1)]
        return tuple(leviathan(P[:2], block, chance).tokens for block in blocks)

    def wrong(chance: Any) -> Any:
        first = behind_odd(chance, Fraction(1), False, gamma=1)
        return first, behind_odd(chance, Fraction(1), True, lane=1, odd=first[0] % 2 == 1, gamma=1)

    alike, after = coupled_law(shared), coupled_law(wrong)
    for told in (enumerated, sampled):
        assert told(alike) == naming.DEPENDENT_ROWS
        assert told(after).startswith(f"{NO_CLASS}at position 0 of a block")
    assert "of a block beside rows that emitted [[3]]: on input 'made here', lane 1 " in enumerated(after)
