"""`audit endpoint`: a server held to itself without speculation, over HTTP."""

from collections.abc import Sequence

import numpy as np
import pytest

from properties.helpers.completion_server import serving
from refengine.audit.paired import openai_client
from refengine.audit.paired.completion import Failed
from refengine.audit.paired.endpoint import audit_endpoint
from refengine.audit.paired.openai_client import Server
from refengine.errors import BadInput
from refengine.report.finding import Finding

PROMPTS = ("a", "b")


def audit(on: str, off: str = "plain", pairs: int = 200, prompts: Sequence[str] = PROMPTS) -> list[Finding]:
    with serving(on) as with_speculation, serving(off) as without:
        return audit_endpoint(with_speculation, without, prompts=prompts, pairs=pairs, seconds=300)


def test_right_speculation_is_consistent() -> None:
    """Kills another use of randomness taken for another law."""
    greedy, sampling = audit("ratio rule")
    assert [greedy.verdict, sampling.verdict] == ["consistent", "consistent"]
    assert sampling.numbers["pairs"] == 200


@pytest.mark.parametrize(("on", "off"), [("from p", "plain"), ("no chances", "from p")])
def test_a_wrong_law_is_found_whatever_the_server_reports(on: str, off: str) -> None:
    """Kills a defect that only tokens show, where a server reports text; a witness that does not show it."""
    _, sampling = audit(on, off, pairs=3000, prompts=("a",))
    assert sampling.verdict == "violated"
    assert sampling.witness is not None
    counts = sampling.witness["counts"]
    assert max(abs(told["on"] - told["off"]) for told in counts.values()) > 20


def test_a_greedy_defect_has_a_margin() -> None:
    """Kills a token that is not the likeliest passed off as a tie."""
    greedy, _ = audit("second best", pairs=1)
    assert greedy.verdict == "violated"
    assert greedy.witness is not None
    assert (greedy.witness["off"], greedy.witness["on"]) == (" a", " d")
    assert greedy.witness["margin"] == pytest.approx(np.log(0.3 / 0.25))


def test_a_tie_is_no_defect() -> None:
    """Kills rounding between two equal tokens called a defect."""
    greedy, _ = audit("ties", pairs=1, prompts=("d a d",))
    assert greedy.verdict == "consistent"


@pytest.mark.parametrize(("off", "verdict"), [("in the words of chats", "violated"), ("other tokens", "not tested")])
def test_either_form_of_the_api_is_read_and_tokens_that_are_not_the_text_are_not(off: str, verdict: str) -> None:
    """Kills a server refused for how it wants to be asked, and margins taken from tokens that it did not emit."""
    assert audit("second best", off, pairs=1)[0].verdict == verdict


def test_without_chances_a_parting_is_not_decided() -> None:
    """Kills a tie or a defect, said without knowing which."""
    greedy, _ = audit("second best", "no chances", pairs=1)
    assert greedy.verdict == "not tested"
    assert "tie or a defect" in greedy.reason


def test_a_server_that_does_not_sample_says_nothing_of_its_law() -> None:
    """Kills a server that ignores the seed, accused because its one completion is not that of the other."""
    sampling = audit("stuck", "second best", pairs=400)[1]
    assert sampling.verdict == "not tested"
    assert "whatever the seed" in sampling.reason


def test_a_breakdown_is_never_a_detection() -> None:
    """Kills an audit that hangs, accuses or says consistent when a server breaks down."""
    greedy, sampling = audit("fails")
    assert {greedy.verdict, sampling.verdict} <= {"consistent", "not tested"}
    assert "out of memory" in sampling.reason
    for other in ("chats", "thinks"):
        greedy, sampling = audit(other)
        assert [greedy.verdict, sampling.verdict] == ["not tested", "not tested"]
        assert "no completion" in greedy.reason


@pytest.mark.parametrize(("mode", "says"), [("drips", "no whole answer within 0.5 s"), ("floods", "without an end")])
def test_an_answer_without_an_end_is_cut(mode: str, says: str) -> None:
    """Kills a limit on one operation, which an answer byte by byte never meets, or memory that an answer fills."""
    with serving(mode) as base, pytest.raises(Failed, match=says):
        Server(base, None, seconds=0.5 if mode == "drips" else 30.0).complete("a", 1, 1.0, 0)


def test_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a rate limit met half way taken for a refusal of what is asked, which throws the audit away."""
    monkeypatch.setattr(openai_client, "PAUSE_SECONDS", 0.0)
    greedy, sampling = audit("busy", pairs=200)
    assert [greedy.verdict, sampling.verdict] == ["consistent", "consistent"]
    monkeypatch.setattr(openai_client, "PAUSE_SECONDS", 60.0)
    assert "429" in audit("busy", pairs=1)[0].reason


def test_tokens_of_one_side_are_not_held_to_words_of_the_other() -> None:
    """Kills a correct server accused because it reports no tokens and the other one does."""
    assert audit("joined, no chances", "joined", pairs=400)[1].verdict == "consistent"


def test_a_completion_that_is_too_long_is_found_where_no_two_are_alike() -> None:
    """Kills only as many tokens compared as were asked for, so that one too many shows in nothing that comes twice."""
    with serving("one more") as on, serving("plain") as off:
        sampling = audit_endpoint(on, off, prompts=("a",), tokens=12, pairs=200, seconds=300)[1]
    assert sampling.verdict == "violated"
    assert sampling.witness is not None
    assert sampling.witness["what"] == "the length"


def test_what_is_refused_or_not_there_is_one_clear_line() -> None:
    """Kills a traceback where an address or a model is mistyped."""
    with pytest.raises(BadInput, match="does not exist"):
        audit("refuses")
    with pytest.raises(BadInput, match="localhost"):
        audit_endpoint("localhost", "localhost")
    with pytest.raises(BadInput, match="positive temperature"):
        audit_endpoint("localhost", "localhost", temperature=float("nan"))
    (greedy, _) = audit_endpoint("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1", prompts=("a",), pairs=1)
    assert "gave no answer" in greedy.reason
