"""A completion of a prompt, and the protocol of a side that gives one: a server, or a library's own generate."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

Row: TypeAlias = dict[str, float]  # log probabilities of some tokens, the likeliest among them


class Failed(Exception):
    """No completion came back; the message says what came instead."""


@dataclass(frozen=True)
class Completion:
    """A completion: its text, and where they are reported its tokens and the row of each."""

    text: str
    tokens: tuple[str, ...] | None
    top: tuple[Row, ...] | None = None


class Side(Protocol):
    """A server or a function that completes prompts, with speculation or without. Its methods raise Failed."""

    def complete(self, prompt: str, tokens: int, temperature: float, seed: int) -> Completion: ...

    def row(self, prompt: str, tokens: tuple[str, ...]) -> Row:
        """The row after the prompt and these tokens; empty where the side does not report rows."""
        ...
