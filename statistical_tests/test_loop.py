"""Every drafter in the running loop: caches, rollback, policies, stop token and limit, request after request.

Six questions are asked of the requests of a drafter, each with an exact error (`counts.py`): whether each token is a
draw from the target's row after the text before it, and whether each round, given its rows and its block, is a draw
from the law of the rule. The others are bets on single numbers, where a small deviation is not spread over many places:
how often the first draft is kept, how long a round is, and, in two ways, what a correction prefers.

Whatever the loop decodes is also held to the definitions on the same coins (`coin_by_coin.py`), where a deviation shows
after 1 / TV coins and not 1 / TV^2: of a tilt of 0.01 in the corrections of one drafter no test of their frequencies
can see much at this n and alpha, since it is worth n TV^2 / (2 p (1 - p)) nats at most, and alpha asks for 22.

At the end of a run the same is asked of all drafters of a rule together (`table.py`, `conftest.py`): a deviation in the
rule itself, which they share, shows at a smaller TV there.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from refengine.decoder.loop import Played
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Philox
from refengine.evidence.power import detectable_tv
from refengine.exact.block import ROOT, Block
from refengine.exact.law import law
from refengine.exact.rules import RULES
from refengine.selfcheck.drafters.table import ROWS
from statistical_tests.budget import ALPHA, SCALES, drawn, state
from statistical_tests.coin_by_coin import Exactly
from statistical_tests.counts import bet, chi_square, p_of
from statistical_tests.running_loop import Key, Requests, coins_ahead, row_after, serve
from statistical_tests.table import LOOP, Mean, line

pytestmark = pytest.mark.stat

TOKENS = 100_000
End = tuple[Tokens, Tokens]  # how a round ended: its tokens, and the accepted nodes


def test_coins_made_ahead_are_those_of_the_request() -> None:
    """Kills a lane that is off by one, a site that is taken for another, a pick in another order of addition."""
    source = torch.Generator().manual_seed(1)
    for request, coins in enumerate(coins_ahead(10, 7, at_once=3)):
        alone = Philox(10, torch.tensor([request]))
        for site in (("emit", 4), ("draft", 4), ("draft", 4, 0), ("accept", torch.tensor([5]), 2)) * 25:
            for width in (1, 3, 8):
                weights = torch.rand(1, width, generator=source, dtype=torch.float64).pow(8)
                weights = weights * (torch.rand(1, width, generator=source) < 0.8)
                assert coins.choose(weights, site).tolist() == alone.choose(weights, site).tolist()
            num, den = torch.rand(2, 1, generator=source, dtype=torch.float64)
            assert coins.accept(num, den, site).tolist() == alone.accept(num, den, site).tolist()


@pytest.mark.parametrize("drafter", ["eagle3_deepspec", "lookahead"])
def test_what_is_looked_up_is_what_the_loop_says(drafter: str) -> None:
    """Kills a history that is taken for another: decoded one by one, the requests say the same."""
    looked_up, decoded = serve(drafter, 600), serve(drafter, 600, again=1)
    for some, all_of_them in zip(looked_up, decoded, strict=True):
        said = [{told.out: told.times for told in one.told} for one in (some, all_of_them)]
        assert said[0] == said[1]
        assert some.decoded < all_of_them.decoded == sum(len(told.out) * told.times for told in all_of_them.told)


@pytest.mark.parametrize("times", SCALES)
@pytest.mark.parametrize("drafter", drawn(list(ROWS)))
def test_the_running_loop_emits_its_target(drafter: str, times: int) -> None:
    """Kills a state that goes wrong only some requests later, a stop or a limit that leaves something behind, a coin
    that two rounds share, a policy that sees another text."""
    examine(drafter, serve(drafter, times * TOKENS), times * TOKENS)


def examine(drafter: str, served: list[Requests], planned: int) -> None:
    """Ask the questions, print the line of the table; AssertionError says which answer is no longer chance."""
    rule, number, part = ROWS[drafter].rules[0], list(ROWS).index(drafter), ALPHA / QUESTIONS
    seen = tokens_by_place(served)
    rows = {(policy, out): np.array(row_after(drafter, policy, out)) for policy, out in seen}
    ends, laws, scores, moves = rounds_by_place(rule, served)
    found = line(
        drafter, rule, LOOP, seen, rows, planned, part,
        chi_squares={"tokens": chi_square(seen, rows, number), "rounds": chi_square(ends, laws, 1000 + number)},
        bets={name: bet(ends, laws, score, moves[name]) for name, score in scores.items()},
        kept=mean(ends, laws, scores["first draft kept"]), length=mean(ends, laws, scores["length of a round"]),
        decoded=sum(requests.decoded for requests in served),
    )  # fmt: skip
    assert len(found.chi_squares) + len(found.bets) == QUESTIONS
    for name, chi in found.chi_squares.items():
        assert p_of(chi) > part, f"{name}: chi-square {chi[0]:.1f} of {chi[1]}"
    for name, won in found.bets.items():
        assert won.p > part, f"{name}: wealth {1 / won.p:.3g}"
    freedom = found.chi_squares["tokens"][1]
    state(f"{drafter} in the running loop: tokens", found.n, detectable_tv(found.n, freedom + 1, part), part)
    corrected = sum(requests.corrected for requests in served)
    unlike = 1 - 0.01 ** (1 / corrected) if corrected else 1.0
    state(f"{drafter} in the running loop: corrections, coin by coin", corrected, unlike)


def tokens_by_place(served: list[Requests]) -> dict[Any, np.ndarray]:
    """Counts of the token after each (policy, output so far)."""
    seen: dict[Any, np.ndarray] = defaultdict(lambda: np.zeros(8))
    for requests in served:
        for told in requests.told:
            for place, token in enumerate(told.out):
                seen[requests.policy, told.out[:place]][token] += told.times
    return seen


def rounds_by_place(rule: str, served: list[Requests]) -> tuple[dict[Any, Any], ...]:
    """For each round (policy, output before it, rows and block) the counts of its ends, their law; and scores of them,
    with what a total variation of 1 moves the mean score by.

    An end that the rule does not have stands behind the others with probability 0.
    """
    counts: dict[Key, dict[End, int]] = defaultdict(lambda: defaultdict(int))
    played: dict[Key, Played] = {}
    for requests in served:
        played |= requests.rounds
        for told in requests.told:
            for key, end in told.rounds:
                counts[key][end] += told.times
    ends, laws, scores, moves = {}, {}, {name: {} for name in SCORES}, {name: {} for name in SCORES}
    for key, had in counts.items():
        block, of_ends = declared(rule, played[key])
        every = [*of_ends, *(end for end in had if end not in of_ends)]
        ends[key] = np.array([float(had.get(end, 0)) for end in every])
        laws[key] = np.array([of_ends.get(end, 0.0) for end in every])
        for name, score in SCORES.items():
            scores[name][key], moves[name][key] = score(block, every, laws[key])
    return ends, laws, scores, moves


def declared(rule: str, played: Played) -> tuple[Block, dict[End, float]]:
    """The block of a round, and the law of its ends by the definition of the rule."""
    known = Exactly.of(played)

    def end(chance: Any) -> End:
        found = RULES[rule].rule(known.p, known.block, chance)
        return found.tokens, found.path

    return known.block, {one: float(mass) for one, mass in law(end).items()}


def mean(seen: dict[Key, np.ndarray], rows: dict[Key, np.ndarray], scores: dict[Key, np.ndarray]) -> Mean:
    """The mean score of a draw, as it was and as it should be at these places, and its standard error."""
    had = should = variance = total = 0.0
    for place, counts in seen.items():
        n, row, score = counts.sum(), rows[place], scores[place]
        total, had, should = total + n, had + counts @ score, should + n * (row @ score)
        variance += n * (row @ score**2 - (row @ score) ** 2)
    return float(had / total), float(should / total), float(np.sqrt(max(variance, 0.0)) / total)


# --- scores of the ends of a round, and what a total variation of 1 moves their mean by ------------------------------


def kept(block: Block, ends: list[End], law: np.ndarray) -> tuple[np.ndarray, float]:
    return np.array([float(len(path) > 0) for _, path in ends]), 1.0


def length(block: Block, ends: list[End], law: np.ndarray) -> tuple[np.ndarray, float]:
    return np.array([float(len(tokens)) for tokens, _ in ends]), 1.0


def corrections(liked: Callable[[int, float], Any]) -> Callable[..., tuple[np.ndarray, float]]:
    """Of the tokens that a correction may be, after one path: 1 for that with most of `liked`(token, probability), less
    the probability of it, so that how often a path is refused is no part of the score. It weighs the more the less of
    it is chance, which is best against a total variation that is the same everywhere; all other ends have 0."""

    def score(block: Block, ends: list[End], law: np.ndarray) -> tuple[np.ndarray, float]:
        out, moves, groups = np.zeros(len(ends)), 0.0, defaultdict(list)
        for i, (_, path) in enumerate(ends):
            if law[i] > 0 and block.children(path[-1] if path else ROOT):
                groups[path].append(i)
        for group in (group for group in groups.values() if len(group) > 1):
            best = max(group, key=lambda i: liked(ends[i][0][-1], law[i]))
            share = law[best] / law[group].sum()
            weight = 0.25 / (share * (1 - share) + SMALL_VARIANCE)
            out[group] = -share * weight
            out[best] += weight
            moves += law[group].sum() * weight
        return out, moves

    return score


SMALL_VARIANCE = 0.02  # below it no correction weighs much more: a bet on rare tokens would be lost with the first
SCORES: dict[str, Callable[[Block, list[End], np.ndarray], tuple[np.ndarray, float]]] = {
    "first draft kept": kept,
    "length of a round": length,
    "correction by its rank": corrections(lambda token, mass: mass),
    "correction by its number": corrections(lambda token, mass: -token),
}
QUESTIONS = 2 + len(SCORES)  # the two chi-squares, and the bets
