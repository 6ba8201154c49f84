"""The inputs of an audit and where its calls go."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.inputs.hostile import LIVE, cases
from refengine.audit.kernel.diagnosis import depends, diagnose, where_it_shows
from refengine.audit.kernel.history import FURTHER_BACK, LAGS, ROUND_BEFORE, History, features
from refengine.audit.magnitude import at_least
from refengine.evidence.alpha import NATS
from refengine.evidence.bets.defect_laws import alternatives
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.e_process import CaseEvidence
from refengine.evidence.naming import unexplained
from refengine.evidence.rows import Rows
from refengine.selfcheck.instrument.simulated import CAP, Audits, nats

pytestmark = pytest.mark.on_record

GROSS = (
    "another acceptance: accepted with p instead of p/q",
    "no coin: the coin is fixed at one half",
    "lossy by design: typical-by-default: accepted by a threshold (typical acceptance)",
    "row slip of q: the ratio takes q of the next position",
    "last draft unverified: the last draft is not verified",
    "greedy at temperature: corrected by the argmax of p",
    "row slip of q: corrected from the residual with the q before",
    "an end of the vocabulary is lost: the last id is never a correction",
    "another bonus: the bonus comes from a residual",
    "greedy at temperature: the bonus is the argmax",
    "raw row as q: drafted from top 2, weighed against q",
    "another filter: the target is cut to its top 50",
    "epsilon: the ratio's q is at least 1e-5",
    "epsilon: the ratio's p is at least 1e-5",
)


@pytest.fixture(scope="module")
def audits() -> Audits:
    return Audits()


@pytest.mark.parametrize("name", GROSS)
def test_gross_defects_end_within_eight_calls(audits: Audits, name: str) -> None:
    """Kills first calls that say less than a call can, or a lead that is not followed."""
    wrong = {case: alternatives(item.p, item.q, item.sizes)[name] for case, item in audits.told.items()}
    calls = [audits.run(wrong, seed, 100)[0].calls for seed in range(3)]
    assert sorted(calls)[1] <= 8


def test_every_input_is_met_soon(audits: Audits) -> None:
    """Kills inputs that stand last are never met by a subject that is slow."""
    campaign, end, _ = audits.run({name: item.p for name, item in audits.told.items()}, 0, 6_000)
    assert end is None
    assert all(progress.calls > 0 for progress in campaign.cases.values())


@pytest.mark.parametrize("share", [1e-2, 1e-3, 1e-4, 1e-5])
def test_a_cut_of_any_tail_shows_in_an_exact_law(share: float) -> None:
    """Kills inputs to be enumerated whose tails are all heavier than what top-p 0.9999 cuts."""
    rows = np.concatenate([item.p[0, -1] for item in exact_cases(False) if item.vocabulary == 6])
    heaviest_first = -np.sort(-rows, axis=-1)
    before = np.cumsum(heaviest_first, axis=-1) - heaviest_first
    dropped = np.where(before >= 1 - share, heaviest_first, 0.0).sum(-1)
    assert dropped.max() > BALL


def test_inputs_are_rows_with_names_of_their_own() -> None:
    """Kills two inputs of one name, of which the first is never met; rows that are none; ids that nobody can return."""
    told = cases()
    assert len({item.name for item in told}) == len(told)
    for item in told:
        for rows in (item.p, item.q):
            assert (rows >= 0).all(), item.name
            assert rows.sum(-1) == pytest.approx(np.ones(rows.shape[:-1]), abs=1e-12), item.name
        assert item.cut(1, 1).cell is item.cell


def test_ids_of_a_wide_vocabulary_come_back_as_those_of_the_few() -> None:
    """Kills a dead id counted for a live one, so that an id cut to two bytes goes unnoticed."""
    item = next(item for item in cases() if item.name == "few of many")
    p, _ = item.float32()
    assert p.shape[-1] == item.width
    assert (p > 0).sum() == (item.p > 0).sum()
    assert np.array_equal(p[0, 0, 0, list(LIVE)], item.p[0, 0, 0].astype(np.float32))
    sent = np.array([[*LIVE, 1, 65_536, 32_770 - 32_768, -1]], dtype=np.int32)
    few = len(LIVE)
    assert item.narrow(sent).tolist() == [[*range(few), few - 1, few - 1, few - 1, -1]]
    assert (item.p[..., few - 1] == 0).all()


def test_the_states_of_rows_above_are_those_of_rows_above() -> None:
    """Kills a feature that looks at its own row or at a row below, whose wealth is no martingale."""
    item = next(item for item in cases() if item.name == "coin")
    tokens = np.array([[[0, 1, -1, -1], [1, -1, -1, -1], [0, 0, 1, -1], [1, 1, -1, -1]]], dtype=np.int32)
    draws = History(item, None).draws(tokens, 0)
    lane = np.repeat(np.arange(4), [2, 1, 3, 2])
    position = np.concatenate([np.arange(n) for n in (2, 1, 3, 2)])
    for feature, lag in (("of the row above", 1), ("two rows above", 2), ("further above", 3)):
        for i in range(len(lane)):
            above = lane[i] - lag
            assert draws.states[f"the same position {feature}"][i] == (
                tokens[0, above, position[i]] if above >= 0 else -1
            )
            length, so_far = int((tokens[0, above] >= 0).sum()), draws.states[f"so far {feature}"][i]
            if above < 0:
                assert so_far == -1
            elif length <= position[i]:
                assert so_far == length - 1
            else:
                assert so_far >= item.gamma
    assert set(draws.states) == set(features(item))


def test_rounds_and_rows_of_every_distance_are_looked_at() -> None:
    """Kills noise that comes back two to four rounds later (buffers that take turns) or five rows further down (a tile
    that does not divide the batch), where the states tell of the round before and of some rows above alone."""
    item = next(item for item in cases() if item.name == "coin")
    count, generator = features(item), np.random.default_rng(3)
    back = [(FURTHER_BACK, int(lag), 0) for lag in LAGS]
    for feature, rounds, rows in (*back, *(("the same position further above", 0, rows) for rows in (5, 7))):
        tokens = np.full((512, item.lanes, item.gamma + 1), -1, dtype=np.int32)
        tokens[..., 0] = generator.random(tokens.shape[:2]) < 0.5  # what p says
        for call in range(len(tokens)):
            if rounds and call // rounds % 2:  # every buffer is used twice
                tokens[call] = tokens[call - rounds]
            if rows:
                tokens[call, rows:] = tokens[call, :-rows]
        past, evidence = History(item, None), CaseEvidence(item.p, item.q, count)
        for start in (0, 100):  # across blocks of calls too
            draws = past.draws(tokens[start : 100 if start == 0 else None], start)
            assert draws.states[feature].max() < count[feature]
            evidence.add(draws)
        told = {name: float(learner.log_wealth()[0][0]) for name, learner in evidence.learners.items()}
        assert told.pop(feature) > NATS + 10
        assert max(wealth for name, wealth in told.items() if not name.startswith("so far")) < np.log(1e3)


def test_no_state_tells_how_far_a_row_above_will_get() -> None:
    """Kills a batch that is cut to its shortest row accused, because the row above, which ends here, says it was
    refused."""
    item = next(item for item in cases() if item.name == "coin")
    states = []
    for later in ([-1, -1, -1], [1, 0, -1], [0, 0, 1]):
        tokens = np.array([[[0, *later], [1, *later], [0, *later], [1, *later]]], dtype=np.int32)
        draws = History(item, None).draws(tokens, 0)
        first = np.flatnonzero(np.append(True, np.diff(draws.site // (item.p.shape[1] * item.contexts)) > 0))
        states.append({name: state[first].tolist() for name, state in draws.states.items()})
    assert states[0] == states[1] == states[2]


def test_calls_go_where_a_defect_shows(audits: Audits) -> None:
    """Kills effort that stays round while one input would decide: a defect of the end of a block takes thousands."""
    laws: dict[str, Rows] = {}
    for name, item in audits.told.items():
        law = item.p.copy()
        law[:, -1:] = 0.7 * law[:, -1:] + 0.3 / item.vocabulary * (law[:, -1:] > 0)
        laws[name] = law / law.sum(-1, keepdims=True)
    campaign, end, spent = audits.run(laws, 0, 20_000)
    assert end is not None
    assert campaign.calls < 2_000
    assert spent < 6 * NATS


def test_what_no_listed_defect_explains_is_not_named_after_one(audits: Audits) -> None:
    """Kills the nearest listed class named for a defect that is none of them: only the third draft is refused ten
    times as often as by a ratio that is 2 % too strict."""
    strict = {
        case: alternatives(item.p, item.q, item.sizes)["another acceptance: the ratio is 2 % too strict"]
        for case, item in audits.told.items()
    }
    third = {case: item.p.copy() for case, item in audits.told.items()}
    for case, law in strict.items():
        third[case][:, 2:3] += 10.0 * (law - third[case])[:, 2:3]
    for wrong, said in (
        (strict, "another acceptance: the ratio is 2 % too strict"),
        (third, unexplained("at position 2")),
    ):
        campaign, end, _ = audits.run(wrong, 0, 4_000)
        assert end is not None
        assert diagnose(campaign).startswith(said)


def test_rows_that_are_wrong_after_any_past_are_no_dependence() -> None:
    """Kills "a round depends on the one before" where a site is wrong whatever came before it, and a learner that tells
    pasts apart grew a little faster than that of the site."""
    item = next(item for item in cases() if item.name == "coin")
    feature, generator = ROUND_BEFORE[0], np.random.default_rng(0)
    wrong, kept = generator.random(3000) < 0.6, generator.random(3000) < 0.6
    held = np.cumsum(~kept) % 2  # stays as it was in six rounds of ten
    for first, said in ((wrong, False), (held, True)):
        tokens = np.full((3000, 1, item.gamma + 1), -1, dtype=np.int32)
        tokens[:, 0, 0] = first
        evidence = CaseEvidence(item.p, item.q, features(item))
        evidence.add(History(item, lambda calls: calls % 1).draws(tokens, 0))
        assert evidence.learners[feature].log_wealth()[0][0] > NATS
        met: Any = [SimpleNamespace(evidence=evidence)]
        assert depends(feature, met) == said


def test_a_token_of_a_wide_vocabulary_is_called_by_its_id(audits: Audits) -> None:
    """Kills a diagnosis that gives the number of a cell of ids for a token."""
    wrong = {case: item.p.copy() for case, item in audits.told.items()}
    item = audits.told["wide, kept"]
    wrong["wide, kept"][:, 1] *= 0.5
    wrong["wide, kept"][:, 1, :, item.cell[70_001]] += 0.5
    campaign, end, _ = audits.run(wrong, 0, 4_000)
    assert end is not None
    assert "a token like 70001 comes too often" in where_it_shows([campaign.cases["wide, kept"]])


def test_a_lower_bound_of_nothing_is_no_magnitude() -> None:
    """Kills "TV >= 0" beside a violation. That a token of probability zero comes is worth saying at any size."""
    assert at_least(0.0) is None
    assert at_least(0.0, breaks_mask=True) is not None
    assert at_least(0.1) is not None


def test_nats_are_counted_against_the_nearest_law_of_the_null() -> None:
    """Kills an input on which a token of next to no mass says more than a null with a ball around it can be told by."""
    plain = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    assert float(nats(*plain)) == pytest.approx(float((plain[0] * np.log(plain[0] / plain[1])).sum()), abs=1e-5)
    law, p = np.array([1 - 1e-3, 1e-3]), np.array([1 - 1e-12, 1e-12])
    assert float(nats(law, p)) == pytest.approx(1e-3 * np.log(1e-3 / BALL) - 1e-3, rel=1e-2)
    assert float(nats(np.array([0.5, 0.5]), np.array([1.0, 0.0]))) == pytest.approx(CAP / 2 + 0.5 * np.log(0.5))
    assert float(nats(p, p)) == 0.0
