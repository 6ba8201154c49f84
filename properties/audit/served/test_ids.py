"""Tokens by their ids: where a text ends, which two of them a law is asked for, prompts that are sent so."""

import random
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from properties.audit.served.test_suite import audited, violated
from properties.helpers.served.counts import Counts
from properties.helpers.served.defects import IDS
from properties.helpers.served.engine import Engine
from properties.helpers.served.http import serving
from properties.helpers.served.model import MARKOV
from refengine.audit.served.ask import Answer, Ask, Choice
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims import found_ids
from refengine.audit.served.claims.found_ids import found_ends, liveliest
from refengine.audit.served.claims.options import (
    SAMPLED,
    biased_to,
)
from refengine.audit.served.claims.sampled import Sampled
from refengine.audit.served.claims.schedules.prompts import BLOCK, continued
from refengine.audit.served.plan import planned
from refengine.audit.served.transports.http import Server

pytestmark = pytest.mark.on_record


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
            together, *alone = [{*told["logit_bias"].items()} for told in in_chat] or [set()]
            assert together == {(str(i), 2.0) for i in (wanted and wanted | {3})}
            assert sorted(map(list, alone)) == [[one] for one in sorted(together)]
            assert found_ends(bench, chat=False)[1] == []


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
        ("stop/sampled", "greedy/token", "state/one token", "greedy"),
        ("stop/sampled", "greedy/token ids", "state/one token apart", "metadata/the same text has other ids"),
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
