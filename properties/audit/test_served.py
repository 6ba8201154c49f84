"""The suite of a served path: honest servers are accused of nothing, what speculation breaks is named by parameter."""

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from properties.helpers.served_defects import (
    ADVERSE,
    BLIND,
    CORNERS,
    CORRECTION,
    DEFECTS,
    FRESH,
    JUDGED,
    PARAMETERS,
    SPARED,
    UNSEEN,
)
from properties.helpers.served_engine import Engine
from properties.helpers.served_http import ODD, serving
from refengine.audit.served.ask import Answer, Ask, Choice, Failed, Gone, Refused
from refengine.audit.served.audit import Named, findings, full_name
from refengine.audit.served.belief import Faults, Partings
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.cells import logprobs_apart
from refengine.audit.served.claims.options import Options
from refengine.audit.served.claims.sampled import PROMPTS, Law
from refengine.audit.served.claims.scores import Reader
from refengine.audit.served.claims.ties import ties
from refengine.audit.served.endpoint import REQUESTS, Opened
from refengine.audit.served.faults import faults
from refengine.audit.served.noise import KNOWN_TIE_SHARE, NATS, ROUNDING, Noise
from refengine.audit.served.plan import Plan, planned, printed
from refengine.audit.served.suite import Suite, beliefs
from refengine.audit.served.transports import http
from refengine.audit.served.transports.http import Server
from refengine.audit.served.transports.journal import Journal, Journalled
from refengine.errors import BadInput
from refengine.report.finding import Finding, Recipe

RECIPE = Recipe(function="refengine.audit.served.endpoint:audit_served")


class Announced(Bench):
    """Tells the engines how many requests come together."""

    engines: tuple[Engine, ...] = ()

    def each(self, asks: Sequence[Ask]) -> tuple[list[Answer], list[Answer]]:
        if len(asks) == 1:
            return super().each(asks)
        for engine in self.engines:
            engine.announce(len(asks))
        try:
            return super().each(asks)
        finally:
            for engine in self.engines:
                engine.announce(1)


class Decided(Exception):
    """A claim is violated."""


def audited(defect: str, manner: str, requests: int, only: str = "", until: str | None = None) -> list[Finding]:
    """The findings about a server with a defect; with `only`, of the cells whose name begins so; with `until`, as soon
    as a claim is violated whose name begins so."""
    with (
        serving(speculating := Engine(True, defect), manner) as on,
        serving(plain := Engine(), manner) as off,
        Server(on, patience=10.0) as here,
        Server(off, patience=10.0) as there,
        Announced(here, there) as bench,
    ):
        bench.engines = (speculating, plain)
        plan = planned(bench, only)
        assert bench.sent < 300
        plan.cells = [cell for cell in plan.cells if cell.name.startswith(only)]
        suite = Suite(bench, plan, 1e-6, bench.sent + requests)

        def turn(what: str, share: float) -> None:
            decided = [told for told in beliefs(suite) if told[2].log_evidence >= suite.bar]
            if until is not None and any(full_name(*told[:2], told[3]).startswith(until) for told in decided):
                raise Decided

        with suppress(Decided):
            suite.run(turn)
        return list(findings(suite, Named("endpoint", "test", RECIPE)))


def violated(found: list[Finding]) -> set[str]:
    return {finding.id.removeprefix("audit.endpoint/") for finding in found if finding.verdict == "violated"}


MANNERS = ("", "text only", "noisy", "another text every time", "falls over some parameters", "small context")


def accuses_nobody(manner: str, requests: int) -> None:
    found = audited("", manner, requests)
    assert not violated(found)
    assert sum(finding.verdict == "consistent" for finding in found) > 20


@pytest.fixture
def asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pause between the tries of a request that a server falls over."""
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.001)


@pytest.mark.usefixtures("asked_again_at_once")
@pytest.mark.parametrize("manner", MANNERS)
def test_an_honest_server_is_accused_of_nothing(manner: str) -> None:
    """Kills a claim that takes a convention or the rounding of a server for a defect."""
    accuses_nobody(manner, 300)


@pytest.mark.stat
@pytest.mark.long
@pytest.mark.parametrize("manner", ODD)
def test_no_odd_server_is_accused_in_a_whole_audit(manner: str) -> None:
    """Null: both sides are alike but for rounding; n = 3000 requests, alpha = 1e-6 over all claims. Kills the same."""
    accuses_nobody(manner, 3000)


LIKE_FEWER_DRAFTS = "seed restarted after preemption"  # shows as they do, and is not told from them
EVERY = (*DEFECTS, *UNSEEN, *FRESH, *ADVERSE, *CORNERS, *BLIND, *CORRECTION, *PARAMETERS, *JUDGED, *SPARED)
ALL = tuple(defect for defect in EVERY if defect != LIKE_FEWER_DRAFTS)


@pytest.mark.stat
@pytest.mark.long
@pytest.mark.parametrize("defect", ALL)
def test_every_planted_defect_is_found_in_a_whole_audit(defect: str) -> None:
    """n = 3000 requests, alpha = 1e-6 over all claims. Kills a budget spent where no defect is."""
    assert violated(audited(defect, "", 3000, until=""))


@pytest.mark.parametrize(
    ("defect", "only", "named"),
    [
        ("penalties once a block", "parity/frequency", "parity/frequency_penalty"),
        ("top_k on the last row only", "parity/top_k", "parity/top_k"),
        ("bias ignored", "parity/logit_bias", "parity/logit_bias"),
        ("stop checked once a round", "parity/stop", "parity/stop"),
        ("one token too many", "greedy", "greedy: the text"),
        ("log probabilities of the row before", "greedy", "greedy: the log probabilities"),
        ("usage counts the drafts", "greedy", "metadata/usage is not the number of tokens"),
        ("rows swapped in company", "state/company of 4", "state/company of 4"),
        ("seeds are not honoured", "seed/same", "seed/same"),
        ("unseeded requests share a stream", "seed/none", "seed/none"),
        ("position off by one after forty", "state/long", "state/long"),
        ("echoed log probabilities are shifted", "parity/echo", "parity/echo"),
        ("a stop token inside a block is missed", "parity/stop_token", "parity/stop_token_ids"),
        ("the end of an answer is stale in the cache", "state/continued", "state/continued"),
        ("a known prompt is read one token short", "repeat", "repeat"),
        # Clients that hang up are waited for: a minute and a half.
        pytest.param("a request that was left leaks a token", "state/hang-up", "state/hang-up", marks=pytest.mark.long),
        ("usage of a stream counts rounds", "parity/max_tokens (stream", "metadata/usage is not"),
        ("penalties after the temperature", "parity/penalties", "parity/penalties and bias, hot"),
        ("a neighbour's seed seeds all", "seed/neighbour", "seed/neighbour"),
        ("counts survive a stop", "state/after a stop", "state/after a stop"),
        ("preemption forgets what was counted", "state/company, penalties", "state/company, penalties"),
        ("a full hit of the prefix cache drops a token", "state/full blocks", "state/full blocks"),
        ("the choices report the first one's rows", "law/temperature 1", "metadata/a choice reports"),
        ("a seed of zero is none", "seed/zero", "seed/zero"),
        ("a stream loses what a stop held back", "parity/stop, not", "parity/stop, not reached (stream)"),
        ("a stop at the limit is not looked for", "parity/stop, at the", "parity/stop, at the limit"),
        ("penalties reach back forty tokens", "parity/penalties, long", "parity/penalties, long"),
        ("a greedy request beside a sampled one is sampled", "independence/temp", "independence/temperature"),
        ("a long prompt begins a token off", "state/long prompt", "state/long prompt"),
        ("a streamed call loses what came with its end", "parity/tool", "parity/tool_choice (chat, stream)"),
        ("filters are those of the first in the batch", "independence/filters", "independence/filters"),
        ("top_p is dropped beside top_k", "parity/top_k,", "parity/top_k, top_p and min_p"),
        ("penalties are forgotten where no rows are asked for", "logprobs/asked", "logprobs/asked"),
        (
            "log probabilities of what was accepted are after the temperature",
            "parity/logit_bias, h",
            "parity/logit_bias",
        ),
        ("ignore_eos is forgotten at the bonus", "law/long", "metadata/it ended by itself with ignore_eos"),
        ("min_tokens is forgotten at the bonus", "law/min_tokens", "metadata/fewer tokens than min_tokens"),
        ("a banned phrase passes within a block", "parity/bad_words", "metadata/a banned word is emitted"),
        ("a stop at the limit is called the length", "parity/stop, at the", "parity/stop, at the limit"),
        ("stops are forgotten as the minimum is reached", "parity/min_tokens and", "parity/min_tokens and stop"),
        ("a grammar stays for the bonus of the next request", "state/after a gr", "state/after a grammar"),
        ("temperatures up to 0.3 are greedy", "n/cold", "n/cold"),
        pytest.param("top_p is of what top_k leaves", "law/top_p", "law/top_p", marks=pytest.mark.long),
        pytest.param("seeds advance by rounds", "law/logit_bias", "law/logit_bias to two", marks=pytest.mark.long),
        ("echoed log probabilities of a cached prefix are its first row", "state/echoed", "state/echoed prefix"),
        ("chat filters on the last row only", "parity/top_k (chat)", "parity/top_k (chat)"),
        ("what a client that left wrote is stale in the cache", "state/after a client", "state/after a client left"),
        pytest.param(
            "counts survive a client that left", "state/hang-up, p", "state/hang-up, penalties", marks=pytest.mark.long
        ),
        ("min_p is forgotten at the bonus", "parity/min_p", "parity/min_p"),
        ("min_p is forgotten at the bonus", "law/min_p", "metadata/a sampled token is one that a filter"),
        ("top_k on the last row only", "law/top_k", "metadata/a sampled token is one that a filter"),
        ("min_tokens is judged once a round", "parity/min_tokens", "parity/min_tokens"),
        ("the round of a stop that is included is kept", "parity/include", "parity/include_stop_str_in_output"),
        ("what was cut off says how it ended", "parity/stop, beh", "parity/stop, behind the limit"),
        ("a seed is forgotten beside penalties", "seed/same", "seed/same"),
        ("drafts that a sampled answer refused stay in the cache", "state/continued", "state/continued"),
        ("a neighbour's filter holds a sampled request", "independence/sampled", "independence/sampled"),
        ("bans are forgotten when sampling", "parity/allowed_token_ids, h", "parity/allowed_token_ids, hot"),
        ("seeds fail under load", "seed/under", "seed/under load"),
        ("late drafts are kept if they are not unlikely", "law/long", "law/long"),
        ("a request that was left late leaks a token", "state/hang-up", "state/hang-up"),
        ("every other row lists its token alone", "greedy", "metadata/a row lists fewer tokens than were asked for"),
        ("argmax in verification where no rows are asked for", "law/temperature 1", "law/temperature 1"),
        pytest.param(
            "drafts are accepted too easily", "law/logit_bias", "law/logit_bias to two", marks=pytest.mark.long
        ),
        ("one request in twenty keeps every draft", "state/any", "greedy/a text is another, far from any tie"),
    ],
)
def test_a_defect_is_named(defect: str, only: str, named: str) -> None:
    """Kills a claim that does not see what it is about; each of these was shipped by an engine."""
    found = violated(audited(defect, "", 1500, only, until=named))
    assert any(name.startswith(named) for name in found), found


@pytest.mark.parametrize(("defect", "manner"), [("", "drafts less in company"), (LIKE_FEWER_DRAFTS, "")])
def test_what_fewer_drafts_do_too_is_left_open(defect: str, manner: str) -> None:
    """Kills a claim that accuses a server which drafts less under load of its seeds, or that says they are the same."""
    found = {
        finding.id.removeprefix("audit.endpoint/"): finding for finding in audited(defect, manner, 300, "seed/under")
    }
    finding = found["seed/under load"]
    assert finding.verdict == "not tested"
    assert "where fewer are drafted under load" in finding.reason


@pytest.mark.usefixtures("asked_again_at_once")
@pytest.mark.parametrize(
    ("defect", "only", "says"),
    [
        ("a chat's first token is counted twice", "parity/max_tokens", "in requests with chat"),
        ("usage of a stream counts rounds", "parity/max_tokens", "in requests with stream"),
        ("usage counts the drafts", "greedy", "with speculation alone"),
        ("it falls over top_k", "parity/top_k", "in requests with top_k"),
        ("it hangs up on bans", "parity/bad_words", "in requests with bad_words"),
    ],
)
def test_a_fault_of_answers_is_named_by_what_it_needs(defect: str, only: str, says: str) -> None:
    """Kills a maintainer who looks for a fault of streams in all requests, or for one of all requests in streams."""
    (finding, *_) = (f for f in audited(defect, "", 400, only) if f.verdict == "violated" and "metadata/" in f.id)
    assert finding.diagnosis.endswith(says)


def test_what_is_wanted_is_within_the_budget() -> None:
    """Kills a claim that takes its looks from the others: at the default budget all of them are decided."""
    with (
        serving(Engine(True)) as on,
        serving(Engine()) as off,
        Server(on) as here,
        Server(off) as there,
        Bench(here, there) as bench,
    ):
        plan = planned(bench)
        assert (
            bench.sent + sum(cell.cost * (cell.wanted - (cell.name in plan.begun)) for cell in plan.cells) <= REQUESTS
        )
        assert len(plan.cells) > 80


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
        suite = Suite(bench, Plan([], {}), 1e-6, 10)
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
    belief = Partings()
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


def test_an_audit_that_was_stopped_asks_nothing_twice(tmp_path: Path) -> None:
    """Kills a journal that loses an answer, counts one twice, or trips over a line that was cut off."""

    class Counting:
        sent = 0

        def send(self, ask: Ask) -> Answer:
            self.sent += 1
            if ask.temperature > 1:
                raise Refused("too warm")
            return Answer((Choice(f"answer {self.sent}", tokens=("a",)),), {"total_tokens": 1})

    ask, subject = Ask(("a",), 4), Counting()
    first = Journalled(subject, "on", Journal(tmp_path / "journal"))
    said = [first.send(ask), first.send(ask)]
    with pytest.raises(Refused, match="too warm"):
        first.send(Ask(("a",), 4, 2.0))
    with (tmp_path / "journal").open("a") as file:
        file.write('{"key": "on/')
    again = Journalled(subject, "on", Journal(tmp_path / "journal"))
    assert [again.send(ask), again.send(ask)] == said
    with pytest.raises(Refused, match="too warm"):
        again.send(Ask(("a",), 4, 2.0))
    assert subject.sent == 3
    assert json.loads((tmp_path / "journal").read_text().splitlines()[1])["key"].startswith("on/")
    assert again.send(ask).text == "answer 4"
    assert Journalled(subject, "on", Journal(tmp_path / "journal")).send(ask) == said[0]
    with pytest.raises(BadInput, match="another audit"):
        Journal(tmp_path / "journal", "another server")


def test_a_server_that_restarts_is_waited_for() -> None:
    """Kills an audit that ends with the first connection that breaks, and one that waits for ever."""
    with serving(Engine()) as base:
        pass
    with Server(base, patience=0.5) as server, pytest.raises(Failed, match="cannot be reached"):
        server.send(Ask(("a",), 4))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ALL_PROXY", "socks5://localhost:1", "proxies or certificates"),
        ("HTTPS_PROXY", "::::", "proxies or certificates"),
        ("SSL_CERT_FILE", "/nowhere", "proxies or certificates"),
        ("OPENAI_API_KEY", "secret\n", r"\$OPENAI_API_KEY has a sign"),
        ("OPENAI_API_KEY", "s\u00e9cret", r"\$OPENAI_API_KEY has a sign"),
    ],
)
def test_an_environment_that_no_client_can_be_made_from(
    name: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills a traceback of the HTTP library, and a key that is shown in one."""
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInput, match=says) as refused:
        Server("http://127.0.0.1:9/v1")
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "content", "says"),
    [
        (302, b"", "302: it is elsewhere, at http://other/v1"),
        (200, b"[" * 100_000, "which is no completion"),
        (200, b"<html>", "which is no completion"),
        (200, b'{"choices": null}', "which is no completion"),
    ],
)
def test_an_answer_that_is_no_completion(status: int, content: bytes, says: str) -> None:
    """Kills a redirect that is read as an answer, and a traceback for JSON that is nested without an end."""
    reply = httpx.Response(status, content=content, headers={"Location": "http://other/v1"})
    with Server("http://127.0.0.1:9/v1") as server:
        server.client.close()
        server.client = httpx.Client(transport=httpx.MockTransport(lambda request: reply))
        with pytest.raises((Refused, Failed), match=says):
            server.send(Ask(("a",), 4))


def test_an_address_at_which_nothing_listens_is_given_up_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills two minutes of asking at a mistyped port, and a server that is given up as fast while it restarts."""
    slept: list[float] = []
    monkeypatch.setattr(http, "time", SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append))
    ask = Ask(("a",), 4)
    with serving(Engine()) as base:
        known = Server(base)
        known.send(ask)
    with Server(base) as mistyped, pytest.raises(Gone, match="cannot be reached"):
        mistyped.send(ask)
    assert sum(slept) <= http.FIRST_CONTACT
    slept.clear()
    known.client.close()  # its connection outlives the server here
    known.client = httpx.Client()
    with known, pytest.raises(Gone, match="gave no answer"):
        known.send(ask)
    assert sum(slept) > 100


def test_a_side_that_is_gone_leaves_claims_untested() -> None:
    """Kills a verdict on a server that died in the middle, and an hour of waiting for it."""

    class Dying:
        left = 200

        def send(self, ask: Ask) -> Answer:
            self.left -= 1
            if self.left < 0:
                raise Gone("connection refused")
            return Answer((Choice("a b c d e f g h", "length"),))

    with Bench(Dying(), Dying()) as bench:
        suite = Suite(bench, planned(bench), 1e-6, 3000)
        suite.run(lambda what, share: None)
        found = {f.id: f for f in findings(suite, Named("endpoint", "test", RECIPE))}
    assert found["audit.endpoint/there to the end"].reason == "connection refused"
    assert bench.sent < 500


def test_a_sample_at_one_odd_prompt_is_no_law() -> None:
    """Kills evidence from one prompt at which rounding decides what a filter keeps."""
    odd, wrong = Law(Reader({}, 1.0)), Law(Reader({}, 1.0))
    coin = random.Random(0)
    for k in range(300):
        place, other = k % PROMPTS, str(coin.randrange(5))
        odd.add(place, [Choice(other if place else "9")], [Choice(str(coin.randrange(5)) if place else "8")])
        wrong.add(place, [Choice(other)], [Choice("1" + other)])
    assert odd.log_evidence < 3
    assert wrong.log_evidence > 30


def test_a_witness_is_made_small() -> None:
    """Kills a reduction that keeps what is not needed, or says that it vanishes where it does not."""
    found = {f.id: f for f in audited("bias ignored", "", 400, "parity/logit_bias")}
    witness = next(f.witness for f in found.values() if f.verdict == "violated" and f.witness)
    assert witness["request"]["max_tokens"] < 32
    assert "without the parameter" in witness["it vanishes"]
    company = audited("rows swapped in company", "", 500, "state/company of 8")
    (small,) = (f.witness for f in company if f.verdict == "violated" and "company" in f.id and f.witness)
    assert sum(map(len, small["requests"])) < 9
