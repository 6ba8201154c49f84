"""Several choices of a request, and lists of prompts: what stands for them where a server takes none."""

import random
from dataclasses import dataclass, replace

import pytest

from properties.helpers.served.counts import Counts
from properties.helpers.served.http import RECIPE
from refengine.audit.served.ask import Answer, Ask, Choice, Refused
from refengine.audit.served.audit import Named, findings
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.sampled import Law, Sampled
from refengine.audit.served.claims.schedules.claims import schedules
from refengine.audit.served.claims.schedules.faults import choices_differ
from refengine.audit.served.claims.schedules.requests import greedy_choices
from refengine.audit.served.claims.scores import UNEVEN, Reader
from refengine.audit.served.claims.takes import Takes
from refengine.audit.served.noise import Noise
from refengine.audit.served.plan import planned
from refengine.audit.served.suite import Suite
from refengine.audit.served.transports.http import Server
from refengine.evidence.alpha import ALPHA


def test_choices_at_temperature_0_are_told_apart_by_their_rows() -> None:
    """Kills an accusation of a server that breaks exact ties at random, choice by choice."""
    with Bench(Counts(9), Counts(9)) as bench:
        bench.logprobs = {"logprobs": True}
        ((ask,),) = greedy_choices([{}])(bench, 0)
        assert ask.options == {"logprobs": True, "n": 3}
        row = {" a": -0.7, " b": -0.7}
        said = [Choice(text, "length", (text,), (-0.7,), (row,)) for text in (" a", " b")]
        assert not choices_differ([Answer(tuple(said))], bench.noise.nats)


@pytest.mark.parametrize("knows", [False, True])
def test_prompts_that_are_all_one_to_a_model_are_told(knows: bool) -> None:
    """Kills a silence about claims of caches and company whose prompts the model does not tell apart."""

    @dataclass
    class Reads(Counts):
        def send(self, ask: Ask) -> Answer:
            word = ask.turns[0].replace(" ", "") if knows else "unknown"
            return Answer((Choice(f" {word}" * ask.tokens, "length"),))

    with Bench(Reads(4000), Reads(4000), prompts=tuple("abcdefg")) as bench:
        suite = Suite(bench, planned(bench, "chat"), ALPHA, 10)
        notes = list(findings(suite, Named("endpoint", "test", RECIPE)))[-1].notes
        assert any("--prompts FILE" in note for note in notes) != knows


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
        plain, chat = laws["law/top_k"], laws["law/temperature 0.7 (chat)"]
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
        plain, seeded = laws["law/temperature 1"], laws["law/top_k"]
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


def said_by(chance: random.Random, spread: float) -> list[Choice]:
    """Choices of one word each, half of them the same one. spread: of the chances of the others, from request to
    request; in the mean they are right."""
    words, weights = [f" {letter}" for letter in "abcdefghijk"], [10.0, *[1.0] * 10]
    own = [weight * chance.gammavariate(1 / spread, spread) for weight in weights[1:]] if spread else weights[1:]
    return [Choice(word) for word in chance.choices(words, [10.0, *(10 * x / sum(own) for x in own)], k=64)]


@pytest.mark.parametrize(("spread", "seen"), [(0.0, False), (0.8, True)])
def test_choices_that_share_coins_fall_unevenly(spread: float, seen: bool) -> None:
    """Null: the choices of a request are independent; n = 100 pairs of 64 choices, alpha = ALPHA over 300 claims; a
    pair says log 2 nats at most. Kills: choices that share their coins, every word of which is right by itself; and an
    accusation of independent ones."""
    chance, law = random.Random(2), Law(Reader({}, 1.0))
    for k in range(100):
        law.add(k % 5, said_by(chance, spread), said_by(chance, 0.0))
    assert (law.log_evidence > 19.5) == seen
    assert law.log_evidence > 19.5 or law.log_evidence < 2.0
    assert law.named().startswith("the n choices of a request are not independent") == seen
    assert UNEVEN in law.named() or not seen
