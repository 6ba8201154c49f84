"""What company does to a request: coins of others, and defects that show beside others alone."""

import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from properties.audit.served.test_suite import audited, violated
from properties.helpers.served.http import RECIPE
from refengine.audit.served.ask import Answer, Ask, Choice, Refused
from refengine.audit.served.audit import Named, findings
from refengine.audit.served.bench import USAGE, Bench, titled
from refengine.audit.served.claims.cells import LOGPROBS_EQUAL, TEXT, Parity, Plain
from refengine.audit.served.claims.options import Option, fixed
from refengine.audit.served.claims.schedules.coins_in_company import (
    ARMS,
    EVERY_WAY,
    SIZE,
    Followed,
    OneToken,
    OthersSeeds,
    answers_beside,
    bet,
    bet_on_batches,
)
from refengine.audit.served.claims.schedules.requests import sampled
from refengine.audit.served.diagnosis import diagnosis
from refengine.audit.served.locate import ALONE, only_in
from refengine.audit.served.locate import COMPANY as BESIDE
from refengine.audit.served.noise import Noise
from refengine.audit.served.plan import Plan
from refengine.audit.served.reduce import WITHOUT_IT
from refengine.audit.served.suite import Suite
from refengine.evidence.alpha import ALPHA

pytestmark = pytest.mark.on_record


def test_a_bet_on_shared_coins_is_fair() -> None:
    """Kills a bet that gains on answers which differ for another reason, as over time: its mean over all ways in which
    the runs could have been paired is 1, exactly, whatever the answers are."""
    coin = random.Random(0)
    for texts in (
        [coin.choice(("a b c", "a b d", "x")) for _ in range(2 * ARMS)],
        ["first", *["later"] * (2 * ARMS - 1)],
        ["one"] * (2 * ARMS),
    ):
        gained = [np.exp(bet([texts[i] for pair in way for i in pair])) for way in EVERY_WAY]
        assert np.mean(gained) == pytest.approx(1.0, rel=1e-9)
    followed = [f"{seed} and more" for seed in "abcde" for _ in range(2)]
    assert bet(followed) == pytest.approx(np.log(945), abs=0.05)


def test_a_bet_on_a_coin_of_a_batch_is_fair_and_sees_one_that_decides_some() -> None:
    """Null: answers are in either batch by chance, so that a bet of mean 1 is above 20 in a look of twenty at most; n =
    400 looks of two batches of 14, of which more than 40 are with probability 1e-5 (Clopper-Pearson).
    Two first tokens that are one with probability 0.3 instead of 0.125 earn two nats a look. Kills a bet that gains on
    answers which are often alike, or on the rounding of sums, and one that needs a batch of equal answers."""
    coin = random.Random(1)

    def look(shared: float) -> float:
        """shared: of the answers of a batch that have its coin."""
        batches = []
        for _ in range(2):
            token = coin.choice("abcdefgh")
            said = (token if coin.random() < shared else coin.choice("abcdefgh") for _ in range(SIZE))
            batches.append([f"{first} {coin.choice('abcd')}" for first in said])
        return bet_on_batches(*batches, "key")

    assert sum(look(0.0) > np.log(20) for _ in range(400)) <= 40
    assert np.mean([look(0.45) for _ in range(50)]) > 2.0
    assert look(1.0) > 6.0
    most, odd = ["abc"] * SIZE, ["abd"]  # which is as alike to a batch in either of them
    assert bet_on_batches(most, most[1:] + odd, "key") == pytest.approx(0.0, abs=1e-9)


def test_coins_that_both_sides_share_accuse_nobody() -> None:
    """Kills evidence that forgets the side without speculation."""
    both, alone = Followed("", ""), Followed("", "")
    for _ in range(4):
        both.add(6.8, 6.8, True, {})
        alone.add(6.8, -1.0, True, {})
    assert both.log_evidence == pytest.approx(0.0)
    assert alone.log_evidence == pytest.approx(27.2)
    assert (both.signs, alone.signs) == (0, 4)


@dataclass
class Decided:
    """Says its seed where a bias is on an id that is not decisive, else one text. asked: with any bias."""

    undecided: tuple[str, ...]
    asked: int = 0

    def send(self, ask: Ask) -> Answer:
        told = ask.options.get("logit_bias", {"": 0.0})
        self.asked += "" not in told
        return Answer((Choice(f"says {ask.seed}" if told.keys() & {*self.undecided} else "says a"),))


@pytest.mark.parametrize(
    ("undecided", "filtered", "taken"),
    [
        ((), True, {"logit_bias": {"5": 100.0}}),
        (("5",), True, {"logit_bias": {"12": 100.0}}),
        (("5", "12", "23"), True, {"top_k": 1}),
        (("5", "12", "23"), False, None),
    ],
)
def test_a_neighbour_has_a_token_that_is_decided(
    undecided: tuple[str, ...], filtered: bool, taken: dict[str, Any] | None
) -> None:
    """Kills: two claims that nothing is said of, on a server where the fifth token is a mark that no bias makes sure;
    and a whole look at each such token, and at each again in the next claim."""
    one_token, seeds = OneToken(True, filtered), {(arm, 0): arm for arm in range(ARMS)}
    side = Decided(undecided)
    with Bench(side, Decided(undecided)) as bench:
        for k in range(2):
            if taken is None:
                with pytest.raises(Refused, match="it samples"):
                    answers_beside(bench, k, sampled(bench, k, 1), one_token, seeds, "key")
            else:
                other, said = answers_beside(bench, k, sampled(bench, k, 1), one_token, seeds, "key")
                assert (other.options, len(said)) == (taken, ARMS)
    assert side.asked == 2 * len(undecided) + 2 * ARMS * ("logit_bias" in (taken or {}))


def test_a_claim_whose_one_look_was_refused_is_lacking() -> None:
    """Kills: "no answer showed anything of it" of what a side said it does not do."""
    with Bench(Decided(("5", "12", "23")), Decided(("5", "12", "23"))) as bench:
        suite = Suite(bench, Plan([OthersSeeds(OneToken())], {}), ALPHA, 10**4)
        suite.look(suite.states[0])
        *_, parameters = found = list(findings(suite, Named("endpoint", "test", RECIPE)))
        assert all(finding.verdict != "not tested" for finding in found)
        assert "seed/of another: it samples where one token is left" in parameters.notes


@pytest.mark.parametrize("manner", ["drafts less in company", "another text every time", "takes all and does nothing"])
def test_an_answer_that_company_moves_honestly_does_not_follow_a_seed(manner: str) -> None:
    """Null: which seed a neighbour has moves nothing; n = 10 looks of 10 runs, alpha = ALPHA; an answer that follows it
    in half of the runs (TV 0.5) would be seen. Kills a claim that takes fewer drafts under load, or noise, for shared
    coins."""
    assert not violated(audited("", manner, 400, "seed/of"))


@pytest.mark.parametrize(
    ("tokens", "apart", "said"),
    [
        (("x", "y"), 0.0, "the same text is reported in other tokens with speculation"),
        (("x", "y"), 2.0, "log probabilities differ with speculation"),
    ],
)
def test_one_text_in_other_tokens_is_called_so(tokens: tuple[str, ...], apart: float, said: str) -> None:
    """Kills "log probabilities differ" where those of all tokens that both sides have are equal."""
    suite: Any = SimpleNamespace(bench=SimpleNamespace(noise=Noise(20), compared=[]), states=[])
    state: Any = SimpleNamespace(cell=Plain("greedy", Noise(20), True))
    witness = {"reported": tokens, "nats apart": apart}
    assert (
        diagnosis(suite, "greedy", LOGPROBS_EQUAL, state.cell.beliefs[LOGPROBS_EQUAL], state, witness)
        == f"greedy: {said}"
    )


def test_what_says_most_of_the_cause_comes_first() -> None:
    """Kills a list of violated claims in which the one with the cause in its name comes anywhere."""
    plain = Plain("state/long", Noise(20), rows=False, asked=lambda bench, k: Ask((f"{k}",), 4))
    asked = [Parity(Option(name, fixed({name: 1})), Noise(20), rows=False) for name in ("also", "needed")]
    on = {"text": "a", "finish_reason": "stop"}
    told: dict[str, Any] = {"on": on, "off": on | {"text": "b"}, "first difference at character": 0}
    with Bench(Decided(()), Decided(())) as bench:
        suite = Suite(bench, Plan([*asked, plain], {}), ALPHA, 10**4)
        for _ in range(40):
            for cell in (*asked, plain):
                cell.beliefs[TEXT].add(True, told | {"first difference at character": 3 * (cell is plain)})
            bench.keep(USAGE, True, False, told | {"request": {}})
        next(s for s in suite.states if s.cell is asked[1]).small = told | {"request": {}, "it vanishes": [WITHOUT_IT]}
        found = [f.id for f in findings(suite, Named("endpoint", "test", RECIPE)) if f.verdict == "violated"]
    assert [name.partition("/")[2] for name in found] == ["parity/needed", titled(USAGE), "state/long", "parity/also"]


def test_what_shows_beside_others_alone_is_called_so() -> None:
    """Null: a mean that is told apart from another by 3.5 standard errors, n = 20 pairs an arm. Kills a law that is
    called another where nothing else is under way, and one that is called so of company where it is so always."""
    coin = random.Random(0)

    def gains(alone: float, beside: float) -> dict[str, list[float]]:
        return {ALONE: [coin.gauss(alone, 1) for _ in range(20)], BESIDE: [coin.gauss(beside, 1) for _ in range(20)]}

    assert only_in(gains(0.0, 3.0)) == ["only in company"]
    assert only_in(gains(-3.0, 0.0)) == ["only alone"]
    assert only_in(gains(3.0, 3.0)) == only_in(gains(0.0, 0.0)) == []
    assert only_in({ALONE: [1.0], BESIDE: [2.0, 2.5]}) == []
