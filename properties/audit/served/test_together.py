"""All sampled laws of a served path together: bets that are fair, what leans one way, what a parameter falls over."""

import random
from collections.abc import Sequence
from copy import deepcopy

import httpx
import numpy as np
import pytest

from properties.audit.served.test_suite import audited, violated
from refengine.audit.served.ask import Ask, Choice, Failed, Gone
from refengine.audit.served.claims.sampled import LAW_PROMPTS, Law
from refengine.audit.served.claims.scores import Reader
from refengine.audit.served.claims.together import Together
from refengine.audit.served.transports import http
from refengine.audit.served.transports.http import Server
from refengine.evidence.alpha import NATS

pytestmark = pytest.mark.on_record

SETTINGS = [f"setting {i}" for i in range(6)]


def said(coin: random.Random, weights: Sequence[float], choices: int = 8) -> list[Choice]:
    return [Choice(" ".join(coin.choices("abcdefgh"[: len(weights)], weights, k=6))) for _ in range(choices)]


def told(pairs: int, lean: dict[tuple[int, int], float], everywhere: float = 0.0) -> tuple[Together, list[Law]]:
    """The belief after so many pairs a setting, whose side with speculation gives one token oftener: by how much, where
    (setting, prompt) says so or everywhere."""
    coin, belief = random.Random(0), Together()
    laws = [Law(Reader({}, 1.0)) for _ in SETTINGS]
    for k in range(pairs):
        for i, law in enumerate(laws):
            more = lean.get((i, k % LAW_PROMPTS), everywhere)
            on, off = said(coin, [1 + more, *[1] * 7]), said(coin, [1] * 8)
            belief.told(k, SETTINGS[i], law.add(k % LAW_PROMPTS, on, off))
    return belief, laws


def test_every_bet_on_all_laws_is_fair() -> None:
    """Kills a learned score that knows the pair it is bet on: whatever is left out, the mean over both orders of a pair
    is what it was before, exactly."""
    coin, reader = random.Random(0), Reader({}, 1.0)
    belief, _ = told(6, {}, 0.5)
    belief.settle()
    for k in range(12):
        before = belief.left_out()
        on, off = (said(coin, [1, 1, 2]) for _ in range(2))
        after = []
        for first, second in ((on, off), (off, on)):
            tried, scored = deepcopy(belief), (reader.scores(first), reader.scores(second))
            tried.told(k, SETTINGS[k % len(SETTINGS)], (k % LAW_PROMPTS, first, second, scored))
            tried.settle()
            after.append(np.exp(tried.left_out()))
        assert sum(after) / 2 == pytest.approx(np.exp(before), rel=1e-9)
        belief = tried


def test_what_leans_one_way_at_every_setting_is_seen() -> None:
    """Kills laws that pay for learning one by one: no setting alone comes near the bar, all of them pass it; and six
    settings that are alike on both sides do not."""
    belief, laws = told(45, {}, 0.7)
    assert belief.log_evidence > NATS + 5
    assert all(law.log_evidence < NATS / 2 for law in laws)
    assert told(45, {})[0].log_evidence < 3


def test_what_leans_at_some_settings_is_seen_there() -> None:
    """Kills a bet that settings which are alike on both sides ruin: three of six lean, none is decided alone."""
    lean = {(i, k): 1.4 for i in range(3) for k in range(LAW_PROMPTS)}
    belief, laws = told(45, lean)
    assert belief.log_evidence > NATS
    assert all(law.log_evidence < NATS for law in laws)
    assert belief.named().startswith(f"at {', '.join(SETTINGS[:3])} ")


def test_one_odd_prompt_and_one_odd_setting_accuse_nobody() -> None:
    """Kills a claim about all settings that one of them decides, as where rounding changes what one filter keeps."""
    odd = {(i, 2): 20.0 for i in range(len(SETTINGS))} | {(3, k): 20.0 for k in range(LAW_PROMPTS)}
    assert told(45, odd)[0].log_evidence < 3


def test_a_server_that_samples_nothing_is_not_bet_on() -> None:
    """Kills evidence from seeds that are ignored: each side gives its own one text to a prompt."""
    belief = Together()
    for k in range(40):
        for setting in SETTINGS:
            law = Law(Reader({}, 1.0))
            belief.told(
                k, setting, law.add(k % LAW_PROMPTS, [Choice(f"a {k % LAW_PROMPTS}")], [Choice(f"b {k % LAW_PROMPTS}")])
            )
    assert belief.log_evidence == 0.0
    assert belief.looks == 0


@pytest.mark.parametrize(
    ("defect", "named"), [("it falls over n", "parity/n"), ("it hangs up on log probabilities", "parity/logprobs")]
)
def test_what_a_parameter_falls_over_is_named_by_it(defect: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a crash on what every other claim would ask with, told as something that the server lacks."""
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.001)
    found = audited(defect, "", 60, named)
    assert violated(found) == {named}
    (finding,) = (f for f in found if f.verdict == "violated")
    assert finding.diagnosis.startswith(named.removeprefix("parity/") + ": a request with it is not answered")
    assert not violated(audited("", "refuses with speculation", 60, "parity/n"))


def test_silence_about_one_request_is_no_silence() -> None:
    """Kills an audit that ends at a request which hangs, and one that blames a request for a server that is dead."""

    def reply(request: httpx.Request) -> httpx.Response:
        if dead or b'"n"' in request.content:
            raise httpx.ReadTimeout("silent", request=request)
        return httpx.Response(200, json={"choices": [{"text": "a"}]})

    with Server("http://127.0.0.1:9/v1") as server:
        server.client.close()
        server.client = httpx.Client(transport=httpx.MockTransport(reply))
        dead = False
        assert server.wait() == server.seconds
        with pytest.raises(Failed, match="answers others") as hung:
            server.send(Ask(("a",), 4, options={"n": 2}))
        assert not isinstance(hung.value, Gone)
        assert server.wait() == http.LEAST_WAIT
        dead = True
        with pytest.raises(Gone):
            server.send(Ask(("a",), 4))
