"""A client of an OpenAI-compatible server: one request for a completion, and what came of it.

Only `POST BASE/completions` is used, with prompt, max_tokens, temperature, seed and logprobs, by the standard library's
HTTP. Where a server reports its tokens they are taken as outcomes; where it does not, the text is.
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

SHOWN = 200  # characters of a server's complaint
LIKELIEST = 5  # tokens of a position whose chances are asked for: what every server allows
MOST = 1 << 24  # bytes of an answer: a completion of some tokens with their chances has some thousand
BUSY = (408, 429, 503)  # a server that answers so is asked again, for as long as an answer may take
PAUSE = 1.0  # seconds before that, where the server names none
KEY = "OPENAI_API_KEY"  # sent as a bearer token where it is set


# How the likeliest tokens are asked for: the completions API, the chat API's words for it, and not at all.
DIALECTS: tuple[dict[str, Any], ...] = ({"logprobs": LIKELIEST}, {"logprobs": True, "top_logprobs": LIKELIEST}, {})


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
            raise Failed(f"{self.base} answered {json.dumps(answer)[:SHOWN]}, which is no completion") from None

    def row(self, prompt: str, tokens: tuple[str, ...]) -> Row:
        """A server has told all it tells with the completion."""
        return {}

    def _post(self, body: bytes) -> Any:
        """The answer to a request. A limit on the time of one operation is none on an answer that drips."""
        headers = {"Content-Type": "application/json"}
        if os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {os.environ[KEY]}"
        until = time.monotonic() + self.seconds
        while True:
            try:
                request = urllib.request.Request(f"{self.base.rstrip('/')}/completions", body, headers)
                with urllib.request.urlopen(request, timeout=self.seconds) as reply:
                    return json.loads(self._read(reply, until))
            except urllib.error.HTTPError as error:
                said = f"({error.code}): {_complaint(error)}"
                pause = _pause(error)
                if error.code in BUSY and time.monotonic() + pause < until:
                    time.sleep(pause)
                    continue
                if error.code < 500 and error.code not in BUSY:
                    raise BadInput(f"{self.base} refused the request {said}") from None
                raise Failed(f"{self.base} failed {said}") from None
            except (OSError, http.client.HTTPException) as error:
                raise Failed(f"{self.base} gave no answer: {getattr(error, 'reason', error)}") from None
            except ValueError as error:  # a URL that is none, or an answer that is no JSON
                raise BadInput(f"{self.base} is no OpenAI-compatible server: {error}") from None

    def _read(self, reply: http.client.HTTPResponse, until: float) -> bytes:
        """The whole of an answer, which ends in time and is of a size."""
        content = bytearray()
        while piece := reply.read1(1 << 16):
            content += piece
            if len(content) > MOST:
                raise Failed(f"{self.base} answers without an end: more than {MOST >> 20} MiB")
            if time.monotonic() > until:
                raise Failed(f"{self.base} gave no whole answer within {self.seconds:g} s")
        if reply.length:  # of what was announced
            raise http.client.IncompleteRead(bytes(content), reply.length)
        return bytes(content)


def _complaint(error: urllib.error.HTTPError) -> str:
    return " ".join(error.read(SHOWN).decode(errors="replace").split())


def _pause(error: urllib.error.HTTPError) -> float:
    """Seconds after which a busy server wants to be asked again."""
    named = error.headers.get("Retry-After", "")
    return float(named) if named.isdigit() else PAUSE


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


def _completion(text: str, told: dict[str, Any]) -> Completion:
    """In either form of the API. Tokens that are not those of the text are left out, and so are their chances."""
    if "content" in told:
        tokens: list[str] | None = [row["token"] for row in told["content"]]
        rows = [{one["token"]: one["logprob"] for one in row.get("top_logprobs") or []} for row in told["content"]]
    else:
        tokens, rows = told.get("tokens"), [dict(row or {}) for row in told.get("top_logprobs") or []]
    if tokens is None or "".join("".join(tokens).split()) != "".join(text.split()):
        return Completion(text, None, None)
    return Completion(text, tuple(tokens), tuple(rows) or None)
