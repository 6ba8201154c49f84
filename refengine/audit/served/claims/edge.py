"""The edge of the context: a prompt that leaves room for some tokens, and an answer that fills it to the last one.

The longest prompt that the side without speculation takes is found by halving, and so how many tokens the context has.
Servers that refuse what would not fit take an answer of just that length, as do those that end at the edge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from refengine.audit.served.ask import Answer, Ask, Failed, Gone, Refused
from refengine.audit.served.bench import Bench

MOST_WORDS = 2048  # of a prompt: a longer context is not looked at to its end
ROOM = (3, 24)  # words, at least and at most, that a prompt is shorter than the longest
SPARE = 8  # tokens that may fit behind the longest prompt: its words may have several


@dataclass(frozen=True)
class Edge:
    """words: of the longest prompt. spare: tokens that fit behind it at least. tokens: of the context, None where usage
    is not told."""

    words: int
    spare: int
    tokens: int | None

    def ask(self, bench: Bench, k: int) -> Ask:
        """A prompt some words shorter, and the room behind it. Raises Refused, Failed."""
        least, most = ROOM
        less = least + k * 5 % (most - least)
        turns, room = (_words(bench, self.words - less),), less + self.spare
        if self.tokens is not None:
            (answer,) = bench.without([Ask(turns, 1)])
            room = self.tokens - int(answer.usage["prompt_tokens"])
        return Ask(turns, room, options=bench.logprobs)


def found_edge(bench: Bench) -> Edge | None:
    """None where there is none within MOST_WORDS, or one so near that no prompt is left. Raises Gone."""
    low, high = 2 * ROOM[1], MOST_WORDS
    if _taken(bench, high, 1) or not _taken(bench, low, 1):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _taken(bench, middle, 1) else (low, middle)
    spare: int = 0
    told: Mapping[str, Any] = {}
    while spare < SPARE and (longer := _taken(bench, low, spare + 1)):
        spare, told = spare + 1, longer.usage
    if "prompt_tokens" not in told or "completion_tokens" not in told:
        return Edge(low, min(1, spare), None)
    return Edge(low, spare, told["prompt_tokens"] + told["completion_tokens"])


def _taken(bench: Bench, words: int, tokens: int) -> Answer | None:
    """What is said to a prompt of so many words; None where it is refused."""
    try:
        (answer,) = bench.without([Ask((_words(bench, words),), tokens)])
    except Gone:
        raise
    except (Refused, Failed):
        return None
    return answer


def _words(bench: Bench, count: int) -> str:
    """The last so many of the prompts' words in a row again and again: a shorter one begins later."""
    words = " ".join(bench.prompts).split(" ")
    return " ".join((words * (MOST_WORDS // len(words) + 1))[-count:])
