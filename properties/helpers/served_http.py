"""The test engine behind the OpenAI API, with the manners of honest servers."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from properties.helpers.served_engine import Engine

LEAK = "a request that was left leaks a token"
TAKEN = {
    *("prompt", "messages", "model", "max_tokens", "min_tokens", "temperature", "seed", "n", "stop", "stream", "echo"),
    *("logprobs", "top_logprobs", "top_k", "top_p", "min_p", "frequency_penalty", "presence_penalty"),
    *("repetition_penalty", "logit_bias", "allowed_token_ids", "bad_words", "stop_token_ids", "stream_options"),
}
ODD = (
    "text only", "seedless", "busy", "slow", "no logprobs", "noisy", "noisy, text only", "another text every time",
    "strips spaces", "counts the end", "takes all and does nothing", "falls over some parameters", "odd pieces",
    "small context", "refuses with speculation", "rows of the policy", "rounded rows", "stratified choices",
)  # fmt: skip


@contextmanager
def serving(engine: Engine, manner: str = "") -> Iterator[str]:
    """The base address. manner: "text only", "seedless", "busy", "slow", "no logprobs" of an honest server."""
    count = iter(range(10**9))
    if manner.startswith("noisy") or manner == "another text every time":
        engine.noise, engine.every_time = 0.05, manner == "another text every time"
    engine.processed, engine.rounded = manner == "rows of the policy", manner == "rounded rows"
    engine.stratified = manner == "stratified choices"
    size = 1 if manner == "odd pieces" else 7  # characters of a piece

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or a second small write waits until the first is acknowledged
        wbufsize = 1 << 16

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            chat = self.path.endswith("/chat/completions")
            unknown = set(body) - TAKEN
            if manner == "busy" and next(count) % 5 == 0:
                return self.say(429, {"error": "too many requests"}, {"Retry-After": "0.01"})
            if unknown or (chat and manner == "text only"):
                return self.refuse(400, f"unknown: {sorted(unknown)}")
            if manner == "takes all and does nothing":
                for name in ("top_k", "min_p", "logit_bias", "frequency_penalty", "min_tokens", "bad_words", "stop"):
                    body.pop(name, None)
            if manner == "falls over some parameters" and {"min_p", "logit_bias"} & set(body):
                return self.refuse(500, "internal")
            if manner == "refuses with speculation" and engine.speculative and {"n", "frequency_penalty"} & set(body):
                return self.refuse(400, "not with speculative decoding")
            if manner == "small context":
                words = len(" ".join(m["content"] for m in body["messages"]) if chat else body["prompt"])
                if words // 4 + body["max_tokens"] > 64:
                    return self.refuse(400, "longer than the context of 64 tokens")
            if manner in ("text only", "noisy, text only", "no logprobs"):
                body.pop("logprobs", None)
            if manner == "seedless":
                body.pop("seed", None)
            if manner == "slow":
                time.sleep(0.02)
            made = engine.answer(body, chat)
            if "text only" in manner:
                made.pop("usage")
            if manner == "counts the end":
                made["usage"]["completion_tokens"] += sum(c["finish_reason"] == "stop" for c in made["choices"])
            if manner == "strips spaces":
                for choice in made["choices"]:
                    told = choice["message"] if chat else choice
                    told["content" if chat else "text"] = told["content" if chat else "text"].strip()
            return self.pour(made, chat, body) if body.get("stream") else self.say(200, made)

        def refuse(self, code: int, why: str) -> None:
            engine.arrive()
            self.say(code, {"error": why})

        def say(self, code: int, content: Any, headers: dict[str, str] | None = None) -> None:
            encoded = json.dumps(content).encode()
            self.send_response(code)
            for name, value in {"Content-Length": str(len(encoded)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(encoded)

        def pour(self, made: dict[str, Any], chat: bool, body: dict[str, Any]) -> None:
            events = []
            for choice in made["choices"]:
                text = choice["message"]["content"] if chat else choice["text"]
                for i in range(0, len(text), size):
                    piece = {"delta": {"content": text[i : i + size]}} if chat else {"text": text[i : i + size]}
                    events.append({"choices": [{"index": choice["index"], **piece}]})
                last = {"delta": {}} if chat else {"text": ""}
                more = {"logprobs": choice["logprobs"]} if "logprobs" in choice else {}
                events.append(
                    {"choices": [{"index": choice["index"], **last, "finish_reason": choice["finish_reason"], **more}]}
                )
            if (body.get("stream_options") or {}).get("include_usage") and "usage" in made:
                events.append({"choices": [], "usage": made["usage"]})
            comment = ": still here\r\n\r\n" if manner == "odd pieces" else ""
            content = "".join(f"data: {json.dumps(e)}\n\n{comment}" for e in events) + "data: [DONE]\n\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(content.encode())))
            self.end_headers()
            self.wfile.write(content.encode()[:1])
            self.wfile.flush()
            time.sleep(0.002 * engine.has(LEAK))  # to see a client that leaves
            try:
                self.connection.sendall(content.encode()[1:2])
                time.sleep(0.002 * engine.has(LEAK))
                self.connection.sendall(content.encode()[2:])
            except OSError:
                engine.leaked.append(7)
                raise

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: Any) -> None:
            """A client that went away is no error."""

    server = Quiet(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
