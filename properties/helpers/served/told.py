"""What the test engine tells of a completion: its text up to a stop, why it ended, its tokens and their rows."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import exp, log
from typing import Any, TypeAlias

from properties.helpers.served.model import GAMMA, Row, known
from refengine.audit.served.ask import INCLUDED

BLOCK = 12  # tokens of a prompt that a cache keeps
Rows: TypeAlias = tuple[list[float], list[float]]


def cut(engine: Any, out: Sequence[int], stops: Sequence[str], borders: Sequence[int]) -> int | None:
    """The character before which a stop ends the text; None where none does. borders: tokens before each round."""
    if not stops:
        return None
    text = said(engine, out)
    begin = len(said(engine, out[:1])) if engine.has("a stop in the first token is missed") else 0
    if engine.has("a stop longer than a block is missed"):
        stops = [stop for stop in stops if len(stop) <= len(said(engine, out[-GAMMA:]))]
    found = [(at, stop) for stop in stops if (at := text.find(stop, begin)) >= 0]
    if engine.has("a stop at a block's end is missed"):
        ends = [
            (len(said(engine, out[: b - 1])), len(said(engine, out[:b]))) for a, b in pairwise(borders) if b > a + 1
        ]
        found = [(at, stop) for at, stop in found if not any(x < at + len(stop) <= y for x, y in ends)]
    if not found:
        return None
    if not engine.has("of two stops the one listed first ends the text"):
        found.sort()
    at, stop = found[0]
    edges = (len(said(engine, out[:border])) for border in borders)
    if engine.has("a stop across a round's border is cut late") and any(at < edge < at + len(stop) for edge in edges):
        return at + 1
    return at


def choice(
    engine: Any, out: list[int], rows: list[Rows], body: dict[str, Any], limit: int, borders: list[int]
) -> dict[str, Any]:
    """rows: of every token its own, as logits, and that of its alternatives."""
    end, stops = engine.language.end, stops_of(body)
    text = said(engine, out)
    finish = "stop" if out[-1] in (end, *(body.get("stop_token_ids") or ())) else "length"
    at = cut(engine, out, stops, borders)
    if engine.has("a stop at the limit is not looked for") and len(out) >= limit:
        at = None
    if at is not None:
        stop = next((stop for stop in stops if text.startswith(stop, at)), "")
        stays = at + len(stop) * bool(body.get(INCLUDED))
        text, finish = text if stops_late(engine, body) else text[:stays], "stop"
    if engine.has("a stop at the limit is called the length") and len(out) >= limit:
        finish = "length"
    if engine.has("a stop before the limit is called the length") and at is not None and len(out) >= limit - GAMMA:
        finish = "length"
    if engine.has("finish_reason after a stop") and finish == "stop":
        finish = "length"
    if engine.has("streamed choices behind the first say length") and body.get("stream") and body["index"]:
        finish = "length"
    told: dict[str, Any] = {"text": text, "finish_reason": finish}
    if engine.has("a stream loses what a stop held back") and body.get("stream") and stops and finish == "length":
        told["text"] = text[: len(text) + 1 - max(map(len, stops))]
    if engine.has("a streamed call loses what came with its end") and body.get("stream") and "tool_choice" in body:
        told["text"] = said(engine, out[: borders[-1]])
    shown = [i for i in out if i != end]
    if stops and finish == "stop" and not engine.has("tokens past the stop"):
        while shown and len(said(engine, shown[:-1])) >= len(text):
            shown.pop()
    elif stops and finish == "stop":
        shown, rows = [*shown, 1, 2], [*rows, *rows[-1:] * 2]
    if body.get("logprobs"):
        told["logprobs"] = _logprobs(engine, shown, rows, limit, wished(body))
    told["count"] = len(shown) + (engine.has("usage counts the drafts") * 2)
    if engine.has("usage counts past the end") and finish == "stop":
        told["count"] += 1 + len(out) % GAMMA
    if engine.has("a streamed answer lacks its end") and body.get("stream") and len(out) % 2:
        told["text"] = said(engine, shown[:-1])
    return told


def stops_late(engine: Any, body: dict[str, Any]) -> bool:
    """Whether a round goes on to its end behind a stop."""
    included = engine.has("the round of a stop that is included is kept") and body.get(INCLUDED)
    return bool(included or engine.has("stop checked once a round"))


def said(engine: Any, out: Sequence[int]) -> str:
    return "".join(engine.language.words[i] for i in out if i != engine.language.end)


def stops_of(body: dict[str, Any]) -> list[str]:
    return [body["stop"]] if isinstance(body.get("stop"), str) else list(body.get("stop") or ())


def wished(body: dict[str, Any]) -> int:
    """Tokens of a row that are asked for, in the words of either API."""
    return int(body.get("top_logprobs", 0) if body.get("logprobs") is True else body.get("logprobs") or 0)


def _logprobs(engine: Any, shown: list[int], rows: list[Rows], limit: int, wish: int) -> dict[str, Any]:
    words = engine.language.words
    chances, others = ([_normal(known(row)) for row in side[: len(shown)]] for side in (zip(*rows, strict=True)))
    if engine.has("log probabilities of the row before") and chances:
        chances = [chances[0], *chances[:-1]]
        others = chances
    own = [row[x] for x, row in zip(shown, chances, strict=False)]
    listed = min(engine.listed, wish)
    tops = [{words[i]: row[i] for i in _likeliest(row)[:listed]} for row in others]
    if not engine.has("a sampled token is missing from its row"):
        tops = [{**row, words[x]: c} for x, c, row in zip(shown, own, tops, strict=False)]
    if engine.has("every other row lists its token alone"):
        tops = [{words[x]: c} if i % 2 else row for i, (x, c, row) in enumerate(zip(shown, own, tops, strict=False))]
    if engine.rounded:
        own = [round(c, 2) for c in own]
        tops = [{word: round(c, 2) for word, c in row.items()} for row in tops]
    if engine.has("log probability zero"):
        own = [0.0 for _ in own]
    if engine.has("log probabilities wrong in the last block"):
        own = [c if k < limit - GAMMA else c - 2.5 for k, c in enumerate(own)]
    return {"tokens": [words[i] for i in shown], "token_logprobs": own, "top_logprobs": tops}


@lru_cache(1 << 12)
def _normal(row: Any) -> Row:
    total = log(sum(exp(x) for x in row))
    return Row(x - total for x in row)


@lru_cache(1 << 12)
def _likeliest(row: Row) -> list[int]:
    return sorted(range(len(row)), key=lambda i: -row[i])


def echoed(engine: Any, told: dict[str, Any], prompt: list[int], body: dict[str, Any]) -> dict[str, Any]:
    """With the prompt before it, and the chances of the prompt's tokens but the first."""
    told["text"] = body["prompt"] + told["text"]
    if "logprobs" not in told:
        return told
    chances = [_normal(known(engine.language.logits(prompt[:i], 0.0))) for i in range(len(prompt))]
    if engine.has("echoed log probabilities of a cached prefix are its first row"):
        if tuple(prompt[:BLOCK]) in engine.echoed:
            chances[1:BLOCK] = chances[:1] * (BLOCK - 1)
        engine.echoed.add(tuple(prompt[:BLOCK]))
    if engine.has("echoed log probabilities are shifted"):
        chances = [chances[0], *chances[:-1]]
    before: dict[str, list[Any]] = {
        "tokens": [engine.language.words[x] for x in prompt],
        "token_logprobs": [None, *(row[x] for x, row in zip(prompt[1:], chances[1:], strict=True))],
        "top_logprobs": [None] * len(prompt),
    }
    first = 1 if engine.has("echo drops the first token's row") else 0
    told["logprobs"] = {name: [*before[name], *after][first:] for name, after in told["logprobs"].items()}
    return told


def as_chat(choice: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    told = choice.pop("logprobs", None)
    choice["message"] = {"role": "assistant", "content": choice.pop("text")}
    if "tool_choice" in body:
        call = {"name": body["tool_choice"]["function"]["name"], "arguments": choice["message"]["content"]}
        choice["message"] |= {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": call}]}
    if told:
        rows = zip(told["tokens"], told["token_logprobs"], told["top_logprobs"], strict=True)
        choice["logprobs"] = {
            "content": [
                {"token": t, "logprob": c, "top_logprobs": [{"token": k, "logprob": v} for k, v in row.items()]}
                for t, c, row in rows
            ]
        }
    return choice
