"""The test engine behind the OpenAI API, with the manners of honest servers."""

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from select import select
from socket import MSG_PEEK
from typing import Any

import msgspec

from properties.helpers.listening import Quiet, listening
from properties.helpers.served.defects import LEAKS
from properties.helpers.served.engine import Engine
from properties.helpers.served.model import TIED
from refengine.audit.served.ask import INCLUDED
from refengine.report.finding import Recipe

RECIPE = Recipe(function="refengine.audit.served.endpoint:audit_served")
LEFT = (
    *LEAKS,
    "what a client that left wrote is stale in the cache",
    "counts survive a client that left",
    "the temperature of a request that was left stays",
)
TAKEN = {
    *("prompt", "messages", "model", "max_tokens", "min_tokens", "temperature", "seed", "n", "stop", "stream", "echo"),
    *("logprobs", "top_logprobs", "top_k", "top_p", "min_p", "frequency_penalty", "presence_penalty"),
    *("repetition_penalty", "logit_bias", "allowed_token_ids", "bad_words", "stop_token_ids", "stream_options"),
    *("response_format", "ignore_eos", "tools", "tool_choice", "max_completion_tokens", INCLUDED),
}
ODD = (
    "text only", "seedless", "busy", "slow", "no logprobs", "noisy", "noisy, text only", "another text every time",
    "strips spaces", "counts the end", "takes all and does nothing", "falls over some parameters", "odd pieces",
    "small context", "refuses with speculation", "rows of the policy", "rounded rows", "stratified choices",
    "exact ties", "ties broken at random", "noisy, one entry a row", "refuses seeds", "context of 96",
    "pieces of characters", "cuts prompts", "streams without rows", "closes every time",
    "ties broken at random, text only", "shows the end", "cleans up blanks", "usage in every chunk",
    "refuses more than two rows", "fails now and then", "refuses choices at temperature 0",
    "noisy, text only, one choice", "text only, seedless, no echo, one choice", "drafts less in company", "tells ids",
    "takes lists", "choices have the next seeds",
)  # fmt: skip
MASKED = "\N{REPLACEMENT CHARACTER}"  # what is reported of a token that is a piece of a character
LONG, PATIENCE = 160, 0.4  # tokens of a stream whose client may leave; seconds in which one that leaves has done so
CUT_WORDS = 8  # of a prompt that a server keeps which cuts it from the left


def masked(told: dict[str, Any]) -> None:
    """Every fifth token is but a piece of a character, and all of these look alike."""

    def name(token: str) -> str:
        return MASKED if sum(token.encode()) % 5 == 0 else token

    for entry in told.get("content") or ():
        entry["token"] = name(entry["token"])
        for other in entry["top_logprobs"]:
            other["token"] = name(other["token"])
    if "tokens" in told:
        told["tokens"] = [name(token) for token in told["tokens"]]
        told["top_logprobs"] = [row and {name(t): c for t, c in row.items()} for row in told["top_logprobs"]]


def end_shown(told: dict[str, Any]) -> None:
    """The token that ended the text has a row too."""
    if "content" in told:
        told["content"].append({"token": "</s>", "logprob": -0.5, "top_logprobs": [{"token": "</s>", "logprob": -0.5}]})
    if "tokens" in told:
        for name, last in (("tokens", "</s>"), ("token_logprobs", -0.5), ("top_logprobs", {"</s>": -0.5})):
            told[name].append(last)


def streamed(
    engine: Engine, made: dict[str, Any], chat: bool, body: dict[str, Any], size: int, comment: str, continuous: bool
) -> str:
    """An answer as events, in pieces of so many characters."""
    events: list[dict[str, Any]] = []
    for choice in made["choices"]:
        message = choice["message"] if chat else {"content": choice["text"]}
        (call,) = (told["function"] for told in message.get("tool_calls") or [{"function": None}])
        text = call["arguments"] if call else message["content"]
        if call:
            named = {"index": 0, "id": "1", "type": "function", "function": {"name": call["name"], "arguments": ""}}
            events.append({"choices": [{"index": choice["index"], "delta": {"tool_calls": [named]}}]})
        for i in range(0, len(text), size):
            said = text[i : i + size]
            if chat and engine.has("pieces of a streamed chat lose the blank before them"):
                said = said.removeprefix(" ")
            piece: dict[str, Any] = {"delta": {"content": said}} if chat else {"text": said}
            if call:
                piece = {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": said}}]}}
            swapped = i and engine.has("streamed choices change places")
            index = (choice["index"] + 1) % len(made["choices"]) if swapped else choice["index"]
            events.append({"choices": [{"index": index, **piece}]})
        last = {"delta": {}} if chat else {"text": ""}
        more = {"logprobs": choice["logprobs"]} if "logprobs" in choice else {}
        told = {"index": choice["index"], **last, "finish_reason": choice["finish_reason"], **more}
        events.append({"choices": [told]})
    counted = (body.get("stream_options") or {}).get("include_usage") and "usage" in made
    ended = any(choice["finish_reason"] == "stop" for choice in made["choices"])
    if counted and not (ended and engine.has("a stream that a stop ends lacks its usage")):
        if continuous:  # counted anew in every chunk, as vLLM can
            before = made["usage"]["prompt_tokens"]
            for k, event in enumerate(events):
                event["usage"] = {"prompt_tokens": before, "completion_tokens": k, "total_tokens": before + k}
        events.append({"choices": [], "usage": made["usage"]})
    return "".join(f"data: {json.dumps(event)}\n\n{comment}" for event in events) + "data: [DONE]\n\n"


@dataclass
class Front:
    """What stands before an engine. manner: one of ODD, of an honest server."""

    engine: Engine
    manner: str = ""
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    count: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    def __post_init__(self) -> None:
        engine, manner = self.engine, self.manner
        if manner.startswith("noisy") or manner == "another text every time":
            engine.noise, engine.every_time = 0.05, manner == "another text every time"
        engine.processed, engine.rounded = manner == "rows of the policy", manner == "rounded rows"
        engine.stratified, engine.sparing = manner == "stratified choices", manner == "drafts less in company"
        if manner == "exact ties" or manner.startswith("ties broken"):  # the first token of a tie without speculation
            engine.language, engine.noise = TIED, 1e-9 * engine.speculative
            engine.every_time = manner.startswith("ties broken")
        engine.counting = manner == "choices have the next seeds"
        engine.listed = 1 if manner == "noisy, one entry a row" else 5
        if manner.startswith("context of"):
            engine.context = int(manner.split()[-1])

    def answer(self, body: dict[str, Any], chat: bool) -> tuple[int, dict[str, Any]]:
        """(status, content)."""
        if self.manner == "busy" and next(self.count) % 5 == 0:
            return 429, {"error": "too many requests"}
        if self.manner == "fails now and then" and self.chance.random() < 0.07:
            return 503, {"error": "overloaded"}
        if self.engine.has("it falls over top_k") and "top_k" in body:
            return 500, {"error": "internal"}
        if self.engine.has("it falls over n") and body.get("n", 1) > 1:
            return 503, {"error": "no workers"}
        if self.engine.has("it hangs up on log probabilities") and body.get("logprobs"):
            raise ConnectionAbortedError
        if self.engine.has("it hangs up on bans") and "bad_words" in body:
            raise ConnectionAbortedError
        numbered = self.manner == "tells ids" and body.pop("return_token_ids", False)
        if self.manner == "tells ids" and isinstance(body.get("prompt"), list):
            read = body["prompt"][: -1 if self.engine.has("a prompt of ids is read one token short") else None]
            body["prompt"] = "".join(self.engine.language.words[i] for i in read)
        if self.manner == "takes lists" and isinstance(body.get("prompt"), list):
            return self.listed(body)
        if refused := self.refused(body, chat):
            self.engine.arrive()
            self.engine.refused = True
            return refused[0], {"error": refused[1]}
        self.take(body, chat)
        made = self.engine.answer(body, chat)
        self.tell(made, chat)
        for choice in made["choices"] if numbered and not chat else ():
            for name, text in (("token_ids", choice["text"]), ("prompt_token_ids", body["prompt"])):
                choice[name] = self.engine.language.ids_of(text)
            if self.engine.has("the last id of an answer is the draft's"):
                choice["token_ids"][-1:] = [7]
        return 200, made

    def listed(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The answers to a list of prompts, one after the other: the requests that it stands for."""
        made = [self.answer({**body, "prompt": prompt}, False) for prompt in body["prompt"]]
        if refused := next((told for told in made if told[0] != 200), None):
            return refused
        choices = [choice for _, told in made for choice in told["choices"]]
        usage = {name: sum(told["usage"][name] for _, told in made) for name in made[0][1]["usage"]}
        return 200, {"choices": [{**c, "index": i} for i, c in enumerate(choices)], "usage": usage}

    def refused(self, body: dict[str, Any], chat: bool) -> tuple[int, str] | None:
        engine, manner = self.engine, self.manner
        unknown = set(body) - (TAKEN if engine.language.json else TAKEN - {"response_format", "tools"})
        unknown |= {"echo"} & set(body) if "no echo" in manner else set()
        if unknown or (chat and manner == "text only"):
            return 400, f"unknown: {sorted(unknown)}"
        if isinstance(body.get("prompt"), list):
            return 400, "a list of prompts is not taken"
        if body.get("temperature", 1.0) < 0 and manner != "takes all and does nothing":
            return 400, "temperature must not be negative"
        if manner == "falls over some parameters" and {"min_p", "logit_bias"} & set(body):
            return 500, "internal"
        if manner == "refuses with speculation" and engine.speculative and {"n", "frequency_penalty"} & set(body):
            return 400, "not with speculative decoding"
        if manner == "refuses more than two rows" and max(body.get("logprobs", 0), body.get("top_logprobs", 0)) > 2:
            return 400, "at most 2 log probabilities"
        if manner.endswith("one choice") and body.get("n", 1) > 1:
            return 400, "n must be 1"
        if manner == "refuses choices at temperature 0" and body.get("n", 1) > 1 and not body.get("temperature", 1.0):
            return 400, "n must be 1 at temperature 0"
        if manner == "refuses seeds" and "seed" in body:
            return 400, "seeds are not supported"
        words = len(" ".join(m["content"] for m in body["messages"]) if chat else body["prompt"])
        if manner == "small context" and words // 4 + body["max_tokens"] > 64:
            return 400, "longer than the context of 64 tokens"
        room = body["max_tokens"] if manner == "context of 32" else 1  # others end at the edge of the context
        if engine.tokens_of(body) + room > engine.context and manner != "cuts prompts":
            return 400, f"longer than the context of {engine.context} tokens"
        return None

    def take(self, body: dict[str, Any], chat: bool) -> None:
        """What becomes of a request before the engine has it."""
        manner = self.manner
        if manner == "takes all and does nothing":
            for name in ("top_k", "min_p", "logit_bias", "frequency_penalty", "min_tokens", "bad_words", "stop"):
                body.pop(name, None)
        if (
            "text only" in manner
            or manner == "no logprobs"
            or (manner == "streams without rows" and body.get("stream"))
        ):
            body.pop("logprobs", None)
        if "seedless" in manner:
            body.pop("seed", None)
        if manner == "cuts prompts" and not chat:
            body["prompt"] = " ".join(body["prompt"].split()[-CUT_WORDS:])
        if manner == "slow":
            time.sleep(0.02)

    def tell(self, made: dict[str, Any], chat: bool) -> None:
        """What becomes of an answer behind the engine."""
        manner = self.manner
        if "text only" in manner:
            made.pop("usage")
        if manner in ("counts the end", "shows the end"):
            made["usage"]["completion_tokens"] += sum(c["finish_reason"] == "stop" for c in made["choices"])
        for choice in made["choices"]:
            told, name = (choice["message"], "content") if chat else (choice, "text")
            if manner == "pieces of characters":
                masked(choice.get("logprobs") or {})
            if manner == "shows the end" and choice["finish_reason"] == "stop":
                end_shown(choice.get("logprobs") or {})
            if told.get(name) is None:
                continue
            if manner == "cleans up blanks":
                told[name] = told[name].replace(" b", "b")
            if manner == "strips spaces":
                told[name] = told[name].strip()


@contextmanager
def serving(engine: Engine, manner: str = "") -> Iterator[str]:
    """The base address of an engine with that manner."""
    front = Front(engine, manner)
    size, comment = (1, ": still here\r\n\r\n") if manner == "odd pieces" else (7, "")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0" if manner == "closes every time" else "HTTP/1.1"
        disable_nagle_algorithm = True  # or a second small write waits until the first is acknowledged
        wbufsize = 1 << 16

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            chat = self.path.endswith("/chat/completions")
            code, made = front.answer(body, chat)
            if code == 200 and body.get("stream"):
                self.pour(streamed(engine, made, chat, body, size, comment, manner == "usage in every chunk"), body)
            else:
                self.say(code, made, {"Retry-After": "0.01"} if code == 429 else {})

        def say(self, code: int, content: dict[str, Any], headers: dict[str, str]) -> None:
            encoded = msgspec.json.encode(content)
            self.send_response(code)
            for name, value in {"Content-Length": str(len(encoded)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(encoded)

        def pour(self, content: str, body: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content.encode())))
            self.end_headers()
            self.wfile.write(content.encode()[:1])
            self.wfile.flush()
            may_leave, late = any(map(engine.has, LEFT)) and body["max_tokens"] >= LONG, False
            try:
                if may_leave and self.is_left():
                    raise ConnectionResetError("the client left")
                self.connection.sendall(content.encode()[1:])
                late = True
                if may_leave and self.is_left():
                    raise ConnectionResetError("the client left, later")
            except OSError:
                engine.left(body, late)
                raise

        def is_left(self) -> bool:
            """A client that leaves closes the connection; one that stays costs the wait."""
            said, _, _ = select([self.connection], [], [], PATIENCE)
            return bool(said) and not self.connection.recv(1, MSG_PEEK)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    with listening(Quiet(("127.0.0.1", 0), Handler)) as address:
        yield f"{address}/v1"
