"""A small serving engine for tests: a Markov model over forty words behind the OpenAI API, with speculation that is
right but for one planted defect.

The text without speculation is `plain_step` at every position. With speculation, blocks are drafted from another model
and verified by the ratio rule, each node with the policy of its own prefix. A defect is a word that the code below asks
for where engines have been wrong.
"""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import exp, inf, log
from typing import Any

WORDS = [f" {a}{b}" for a in "bdfgklmn" for b in ("a", "e", "ino", "u", "olt")]
V, GAMMA, END = len(WORDS), 3, 0
TAKEN = {
    *("prompt", "messages", "model", "max_tokens", "min_tokens", "temperature", "seed", "n", "stop", "stream", "echo"),
    *("logprobs", "top_logprobs", "top_k", "top_p", "min_p", "frequency_penalty", "presence_penalty"),
    *("repetition_penalty", "logit_bias", "allowed_token_ids", "bad_words"),
}


def ids_of(text: str) -> list[int]:
    known = {word.strip(): i for i, word in enumerate(WORDS)}
    return [known.get(w, sum(w.encode()) % V) for w in text.split()]


def logits(context: list[int], noise: float = 0.0) -> list[float]:
    """Of the next token, from the last two; `noise` makes the draft model."""
    source = random.Random(f"{context[-2:]}")
    row = [source.gauss(0.0, 1.6) for _ in range(V)]
    row[END] -= 1.0
    return [x + noise * source.gauss(0.0, 1.0) for x in row] if noise else row


def shaped(row: list[float], body: dict[str, Any], out: list[int], least: int) -> list[float]:
    """Probabilities after the policy; at temperature 0 a point."""
    row = list(row)
    for i, value in (body.get("logit_bias") or {}).items():
        row[int(i)] += value
    for x in set(out):
        count = out.count(x)
        row[x] -= body.get("frequency_penalty", 0.0) * count + body.get("presence_penalty", 0.0)
        scale = body.get("repetition_penalty", 1.0)
        row[x] = row[x] / scale if row[x] > 0 else row[x] * scale
    allowed = body.get("allowed_token_ids")
    for i in range(V):
        banned = any(WORDS[i].strip() == w.strip() for w in body.get("bad_words") or ())
        if (allowed is not None and i not in allowed) or banned or (i == END and len(out) < least):
            row[i] = -inf
    temperature = body.get("temperature", 1.0)
    if temperature == 0:
        best = max(range(V), key=lambda i: (row[i], -i))
        return [float(i == best) for i in range(V)]
    top = max(row)
    weights = [exp((x - top) / temperature) for x in row]
    order = sorted(range(V), key=lambda i: -weights[i])
    total = sum(weights)
    keep, mass = set(), 0.0
    for rank, i in enumerate(order):
        if (
            rank < (body.get("top_k") or V)
            and mass < body.get("top_p", 1.0)
            and weights[i] >= body.get("min_p", 0.0) * weights[order[0]]
        ):
            keep.add(i)
        mass += weights[i] / total
    weights = [w if i in keep else 0.0 for i, w in enumerate(weights)]
    total = sum(weights)
    return [w / total for w in weights]


@dataclass
class Engine:
    """One server. speculative: whether it drafts. defect: what is wrong with it then."""

    speculative: bool = False
    defect: str = ""
    served: int = 0
    under_way: int = 0
    last_prefix: list[int] = field(default_factory=list)
    stale: bool = False
    biases: list[dict[str, float]] = field(default_factory=list)
    noise: float = 0.0  # of the logits in half precision: another one for every shape of a batch
    every_time: bool = False  # and at every time
    lock: threading.Lock = field(default_factory=threading.Lock)

    def has(self, defect: str) -> bool:
        return self.speculative and self.defect == defect

    def seen(self, context: list[int], shape: int) -> list[float]:
        """The logits as they come out of a batch of that shape."""
        row = logits(context)
        if not self.noise:
            return row
        source = random.Random(None if self.every_time else f"{context[-2:]}{shape}{self.speculative}")
        return [x + source.gauss(0.0, self.noise) for x in row]

    def generate(self, prompt: list[int], body: dict[str, Any], chance: random.Random, company: int) -> dict[str, Any]:
        out: list[int] = []
        rows: list[list[float]] = []
        limit = body.get("max_tokens", 16)
        if self.has("one token injected in company") and company > 1 and chance.random() < 0.45:
            out, rows = [3], [logits(prompt)]
        if self.has("one token too many"):
            limit += 1
        stops = [body["stop"]] if isinstance(body.get("stop"), str) else list(body.get("stop") or ())
        context = list(prompt)
        if self.has("prefix of another request") and self.last_prefix[:2] == prompt[:2] and self.last_prefix != prompt:
            context = self.last_prefix[-1:] + context[-1:] if len(context) > 1 else context
        while True:
            block = (
                self.round(context, out, body, chance, company)
                if self.speculative
                else [self.step(context, out, body, chance, company)]
            )
            done = False
            for x in block:
                rows.append(self.seen(context + out, company))
                out.append(x)
                text = "".join(WORDS[i] for i in out)
                ends = x == END and not (self.has("drafts go on past the end") and len(out) % 2)
                if ends or len(out) >= limit or any(s in text for s in stops):
                    done = True
                    if not self.has("stop checked once a round") or x == END or len(out) >= limit:
                        break
            if done:
                break
        self.last_prefix = prompt
        return self.choice(out, rows, body, stops, limit)

    def step(
        self, context: list[int], out: list[int], body: dict[str, Any], chance: random.Random, company: int
    ) -> int:
        return draw(shaped(self.seen(context + out, company), body, out, body.get("min_tokens", 0)), chance)

    def round(
        self, context: list[int], out: list[int], body: dict[str, Any], chance: random.Random, company: int
    ) -> list[int]:
        """Draft, verify, correct; what is emitted."""
        least = body.get("min_tokens", 0)
        drafted: list[int] = []
        emitted: list[int] = []
        if self.has("unseeded requests share a stream") and body.get("seed") is None:
            chance = random.Random(f"{context}{len(out)}")
        if self.has("seeds are not honoured"):
            chance = random.Random()
        for _ in range(GAMMA):
            now = out + drafted
            policy = dict(body)
            q = shaped(logits(context + now, 0.7), policy, now, least)
            if self.has("argmax draft, softmax q"):
                drafted.append(max(range(V), key=lambda t: q[t]))
            else:
                drafted.append(draw(q, chance))
        for i in range(GAMMA + 1):
            now = out + emitted
            seen, policy, floor = now, dict(body), least
            if self.has("penalties once a block"):
                seen = out
            if self.has("min_p on the last row only") and i < GAMMA:
                policy.pop("min_p", None)
            if self.has("top_k on the last row only") and i < GAMMA:
                policy.pop("top_k", None)
            if self.has("bias ignored"):
                policy.pop("logit_bias", None)
            if self.has("min_tokens counts rounds"):
                floor = least * 3
            if self.has("bans on the first position only") and i:
                policy.pop("bad_words", None)
                policy.pop("allowed_token_ids", None)
            past = context + now
            if self.has("rows swapped in company") and company > 1 and i == 1:
                past = past[:-2] + past[-1:] + past[-1:]
            if self.has("position off by one after forty") and len(now) > 40:
                past = past[:-1]
            if self.has("presence counted twice") and seen:
                policy["presence_penalty"] = 2 * policy.get("presence_penalty", 0.0)
            if self.has("nucleus of the draft"):
                policy["top_p"] = 1.0
            if self.has("neighbour's bias") and company > 1 and self.biases:
                policy["logit_bias"] = self.biases[-1]
            if self.has("stale after a short request") and self.stale and len(now) < 4:
                past = [*past[:-1], 7]
            if self.has("worn out after 300 requests") and self.served > 300 and self.served % 3 == 0 and i == 2:
                past = past[:-1]
            if self.has("cache cut at forty tokens of prompt") and len(context) > 40 and i:
                past = past[:-2] + past[-1:]
            p = shaped(self.seen(past, company), policy, seen, floor)
            if self.has("argmax in verification") and i < GAMMA:
                p = shaped(logits(past), {**policy, "temperature": 0.0}, seen, floor)
            if self.has("the first token is the likeliest") and not now:
                p = shaped(logits(past), {**policy, "temperature": 0.0}, seen, floor)
            if self.has("temperature on one side only") and 0 < body.get("temperature", 1.0) != 1.0 and i < GAMMA:
                p = shaped(logits(past), {**policy, "temperature": 1.0}, seen, floor)
            if i == GAMMA:
                emitted.append(draw(p, chance))
                return emitted
            q = shaped(logits(context + now, 0.7), body, now, least)
            x = drafted[i]
            if chance.random() * q[x] < p[x]:
                emitted.append(x)
                if x == END and not self.has("drafts go on past the end"):
                    return emitted
                continue
            if self.has("allowed tokens forgotten in the correction"):
                p = shaped(logits(past), {**policy, "allowed_token_ids": None}, seen, floor)
            rest = p if self.has("corrected from p") else [max(0.0, a - b) for a, b in zip(p, q, strict=True)]
            emitted.append(draw(rest if sum(rest) > 0 else p, chance))
            return emitted
        return emitted

    def choice(
        self, out: list[int], rows: list[list[float]], body: dict[str, Any], stops: list[str], limit: int
    ) -> dict[str, Any]:
        text = "".join(WORDS[i] for i in out if i != END)
        finish = "stop" if out[-1] == END else "length"
        for stop in stops:
            if stop in text:
                late = self.has("stop checked once a round")
                text, finish = text if late else text[: text.index(stop)], "stop"
        if self.has("finish_reason after a stop") and finish == "stop":
            finish = "length"
        told: dict[str, Any] = {"text": text, "finish_reason": finish}
        shown = [i for i in out if i != END]
        if stops and finish == "stop" and not self.has("tokens past the stop"):
            while shown and len("".join(WORDS[i] for i in shown[:-1])) >= len(text) and shown:
                shown.pop()
        elif stops and finish == "stop":
            shown = [*shown, 1, 2]
        if body.get("logprobs"):
            chances = []
            for row in rows[: len(shown)]:
                total = log(sum(exp(x) for x in row))
                chances.append([x - total for x in row])
            if self.has("log probabilities of the row before") and chances:
                chances = [chances[0], *chances[:-1]]
            tops = [
                dict(sorted(((WORDS[i], c) for i, c in enumerate(row)), key=lambda t: -t[1])[:5]) for row in chances
            ]
            own = [row[x] for x, row in zip(shown, chances, strict=False)]
            if self.has("log probability zero"):
                own = [0.0 for _ in own]
            if self.has("log probabilities wrong in the last block"):
                own = [c if k < limit - GAMMA else c - 2.5 for k, c in enumerate(own)]
            told["logprobs"] = {"tokens": [WORDS[i] for i in shown], "token_logprobs": own, "top_logprobs": tops}
        told["count"] = len(shown) + (self.has("usage counts the drafts") * 2)
        if self.has("usage counts past the end") and finish == "stop":
            told["count"] += 1 + len(out) % GAMMA
        if self.has("a streamed answer lacks its end") and body.get("stream") and len(out) % 2:
            told["text"] = "".join(WORDS[i] for i in shown[:-1])
        return told

    def answer(self, body: dict[str, Any], chat: bool) -> dict[str, Any]:
        with self.lock:
            self.under_way += 1
            self.served += 1
            number = self.served
        try:
            # Requests that are sent together must be under way together, on a loaded machine too.
            time.sleep(0.05 if self.defect in OF_COMPANY else 0.002)
            text = " ".join(m["content"] for m in body["messages"]) if chat else body["prompt"]
            choices = []
            for index in range(body.get("n", 1)):
                seed = body.get("seed")
                if self.has("seeds fail under load") and self.under_way > 1:
                    seed = None
                salt = index if not self.has("the n choices share a stream") else 0
                chance = random.Random(f"{seed}/{salt}" if seed is not None else None)
                if self.has("the n choices share a stream") and seed is None:
                    chance = random.Random(number)
                asked = dict(body)
                if self.has("the third choice is greedy") and index == 2:
                    asked["temperature"] = 0.0
                if self.has("chat forgets the penalties") and chat:
                    asked.pop("frequency_penalty", None)
                    asked.pop("presence_penalty", None)
                if body.get("logit_bias"):
                    self.biases.append(body["logit_bias"])
                made = self.generate(ids_of(text) or [1], asked, chance, self.under_way)
                self.stale = body.get("max_tokens", 16) <= 4
                if body.get("logit_bias"):
                    self.biases.remove(body["logit_bias"])
                choices.append({"index": index, **made})
        finally:
            with self.lock:
                self.under_way -= 1
        count = sum(choice.pop("count") for choice in choices)
        prompt = len(ids_of(text))
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        return {"choices": [as_chat(c) if chat else c for c in choices], "usage": usage}


def as_chat(choice: dict[str, Any]) -> dict[str, Any]:
    told = choice.pop("logprobs", None)
    choice["message"] = {"role": "assistant", "content": choice.pop("text")}
    if told:
        rows = zip(told["tokens"], told["token_logprobs"], told["top_logprobs"], strict=True)
        choice["logprobs"] = {
            "content": [
                {"token": t, "logprob": c, "top_logprobs": [{"token": k, "logprob": v} for k, v in row.items()]}
                for t, c, row in rows
            ]
        }
    return choice


def draw(row: list[float], chance: random.Random) -> int:
    return chance.choices(range(V), row)[0]


DEFECTS = (
    "penalties once a block",
    "min_p on the last row only",
    "top_k on the last row only",
    "bias ignored",
    "min_tokens counts rounds",
    "bans on the first position only",
    "rows swapped in company",
    "position off by one after forty",
    "temperature on one side only",
    "corrected from p",
    "argmax draft, softmax q",
    "one token too many",
    "stop checked once a round",
    "finish_reason after a stop",
    "tokens past the stop",
    "log probabilities of the row before",
    "log probability zero",
    "usage counts the drafts",
    "unseeded requests share a stream",
    "seeds are not honoured",
    "the n choices share a stream",
    "prefix of another request",
)
UNSEEN = (  # written after the suite, by somebody who knew it
    "one token injected in company", "log probabilities wrong in the last block", "seeds fail under load",
    "argmax in verification", "the first token is the likeliest", "drafts go on past the end",
    "usage counts past the end", "presence counted twice", "allowed tokens forgotten in the correction",
    "worn out after 300 requests", "stale after a short request", "neighbour's bias", "a streamed answer lacks its end",
    "chat forgets the penalties", "nucleus of the draft", "the third choice is greedy",
    "cache cut at forty tokens of prompt",
)  # fmt: skip
OF_COMPANY = ("rows swapped in company", "one token injected in company", "seeds fail under load", "neighbour's bias")
ODD = (
    "text only", "seedless", "busy", "slow", "no logprobs", "noisy", "noisy, text only", "another text every time",
    "strips spaces", "counts the end", "takes all and does nothing", "falls over some parameters", "odd pieces",
    "small context", "refuses with speculation",
)  # fmt: skip


@contextmanager
def serving(engine: Engine, manner: str = "") -> Iterator[str]:
    """The base address. manner: "text only", "seedless", "busy", "slow", "no logprobs" of an honest server."""
    count = iter(range(10**9))
    if manner.startswith("noisy") or manner == "another text every time":
        engine.noise, engine.every_time = 0.05, manner == "another text every time"
    size = 1 if manner == "odd pieces" else 7  # characters of a piece

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            chat = self.path.endswith("/chat/completions")
            unknown = set(body) - TAKEN
            if manner == "busy" and next(count) % 5 == 0:
                return self.say(429, {"error": "too many requests"}, {"Retry-After": "0.01"})
            if unknown or (chat and manner == "text only"):
                return self.say(400, {"error": f"unknown: {sorted(unknown)}"})
            if manner == "takes all and does nothing":
                for name in ("top_k", "min_p", "logit_bias", "frequency_penalty", "min_tokens", "bad_words", "stop"):
                    body.pop(name, None)
            if manner == "falls over some parameters" and {"min_p", "logit_bias"} & set(body):
                return self.say(500, {"error": "internal"})
            if manner == "refuses with speculation" and engine.speculative and {"n", "frequency_penalty"} & set(body):
                return self.say(400, {"error": "not with speculative decoding"})
            if manner == "small context":
                words = len(" ".join(m["content"] for m in body["messages"]) if chat else body["prompt"])
                if words // 4 + body["max_tokens"] > 64:
                    return self.say(400, {"error": "longer than the context of 64 tokens"})
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
            return self.pour(made, chat) if body.get("stream") else self.say(200, made)

        def say(self, code: int, content: Any, headers: dict[str, str] | None = None) -> None:
            encoded = json.dumps(content).encode()
            self.send_response(code)
            for name, value in {"Content-Length": str(len(encoded)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(encoded)

        def pour(self, made: dict[str, Any], chat: bool) -> None:
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
            comment = ": still here\r\n\r\n" if manner == "odd pieces" else ""
            content = "".join(f"data: {json.dumps(e)}\n\n{comment}" for e in events) + "data: [DONE]\n\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(content.encode())))
            self.end_headers()
            self.wfile.write(content.encode())

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
