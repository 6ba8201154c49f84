"""Bit for bit: whether the logits of a row are those of the same text computed in another way.

`Listened` is a target that keeps account of which text each of its rows stands for, by tokens and by what a row may see
and by nothing that the target itself computes, and reports every row to `Heard`. `Alone` is the measure: the same text
on a target of its own, one token a pass, nothing beside it and nothing ever taken back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from refengine.decoder.networks.cache import causal
from refengine.decoder.protocols import Pass, Rows, State, Target, Tokens
from refengine.decoder.rows import chain_rows


@dataclass
class Heard:
    """Logits by the text that they follow: the first of each, or those of `wanted`, and all that differ from them.

    compared  rows that were held against another computation of the same text
    """

    wanted: Callable[[Tokens], Tensor] | None = None
    first: dict[Tokens, Tensor] = field(default_factory=dict)
    compared: int = 0
    differing: list[Tokens] = field(default_factory=list)

    def __call__(self, text: Tokens, logits: Tensor) -> None:
        known = self.wanted(text) if self.wanted else self.first.setdefault(text, logits)
        if known is not logits:
            self.compared += 1
            if not torch.equal(known, logits):
                self.differing.append(text)


class Listened:
    """A target whose every row is reported, with its text, to `heard`. Everything else is the target's own."""

    def __init__(self, target: Target, heard: Heard) -> None:
        self.target, self.heard = target, heard
        self.kept: Tokens = ()
        self.tentative: list[tuple[int, int]] = []  # position and token of each tentative row

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    def reset(self) -> None:
        self.kept, self.tentative = (), []
        self.target.reset()

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        passed = self.target.run(replace(rows, judged=None), taps)  # to hear the rows of a prompt too
        self.listen(rows, passed)
        return passed

    def listen(self, rows: Rows, passed: Pass) -> None:
        """These rows of its were run, in whatever pass."""
        new, old = len(rows.tokens), len(self.tentative)
        visible = causal(new, old, rows.tokens.device) if rows.visible is None else rows.visible
        self.tentative += zip(rows.positions.tolist(), rows.tokens.tolist(), strict=True)
        for sees, logits in zip(visible.tolist(), passed.logits, strict=True):
            path = sorted(row for row, seen in zip(self.tentative, sees, strict=True) if seen)
            self.heard(self.kept + tuple(token for _, token in path), logits)

    def keep(self, rows: Sequence[int]) -> None:
        self.target.keep(rows)
        self.kept += tuple(self.tentative[row][1] for row in rows)
        self.tentative = []

    def state(self) -> State:
        return {"text": self.kept, "text.tentative": tuple(self.tentative), **self.target.state()}

    def restore(self, state: State) -> None:
        inner = dict(state)
        self.kept, self.tentative = inner.pop("text"), list(inner.pop("text.tentative"))
        self.target.restore(inner)


class Alone:
    """Logits after a text, each of its rows computed alone, on a target that does nothing else."""

    def __init__(self, target: Target) -> None:
        target.reset()
        self.target = target
        self.known: dict[Tokens, tuple[State, Tensor]] = {(): (target.state(), torch.empty(0))}

    def __call__(self, text: Tokens) -> Tensor:
        held = next(n for n in range(len(text), -1, -1) if text[:n] in self.known)
        self.target.restore(self.known[text[:held]][0])
        for place in range(held, len(text)):
            logits = self.target.run(chain_rows(text[place : place + 1], place, self.target.device)).logits[0]
            self.target.keep((0,))
            self.known[text[: place + 1]] = self.target.state(), logits
        return self.known[text][1]
