"""Servers that stop, restart, are gone or answer with what is no completion: nothing is asked twice or lost."""

import json
from pathlib import Path

import httpx
import pytest

from properties.helpers.served.engine import Engine
from properties.helpers.served.http import RECIPE, serving
from refengine.audit.served.ask import Answer, Ask, Choice, Failed, Gone, Refused
from refengine.audit.served.audit import Named, findings
from refengine.audit.served.bench import Bench
from refengine.audit.served.plan import planned
from refengine.audit.served.suite import Suite
from refengine.audit.served.transports.http import Server
from refengine.audit.served.transports.journal import Journal, Journalled
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA


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
        suite = Suite(bench, planned(bench), ALPHA, 3000)
        suite.run(lambda what, share: None)
        found = {f.id: f for f in findings(suite, Named("endpoint", "test", RECIPE))}
    assert found["audit.endpoint/there to the end"].reason == "connection refused"
    assert bench.sent < 500
