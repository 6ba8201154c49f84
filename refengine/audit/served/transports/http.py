"""The client of an OpenAI-compatible server: completions and chat, whole or streamed, patient with restarts.

A connection that breaks and an answer of 408, 425, 429, 502, 503 or 504 are asked again with growing pauses, for
`patience` seconds: the server is busy, or is being started again. Where it answers another request meanwhile, it falls
over this one, which is not asked again; so it is with one that it is silent about. A server that has never been reached
is given up after some seconds: an address is mistyped more often than an audit is started before its server. 500 and
what is no completion are about the request, and asked again twice; any other 4xx is a refusal. A key comes from the
environment and goes nowhere else.
"""

import json
import os
import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from refengine.audit.served.ask import Answer, Ask, Choice, Failed, Gone, Refused, Row, listed
from refengine.errors import BadInput

KEY_VARIABLE = "OPENAI_API_KEY"  # sent as a bearer token where it is set
COMPLAINT_CHARACTERS = 200  # of a server's complaint that are shown
ANSWER_BYTES = 1 << 24  # an answer of some hundred tokens with their log probabilities has some hundred thousand
AGAIN = (408, 425, 429, 502, 503, 504)
TRIES = 3  # of a request that is answered with 500
BUSY_TRIES = 6  # of one that is answered with 502, 503 or 504 while others are answered
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds between two tries
LEAST_WAIT, SLOWER = 20.0, 10.0  # seconds, and times the longest answer, that a server is given that hung before
FIRST_CONTACT = 3.0  # seconds of trying to reach a server that has never answered


class Server:
    """base: up to and including /v1. seconds: of silence, after which a server is gone: a request that is asked again
    while it is worked on makes a busy server busier. patience: seconds of asking again."""

    def __init__(self, base: str, model: str | None = None, seconds: float = 300.0, patience: float = 120.0) -> None:
        if not base.startswith(("http://", "https://")):
            raise BadInput(f"{base} is no address of a server: http://HOST:PORT/v1 is one")
        self.base, self.model = base.rstrip("/"), model
        self.seconds, self.patience = seconds, patience
        self.reached = False  # it has answered something, if only that it is busy
        self.longest, self.hangs = 0.0, False  # seconds of an answer; it was silent to a request and answered others
        key = os.environ.get(KEY_VARIABLE, "")
        if not (key.isascii() and key.isprintable()):
            raise BadInput(f"${KEY_VARIABLE} has a sign that no header may have: a line break, or none of ASCII")
        try:
            self.client = httpx.Client(
                timeout=httpx.Timeout(seconds, connect=5.0, pool=None),
                headers={"Authorization": f"Bearer {key}"} if key else {},
            )
        except Exception as error:  # of whatever the library reads there
            why = f"{type(error).__name__}: {error}"
            raise BadInput(f"the environment's proxies or certificates ($*_PROXY, $SSL_CERT_*): {why}") from None

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def send(self, ask: Ask) -> Answer:
        """What a client that hung up has heard is no answer, nor what is said to a wrong request: it is empty. Raises
        Refused, Failed."""
        nothing = Answer((Choice(""),))
        path = "/chat/completions" if ask.chat else "/completions"
        try:
            reply = self._patiently(path, self.body(ask), ask.hang_up)
        except Refused:
            if not ask.wrong:
                raise
            return nothing
        if ask.hang_up or ask.wrong:
            return nothing
        try:
            return _streamed(reply) if ask.stream else _answer(json.loads(reply))
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError) as error:
            shown = reply[:COMPLAINT_CHARACTERS].decode(errors="replace")
            raise Failed(f"{self.base} answered {shown!r}, which is no completion ({type(error).__name__})") from None

    def body(self, ask: Ask) -> dict[str, Any]:
        """The request as JSON; `logprobs` among the options is a wish that each API says in its own words: True, or how
        many. What is None is not said."""
        options = dict(ask.options)
        wanted = listed(options.pop("logprobs", False))
        if not ask.stream:
            options.pop("stream_options", None)
        body: dict[str, Any] = {"max_tokens": ask.tokens, "temperature": ask.temperature, **options}
        body |= _rows_wanted(ask.chat, wanted)
        if ask.chat:
            roles = ("user", "assistant")
            system = [{"role": "system", "content": ask.system}] if ask.system else []
            body["messages"] = [*system, *({"role": roles[i % 2], "content": t} for i, t in enumerate(ask.turns))]
        else:
            prompt = "\n".join(ask.turns)
            body["prompt"] = list(ask.prompt_ids) or ([prompt, *ask.more] if ask.more else prompt)
        named = {"model": self.model, "seed": ask.seed, "stream": ask.stream or None}
        return {name: value for name, value in (body | named).items() if value is not None}

    def _patiently(self, path: str, body: dict[str, Any], hang_up: int) -> bytes:
        begun, pause, broken, closed, unavailable = time.monotonic(), FIRST_PAUSE, 0, 0, 0
        while True:
            try:
                return self._once(path, body, hang_up)
            except httpx.InvalidURL as error:
                raise BadInput(f"{self.base} is no address of a server: {error}") from None
            except _Broken as error:
                broken += 1
                if broken == TRIES:
                    raise Failed(f"{self.base} answers {error}") from None
                asked = pause
            except httpx.ReadTimeout:
                silent = f"{self.base} gave no answer within {self.wait():g} s"
                if not self._answers_others():
                    raise Gone(silent) from None
                self.hangs = True
                raise Failed(f"{silent} to this request, and answers others") from None
            except (httpx.HTTPError, _Again) as error:
                closed += isinstance(error, httpx.RemoteProtocolError | httpx.ReadError)
                if closed >= TRIES and self._answers_others():
                    raise Failed(f"{self.base} ends the connection of this request, and answers others") from None
                unavailable += isinstance(error, _Again) and str(error).startswith("5")
                if unavailable >= BUSY_TRIES and self._answers_others():
                    raise Failed(f"{self.base} answers {error} to this request, and answers others") from None
                asked = error.pause if isinstance(error, _Again) and error.pause else pause
                patience = self.patience if self.reached else min(self.patience, FIRST_CONTACT)
                if time.monotonic() + asked > begun + patience:
                    silent = "gave no answer" if self.reached else "cannot be reached"
                    raise Gone(f"{self.base} {silent}: {str(error) or type(error).__name__}") from None
            time.sleep(asked * (1 + 0.1 * random.random()))  # so that many requests do not come back at once
            pause = min(2 * pause, LONGEST_PAUSE)

    def wait(self) -> float:
        """Seconds of silence: where some requests were never answered, the others say how long an answer takes."""
        return self._patience() if self.hangs else self.seconds

    def _patience(self) -> float:
        return min(self.seconds, max(LEAST_WAIT, SLOWER * self.longest))

    def _answers_others(self) -> bool:
        """Whether it answers the plainest request."""
        try:
            waits = httpx.Timeout(self._patience(), connect=5.0, pool=None)
            said = self.client.post(self.base + "/completions", json=self.body(Ask(("a",), 1)), timeout=waits)
        except httpx.HTTPError:
            return False
        return said.status_code < 500 and said.status_code not in AGAIN

    def _once(self, path: str, body: dict[str, Any], hang_up: int) -> bytes:
        begun = time.monotonic()
        until = begun + self.seconds
        waits = httpx.Timeout(self.wait(), connect=5.0, pool=None)
        with self.client.stream("POST", self.base + path, json=body, timeout=waits) as reply:
            self.reached = True
            content = bytearray()
            for piece in reply.iter_bytes():
                content += piece
                if hang_up and reply.status_code == 200 and content.count(b"data:") >= hang_up - 1:
                    break
                if len(content) > ANSWER_BYTES:
                    raise Failed(f"{self.base} answers without an end: more than {ANSWER_BYTES >> 20} MiB")
                if time.monotonic() > until:
                    raise Failed(f"{self.base} gave no whole answer within {self.seconds:g} s")
        said = f"{reply.status_code}: {' '.join(content[:COMPLAINT_CHARACTERS].decode(errors='replace').split())}"
        if reply.status_code in AGAIN:
            raise _Again(said, reply.headers.get("Retry-After", ""))
        if reply.status_code >= 500:
            raise _Broken(said)
        if reply.status_code >= 400:
            raise Refused(said)
        if reply.is_redirect:
            raise Refused(f"{reply.status_code}: it is elsewhere, at {reply.headers['Location']}")
        self.longest = max(self.longest, time.monotonic() - begun)
        return bytes(content)


class _Broken(Exception):
    """The server fell over this request."""


class _Again(Exception):
    """The server is busy or not well; it may name the seconds after which it wants to be asked again."""

    def __init__(self, said: str, after: str) -> None:
        super().__init__(said)
        self.pause = float(after) if after.replace(".", "", 1).isdigit() else 0.0


def _answer(content: dict[str, Any]) -> Answer:
    choices = sorted(content["choices"], key=lambda choice: choice.get("index") or 0)
    if not choices:
        raise ValueError("no choices")
    return Answer(tuple(_choice(choice) for choice in choices), _usage(content))


def _usage(content: dict[str, Any]) -> dict[str, int]:
    return {name: count for name, count in (content.get("usage") or {}).items() if isinstance(count, int)}


def _choice(told: dict[str, Any]) -> Choice:
    text = told["text"] if "text" in told else _message(told["message"])
    if not isinstance(text, str):
        raise TypeError
    tokens, chances, top = _logprobs(told.get("logprobs") or {})
    ids, prompt_ids = (
        None if told.get(name) is None else tuple(map(int, told[name])) for name in ("token_ids", "prompt_token_ids")
    )
    return Choice(text, told.get("finish_reason"), tokens, chances, top, ids, prompt_ids)


def _message(told: dict[str, Any]) -> str:
    """Of a message or a piece of one: what is said, then names and arguments of the functions that are called."""
    calls = [call["function"] for call in told.get("tool_calls") or ()]
    return "".join([told.get("content") or "", *(c.get(part) or "" for c in calls for part in ("name", "arguments"))])


def _rows_wanted(chat: bool, tokens: int) -> dict[str, Any]:
    """Rows of so many; 0: none."""
    if not tokens:
        return {}
    return {"logprobs": True, "top_logprobs": tokens} if chat else {"logprobs": tokens}


def _logprobs(told: dict[str, Any]) -> tuple[Any, Any, Any]:
    """(tokens, log probabilities, rows) in either form of the API; None for what is not there."""
    if told.get("content") is not None:
        entries = told["content"]
        rows = tuple(_row({e["token"]: e["logprob"] for e in entry.get("top_logprobs") or []}) for entry in entries)
        return tuple(str(e["token"]) for e in entries), tuple(_nats(e["logprob"]) for e in entries), rows
    if told.get("tokens") is None:
        return None, None, None
    chances, tops = told.get("token_logprobs"), told.get("top_logprobs")
    return (
        tuple(str(token) for token in told["tokens"]),
        None if chances is None else tuple(_nats(chance) for chance in chances),
        None if tops is None else tuple(_row(row or {}) for row in tops),
    )


def _nats(told: Any) -> float | None:
    return None if told is None else float(told)


def _row(told: Mapping[str, Any]) -> Row:
    return {token: float(chance) for token, chance in told.items() if chance is not None}


def _streamed(reply: bytes) -> Answer:
    """The pieces of a streamed answer put together, choice by choice."""
    pieces: dict[int, list[dict[str, Any]]] = {}
    usage: dict[str, Any] = {}
    for event in _events(reply):
        usage = _usage(event) or usage
        for choice in event.get("choices") or []:
            pieces.setdefault(choice.get("index") or 0, []).append(choice)
    if not pieces:
        raise ValueError("no pieces")
    return Answer(tuple(_joined(pieces[index]) for index in sorted(pieces)), usage)


def _events(reply: bytes) -> Iterator[dict[str, Any]]:
    for line in reply.decode(errors="replace").split("\n"):
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data != "[DONE]":
            yield json.loads(data)


def _joined(pieces: list[dict[str, Any]]) -> Choice:
    text, finish = "", None
    parts: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    reported = False
    for piece in pieces:
        text += (piece["text"] or "") if "text" in piece else _message(piece.get("delta") or {})
        finish = piece.get("finish_reason") or finish
        if piece.get("logprobs"):
            reported = True
            for whole, part in zip(parts, _logprobs(piece["logprobs"]), strict=True):
                whole.extend(part or ())
    tokens, chances, rows = (tuple(part) if reported else None for part in parts)
    return Choice(text, finish, tokens, chances or None, rows or None)
