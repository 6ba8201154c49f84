"""What one answer says of itself, and what looks at many add up to: faults, partings, noise, evidence."""

import random
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import ClassVar

import pytest

from properties.helpers.served.http import RECIPE
from refengine.audit.served.ask import Answer, Ask, Choice
from refengine.audit.served.audit import Named
from refengine.audit.served.belief import Faults, Partings
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.cells import LISTED_PROMPTS, TEXT, Cell, Parity, asked_together
from refengine.audit.served.claims.compare import logprobs_apart
from refengine.audit.served.claims.options import Option, Options
from refengine.audit.served.claims.sampled import LAW_PROMPTS, Law
from refengine.audit.served.claims.scores import ORDER, Reader
from refengine.audit.served.claims.ties import ties
from refengine.audit.served.diagnosis import how_it_differs
from refengine.audit.served.endpoint import Opened
from refengine.audit.served.faults import faults
from refengine.audit.served.noise import KNOWN_TIE_SHARE, NATS, ROUNDING, TIE_SHARE, Noise
from refengine.audit.served.plan import Plan
from refengine.audit.served.sides import printed
from refengine.audit.served.suite import IDLE, SUSPECT_NATS, Suite, beliefs
from refengine.evidence.alpha import ALPHA


def test_a_convention_of_sampled_answers_is_not_counted() -> None:
    """Kills metadata that accuses a server of a convention because its texts, from another law, show it more often."""
    ask, usage = Ask(("a",), 4, 1.0), {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}
    shows = Answer((Choice("a b", "stop", ("a", " b")),), usage)
    clean = Answer((Choice("a b c", "length", ("a", " b", " c")),), usage)
    name = "usage is not the number of tokens"
    with Bench(Gives(), Gives()) as bench:
        bench.inspect(ask, clean, shows, sampled=True)
        for _ in range(30):
            bench.inspect(ask, shows, clean, sampled=True)
        assert bench.metadata[name].looks == 1
        for _ in range(30):
            bench.inspect(ask, shows, clean)
        assert bench.metadata[name].signs == 30


def test_a_convention_of_one_parameter_excuses_no_other() -> None:
    """Kills: an echo, after which usage counts a part of the tokens, that hides what n choices are said to have."""
    echo, several = Ask(("a",), 4, options={"echo": True}), Ask(("a",), 4, 1.0, {"n": 2})
    usage = {"prompt_tokens": 1, "completion_tokens": 4, "total_tokens": 5}
    clean = Answer((Choice("a b", "length", ("a", " b")), Choice("a c", "length", ("a", " c"))), usage)
    shows = replace(clean, usage={**usage, "completion_tokens": 7, "total_tokens": 8})
    with Bench(Gives(), Gives()) as bench:
        bench.inspect(echo, shows, shows)
        bench.inspect(several, shows, clean, sampled=True)
        bench.inspect(replace(several, options={**several.options, **echo.options}), shows, clean, sampled=True)
        assert bench.metadata["usage is not the number of tokens"].shown == {(True, True): 1, (True, False): 1}


@pytest.mark.parametrize(("chances", "step"), [([-0.25, -1.5], 0.01), ([-0.1234, -2.0], 1e-4), ([-1 / 3], 1e-6)])
def test_the_step_of_printed_numbers(chances: list[float], step: float) -> None:
    """Kills: log probabilities to two decimals, whose equality is taken for that of the rows."""
    assert printed([None, 0.0, *chances]) == pytest.approx(step)
    assert printed([]) == ROUNDING


def test_only_a_server_that_rounds_nothing_otherwise_is_held_to_close_ties() -> None:
    """Kills: a tie of half precision that accuses a server; and a margin of half precision that excuses one without."""
    quiet = Noise(20, tokens=480, close=200, printed=1e-6)
    assert quiet.tie < NATS == Noise(20).tie == replace(quiet, parted=1).tie == replace(quiet, apart=0.01).tie
    assert quiet.tie_share() == pytest.approx(KNOWN_TIE_SHARE)
    assert quiet.tie_share() < replace(quiet, printed=1e-2).tie_share()


class Gives:
    """Is never asked."""

    def send(self, ask: Ask) -> Answer:
        raise AssertionError


def test_what_is_gathered_from_all_answers_is_listed_by_the_name_of_its_finding() -> None:
    """Kills a claim that a test runner lists and never hears of."""
    with Bench(Gives(), Gives()) as bench:
        suite = Suite(bench, Plan([], {}), ALPHA, 10)
        listed = Opened(suite, Named("endpoint", "test", RECIPE)).names()
        for belief in bench.of_answers().values():
            belief.add(True, False)
        assert [name for name, *_ in beliefs(suite)] == listed


def test_a_fault_of_both_sides_accuses_nobody() -> None:
    """Kills evidence that forgets the side without speculation."""
    both, alone = Faults(), Faults()
    for _ in range(40):
        both.add(True, True)
        alone.add(True, False)
    assert both.log_evidence < 0
    assert alone.log_evidence > 40
    assert both.counts() == {"looks": 40, "with speculation": 40, "without": 40}


def test_a_few_ties_are_no_defect() -> None:
    """Kills evidence against a share of partings that ties account for."""
    belief = Partings(TIE_SHARE)
    for k in range(60):
        belief.add(k % 5 == 0)
    assert belief.log_evidence < 0
    for _ in range(40):
        belief.add(True)
    assert belief.log_evidence > 5


def test_the_evidence_of_a_look_is_fair_under_the_null() -> None:
    """Kills a bet that gains on average when both sides show the fault equally often: exact, at every common rate."""
    from math import exp

    for rate in (0.0, 0.01, 0.3, 0.5, 0.9, 1.0):
        mean = 0.0
        for on in (False, True):
            for off in (False, True):
                belief = Faults()
                belief.add(on, off)
                chance = (rate if on else 1 - rate) * (rate if off else 1 - rate)
                mean += chance * exp(belief.log_evidence)
        assert mean <= 1 + 1e-12


def test_what_one_answer_says_of_itself() -> None:
    """Kills a check that is blind to its fault, and one that sees it where it is not."""
    ask = Ask(("a",), 4, options={"stop": ["cd"]})
    others = {"v": -3.0, "w": -4.0, "z": -5.0}
    rows = ({"a": -0.5, "x": -2.0, **others}, {"b": -1.0, "y": -1.2, **others})
    good = Choice("ab", "stop", ("a", "b"), (-0.5, -1.0), rows)
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert not any(faults(ask, Answer((good,), usage)).values())
    bad = Choice("abcd", None, ("ab", "cd", "e", "f", "g"), (0.5, -1.0, -1.0, -1.0, -1.0), ({"ab": -0.1},) * 5)
    shows = {name for name, there in faults(ask, Answer((bad, bad), {**usage, "total_tokens": 9})).items() if there}
    assert {
        "usage is not the number of tokens",
        "usage does not add up",
        "more tokens than max_tokens",
        "another number of choices than n",
        "text holds a stop string",
        "tokens are reported past the stop string",
        "no finish_reason",
        "a log probability is above 0 or no number",
        "a token's log probability is not that of its row",
        "a row lists fewer tokens than were asked for",
    } <= shows
    uneven = faults(ask, Answer((replace(good, top=rows[:1]),)))
    assert uneven["tokens, log probabilities and rows are not as many"]


def test_what_is_asked_for_and_not_told_is_seen() -> None:
    """Kills usage, log probabilities or ids that are missing, and a server that is accused of what nobody asked for."""
    ask = Ask(("a",), 4, options={"logprobs": True, "return_token_ids": True})
    missing = {"no usage", "no log probabilities", "no token ids"}
    bare = faults(ask, Answer((Choice("ab", "stop"),)))
    assert {name for name in missing if bare[name]} == missing
    whole = Choice("ab", "stop", ("ab",), (-0.5,), ({"ab": -0.5},), (3,))
    assert not any(faults(ask, Answer((whole,), {"completion_tokens": 1})).get(name, True) for name in missing)
    assert not missing & faults(replace(ask, stream=True, options={}), Answer((Choice("ab"),))).keys()
    assert missing & faults(ask, Answer((Choice("", "stop"),))).keys() == {"no usage"}


def test_what_is_told_is_held_to_what_was_asked() -> None:
    """Kills a fault of both sides that hides one of speculation: a row of one token where one was asked for, a length
    that is that of the newer name."""
    one = Choice("a", "length", ("a",), (-0.5,), ({"a": -0.5},))
    short, early = "a row lists fewer tokens than were asked for", "finish_reason says length before the length"
    for wish, shows in ((1, False), (True, True)):
        assert faults(Ask(("a",), 1, options={"logprobs": wish}), Answer((one,)))[short] is shows
    for options, shows in (({"max_completion_tokens": 1}, False), ({"max_completion_tokens": 3}, True), ({}, True)):
        assert faults(Ask(("a",), 4, options=options), Answer((one,)))[early] is shows


@pytest.mark.parametrize(
    ("chance", "temperature", "options", "shows"),
    [
        (-2.0, 1.0, {"min_p": 0.2}, False),  # log 0.2 is -1.61 below the likeliest
        (-2.3, 1.0, {"min_p": 0.2}, True),
        (-2.3, 1.7, {"min_p": 0.2}, False),  # before the temperature
        (-3.4, 1.7, {"min_p": 0.2}, True),
        (-2.3, 0.5, {"min_p": 0.2}, True),
        (-2.3, 1.0, {"top_k": 3}, True),
        (-1.5, 1.0, {"top_k": 3}, False),
        (-1.15, 1.0, {"top_k": 1}, True),
        (-0.55, 1.0, {"top_k": 1}, False),  # a tie
        (-2.3, 1.0, {"top_k": 8}, None),  # more than a row lists
        (-2.3, 1.0, {"min_p": 0.2, "logit_bias": {"1": 9.0}}, None),  # the row may be that before it
        (-2.3, 0.0, {"min_p": 0.2}, None),
        (-2.3, 1.0, {"top_p": 0.5}, None),
    ],
)
def test_a_token_that_a_filter_forbids(chance: float, temperature: float, options: Options, shows: bool | None) -> None:
    """Kills a filter that is forgotten at the end of a block alone: of a hundred tokens one or two, which no law tells;
    and a convention of what is applied first that is taken for it."""
    row = {"a": -0.5, "b": -1.2, "c": -2.0, "d": -2.5, "e": -3.0, "x": chance}
    choice = Choice("x", "length", ("x",), (chance,), (row,))
    found = faults(Ask(("a",), 1, temperature, {"logprobs": True, **options}), Answer((choice,)))
    assert found.get("a sampled token is one that a filter leaves no chance in its row") is shows


def test_a_tie_is_told_by_the_row() -> None:
    """Kills a near tie called a defect, and a defect called a tie."""
    off = Choice("a", tokens=("a", "b"), logprobs=(-0.6, -1.0), top=({"a": -0.69, "c": -0.7, "e": -1.7}, {"b": -1.0}))
    assert ties(Choice("c", tokens=("c", "b")), off, 0.25) is True
    assert ties(Choice("e", tokens=("e", "b")), off, 0.25) is False
    assert ties(Choice("d", tokens=("d", "b")), off, 0.25) is False
    assert ties(Choice("c"), off, 0.25) is None
    assert logprobs_apart(Choice("a", tokens=("a", "x"), logprobs=(-0.9, 0.0)), off) == pytest.approx(0.3)


def test_a_sample_at_one_odd_prompt_is_no_law() -> None:
    """Kills evidence from one prompt at which rounding decides what a filter keeps."""
    odd, wrong = Law(Reader({}, 1.0)), Law(Reader({}, 1.0))
    coin = random.Random(0)
    for k in range(300):
        place, other = k % LAW_PROMPTS, str(coin.randrange(5))
        odd.add(place, [Choice(other if place else "9")], [Choice(str(coin.randrange(5)) if place else "8")])
        wrong.add(place, [Choice(other)], [Choice("1" + other)])
    assert odd.log_evidence < 3
    assert wrong.log_evidence > 30


@pytest.mark.parametrize(
    ("on", "off", "said"),
    [
        (("ab", "length"), ("ab", "stop"), "the same text with speculation, and its finish_reason length, not stop"),
        (("ab", "length"), ("ab cd", "length"), "the text lacks its last 3 characters with speculation"),
        (("ab cd", "stop"), ("ab", "stop"), "the text goes on for 3 characters past its end with speculation"),
        (("ab", "stop"), ("ac", "stop"), "another text with speculation"),
        (("ab", "stop"), ("ab", "stop"), "another text with speculation, and the same when it was asked again"),
    ],
)
def test_texts_that_end_apart_are_told_by_their_ends(on: tuple[str, str], off: tuple[str, str], said: str) -> None:
    """Kills: a text that lost its last block, or went past a stop, called another text from some character on; one
    text that is called another of which the finish_reason is another."""
    sides = ({"text": text, "finish_reason": reason} for text, reason in (on, off))
    assert how_it_differs(dict(zip(("on", "off"), sides, strict=True))) == said


def test_a_claim_that_has_nothing_left_to_ask_is_left() -> None:
    """Kills an audit that never ends: one look shows something, and no other prompt gives anything to ask."""

    class Once:
        by_itself: ClassVar[bool] = False
        name, cost, wanted = "once", 2, 6

        def __init__(self) -> None:
            self.beliefs = {"it holds": Partings(1e-6)}
            self.asked = 0

        def unit(self, bench: Bench, k: int) -> None:
            self.asked += 1
            if k == 0:
                self.beliefs["it holds"].add(True, {"request": {}})

    with Bench(Gives(), Gives()) as bench:
        cell = Once()
        suite = Suite(bench, Plan([cell], {}), ALPHA, 1000)
        suite.run(lambda what, share: None)
    assert SUSPECT_NATS < suite.states[0].evidence() < suite.bar
    assert cell.asked == IDLE + 1


class Parting:
    """A claim of which these looks part, of five."""

    by_itself: ClassVar[bool] = False
    cost, wanted = 4, 6

    def __init__(self, name: str, looks: set[int]) -> None:
        self.name, self.looks = name, looks
        self.beliefs = {"it holds": Partings(0.1)}

    def unit(self, bench: Bench, k: int) -> None:
        bench.spend(self.cost)
        self.beliefs["it holds"].add(k % 5 in self.looks, {"request": {}})


def most_evidence(claims: list[Parting], requests: int) -> bool:
    """Whether so many requests decide one."""
    with Bench(Gives(), Gives()) as bench:
        suite = Suite(bench, Plan(list[Cell](claims), {}), ALPHA, requests)
        suite.run(lambda what, share: None)
    return max(state.evidence() for state in suite.states) >= suite.bar


def test_little_evidence_against_many_claims_is_followed_in_one_of_them() -> None:
    """Kills: a defect of every request, of which each claim sees a little and 1,000 requests decide none."""
    assert most_evidence([Parting(str(number), {0, 2, 4}) for number in range(80)], 1000)


def test_faint_evidence_is_followed_once_all_claims_were_looked_at() -> None:
    """Kills: a defect of some requests, of which a claim sees two nats when all others have had their looks."""
    quiet = [Parting(str(number), set[int]()) for number in range(39)]
    assert most_evidence([*quiet, Parting("some", {0, 3})], 1500)


def test_the_order_of_choices_is_a_score() -> None:
    """Kills: choices that are numbered as they end, each of which has the law of plain decoding."""
    choices = [Choice("a " * words, finish="stop") for words in (1, 2, 5, 9)]
    told = [Reader({}, 1.0).scores(order)[ORDER] for order in permutations(choices)]
    assert told[0] == max(told) > 0
    assert sum(told) == 0


@dataclass
class Speller:
    """Spells its prompt, of which a stop ends the text; of one prompt it loses the second letter."""

    loses: str = ""
    asked: list[Ask] = field(default_factory=list)

    def send(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        said = [
            prompt.replace(self.loses or "\0", self.loses[:1] + self.loses[2:]) for prompt in (*ask.turns, *ask.more)
        ]
        for stop in ask.options.get("stop", ()):
            said = [text.partition(stop)[0] for text in said]
        return Answer(tuple(Choice(text, "stop") for text in said))


def test_a_list_of_prompts_is_as_many_looks() -> None:
    """Kills looks at the first prompt of a list alone, a witness of another prompt, and stops of one prompt for all."""
    words = [letter * 12 + "xyz" for letter in "abcdefgh"]
    here, there = Speller("dd"), Speller()
    option = Option("stop", lambda plain, number: ({"stop": [plain.text[6:9] + "q", plain.text[-3:]]},))
    with Bench(here, there, prompts=words) as bench:
        cell = Parity(option, Noise(), rows=False, prompts=LISTED_PROMPTS)
        cell.unit(bench, 0)
        cell.unit(bench, 1)
        assert cell.looks == 1 + LISTED_PROMPTS
        assert [ask.turns for ask in cell.shown_in] == [(bench.prompt(3),)]
        (listed,) = (ask for ask in here.asked if ask.more)
        assert listed.options["stop"] == ["bbbq", "xyz", "cccq", "dddq"]
        (witness,) = cell.beliefs[TEXT].witnesses
        assert witness["prompts of the list"] == LISTED_PROMPTS


def test_prompts_of_a_list_share_what_is_asked() -> None:
    """Kills a list whose prompts are asked with what is only the first one's."""
    assert asked_together([{"top_k": 1}, {"top_k": 1}]) == {"top_k": 1}
    assert asked_together([{"bad_words": ["a"]}, {"bad_words": ["b"]}]) is None
    assert asked_together([{"stop": ["a"]}, {"stop": ["b"], "max_tokens": 3}]) is None
    assert asked_together([{"stop": ["a"]}, {"stop_token_ids": [3]}]) is None
    assert asked_together([{"stop": "a"}, {"stop": "a"}]) is None  # it is asked by itself, and not in a list of stops
    assert asked_together([{"stop": ["a"], "top_k": 1}, {"stop": ["b", "a"], "top_k": 1}]) == {
        "stop": ["a", "b"],
        "top_k": 1,
    }
