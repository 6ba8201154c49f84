"""The laws of a served path: bets that are fair, sums that add up, ties that are told, a difference that is placed."""

import random
from copy import deepcopy
from dataclasses import replace
from math import exp, log
from types import SimpleNamespace
from typing import Any

import pytest

from properties.helpers.served.engine import Engine
from properties.helpers.served.http import serving
from refengine.audit.served.ask import Answer, Ask, Choice
from refengine.audit.served.audit import misread
from refengine.audit.served.belief import Partings
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.cells import LOGPROBS_EQUAL
from refengine.audit.served.claims.options import SAMPLED, Setting
from refengine.audit.served.claims.sampled import CLAIM, Law, Sampled
from refengine.audit.served.claims.scores import COPIES, Policy, Reader, against_row, as_reported, with_policy
from refengine.audit.served.claims.shared_rows import SHARED_ROWS, SharedRows
from refengine.audit.served.claims.ties import asked_tie
from refengine.audit.served.diagnosis import alike, since
from refengine.audit.served.locate import located
from refengine.audit.served.noise import KNOWN_TIE_SHARE, TIE_SHARE, Noise
from refengine.audit.served.suite import State, Suite
from refengine.audit.served.transports.http import Server
from refengine.evidence.alpha import NATS
from refengine.evidence.e_process_of_prefixes import Prefixes
from refengine.evidence.e_process_of_scores import Scores

pytestmark = pytest.mark.on_record

ROW = {"a": log(0.5), "b": log(0.3), "c": log(0.1)}


def test_every_bet_on_a_whole_answer_is_fair() -> None:
    """Kills a bet that knows which answer came from which sampler, or that an answer's choices are independent."""
    coin = random.Random(0)
    scores, prefixes = Scores(2), Prefixes()
    for _ in range(40):
        values = [{"x": coin.gauss(0, 1), "y": float(coin.randrange(2))} for _ in range(2)]
        texts = [[[(coin.choice("ab"), coin.choice((None, 0.4))) for _ in range(3)]] * 2 for _ in range(2)]
        place = coin.randrange(3)
        for process, told in ((scores, values), (prefixes, texts)):
            after = []
            for first, second in (told, told[::-1]):
                tried = deepcopy(process)
                tried.add(place, first, second)  # type: ignore[arg-type]
                after.append(exp(tried.log_evidence()))
            assert sum(after) / 2 == pytest.approx(exp(process.log_evidence()), rel=1e-9)
            process.add(place, *told)  # type: ignore[arg-type]
    assert scores.log_evidence(without=0) != scores.log_evidence()


def test_small_differences_at_every_token_add_up() -> None:
    """Kills evidence that looks at one place of a text alone: four tokens, each off by a total variation of 0.15, are
    seen while one of them is far from it."""
    coin, whole, alone = random.Random(0), Prefixes(), Prefixes()
    for _ in range(800):
        sides = [[[(coin.choices("ab", (rate, 1 - rate))[0], 0.5) for _ in range(4)]] for rate in (0.65, 0.5)]
        whole.add(0, *sides)
        alone.add(0, *([text[:1] for text in side] for side in sides))
        if whole.log_evidence() > NATS:
            break
    assert whole.log_evidence() > NATS
    assert alone.log_evidence() < NATS / 2


def test_a_token_scores_nothing_on_average_under_its_row() -> None:
    """Kills a score that follows what the text is about instead of how it was sampled: the mean is 0, exactly."""
    row = tuple(ROW.items())
    for law in (
        as_reported(row),
        with_policy(row, Policy(top_k=2)),
        with_policy(row, Policy(min_p=0.5, temperature=0.5)),
    ):
        assert sum(law.listed.values()) + law.rest == pytest.approx(1.0, abs=2e-6)
        mean = [law.rest * x for x in against_row("z", law)]
        for token, chance in law.listed.items():
            mean = [m + chance * x for m, x in zip(mean, against_row(token, law), strict=True)]
        assert mean == pytest.approx([0.0] * 3, abs=1e-5)
    assert with_policy(row, Policy(top_k=2)).listed == pytest.approx({"a": 0.625, "b": 0.375}, abs=1e-5)
    assert set(with_policy(row, Policy(top_p=0.6)).listed) == {"a", "b"}


def test_choices_of_a_request_are_one_look() -> None:
    """Kills evidence that takes sixteen choices that a server made alike for sixteen independent looks."""
    coin, law = random.Random(1), Law(Reader({}, 1.0))
    for k in range(200):
        on, off = ([Choice(str(coin.randrange(3)))] * 16 for _ in range(2))
        law.add(k % 5, on, off)
    assert law.log_evidence < 5


def test_ties_are_as_rare_as_close_rows() -> None:
    """Kills a share of ties that hides what parts two completions in five where both sides report the same rows."""
    exact = Noise(20, 0, 0.0, tokens=640, close=100, sides_apart=0.0)
    noisy = Noise(20, 0, 0.2, tokens=640, close=100, sides_apart=0.2)
    assert exact.tie_share() == pytest.approx(KNOWN_TIE_SHARE)
    assert noisy.tie_share() == Noise(20).tie_share() == pytest.approx(TIE_SHARE)
    assert Noise(20, 12, 0.2, tokens=640, close=100).tie_share() > 0.6


def test_rows_that_are_rounded_otherwise_are_no_law() -> None:
    """Kills a score that no draw moves: where a bias decides what is drawn, reported rows are those of other tokens,
    and each side has its own by rounding, the same at every look. An honest server was accused after 180 pairs."""
    law, coin = Law(Reader({"logit_bias": {"3": 100.0}}, 2.0)), random.Random(0)
    for k in range(100):
        sides = []
        for top in (0.40, 0.41):
            words = [coin.choice("xy") for _ in range(16)]
            choices = [Choice(x, "length", (x,), (-9.0,), ({"a": log(top), "b": log(0.3), x: -9.0},)) for x in words]
            sides.append(choices)
        law.add(k % 5, *sides)
    assert law.log_evidence < 1


@pytest.mark.parametrize(
    ("manner", "choices", "options"),
    [
        ("noisy, text only", 16, {"presence_penalty": 1.5}),
        ("noisy", 16, {"presence_penalty": 1.5}),
        ("noisy, text only, one choice", 1, {}),
    ],
)
def test_a_near_tie_is_told_by_asking(manner: str, choices: int, options: dict[str, float]) -> None:
    """Kills partings of an honest server with rounding that count against it, and a defect that passes for a tie; an
    honest server that gives one choice a request was accused of seventeen claims."""
    with (
        serving(Engine(True), manner) as honest,
        serving(Engine(True, "the first token is the likeliest")) as other,
        serving(Engine(), manner) as off,
        Server(honest) as here,
        Server(off) as there,
        Server(other) as wrong,
        Bench(here, there, choices=choices, samples=choices == 1) as bench,
    ):
        partings = told = 0
        for k in range(40):
            ask = Ask((bench.prompt(k),), 32, options=options)
            on, plain = bench.both(ask)
            if on.text != plain.text:
                partings += 1
                told += asked_tie(bench, ask, on, plain)
        assert partings >= 5
        assert told >= 0.75 * partings
        warm = Ask((bench.prompt(0),), 8, 1.0, seed=3)
        assert not asked_tie(bench, Ask((bench.prompt(0),), 8), wrong.send(warm), bench.both(Ask(warm.turns, 8))[1])


def placed(defect: str, setting: Setting, pairs: int = 15) -> str:
    """What is said of where the law differs, after so many pairs."""
    with (
        serving(Engine(True, defect)) as on,
        serving(Engine()) as off,
        Server(on) as here,
        Server(off) as there,
        Bench(here, there, logprobs={"logprobs": True}) as bench,
    ):
        cell = Sampled(setting, 16)
        for k in range(pairs):
            cell.unit(bench, k)
        return "; ".join(located(bench, cell)["it shows"])


def test_a_difference_is_placed() -> None:
    """Kills "another law" that does not say where: the first token alone, one choice alone, and nowhere."""
    setting = replace(SAMPLED[0], tokens=16, seeded=True)
    first = placed("the first token is the likeliest", setting)
    assert first.startswith("at the first token")
    assert first.endswith("likelier tokens come too often")
    assert "only in choice 3" in placed("the third choice is greedy", setting)
    assert placed("", setting) == "at no place that fresh answers would show"


def test_drafts_that_are_looked_up_in_the_text_are_seen() -> None:
    """Kills scores that no copy moves: where the last two tokens came before, the one that came after them is drafted
    and kept with 0.2 more than it has. Without rows the texts say it too."""
    for rows in (True, False):
        coin, law = random.Random(0), Law(Reader({}, 1.0))
        for k in range(40):
            law.add(k % 5, *([copying(coin, more, rows) for _ in range(8)] for more in (0.2, 0.0)))
        assert law.scores.strongest() == COPIES
        assert law.log_evidence > NATS


def copying(coin: random.Random, more: float, rows: bool) -> Choice:
    """A text of 48 tokens of sixteen, each as likely as the others, but for copies."""
    words = [f" {i}" for i in range(16)]
    row, told, after = dict.fromkeys(words[:5], log(1 / 16)), list[str](), dict[tuple[str, ...], str]()
    for i in range(48):
        before = tuple(told[-2:])
        copy = after.get(before) if coin.random() < more else None
        told.append(copy or coin.choice(words))
        if i > 1:
            after[before] = told[-1]
    some = (tuple(told), (log(1 / 16),) * 48, (row,) * 48) if rows else ()
    return Choice("".join(told), "length", *some)


@pytest.mark.parametrize("claim", [LOGPROBS_EQUAL, SHARED_ROWS])
def test_a_law_is_not_called_another_by_rows_that_are_wrong(claim: str) -> None:
    """Kills accusations of sampling that a wrong row makes: nine of them stood beside the one that was right."""
    law, told = Law(Reader({}, 1.0)), Partings(0.02)
    cells = [
        SimpleNamespace(name="law/x", beliefs={CLAIM: law}),
        SimpleNamespace(name="greedy", beliefs={claim: told}),
    ]
    states = [SimpleNamespace(cell=cell) for cell in cells]
    suite: Any = SimpleNamespace(bar=NATS, states=states, bench=SimpleNamespace(of_answers=dict))
    assert misread(suite, law) == ""
    for _ in range(60):
        told.add(True, {})
    assert misread(suite, law) == "greedy"
    law.of_texts = NATS
    assert misread(suite, law) == ""


def test_rows_after_the_same_tokens_are_held_to_those_seen_before() -> None:
    """Kills rows that are compared at temperature 0 alone, a side that is held to its own answer of that look, and the
    edge of a filter, which rounding moves."""

    def said(*rows: dict[str, float]) -> Answer:
        return Answer((Choice("a b", "length", ("a", " b"), (-1.0, -1.0), rows),))

    cold = {token: 2 * chance for token, chance in ROW.items()}
    shared, bench, ask = SharedRows(), Bench(Server("http://a"), Server("http://b")), Ask(("p",), 2, 0.5)
    right, wrong = said(ROW, ROW), said(ROW, cold)
    assert shared.look(bench, 0, ask, (right, right)) is None
    for place, on, off, shows in ((0, right, right, (False, False)), (0, wrong, right, (True, False))):
        told = shared.look(bench, place, ask, (on, off))
        assert told is not None
        assert told[:2] == shows
    assert shared.look(bench, 1, ask, (wrong, right)) is None
    assert shared.look(bench, 0, replace(ask, options={"top_p": 0.5}), (wrong, right)) is None


def test_a_server_that_gives_one_choice_is_asked_oftener() -> None:
    """Kills a law that is left with 144 single texts, which say nothing, while requests are left."""
    suite: Any = SimpleNamespace(bench=SimpleNamespace(noise=Noise(20, 6, 0.2, tokens=640, close=100, sides_apart=0.2)))
    for choices, looks in ((1, 576), (4, 144), (16, 106)):
        cell: Any = Sampled(SAMPLED[0], choices)
        assert not Suite.enough(suite, State(cell, looks - 1))
        assert Suite.enough(suite, State(cell, looks))


def test_a_law_is_decided_in_few_requests() -> None:
    """Kills laws held word for word at one place: the temperature of the draft alone, in 60 pairs of requests."""
    with (
        serving(Engine(True, "temperature on one side only")) as on,
        serving(Engine()) as off,
        Server(on) as here,
        Server(off) as there,
        Bench(here, there, logprobs={"logprobs": True}) as bench,
    ):
        cell = Sampled(SAMPLED[1], 16)
        for k in range(60):
            cell.unit(bench, k)
        assert cell.beliefs[CLAIM].log_evidence > NATS


def test_what_violated_laws_share_is_named() -> None:
    """Kills "top_p and min_tokens" for a draft that is judged at another temperature."""

    def named(*violated: str) -> str:
        laws = [Sampled(setting) for setting in SAMPLED]
        found = [
            SimpleNamespace(cell=law, evidence=lambda law=law: NATS * (law.setting.name in violated)) for law in laws
        ]
        suite: Any = SimpleNamespace(bar=NATS, states=found)
        return alike(suite, next(law for law in laws if law.setting.name == violated[0]))

    assert named("top_p", "min_tokens") == ", as all with temperature: so is min_tokens"
    assert named("top_p", "temperature 1", "top_k") == ", whatever is asked for: so is temperature 1"
    assert named("temperature 1", "top_k") == named("top_k") == ""


def test_a_server_that_drifts_is_said_to() -> None:
    """Kills forty violated claims of which none says that the server was right at first."""

    def told(compared: list[tuple[int, bool]]) -> str:
        suite: Any = SimpleNamespace(bench=SimpleNamespace(compared=compared))
        return since(suite)

    assert "not in the first 84 requests, of which 42 were" in told([(2 * n, n < 40 or n % 3 > 0) for n in range(99)])
    assert told([(2 * n, n < 40 or n % 9 > 0) for n in range(99)]) == ""  # a parameter's, say
    assert told([(2 * n, n < 20) for n in range(99)]) == told([(2 * n, True) for n in range(99)]) == told([]) == ""
