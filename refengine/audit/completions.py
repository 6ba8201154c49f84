"""A client of an OpenAI-compatible server: one request for a completion, and what came of it.

Only `POST BASE/completions` is used, with prompt, max_tokens, temperature, seed and logprobs, by the standard library's
HTTP. Where a server reports its tokens they are taken as outcomes; where it does not, the text is.
"""

import http.client
import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from refengine.errors import BadInput

SHOWN = 200  # characters of a server's complaint
LOGPROBS = 5  # alternatives asked for: what every server allows
KEY = "OPENAI_API_KEY"  # sent as a bearer token where it is set


class ServerFailed(Exception):
    """No completion came back; the message says what did."""


@dataclass(frozen=True)
class Completion:
    """A completion: its text, and where the server reports them its tokens with the chances of the likeliest."""

    text: str
    tokens: tuple[str, ...] | None
    top: tuple[dict[str, float], ...] | None  # log probabilities by token, per position


@dataclass(frozen=True)
class Server:
    """base: up to and including /v1. seconds: for one answer."""

    base: str
    model: str | None
    seconds: float = 30.0

    def complete(self, prompt: str, tokens: int, temperature: float, seed: int) -> Completion:
        """Raises ServerFailed where no completion came back, BadInput where the request was refused."""
        body = {
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": temperature,
            "seed": seed,
            "logprobs": LOGPROBS,
            **({"model": self.model} if self.model else {}),
        }
        answer = self._post(json.dumps(body).encode())
        try:
            choice = answer["choices"][0]
            told = choice.get("logprobs") or {}
            names, top = told.get("tokens"), told.get("top_logprobs")
            return Completion(
                str(choice["text"]),
                tuple(map(str, names)) if names is not None else None,
                tuple(dict(row or {}) for row in top) if top is not None else None,
            )
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ServerFailed(f"{self.base} answered {json.dumps(answer)[:SHOWN]}, which is no completion") from None

    def _post(self, body: bytes) -> Any:
        headers = {"Content-Type": "application/json"}
        if os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {os.environ[KEY]}"
        try:
            request = urllib.request.Request(f"{self.base.rstrip('/')}/completions", body, headers)
            with urllib.request.urlopen(request, timeout=self.seconds) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            said = error.read(SHOWN).decode(errors="replace").strip().replace("\n", " ")
            if error.code < 500:
                raise BadInput(f"{self.base} refused the request ({error.code}): {said}") from None
            raise ServerFailed(f"{self.base} failed ({error.code}): {said}") from None
        except (OSError, http.client.HTTPException) as error:
            raise ServerFailed(f"{self.base} gave no answer: {getattr(error, 'reason', error)}") from None
        except ValueError as error:  # a URL that is none, or an answer that is no JSON
            raise BadInput(f"{self.base} is no OpenAI-compatible server: {error}") from None
