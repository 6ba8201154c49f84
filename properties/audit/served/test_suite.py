"""The suite of a served path: honest servers are accused of nothing, what speculation breaks is named by parameter."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from types import SimpleNamespace

import httpx
import pytest

from properties.helpers.served.defects import (
    ADVERSE,
    ALONE,
    BESIDE,
    BLIND,
    COMPANY,
    CORNERS,
    CORRECTION,
    DEFECTS,
    FEW_TEXTS,
    FRESH,
    JUDGED,
    PAGED,
    PARAMETERS,
    SPARED,
    UNSEEN,
    UNTOLD,
    VALUES,
)
from properties.helpers.served.engine import Engine
from properties.helpers.served.http import ODD, RECIPE, serving
from refengine.audit.served.ask import Answer, Ask, Gone
from refengine.audit.served.audit import Named, findings, full_name
from refengine.audit.served.bench import LAW_CHOICES, Bench
from refengine.audit.served.claims.cells import LISTED_PROMPTS
from refengine.audit.served.endpoint import REQUESTS
from refengine.audit.served.plan import Plan, planned
from refengine.audit.served.suite import Suite, beliefs
from refengine.audit.served.transports import http
from refengine.audit.served.transports.http import Server
from refengine.evidence.alpha import ALPHA
from refengine.report.finding import Finding

pytestmark = pytest.mark.on_record


class Announced(Bench):
    """Tells the engines how many requests come together."""

    engines: tuple[Engine, ...] = ()

    def each(self, asks: Sequence[Ask], in_turn: bool = False) -> tuple[list[Answer], list[Answer]]:
        with self.announced(len(asks)):
            return super().each(asks, in_turn)

    def company(self, on: Sequence[Ask], off: Sequence[Ask]) -> list[tuple[Answer, Answer]]:
        with self.announced(len(on)):
            return super().company(on, off)

    @contextmanager
    def announced(self, count: int) -> Iterator[None]:
        for engine in self.engines if count > 1 else ():
            engine.announce(count)
        try:
            yield
        finally:
            for engine in self.engines if count > 1 else ():
                engine.announce(1)


class Decided(Exception):
    """A claim is violated."""


def audited(
    defect: str, manner: str, requests: int, only: str = "", until: str | None = None, law_choices: int = LAW_CHOICES
) -> list[Finding]:
    """The findings about a server with a defect; with `only`, of the cells whose name begins so; with `until`, as soon
    as a claim is violated whose name begins so. law_choices: the most of a request whose law is sampled."""
    with (
        serving(speculating := Engine(True, defect), manner) as on,
        serving(plain := Engine(), manner) as off,
        Server(on, patience=10.0) as here,
        Server(off, patience=10.0) as there,
        Announced(here, there, law_choices=law_choices) as bench,
    ):
        bench.engines = (speculating, plain)
        plan = planned(bench, only)
        assert bench.sent < (400 if "one choice" in manner else 330)  # one at a time, and ties are asked about
        plan.cells = [cell for cell in plan.cells if cell.name.startswith(only)]
        suite = Suite(bench, plan, ALPHA, bench.sent + requests)

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
    """Null: both sides are alike but for rounding; n = 3000 requests, alpha = ALPHA over all claims. Kills the same."""
    accuses_nobody(manner, 3000)


LIKE_FEWER_DRAFTS = "seed restarted after preemption"  # shows as they do, and is not told from them
GROUPS = (
    DEFECTS, UNSEEN, FRESH, ADVERSE, CORNERS, BLIND, CORRECTION, PARAMETERS, JUDGED, SPARED, COMPANY, ALONE, UNTOLD,
    PAGED, VALUES, BESIDE,
)  # fmt: skip
EVERY = tuple(chain.from_iterable(GROUPS))
ALL = tuple(defect for defect in EVERY if defect != LIKE_FEWER_DRAFTS)


@pytest.mark.stat
@pytest.mark.long
@pytest.mark.parametrize("defect", ALL)
def test_every_planted_defect_is_found_in_a_whole_audit(defect: str) -> None:
    """n = 3000 requests, alpha = ALPHA over all claims. Kills a budget spent where no defect is."""
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
        pytest.param(
            "a request that was left leaks a token into what no cache holds",
            "state/hang-up",
            "state/hang-up",
            marks=pytest.mark.long,
        ),
        pytest.param("a request that was left leaks a token", "state/hang-up", "state/hang-up", marks=pytest.mark.long),
        ("usage of a stream counts rounds", "parity/max_tokens (stream", "metadata/usage is not"),
        ("penalties after the temperature", "parity/penalties", "parity/penalties and bias, hot"),
        ("a neighbour's seed seeds all", "seed/neighbour", "seed/neighbour"),
        ("a seed stays for those without", "seed/neighbour", "seed/neighbour"),
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
        ("the temperature of a request that was left stays", "state/after a client", "state/after a client left, hot"),
        ("a choice counts what the one before it said", "n/greedy", "n/greedy"),
        ("a bias stays for the first round of the next request", "state/A-B-A", "state/A-B-A"),
        ("a refused request takes the penalties of the next one", "state/A-B-A", "state/A-B-A"),
        ("streamed choices behind the first say length", "stream/greedy", "stream/greedy choices"),
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
        pytest.param("drafts are kept too easily beside three others", "law/long", "law/long", marks=pytest.mark.long),
        ("the row of the bonus is after the temperature", "logprobs/sam", "logprobs/sampled"),
        ("a batch has the coins of its first request", "seed/of", "seed/of another"),
        ("late drafts are kept if they are not unlikely", "law/long", "law/long"),
        ("a request that was left late leaks a token", "state/hang-up", "state/hang-up"),
        ("a stream that a stop ends lacks its usage", "parity/stop", "metadata/no usage"),
        ("what a stop ends lacks its log probabilities", "parity/stop", "metadata/no log probabilities"),
        ("every other row lists its token alone", "greedy", "metadata/a row lists fewer tokens than were asked for"),
        ("argmax in verification where no rows are asked for", "law/temperature 1", "law/temperature 1"),
        pytest.param(
            "drafts are accepted too easily", "law/logit_bias", "law/logit_bias to two", marks=pytest.mark.long
        ),
        ("seeds fail under load after the first token", "seed/under", "seed/under load"),
        ("in chat an end that is accepted does not end", "chat/ends", "chat/ends"),
        ("pieces of a streamed chat lose the blank before them", "chat/stream", "chat/stream"),
        ("a chat of three turns forgets the first", "chat/turns", "metadata/the same text has another usage"),
        ("a filter outlives a stop", "independence/after", "independence/after a stop"),
        ("an answer of one token is not verified", "parity/max_tokens", "parity/max_tokens"),
        ("acceptance restarts when the server wakes", "seed/one", "seed/one by one"),
        ("a seed is forgotten beside requests without", "seed/beside", "seed/beside none"),
        ("a chat takes over the system message before it", "state/after a sys", "state/after a system message"),
        ("in chat a likely draft is kept", "law/temperature 0", "law/temperature 0.7"),
        ("a small repetition penalty is ignored", "parity/repetition_penalty", "parity/repetition_penalty: the text"),
        ("a negative penalty is none", "parity/frequency", "parity/frequency_penalty: the text"),
        ("a negative penalty is none", "parity/presence", "parity/presence_penalty: the text"),
        ("a stop that is no list is ignored", "parity/stop", "parity/stop: the text"),
        ("no temperature is greedy", "law/temperature 1", "law/temperature 1"),
        ("one token alone is the likeliest", "law/temperature 1", "law/temperature 1"),
        ("a row of one token is the draft's", "parity/frequency", "parity/frequency_penalty: the log probabilities"),
        ("large seeds are not honoured", "seed/same", "seed/same"),
        ("a choice has the next seed's coins", "seed/other", "seed/other"),
        ("max_completion_tokens is ignored", "parity/max_completion", "parity/max_completion_tokens (chat)"),
        ("bans hold for the first choice alone", "parity/bad_words, hot", "parity/bad_words, hot: the text"),
        ("bans hold for the first choice alone", "parity/allowed_token_ids, hot", "parity/allowed_token_ids, hot"),
        ("a stop inside a block is missed when sampling", "stop/sampled", "stop/sampled"),
        (
            "the repetition penalty is forgotten for drafts when sampling",
            "parity/penalties and",
            "parity/penalties and",
        ),
        ("a stop before the limit is called the length", "parity/stop, at the", "parity/stop, at the limit"),
        ("parameters are forgotten behind a known prompt", "state/A-B-A", "state/A-B-A"),
        ("a top_p of nine tenths is one", "law/top_p", "law/top_p"),
        ("a small min_p is none", "law/min_p", "metadata/a sampled token is one that a filter"),
        ("one request in twenty keeps every draft", "state/any", "greedy/a text is another, far from any tie"),
    ],
)
def test_a_defect_is_named(defect: str, only: str, named: str) -> None:
    """Kills a claim that does not see what it is about; each of these was shipped by an engine."""
    found = violated(audited(defect, "", 1500, only, until=named))
    assert any(name.startswith(named) for name in found), found


@pytest.mark.parametrize("defect", ["", "a stop token inside a block is missed"])
def test_lists_of_prompts_are_looked_at_one_by_one(defect: str) -> None:
    """Kills lists whose answers are compared with those to other prompts, and such as are never asked."""
    found = {
        f.id.removeprefix("audit.endpoint/"): f for f in audited(defect, "takes lists", 300, "parity/stop_token_ids")
    }
    told = found["parity/stop_token_ids: the text is that of plain decoding"]
    assert told.verdict == ("violated" if defect else "consistent")
    assert int(re.search(r"(\d+) looks", told.method)[1]) > 2 * LISTED_PROMPTS


@pytest.mark.parametrize(("defect", "others"), [("", []), ("usage counts the drafts", ["metadata"])])
def test_of_one_claim_that_is_asked_for_one_is_told(defect: str, others: list[str]) -> None:
    """Kills twenty claims about the answers to other claims, where one was asked for; and a fault that is not said."""
    found = [finding.id.removeprefix("audit.endpoint/") for finding in audited(defect, "", 200, "seed/zero")]
    asked = {"seed/zero", "parameters"}
    assert asked <= {*found}
    assert [*dict.fromkeys(name.partition("/")[0] for name in found if name not in asked)] == others


@pytest.mark.parametrize(("defect", "manner"), [("", "drafts less in company"), (LIKE_FEWER_DRAFTS, "")])
def test_what_fewer_drafts_do_too_is_left_open(defect: str, manner: str) -> None:
    """Kills a claim that accuses a server which drafts less under load of its seeds, or that says they are the same."""
    found = {
        finding.id.removeprefix("audit.endpoint/"): finding for finding in audited(defect, manner, 300, "seed/under")
    }
    finding = found["seed/under load"]
    assert finding.verdict == "not tested"
    assert "where fewer tokens are drafted under load" in finding.reason


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


def planned_whole() -> tuple[Plan, int]:
    """The plan of servers that take everything, and the requests that it took to find that out."""
    with (
        serving(Engine(True), "tells ids") as on,
        serving(Engine(), "tells ids") as off,
        Server(on) as here,
        Server(off) as there,
        Bench(here, there) as bench,
    ):
        return planned(bench), bench.sent


def test_what_is_wanted_is_within_the_budget() -> None:
    """Kills a claim that takes its looks from the others: at the default budget all of them are decided."""
    plan, sent = planned_whole()
    assert sent + sum(cell.cost * (cell.wanted - (cell.name in plan.begun)) for cell in plan.cells) <= REQUESTS
    assert len(plan.cells) > 80


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


def test_a_law_of_small_batches_is_asked_for_by_fewer_choices() -> None:
    """Kills an option that leaves requests as large as before: an engine that does not speculate in large batches then
    passes, whatever its verification does."""
    assert violated(audited(FEW_TEXTS, "", 400, "law/top_k", "law/top_k", law_choices=4))


def test_a_witness_is_made_small() -> None:
    """Kills a reduction that keeps what is not needed, or says that it vanishes where it does not."""
    found = {f.id: f for f in audited("bias ignored", "", 400, "parity/logit_bias")}
    witness = next(f.witness for f in found.values() if f.verdict == "violated" and f.witness)
    assert witness["request"]["max_tokens"] < 32
    assert "without the parameter" in witness["it vanishes"]
    company = audited("rows swapped in company", "", 500, "state/company of 8")
    (small,) = (f.witness for f in company if f.verdict == "violated" and "company" in f.id and f.witness)
    assert sum(map(len, small["requests"])) < 9
