"""A client of an OpenAI-compatible server: one request for a completion, and its outcome.

Only `POST BASE/completions` is used, with prompt, max_tokens, temperature, seed and logprobs, by the standard library's
HTTP. The outcome of a completion is its tokens where the server reports them, and its text where it does not.
"""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from refengine.audit.paired.completion import Completion, Failed, Row
from refengine.errors import BadInput

SHOWN_CHARACTERS = 200  # of a server's complaint
TOP_TOKENS = 5  # of a position, whose log probabilities are requested: as many as every server allows
MAX_ANSWER_BYTES = 1 << 24  # a completion of some tokens with their log probabilities has some thousand
BUSY_CODES = (408, 429, 503)  # after which a request is repeated, for as long as an answer may take
PAUSE_SECONDS = 1.0  # before a repeated request, where the server names no time
KEY_VARIABLE = "OPENAI_API_KEY"  # sent as a bearer token where it is set


# How the likeliest tokens are requested: in the completions API, in the chat API, and not at all.
DIALECTS: tuple[dict[str, Any], ...] = ({"logprobs": TOP_TOKENS}, {"logprobs": True, "top_logprobs": TOP_TOKENS}, {})


@dataclass(frozen=True)
class Server:
    """base: up to and including /v1. dialect: one of DIALECTS. seconds: for one answer."""

    base: str
    model: str | None
    dialect: dict[str, Any] = field(default_factory=dict)
    seconds: float = 30.0

    def complete(self, prompt: str, tokens: int, temperature: float, seed: int) -> Completion:
        """Raises Failed where no completion came back, BadInput where the request was refused."""
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": temperature, "seed": seed, **self.dialect}
        answer = self._post(json.dumps(body | ({"model": self.model} if self.model else {})).encode())
        try:
            choice = answer["choices"][0]
            if not isinstance(choice["text"], str):
                raise TypeError
            return _completion(choice["text"], choice.get("logprobs") or {})
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            raise Failed(
                f"{self.base} answered {json.dumps(answer)[:SHOWN_CHARACTERS]}, which is no completion"
            ) from None

    def row(self, prompt: str, tokens: tuple[str, ...]) -> Row:
        """Empty: a server reports its rows with the completion alone."""
        return {}

    def _post(self, body: bytes) -> Any:
        """The answer to a request. urllib limits the time of one read; `_read` limits that of all reads together."""
        headers = {"Content-Type": "application/json"}
        if os.environ.get(KEY_VARIABLE):
            headers["Authorization"] = f"Bearer {os.environ[KEY_VARIABLE]}"
        until = time.monotonic() + self.seconds
        while True:
            try:
                request = urllib.request.Request(f"{self.base.rstrip('/')}/completions", body, headers)
                with urllib.request.urlopen(request, timeout=self.seconds) as reply:
                    return json.loads(self._read(reply, until))
            except urllib.error.HTTPError as error:
                said = f"({error.code}): {_complaint(error)}"
                pause = _pause(error)
                if error.code in BUSY_CODES and time.monotonic() + pause < until:
                    time.sleep(pause)
                    continue
                if error.code < 500 and error.code not in BUSY_CODES:
                    raise BadInput(f"{self.base} refused the request {said}") from None
                raise Failed(f"{self.base} failed {said}") from None
            except (OSError, http.client.HTTPException) as error:
                raise Failed(f"{self.base} gave no answer: {getattr(error, 'reason', error)}") from None
            except ValueError as error:  # a URL that is none, or an answer that is no JSON
                raise BadInput(f"{self.base} is no OpenAI-compatible server: {error}") from None

    def _read(self, reply: http.client.HTTPResponse, until: float) -> bytes:
        """The whole answer. Raises Failed where it does not end in time or exceeds MAX_ANSWER_BYTES."""
        content = bytearray()
        while piece := reply.read1(1 << 16):
            content += piece
            if len(content) > MAX_ANSWER_BYTES:
                raise Failed(f"{self.base} answers without an end: more than {MAX_ANSWER_BYTES >> 20} MiB")
            if time.monotonic() > until:
                raise Failed(f"{self.base} gave no whole answer within {self.seconds:g} s")
        if reply.length:  # bytes that were announced and did not come
            raise http.client.IncompleteRead(bytes(content), reply.length)
        return bytes(content)


def _complaint(error: urllib.error.HTTPError) -> str:
    return " ".join(error.read(SHOWN_CHARACTERS).decode(errors="replace").split())


def _pause(error: urllib.error.HTTPError) -> float:
    """Seconds after which a busy server accepts another request."""
    named = error.headers.get("Retry-After", "")
    return float(named) if named.isdigit() else PAUSE_SECONDS


def connected(base: str, model: str | None, prompt: str) -> Server:
    """A server that has completed a prompt, in the first dialect that it does not refuse. Raises as `complete`."""
    refused: BadInput | None = None
    for dialect in DIALECTS:
        server = Server(base, model, dialect)
        try:
            server.complete(prompt, 1, 0.0, 0)
            return server
        except BadInput as error:
            refused = refused or error
    raise refused or BadInput(f"{base} refuses every request")


def _completion(text: str, logprobs: dict[str, Any]) -> Completion:
    """From either form of the API. Tokens that do not spell the text are left out with their rows."""
    if "content" in logprobs:
        tokens: list[str] | None = [row["token"] for row in logprobs["content"]]
        rows = [{one["token"]: one["logprob"] for one in row.get("top_logprobs") or []} for row in logprobs["content"]]
    else:
        tokens, rows = logprobs.get("tokens"), [dict(row or {}) for row in logprobs.get("top_logprobs") or []]
    if tokens is None or "".join("".join(tokens).split()) != "".join(text.split()):
        return Completion(text, None, None)
    return Completion(text, tuple(tokens), tuple(rows) or None)
