"""A completion server over HTTP for tests: a chain over five words, with speculation that is right, wrong or absent."""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import log
from typing import Any

WORDS = ("a", "b", "c", "d", "e")
TARGET = {
    "a": (0.4, 0.3, 0.1, 0.1, 0.1),
    "b": (0.1, 0.2, 0.5, 0.1, 0.1),
    "c": (0.3, 0.1, 0.1, 0.25, 0.25),
    "d": (0.2, 0.2, 0.2, 0.1, 0.3),
    "e": (0.6, 0.1, 0.1, 0.1, 0.1),
}
DRAFT = (0.1, 0.3, 0.2, 0.3, 0.1)


def following(mode: str, last: str, temperature: float, chance: random.Random) -> str:
    """The next word after `last`: plain, or drafted from one row and verified."""
    p = TARGET[last]
    if temperature == 0:
        order = sorted(range(5), key=lambda i: -p[i])
        if mode == "ties" and p[order[0]] - p[order[1]] < 1e-6:
            return WORDS[order[1]]
        return WORDS[order[1 if mode == "second best" and last == "c" else 0]]
    if mode == "plain":
        return chance.choices(WORDS, p)[0]
    x = chance.choices(range(5), DRAFT)[0]
    if chance.random() * DRAFT[x] < p[x]:
        return WORDS[x]
    left = p if mode == "from p" else [max(0.0, a - b) for a, b in zip(p, DRAFT, strict=True)]
    return chance.choices(WORDS, left)[0]


def completion(mode: str, body: dict[str, Any]) -> dict[str, Any]:
    seed = 0 if mode == "stuck" else body["seed"]
    chance = random.Random(f"{mode} {seed}")
    words = [body["prompt"].strip()[-1]]
    for _ in range(body["max_tokens"] + (mode == "one more")):
        words.append(following(mode, words[-1], body["temperature"], chance))
    space = "" if mode.startswith("joined") else " "
    rows = [{f"{space}{w}": log(p) for w, p in zip(WORDS, TARGET[word], strict=True)} for word in words[:-1]]
    tokens = [f"{space}{word}" for word in words[1:]]
    told: dict[str, Any] | None = {"tokens": tokens, "top_logprobs": rows}
    if mode == "in the words of chats":
        top = [[{"token": token, "logprob": chance} for token, chance in row.items()] for row in rows]
        told = {"content": [{"token": t, "top_logprobs": row} for t, row in zip(tokens, top, strict=True)]}
    if mode == "other tokens":
        told = {"tokens": [" a"] * len(tokens), "top_logprobs": rows}
    if mode in ("no chances", "joined, no chances"):
        told = None
    return {"choices": [{"text": "".join(tokens), "logprobs": told}]}


@contextmanager
def serving(mode: str) -> Iterator[str]:
    """The base address of a server in this mode; `fails` breaks down after some requests."""
    served = iter(range(10**9))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/completions" or mode == "refuses":
                self.answer(404, {"error": {"message": "model 'tiny' does not exist"}})
            elif mode == "in the words of chats" and type(body.get("logprobs", True)) is not bool:
                self.answer(400, {"error": "logprobs must be of type bool"})
            elif mode == "fails" and next(served) > 20:
                self.answer(500, {"error": "out of memory"})
            elif mode == "busy" and next(served) % 3 == 0:
                self.answer(429, {"error": "too many requests"})
            elif mode in ("drips", "floods"):
                self.pour(0.1 if mode == "drips" else 0.0)
            elif mode == "thinks":
                self.answer(200, {"choices": [{"text": None}]})
            elif mode == "chats":
                self.answer(200, {"choices": [{"message": "hello"}]})
            else:
                self.answer(200, completion(mode, body))

        def answer(self, code: int, content: Any) -> None:
            encoded = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def pour(self, pause: float) -> None:
            """An answer without an end."""
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(b" " * (1 if pause else 1 << 16))
                    time.sleep(pause)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
