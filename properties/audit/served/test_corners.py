"""The corners of what may be asked of a server: the edge of its context, stops at once, rows beside a token, seeds."""

from dataclasses import dataclass, replace
from math import log

import pytest

from properties.helpers.served.counts import Counts
from refengine.audit.served.ask import Answer, Ask, Choice, Refused, Seedless
from refengine.audit.served.belief import Partings
from refengine.audit.served.bench import FAR_SHARE, FINISH, USAGE, Bench, titled
from refengine.audit.served.claims.cells import LOGPROBS_EQUAL, Parity, Plain, compare_logprobs
from refengine.audit.served.claims.compare import logprobs_apart, rows_apart
from refengine.audit.served.claims.edge import found_edge
from refengine.audit.served.claims.options import (
    LONG_STOP,
    OPTIONS,
    TOKENS,
    several_stops,
    stop_at_once,
)
from refengine.audit.served.claims.schedules.faults import no_json
from refengine.audit.served.claims.schedules.requests import other_seed
from refengine.audit.served.claims.ties import asked_tie
from refengine.audit.served.diagnosis import diagnosis
from refengine.audit.served.grammar import MARKED, WORDS, begins_json, is_json, ungrammatical
from refengine.audit.served.noise import Noise
from refengine.audit.served.plan import Plan, planned
from refengine.audit.served.sides import MOST_CHOICES
from refengine.audit.served.suite import SUSPECT_NATS, Suite
from refengine.evidence.alpha import ALPHA


@pytest.mark.parametrize("refuses", [True, False])
@pytest.mark.parametrize(("context", "size"), [(300, 1), (301, 3), (4095, 2)])
def test_the_edge_of_the_context_is_met_to_the_token(context: int, size: int, refuses: bool) -> None:
    """Kills an edge that is off by one, and one that takes words for tokens."""
    server = Counts(context, size, refuses)
    with Bench(server, server) as bench:
        edge = found_edge(bench)
        assert edge is not None
        for k in range(8):
            ask = edge.ask(bench, k)
            assert size * len(ask.turns[0].split(" ")) + ask.tokens == context
            assert len(server.send(ask).text.split()) == ask.tokens
            assert server.send(ask).text != Counts(context, size, refuses, early=3).send(ask).text


def test_an_edge_that_is_not_told_is_not_passed() -> None:
    """Kills a request that an honest server refuses, and a search where there is no edge or no room before it."""
    for context in (200, 1000):
        server = Counts(context, tells=False)
        with Bench(server, server) as bench:
            edge = found_edge(bench)
            assert edge is not None
            assert all(server.send(edge.ask(bench, k)).text for k in range(30))
    for context in (20, 1 << 20):
        server = Counts(context)
        with Bench(server, server) as bench:
            assert found_edge(bench) is None
            assert len(server.asked) <= 2


def test_what_is_listed_beside_a_token_counts() -> None:
    """Kills rows that are compared at their own token alone, and one that counts a tie at the end of a list."""
    row = {"a": -0.5, "b": -1.5, "c": -3.0}
    assert rows_apart("a", row, {"a": -0.5, "b": -1.5, "c": -3.0}) == 0.0
    assert rows_apart("a", row, {"a": -0.5, "b": -2.5, "c": -3.0}) == pytest.approx(1.0)
    assert rows_apart("a", row, {"a": -0.5, "d": -1.0, "c": -3.0}) == pytest.approx(2.0)
    assert rows_apart("z", {**row, "z": -9.0}, {"a": -0.5, "b": -1.5, "d": -2.99, "z": -9.0}) == pytest.approx(0.01)
    named_otherwise = {"a": -0.5, "b": -1.5, "d": -2.99, "z": -9.0}
    assert rows_apart(" z", {**row, "z": -9.0}, named_otherwise) == pytest.approx(0.01)
    one = Choice("a a", tokens=("a", "a"), logprobs=(-0.5, -0.5), top=(row, row))
    other = Choice("a a", tokens=("a", "a"), logprobs=(-0.5, -0.5), top=(row, {**row, "b": -2.0}))
    assert logprobs_apart(one, other) == pytest.approx(0.5)


def test_one_text_is_reported_in_the_same_tokens() -> None:
    """Kills a comparison that ends where the reported tokens part although the text does not, or where none are."""
    whole = Choice("a b", "length", ("a", " b"), (-0.5, -0.5), ({"a": -0.5}, {" b": -0.5}))
    option = next(option for option in OPTIONS if option.name == "echo")
    with Bench(Counts(9), Counts(9)) as bench:
        cell = Parity(option, bench.noise, rows=True, stream=True)
        for said in (whole, Choice("a b", "length", (" b",), (-0.5,), ({" b": -0.5},)), Choice("a b", "length")):
            compare_logprobs(cell.beliefs, bench, Answer((said,)), Answer((whole,)), {})
        assert (cell.beliefs[LOGPROBS_EQUAL].looks, cell.beliefs[LOGPROBS_EQUAL].parted) == (3, 2)


@pytest.mark.parametrize(("noise", "shows"), [(Noise(tokens=640), 1), (Noise(tokens=640, sides_apart=0.01), 0)])
def test_where_rows_were_the_same_a_small_distance_is_none_of_rounding(noise: Noise, shows: int) -> None:
    """Kills a stale block of a cache that moves rows by a thirtieth of a nat, where all others are equal; and an
    accusation of an engine whose verification rounds otherwise."""
    on, off = (Answer((Choice("a", "length", ("a",), (chance,), ({"a": chance},)),)) for chance in (-0.5, -0.53))
    with Bench(Counts(9), Counts(9), noise=noise) as bench:
        cell = Plain("state/continued", noise, rows=True)
        compare_logprobs(cell.beliefs, bench, on, off, {})
    assert cell.beliefs[LOGPROBS_EQUAL].parted == shows


def test_usage_is_held_where_one_text_has_the_same_tokens() -> None:
    """Kills tokens past the end that are counted in few requests, and ties that spelt a text otherwise."""

    class Says:
        def __init__(self, tokens: tuple[str, ...], count: int) -> None:
            self.answer = Answer((Choice("ab", "length", tokens),), {"completion_tokens": count})

        def send(self, ask: Ask) -> Answer:
            return self.answer

    for spelt, looks in ((("a", "b"), 1), (("ab",), 0)):
        with Bench(Says(("a", "b"), 3), Says(spelt, 2), logprobs={"logprobs": True}) as bench:
            bench.both(Ask(("p",), 4))
            assert (bench.alike[USAGE].looks, bench.alike[USAGE].parted) == (looks, looks)


def test_another_finish_reason_of_one_text_is_no_tie() -> None:
    """Kills: where a stop ended a whole block, speculation says length. Each claim about a stop takes that for the ties
    of a few prompts; and one of all requests would be outweighed by those that the length ends."""

    class Says:
        def __init__(self, finish: str, tokens: int) -> None:
            self.answer = Answer((Choice("a", "length"), Choice("b", finish)), {"completion_tokens": tokens})

        def send(self, ask: Ask) -> Answer:
            return self.answer

    cut = "length", "stop"
    for ends, counts, looks in ((cut, (5, 5), 1), (("length", "length"), (5, 5), 0), (cut, (5, 6), 0)):
        with Bench(Says(ends[0], counts[0]), Says(ends[1], counts[1])) as bench:
            bench.both(Ask(("p",), 9, options={"stop": ["x"]}))
            belief = bench.alike[FINISH]
            assert (belief.looks, belief.parted) == (looks, looks)
            suite = Suite(bench, Plan([], {}), ALPHA, 10)
            said = [diagnosis(suite, titled(FINISH), FINISH, belief, None, witness) for witness in belief.witnesses]
            assert all(told.startswith("finish_reason is length and not stop after the same text") for told in said)
    seldom = 11, 239  # looks that showed it of one claim about a stop
    bar = log(400 / ALPHA)
    assert Partings(FAR_SHARE, *seldom).log_evidence > bar > SUSPECT_NATS > Partings(0.02, *seldom).log_evidence


def test_an_end_is_asked_about_where_it_comes() -> None:
    """Kills minima and limits that never meet the end of a text, and stop tokens that no drafter proposes."""
    ended = Choice(" a b c d e f", "stop", tuple("abcdef"), ids=(5, 6, 7, 8, 9, 1))
    asked = {name: option.made for option in OPTIONS for name in [option.name]}
    assert {asked["min_tokens"](ended, k)[0]["min_tokens"] for k in range(8)} == {3, 4, 5, 6, 10}
    limits = {told["max_tokens"] for k in range(1, 12, 2) for told in asked["stop, behind the limit"](ended, k)}
    assert limits == {5, 6, 7}
    stops = {tuple(asked["stop_token_ids"](ended, k)[0]["stop_token_ids"]) for k in range(1, 30)}
    assert {(i,) for i in ended.ids or ()} <= stops
    at_the_limit = asked["min_tokens and ends"](ended, 8)[0]
    assert at_the_limit["max_tokens"] == at_the_limit["min_tokens"] + 1
    too_early = [asked["min_tokens and ends"](ended, k)[0] for k in range(1, 12, 2)]
    said = [told for told in too_early if "logit_bias" not in told]
    assert all((ended.ids or ()).index(told["stop_token_ids"][0]) < told["min_tokens"] <= TOKENS for told in said)
    assert len(said) >= 4


def test_a_choice_that_is_no_json_shows() -> None:
    """Kills a grammar that is let go in one choice of many, and an accusation of what the length ended."""
    whole, cut, wrong = Choice("{}", "stop"), Choice("{", "length"), Choice('{}"', "stop")
    assert not no_json([Answer((whole, cut))], 0.1)
    assert no_json([Answer((whole, wrong))], 0.1)[0][0].text == wrong.text  # and not the first choice, which is
    assert no_json([Answer((whole, Choice('{"a" 1', "length")))], 0.1)


def test_what_a_grammar_allows_begins_as_it_does_and_nothing_else() -> None:
    """Kills a text that was cut called wrong wherever it was cut, and one that nothing puts right called cut."""
    whole = '{"a": [1, -2.5e3, true, "x\\u00e9\\n"], "b": {"c": null}, "d": false}'
    assert is_json(whole)
    assert all(begins_json(whole[:i]) for i in range(len(whole) + 1))
    for wrong in ("}", "{,", '{"a" 1', '{"a": 1 2', "[01", "[1.x", "[tru, ", '["\\x', "[] []", '{"a": nulk', "[1]]"):
        assert not begins_json(wrong), wrong
    ask = Ask(("a",), 4, options={"guided_regex": WORDS.regex})
    for text, finish, shows in (("ab c", "stop", 0), ("ab ", "length", 0), ("ab ", "stop", 1), ("a  b", "length", 1)):
        assert ungrammatical(ask, Choice(text, finish)) == bool(shows)
    stopped = replace(ask, options={"grammar": WORDS.gbnf, "stop": "b"})
    assert ungrammatical(stopped, Choice("a ", "stop")) is False
    marked = replace(ask, options={"regex": MARKED.regex})
    for text, finish, shows in (("an1", "stop", 0), ("an", "length", 0), ("an", "stop", 1), ("na", "length", 1)):
        assert ungrammatical(marked, Choice(text, finish)) == bool(shows)
    assert ungrammatical(Ask(("a",), 4), Choice("{", "stop")) is None


def test_stops_are_asked_for_where_they_are_missed() -> None:
    """Kills stops that never begin a text, never cross a block, or are never listed in another order than they come."""
    plain = Choice("".join(f" {4 * letter}" for letter in "abcdefghijklmnopqrstuvwxyz"), "length")
    for k in range(10):
        (first,), (several,) = stop_at_once(plain, k), several_stops(plain, k)
        assert plain.text.startswith(first["stop"][0])
        after, piece = several["stop"]
        assert len(piece) == LONG_STOP
        assert plain.text.find(piece) + len(piece) < plain.text.find(after) + len(after)
    assert several_stops(Choice(" a b"), 0)


def test_a_server_that_refuses_seeds_is_asked_without() -> None:
    """Kills an audit that gives up every parameter because its own seed is refused."""

    @dataclass
    class Refusing(Counts):
        def send(self, ask: Ask) -> Answer:
            if ask.seed is not None:
                raise Refused("no seeds")
            return super().send(ask)

    with Bench(Refusing(4000), Refusing(4000)) as bench:
        plan = planned(bench)
        names = {cell.name for cell in plan.cells}
        assert isinstance(bench.on, Seedless)
        assert {"parity/frequency_penalty", "law/temperature 1", "seed/none"} <= names
        assert not {"seed/same", "seed/other", "seed/under load"} & names
        assert plan.lacking["seed"].startswith("refused")


def test_seeds_are_far_apart_too() -> None:
    """Kills a claim about seeds that nothing can violate where a choice has the next seed, as in vLLM."""
    with Bench(Counts(9), Counts(9), choices=2) as bench:
        (near,), (far,) = (other_seed(bench, k) for k in (0, 3))
    assert far[1].seed - far[0].seed > MOST_CHOICES > near[1].seed - near[0].seed == 1
    assert near[0].options["n"] == 2


def test_any_choice_of_a_request_with_one_right_text_shows() -> None:
    """Kills a witness that is said to need other requests, as its second choice alone is wrong."""

    class Greedy:
        def send(self, ask: Ask) -> Answer:
            return Answer((Choice(" a", "length"),))

    option = next(option for option in OPTIONS if option.name == "allowed_token_ids, hot")
    with Bench(Greedy(), Greedy()) as bench:
        bench.choices = 2
        cell, ask = Parity(option, bench.noise, rows=False), Ask(("p",), 4, 1.0, {"n": 2})
        right, wrong = Choice(" a", "length"), Choice(" b", "length")
        assert cell.shows(bench, ask, Answer((right, wrong)), Answer((right, right)))
        assert not cell.shows(bench, ask, Answer((right, right)), Answer((right, right)))


@pytest.mark.parametrize(("blank", "prompt"), [(" ", "p w7 a"), ("", "p w7")])
def test_a_text_without_its_first_blank_is_not_put_behind_the_prompt(blank: str, prompt: str) -> None:
    """Kills a tie that is asked about with a word that is none, which a server refuses: no parting would ever count."""
    heard = list[str]()

    class Warm:
        def send(self, ask: Ask) -> Answer:
            heard.append(ask.turns[0])
            return Answer((Choice(" x", "length"),))

    with Bench(Warm(), Warm()) as bench:
        bench.choices = 2
        on, off = (Answer((Choice(f"{blank}a {last}", "length"),)) for last in "bc")
        asked_tie(bench, Ask(("p w7",), 8), on, off)
    assert set(heard) == {prompt}


def test_a_tie_at_a_stop_goes_on_past_it() -> None:
    """Kills an excuse for a stop that was missed: nearly at temperature 0 some choice parts within a long stop, which
    then ends nothing, but later than the text that is to be excused."""

    class Warm:
        def send(self, ask: Ask) -> Answer:
            return Answer((Choice(" a b c x y", "length"),))

    ask = Ask(("p",), 8, options={"stop": [" b c d e"]})
    with Bench(Warm(), Warm()) as bench:
        bench.choices = 2
        ended = Answer((Choice(" a", "stop"),))
        assert not asked_tie(bench, ask, Answer((Choice(" a b c d e f", "length"),)), ended)
        assert asked_tie(bench, ask, Answer((Choice(" a b c x y", "length"),)), ended)
