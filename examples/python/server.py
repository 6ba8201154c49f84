"""An OpenAI-compatible server of a tiny model, with speculation or without, and how it is audited.

    refengine fixtures export pair
    python examples/python/server.py pair --port 8000 --speculation on &
    python examples/python/server.py pair --port 8001 --speculation off &
    refengine audit endpoint --on http://127.0.0.1:8000/v1 --off http://127.0.0.1:8001/v1 --only parity --allow-untested
    refengine audit endpoint --on http://127.0.0.1:8000/v1 --known pair --requests 200 --allow-untested

Both are consistent. Started with `--mistake top_p` the side with speculation draws from rows that top_p has not cut, as
where an engine has a verification kernel of its own and forgets a parameter there; both audits find it.

What an engine's server owes the audit is in `Served`: refuse what is not known (400), say what was used, end at a stop
or at the limit, and take every random number from the seed. The rest is the reference decoder.
"""

import argparse
import json
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from refengine.decoder import Stop, generate, load_drafter, load_target, plain
from refengine.decoder.loop import begin
from refengine.engine import policy as steps
from refengine.engine.coins import Philox
from refengine.engine.rules.leviathan import leviathan

GAMMA, POSITIONS = 3, 512
KNOWN: dict[str, tuple[Any, tuple[type, ...]]] = {  # of a request: what it is where it is not given, and its types
    "model": (None, (str,)),
    "prompt": (None, (str, list)),
    "max_tokens": (16, (int,)),
    "temperature": (1.0, (int, float)),
    "top_p": (1.0, (int, float)),
    "top_k": (0, (int,)),
    "seed": (None, (int,)),
    "stop": ([], (str, list)),
    "n": (1, (int,)),
    "logprobs": (None, (int,)),
}
MOST = {"max_tokens": POSITIONS, "n": 16, "logprobs": 20, "top_k": 1 << 20}  # none of these is negative


def checked(request: Any) -> dict[str, Any]:
    """Every parameter, given or not. Raises ValueError for what this server does not know."""
    if not isinstance(request, dict):
        raise ValueError("a request is a JSON object")
    if unknown := request.keys() - KNOWN.keys():
        raise ValueError(f"this server does not know {', '.join(sorted(unknown))}")
    given = {name: value for name, value in request.items() if value is not None}
    for name, value in given.items():
        if type(value) not in KNOWN[name][1] or (name in MOST and not 0 <= value <= MOST[name]):
            raise ValueError(f"{name} cannot be {value!r:.60}")
    asked = {name: default for name, (default, _) in KNOWN.items()} | given
    asked["stop"] = [asked["stop"]] if isinstance(asked["stop"], str) else asked["stop"]
    if not all(isinstance(string, str) and string for string in asked["stop"]):
        raise ValueError("stop is a string that is not empty, or a list of them")
    return asked


class Served:
    """A target with its drafter. speculation: whether it drafts. mistake: "top_p" is forgotten where it does."""

    def __init__(self, pair: Path, speculation: bool, mistake: str = "") -> None:
        told = json.loads((pair / "law.json").read_text())
        self.words, self.end = told["words"], told["end"]
        self.target = load_target(pair / "target", torch.float32)
        self.drafter = load_drafter(pair / "drafter", self.target, gamma=GAMMA) if speculation else None
        self.mistake, self.lock = mistake, Lock()  # one request at a time: the target has one cache

    def answer(self, request: Any) -> dict[str, Any]:
        """The completion. Raises ValueError, also where the decoder refuses a parameter."""
        asked = checked(request)
        prompt = self.ids(asked["prompt"])
        if len(prompt) + asked["max_tokens"] + GAMMA > POSITIONS:
            raise ValueError(f"prompt and text have {POSITIONS} positions together, {GAMMA} of them for drafts")
        seed = secrets.randbits(63) if asked["seed"] is None else asked["seed"]
        with self.lock:
            choices = [self.choice(prompt, asked, index, seed) for index in range(asked["n"])]
        said = sum(choice.pop("tokens") for choice in choices)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": said, "total_tokens": len(prompt) + said}
        return {"object": "text_completion", "model": "pair", "choices": choices, "usage": usage}

    def choice(self, prompt: tuple[int, ...], asked: dict[str, Any], index: int, seed: int) -> dict[str, Any]:
        """One completion, with coins of its own."""
        stop, limit = Stop(frozenset({self.end}), tuple(asked["stop"]), self.text), asked["max_tokens"]
        policy, coins = self.policy(asked), Philox(seed, torch.tensor([index]))
        if self.drafter is None:
            out = plain(self.target, policy, prompt, limit, coins, stop)
        else:
            out = generate(self.target, self.drafter, leviathan, policy, prompt, limit, coins, stop).tokens
        ended = out[-1:] == (self.end,)
        text, out = self.text(out), out[:-1] if ended else out
        places = [text.index(string) for string in stop.strings if string in text]
        found = {"index": index, "text": text[: min(places, default=len(text))], "tokens": len(out)}
        found["finish_reason"] = "stop" if ended or places else "length"
        if asked["logprobs"] is not None:
            found["logprobs"] = self.logprobs(prompt, out, asked["logprobs"])
        return found

    def policy(self, asked: dict[str, Any]) -> steps.Policy:
        """What the parameters make of logits, in the order that law.json has."""
        warm = asked["temperature"]
        chosen = [steps.temperature(warm) if warm else steps.greedy()]
        if asked["top_k"] > 0:
            chosen.append(steps.top_k(asked["top_k"]))
        if not (self.mistake == "top_p" and self.drafter is not None):
            chosen.append(steps.top_p(asked["top_p"]))
        return steps.pipeline(*chosen)

    def logprobs(self, prompt: tuple[int, ...], out: tuple[int, ...], count: int) -> dict[str, Any]:
        """Of the model's own rows, before the parameters: one more pass over what was said."""
        rows = begin(self.target, prompt + out, ()).logits[len(prompt) - 1 :].log_softmax(-1)
        heads = [row.topk(count).indices for row in rows[: len(out)]]
        return {
            "tokens": [f" {self.words[token]}" for token in out],
            "token_logprobs": [float(rows[i, token]) for i, token in enumerate(out)],
            "top_logprobs": [
                {f" {self.words[j]}": float(rows[i, j]) for j in {*head.tolist(), token}}
                for i, (head, token) in enumerate(zip(heads, out, strict=True))
            ],
        }

    def text(self, tokens: tuple[int, ...]) -> str:
        return "".join(f" {self.words[token]}" for token in tokens if token != self.end)

    def ids(self, prompt: Any) -> tuple[int, ...]:
        """Of words or of ids. A word that the vocabulary lacks stands for another, so that English prompts differ."""
        if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
            return tuple(prompt)
        if not isinstance(prompt, str) or not prompt.split():
            raise ValueError("the prompt is a text or a list of token ids, and not empty")
        known = {word: i for i, word in enumerate(self.words)}
        return tuple(known.get(word, 2 + sum(word.encode()) % (len(known) - 2)) for word in prompt.split())


def server(served: Served, port: int = 0) -> ThreadingHTTPServer:
    """Listens on the loopback interface alone; port 0 is one that is free."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # head and body in one packet

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path != "/v1/completions":
                return self.say(404, {"error": f"there is no {self.path}"})
            try:
                return self.say(200, served.answer(json.loads(body)))
            except ValueError as error:
                return self.say(400, {"error": str(error)})

        def say(self, code: int, content: dict[str, Any]) -> None:
            encoded = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    asked = argparse.ArgumentParser(description="Serve a pair of `refengine fixtures export` as OpenAI's API.")
    asked.add_argument("pair", type=Path, help="the folder that was exported")
    asked.add_argument("--port", type=int, default=8000)
    asked.add_argument("--speculation", choices=("on", "off"), default="on")
    asked.add_argument("--mistake", choices=("", "top_p"), default="", help="what speculation forgets")
    given = asked.parse_args()
    torch.set_num_threads(1)
    listening = server(Served(given.pair, given.speculation == "on", given.mistake), given.port)
    print(f"serving http://127.0.0.1:{listening.server_port}/v1", flush=True)
    listening.serve_forever()


if __name__ == "__main__":
    main()
