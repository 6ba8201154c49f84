"""The e-process: its mean is at most 1 under every null of the ball, exactly; its bets are the laws of the defects."""

from itertools import product

import numpy as np
import pytest

from refengine.evidence.bets.defect_laws import alternatives, names
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.bets.one_coin import one_coin_law
from refengine.evidence.bets.token_kinds import CELLS, cells, kinds
from refengine.evidence.e_process import LISTED, CaseEvidence, Draws, Evidence
from refengine.exact.block import Block, Round, chain, drawn
from refengine.exact.chance import Chance
from refengine.exact.law import law
from refengine.exact.row import residual, row

P = np.array([[[0.7, 0.2, 0.1]], [[0.3, 0.6, 0.1]], [[0.05, 0.05, 0.9]]])[None]
Q = np.array([[[0.2, 0.5, 0.3]], [[0.4, 0.2, 0.4]]])[None]
FEATURES = {"the site": 1, "the token before": 3}


def evidence_of(sequence: tuple[int, ...]) -> np.ndarray:
    """Component wealth after one lane emitted `sequence`, three tokens a round, the token before being its state."""
    case = CaseEvidence(P, Q, FEATURES)
    site = np.arange(len(sequence)) % 3
    token = np.array(sequence)
    before = np.concatenate([[-1], token[:-1]])
    odds = np.minimum(1.0, P[0, :2, 0] / Q[0, :, 0])
    coin = np.array([min((odds[j % 3, token[j]] for j in range(i - i % 3, i)), default=1.0) for i in range(len(token))])
    case.add(Draws(site, token, {"the site": np.zeros_like(token), "the token before": before}, coin=coin))
    return np.exp(case.log_wealth[0])


def nulls() -> list[np.ndarray]:
    """p itself, and corners of the ball around it."""
    rows = P.reshape(3, 3)
    moved = [np.outer(np.ones(3), np.eye(3)[a] - np.eye(3)[b]) * BALL for a, b in ((0, 1), (1, 2), (2, 0))]
    return [rows, *(rows + move for move in moved)]


@pytest.mark.parametrize("null", nulls())
def test_every_component_has_mean_at_most_one(null: np.ndarray) -> None:
    """Kills a component that looks at its own token, is not a law, or ignores the float32 ball: false alarms."""
    mean = np.zeros(0)
    for sequence in product(range(3), repeat=5):
        chance = np.prod([null[i % 3, token] for i, token in enumerate(sequence)])
        wealth = evidence_of(sequence)
        mean = chance * wealth if not mean.size else mean + chance * wealth
    assert (mean <= 1.0 + 1e-12).all()
    assert mean.max() > 0.99  # and they do bet


def test_the_prior_is_a_distribution_with_half_on_the_listed_defects() -> None:
    """Kills priors that sum above 1 break Ville's bound."""
    prior = np.exp(Evidence(tuple(FEATURES), 1e-6).log_prior())
    assert prior.sum() == pytest.approx(1.0, abs=1e-12)
    assert prior[: len(LISTED)].sum() == pytest.approx(0.5, abs=1e-12)


def test_a_belief_in_one_input_is_the_mean_over_inputs() -> None:
    """Kills the best input picked with hindsight, which is no martingale; or a product, which believes in all."""
    evidence = Evidence(tuple(FEATURES), 1e-6)
    evidence.cases = {name: CaseEvidence(P, Q, FEATURES) for name in ("met", "not met")}
    token = np.ones(12, dtype=int)
    evidence.cases["met"].add(Draws(token * 0, token, {"the site": token * 0, "the token before": token * 0 - 1}))
    wealth = np.exp(evidence.cases["met"].log_wealth[0, -2:])
    assert wealth[0] > 100
    believed = np.exp(evidence.log_wealths() - evidence.log_prior())[0, -2:]
    assert believed == pytest.approx((wealth + 1.0) / 2.0)


def test_every_alternative_is_a_law_and_differs_from_p_somewhere() -> None:
    """Kills a listed law that does not sum to 1, or a bet that is never placed."""
    generator = np.random.default_rng(1)
    p = generator.dirichlet(np.full(6, 0.5), size=(4, 4, 1))
    q = generator.dirichlet(np.full(6, 0.5), size=(4, 3, 1))
    p[0, :, :, 2], p[1, :, :, 3] = 0, 5e-6
    p /= p.sum(-1, keepdims=True)
    q[1, :, :, 3] = 8e-6
    q /= q.sum(-1, keepdims=True)
    for name, table in alternatives(p, q).items():
        assert table.shape == p.shape, name
        assert (table >= -1e-15).all(), name
        assert table.sum(-1) == pytest.approx(np.ones(p.shape[:-1]), abs=1e-9), name
        # four lanes, so that late pairs differ; of six tokens a cut to the 50 heaviest changes nothing
        assert name.endswith("top 50") or np.abs(table - p).max() > 1e-9, name
    assert len(set(names())) == len(names())


def test_laws_by_cells_are_those_of_the_ids() -> None:
    """Kills a law that takes a cell of many ids for one, so that a bet on a wide vocabulary is on no defect's law."""
    generator, sizes = np.random.default_rng(3), np.array([1, 20, 30, 1, 2])
    p, q = (generator.dirichlet(np.full(5, 0.5), size=(3, n, 1)) for n in (3, 2))
    p[0, :, :, 2], q[1, :, :, 1] = 0.0, 1e-4
    p, q = (rows / rows.sum(-1, keepdims=True) for rows in (p, q))
    cell = np.repeat(np.arange(5), sizes)
    whole, by_ids = alternatives(p, q, sizes), alternatives(*((rows / sizes)[..., cell] for rows in (p, q)))
    told = 0
    for name, told_law in whole.items():
        merged = np.stack([by_ids[name][..., cell == k].sum(-1) for k in range(5)], axis=-1)
        same = np.abs(told_law - merged).max(-1) < 1e-9
        assert (same | (told_law == p).all(-1)).all(), name
        told += int((same & (np.abs(told_law - p).max(-1) > 1e-9)).any())
    assert told >= 87  # of 98: ten are about the neighbours of an id, one wants a draft of less than 1e-5


def _leviathan_with(odds: str, correction: str):
    """The exact rule with one thing wrong: enumerating it gives what alternatives.py computes in closed form."""

    def rule(p, block: Block, chance: Chance) -> Round:
        for i, x in enumerate(block.tokens):
            q = drawn(block, i)
            accepted = {"right": (p[i][x], q[x]), "always": (1, 1), "p": (p[i][x], 1)}[odds]
            if not chance.accept(*accepted, ("accept", i)):
                left = {"residual": residual(p[i], q), "p": p[i], "q": q}[correction]
                return Round((*block.tokens[:i], chance.choose(left, ("emit", i))), tuple(range(i)))
        gamma = len(block.tokens)
        return Round((*block.tokens, chance.choose(p[gamma], ("emit", gamma))), tuple(range(gamma)))

    return rule


@pytest.mark.parametrize(
    ("odds", "correction", "name"),
    [
        ("always", "residual", "accepts always: every draft is accepted"),
        ("p", "residual", "another acceptance: accepted with p instead of p/q"),
        ("right", "p", "resample from target: corrected from p instead of the residual"),
        ("right", "q", "another correction: corrected from q"),
    ],
)
def test_the_law_of_a_defect_is_that_of_the_mutated_rule(odds: str, correction: str, name: str) -> None:
    """Kills the bets are placed on laws that no defect has."""
    p = [row([2, 1, 5]), row([1, 3, 4])]
    q = [row([4, 3, 1])]

    def one_round(chance: Chance) -> tuple[int, ...]:
        block = chain([chance.choose(q[0], ("draft", 0))], q, [("draft", 0)])
        return _leviathan_with(odds, correction)(p, block, chance).tokens

    first = np.zeros(3)
    for tokens, mass in law(one_round).items():
        first[tokens[0]] += float(mass)
    table = alternatives(np.array(p, dtype=float)[None, :, None], np.array(q, dtype=float)[None, :, None])
    assert table[name][0, 0, 0] == pytest.approx(first, abs=1e-12)


def test_one_coin_for_a_block_has_the_law_that_is_bet_on() -> None:
    """Kills a bet on what the emitted prefix does not say, or that forgets the least of the coins' bounds."""
    p = [row([2, 1, 5]), row([1, 5, 2]), row([3, 3, 2])]
    q = [row([4, 3, 1]), row([4, 1, 3])]

    def one_round(chance: Chance) -> tuple[int, ...]:
        drafts = [chance.choose(q[i], ("draft", i)) for i in range(2)]
        u = chance.choose([1] * 120, ("coin",))  # 120 is a multiple of every denominator of p/q here
        for i, x in enumerate(drafts):
            if not (u + 1) * q[i][x] <= 120 * p[i][x]:
                return (*drafts[:i], chance.choose(residual(p[i], q[i]), ("emit", i)))
        return (*drafts, chance.choose(p[2], ("emit", 2)))

    true = law(one_round)
    for first in range(3):
        seen = np.array([float(sum((m for t, m in true.items() if t[:2] == (first, y)), 0)) for y in range(3)])
        below = np.array(min(1.0, float(p[0][first] / q[0][first])))
        if seen.sum():
            told = one_coin_law(np.array(p[1], dtype=float), np.array(q[1], dtype=float), below)
            assert seen / seen.sum() == pytest.approx(told, abs=1e-12)


def test_one_noise_for_draft_and_recovery_has_the_law_that_is_bet_on() -> None:
    """Kills a race that is run afresh, or whose losers are forgotten. 4 10^5 races: shares within 5.5 deviations."""
    p, q = np.array([0.1, 0.35, 0.05, 0.5, 0.0]), np.array([0.3, 0.2, 0.2, 0.1, 0.2])
    generator, races = np.random.default_rng(5), 400_000
    noise = generator.exponential(size=(races, 5))
    draft = np.argmin(noise / q, axis=1)
    with np.errstate(divide="ignore"):
        recovery = np.argmin(noise / np.maximum(p - q, 0.0), axis=1)
    emitted = np.where(generator.random(races) * q[draft] < p[draft], draft, recovery)
    table = alternatives(p[None, None, None].repeat(2, axis=1), q[None, None, None])[
        "draft and verifier share coins: one noise drafts and corrects"
    ]
    told = table[0, 0, 0]
    share = np.bincount(emitted, minlength=5) / races
    assert (np.abs(share - told) <= 5.5 * np.sqrt(told * (1 - told) / races)).all()
    assert np.abs(told - p).max() > 0.01


def test_a_repeated_candidate_that_is_skipped_has_the_law_that_is_bet_on() -> None:
    """Kills a bet on candidates that are judged in another way than theirs: it takes 100,000 calls to learn."""
    p, q = row([2, 3, 3, 0]), row([4, 2, 1, 1])

    def one_token(chance: Chance) -> int:
        left, refused = p, set[int]()
        for i in range(2):
            x = chance.choose(q, ("candidate", i))
            if x in refused:
                continue
            refused.add(x)
            if chance.accept(left[x], q[x], ("accept", i)):
                return x
            left = row(residual(left, q))
        return chance.choose(left, ("emit", 0))

    true = law(one_token)
    rows = [np.array(side, dtype=float)[None, None, None] for side in (p, q)]
    table = alternatives(np.repeat(rows[0], 2, axis=1), rows[1])[
        "equal candidates merged: a candidate that repeats a refused one is skipped"
    ]
    assert [float(true.get(x, 0)) for x in range(4)] == pytest.approx(table[0, 0, 0], abs=1e-12)
    assert np.abs(table[0, 0, 0] - rows[0][0, 0, 0]).max() > 0.01


def test_cells_are_few_and_fixed_by_the_rows() -> None:
    """Kills a learner over a whole vocabulary never learns."""
    generator = np.random.default_rng(2)
    p, q = generator.dirichlet(np.ones(500), size=2)
    assert cells(p, q).max() < CELLS
    assert kinds(p, q).shape == (9, 500)


def test_a_token_without_mass_is_noticed_wherever_it_is() -> None:
    """Kills an impossible token is averaged away."""
    p = np.array([[[[0.5, 0.5, 0.0]], [[0.2, 0.3, 0.5]]]])
    case = CaseEvidence(p, np.full((1, 1, 1, 3), 1 / 3), {"the site": 1})
    draws = Draws(np.array([0, 0]), np.array([1, 2]), {"the site": np.zeros(2, dtype=int)})
    assert case.impossible(draws).tolist() == [False, True]
