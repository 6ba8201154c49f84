"""The corners of what may be asked of a server: the edge of its context, stops at once, rows beside a token, seeds."""

import random
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from properties.audit.served.test_suite import audited, violated
from properties.helpers.served.defects import IDS
from properties.helpers.served.engine import Engine
from properties.helpers.served.http import RECIPE, serving
from properties.helpers.served.model import MARKOV
from refengine.audit.served.ask import Answer, Ask, Choice, Refused, Seedless
from refengine.audit.served.audit import Named, findings
from refengine.audit.served.bench import USAGE, Bench
from refengine.audit.served.claims import found_ids
from refengine.audit.served.claims.cells import LOGPROBS_EQUAL, Parity, Plain, compare_logprobs
from refengine.audit.served.claims.compare import logprobs_apart, rows_apart
from refengine.audit.served.claims.edge import found_edge
from refengine.audit.served.claims.found_ids import found_ends, liveliest
from refengine.audit.served.claims.options import (
    LONG_STOP,
    OPTIONS,
    SAMPLED,
    TOKENS,
    biased_to,
    several_stops,
    stop_at_once,
)
from refengine.audit.served.claims.sampled import Sampled
from refengine.audit.served.claims.schedules.claims import schedules
from refengine.audit.served.claims.schedules.faults import choices_differ, no_json
from refengine.audit.served.claims.schedules.prompts import BLOCK, continued
from refengine.audit.served.claims.schedules.requests import greedy_choices
from refengine.audit.served.claims.takes import Takes
from refengine.audit.served.claims.ties import asked_tie
from refengine.audit.served.grammar import MARKED, WORDS, begins_json, is_json, ungrammatical
from refengine.audit.served.noise import Noise
from refengine.audit.served.plan import planned
from refengine.audit.served.suite import Suite
from refengine.audit.served.transports.http import Server


@dataclass
class Counts:
    """Says one word a token. context: of which words have `size` tokens; refuses: what would not fit, else it ends."""

    context: int
    size: int = 1
    refuses: bool = True
    tells: bool = True  # its usage
    early: int = 0  # tokens before the edge at which it ends
    asked: list[Ask] = field(default_factory=list)

    def send(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        prompt = self.size * len(ask.turns[0].split(" "))
        room = self.context - prompt
        if room < (ask.tokens if self.refuses else 1):
            raise Refused("too long")
        count = min(ask.tokens, max(1, room - self.early))
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        return Answer((Choice(" a" * count, "length"),), usage if self.tells else {})


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


def test_choices_at_temperature_0_are_told_apart_by_their_rows() -> None:
    """Kills an accusation of a server that breaks exact ties at random, choice by choice."""
    with Bench(Counts(9), Counts(9)) as bench:
        bench.logprobs = {"logprobs": True}
        ((ask,),) = greedy_choices(bench, 0)
        assert ask.options == {"logprobs": True, "n": 3}
        row = {" a": -0.7, " b": -0.7}
        said = [Choice(text, "length", (text,), (-0.7,), (row,)) for text in (" a", " b")]
        assert not choices_differ([Answer(tuple(said))], bench.noise.nats)


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


@pytest.mark.parametrize("end", [2, 50256, 77])
def test_the_ends_of_a_text_are_found(end: int) -> None:
    """Kills texts that never end within a claim's tokens, a bias by which they end at once, or on another token, an end
    that sampled texts show and nobody asks for, and one that texts have in chat alone."""

    class Ending(Counts):
        def send(self, ask: Ask) -> Answer:
            ends = {end, 33, *([3] if ask.chat else [])} if end != 77 else set[int]()
            bias = max(
                (float(by) for token, by in ask.options.get("logit_bias", {}).items() if int(token) in ends),
                default=0.0,
            )
            said = max(0, 9 - int(bias)) if bias else ask.tokens
            ended = bool(bias or ask.temperature) and bool(ends)
            ids = (5, 33) if "return_token_ids" in ask.options else None
            return Answer((Choice(" a" * said, "stop" if ended else "length", ids=ids),))

    for ids, seen in (({}, set[int]()), ({"return_token_ids": True}, {33})):
        with Bench(Ending(4000), Ending(4000), vocabulary=50257, ids=ids) as bench:
            found, in_chat = found_ends(bench, chat=True)
            wanted = {end} | seen if end != 77 else set[int]()
            assert found.get("logit_bias", {}) == {str(i): 2.0 for i in wanted}
            assert in_chat.get("logit_bias", {}) == {str(i): 2.0 for i in (wanted and wanted | {3})}
            assert found_ends(bench, chat=False)[1] == {}


class Loaded:
    """Draws between the two tokens of a bias: fairly between FAIR, else nearly always the greater id. The first ids are
    marks that no text shows."""

    FAIR = 41, 30

    def send(self, ask: Ask) -> Answer:
        two = sorted(map(int, ask.options["logit_bias"]))
        coin = random.Random(f"{two}")
        share = 0.5 if {*two} == {*self.FAIR} else 0.05
        drawn = [[two[coin.random() > share] for _ in range(ask.tokens)] for _ in range(ask.options["n"])]
        said = [["" if i < 5 else f" {i}" for i in ids] for ids in drawn]
        return Answer(tuple(Choice("".join(words), "length", tuple(words)) for words in said))


def test_two_tokens_are_taken_between_which_a_text_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a law that is asked for where one token is always the likelier one: a coin that is used twice shows little
    there; and marks without a text, which differ and are not seen."""
    (setting,) = (setting for setting in SAMPLED if setting.lively)
    monkeypatch.setattr(found_ids, "Random", lambda _: SimpleNamespace(sample=lambda ids, two: Loaded.FAIR))
    with Bench(Loaded(), Loaded(), vocabulary=512, choices=16) as bench:
        assert liveliest(bench, setting) == [*setting.forms]  # no token is reported
        bench.logprobs = {"logprobs": True}
        first, *_, last = liveliest(bench, setting)
        assert first == biased_to(*Loaded.FAIR)
        assert last != biased_to(3, 4)


@pytest.mark.parametrize(
    ("defect", "only", "named"),
    zip(
        IDS,
        ("greedy/token", "state/one token", "greedy"),
        ("greedy/token ids", "state/one token apart", "metadata/the same text has other ids"),
        strict=True,
    ),
)
def test_ids_are_those_of_the_text(defect: str, only: str, named: str) -> None:
    """Kills a claim that asks in text alone, where ids come in by another door and prompts differ in one token; and
    ids that nobody compares."""
    found = violated(audited(defect, "tells ids", 300, only, until=named))
    assert any(name.startswith(named) for name in found), found


def test_what_ends_at_an_edge_of_the_cache_comes_back_as_ids() -> None:
    """Kills a text that is cut into other tokens when it comes back, so that no block of the cache is met."""
    with serving(Engine(), "tells ids") as base, Server(base) as here, Bench(here, here) as bench:
        planned(bench, "state/continued")
        asks = [continued(bench, k) for k in range(6)]
    assert [bool(ask.prompt_ids) for ask in asks] == [False, True, True] * 2
    assert all([*ask.prompt_ids] == MARKOV.ids_of(ask.turns[0]) for ask in asks if ask.prompt_ids)
    assert [len(asks[k].prompt_ids) % BLOCK for k in (2, 5)] == [1, 1]


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
    assert no_json([Answer((whole, wrong))], 0.1)
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


@pytest.mark.parametrize("knows", [False, True])
def test_prompts_that_are_all_one_to_a_model_are_told(knows: bool) -> None:
    """Kills a silence about claims of caches and company whose prompts the model does not tell apart."""

    @dataclass
    class Reads(Counts):
        def send(self, ask: Ask) -> Answer:
            word = ask.turns[0].replace(" ", "") if knows else "unknown"
            return Answer((Choice(f" {word}" * ask.tokens, "length"),))

    with Bench(Reads(4000), Reads(4000), prompts=tuple("abcdefg")) as bench:
        suite = Suite(bench, planned(bench, "chat"), 1e-6, 10)
        notes = list(findings(suite, Named("endpoint", "test", RECIPE)))[-1].notes
        assert any("--prompts FILE" in note for note in notes) != knows


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


@pytest.mark.parametrize("alike", [False, True])
def test_a_server_that_refuses_n_is_asked_with_a_list_of_equal_prompts(alike: bool) -> None:
    """Kills laws of which nothing can be said at one choice a request, seeds that make the answers of a list equal, and
    lists that are taken for samples where the answers are equal all the same."""

    @dataclass
    class OneChoice(Counts):
        def send(self, ask: Ask) -> Answer:
            if "n" in ask.options or (ask.chat and ask.more):
                raise Refused("n is 1")
            said = super().send(ask).text
            return Answer(tuple(Choice(said + "b" * (i * (not alike)), "length") for i in range(1 + len(ask.more))))

    with Bench(OneChoice(4000), OneChoice(4000)) as bench:
        plan = planned(bench, "law")
        laws = {cell.name: cell.asked(bench) for cell in plan.cells if isinstance(cell, Sampled)}
        plain, chat = laws["law/top_k 3"], laws["law/temperature 0.7 (chat)"]
        assert bench.choices == 1
        assert (len(plain.more), plain.seed is None) == ((0, False) if alike else (63, True))
        assert (len(chat.more), chat.seed is None) == (0, False)
        assert Server("http://a/v1").body(plain)["prompt"] == (plain.turns[0] if alike else [plain.turns[0]] * 64)


@pytest.mark.parametrize("alike", [False, True])
def test_where_n_is_limited_a_list_gives_the_other_choices(alike: bool) -> None:
    """Kills laws of which little can be said, since a request gives sixteen choices where sixty-four were wanted; and
    lists that are taken for samples where all their prompts have the same choices."""

    @dataclass
    class Sixteen(Counts):
        def send(self, ask: Ask) -> Answer:
            n = ask.options.get("n", 1)
            if n > 16 or (ask.chat and ask.more):
                raise Refused("n is 16 at most")
            said, prompts = super().send(ask).text, 1 + len(ask.more)
            ends = ["b" * (i % n if alike else i) for i in range(n * prompts)]
            return Answer(tuple(Choice(said + end, "length") for end in ends))

    with Bench(Sixteen(4000), Sixteen(4000)) as bench:
        laws = {cell.name: cell.asked(bench) for cell in planned(bench, "law").cells if isinstance(cell, Sampled)}
        plain, seeded = laws["law/temperature 1"], laws["law/top_k 3"]
        assert (plain.options["n"], len(plain.more), plain.seed) == (16, 0 if alike else 3, None)
        assert (seeded.options["n"], len(seeded.more), seeded.seed is None) == (16, 0, False)


def test_a_server_that_passes_n_over_is_sent_no_list() -> None:
    """Kills a request that ends the server: mlx-lm's answers nothing more once a list of prompts has come."""

    @dataclass
    class Unread(Counts):
        def send(self, ask: Ask) -> Answer:
            assert not ask.more, "the thread of generation died"
            return replace(super().send(ask), choices=super().send(ask).choices[:1])

    with Bench(Unread(4000), Unread(4000)) as bench:
        plan = planned(bench, "law")
        assert bench.choices == 1
        assert any(isinstance(cell, Sampled) for cell in plan.cells)


def test_no_id_is_asked_for_that_a_model_may_lack() -> None:
    """Kills a bias beyond the vocabulary, which some servers write into memory that is not theirs."""

    @dataclass
    class Small(Counts):
        ids: range = range(40)

        def send(self, ask: Ask) -> Answer:
            assert all(int(i) in self.ids for i in ask.options.get("logit_bias", ()))
            choices = tuple(Choice(" a" * ask.tokens, "length") for _ in range(ask.options.get("n", 1)))
            shown = (self.ids[-1],) if "return_token_ids" in ask.options else None
            return Answer(tuple(replace(choice, ids=shown) for choice in choices))

    for ids, told in ((range(24), 0), (range(40), 0), (range(199_999), 0), (range(60), 60)):
        with Bench(Small(4000, ids=ids), Small(4000, ids=ids), vocabulary=told) as bench:
            plan = planned(bench, "law")
            laws = {key for cell in plan.cells if isinstance(cell, Sampled) for key in cell.asked(bench).options}
            assert {"n", "logit_bias"} <= laws
            assert bench.vocabulary == max(told, len(ids))


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


@pytest.mark.parametrize("wrong", [None, "the first", "the last", "the next", "the second"])
def test_a_prompt_of_a_list_is_held_to_its_answer_alone(wrong: str | None) -> None:
    """Kills a prompt of a list that is answered with what belongs to the first, to the last or to the next one, and
    two that change places."""

    @dataclass
    class Lists:
        wrong: str | None = None

        def send(self, ask: Ask) -> Answer:
            told = [*ask.turns, *ask.more]
            lent = {
                "the first": told[:1] * len(told),
                "the last": told[-1:] * len(told),
                "the next": told[1:] + told[:1],
                "the second": told[1::-1] + told[2:],
            }
            masks = lent.get(self.wrong or "", told)
            return Answer(tuple(Choice(f"{x} {y}", "length") for x, y in zip(told, masks, strict=True)))

    with Bench(Lists(wrong), Lists()) as bench:
        cells = schedules(Noise(), Takes(lists=True))
        cell = next(cell for cell in cells if cell.name == "list of prompts")
        for k in range(cell.wanted):
            cell.unit(bench, k)
    (belief,) = cell.beliefs.values()
    assert belief.parted == (cell.wanted if wrong else 0)
    assert Server("http://a/v1").body(Ask(("a",), 4, more=("b",)))["prompt"] == ["a", "b"]
