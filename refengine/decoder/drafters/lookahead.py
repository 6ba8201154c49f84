"""Lookahead decoding (Fu et al. 2024): n-grams from a Jacobi window that the target itself fills, tried as guesses.

N = level, W = window, G = guesses. The window has N - 1 rows of about W tokens. Row 0 lies along the text after the
anchor; element i of row r continues elements i of the rows before it, so a column read downwards is an n-gram of the
target's greedy choices. Each round runs the window through the target, takes the argmax after its last row as a new
row, files the columns in a pool under the token before them, and moves the window on by one. The pool's entries for
the anchor are the guesses; being deterministic given the past, `point_mass` judges them without loss.

As in hao-ai-lab/LookaheadDecoding eed010d, except that the window runs in a pass of its own (its rows see no guess, and
no guess sees them), and that an end-of-text token in the window stays there. So it does in the released greedy loop;
the released sampling loop puts some token of the text in its place, which changes later guesses and no law.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from refengine.decoder.protocols import Pass, Rows, State, Target, Tokens, Turn, Verdict
from refengine.decoder.rows import chain_rows, point_block
from refengine.engine.block import ROOT, Block

FirstRow: TypeAlias = Callable[[Tokens, int], Tokens]  # the prompt, how many tokens are wanted


def in_turn(prompt: Tokens, count: int) -> Tokens:
    """The prompt's tokens, over and over. The released code draws them from the prompt; any choice is lossless."""
    return tuple(prompt[i % len(prompt)] for i in range(count))


class Lookahead:
    """Drafts a trie of guesses, N - 2 tokens deep. State, all of it `pool.*`: the window and the pool.

    from_prompt   also file the n-grams of the prompt and of the output (POOL_FROM_PROMPT)
    repeats_last  file the output as the released greedy loop does, which takes a round's last token for every token of
                  the round (the released sampling loop does not); it changes the guesses, never the output
    """

    taps: tuple[int, ...] = ()

    def __init__(
        self,
        target: Target,
        level: int = 5,
        window: int = 7,
        guesses: int = 7,
        from_prompt: bool = False,
        repeats_last: bool = False,
        first_row: FirstRow = in_turn,
    ) -> None:
        if level < 3 or window < 1 or guesses < 1:
            raise ValueError(f"level is at least 3, window and guesses at least 1: got {level}, {window}, {guesses}")
        self.target, self.level, self.window, self.guesses = target, level, window, guesses
        self.from_prompt, self.repeats_last, self.first_row = from_prompt, repeats_last, first_row
        self.rows: tuple[Tokens, ...] = ()
        self.pool: dict[int, tuple[Tokens, ...]] = {}  # a token -> the (N - 1)-grams that may follow it, oldest first
        self.tail: Tokens = ()  # the last N - 1 tokens of the text that was filed
        self.filed = 0  # and its length
        self.new: Tokens = ()

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.pool, self.tail, self.filed, self.new = {}, (), len(tokens), ()
        if self.from_prompt:
            self._file_text(tokens)
        row = self.first_row(tokens, self.window + self.level - 3)
        ahead = self.target.run(chain_rows(row, len(tokens), self.target.device)).logits
        self.target.keep(())
        self.rows = (row[1:], _argmax(ahead))

    def propose(self, turn: Turn) -> Block:
        anchor = turn.prefix[-1]
        if self.from_prompt:
            emitted = turn.prefix[self.filed :]
            self._file_text(emitted[-1:] * len(emitted) if self.repeats_last else emitted)
            self.filed = len(turn.prefix)
        self.new = _argmax(self.look(anchor, len(turn.prefix) - 1))
        ready = len(self.rows) == self.level - 1
        # The released code emits at most N - 1 tokens: the last of a guess could only be emitted, never built upon.
        guesses = [guess[:-1] for guess in self.pool.get(anchor, ())] if ready else []
        return point_block(*_trie(guesses), self.target.device)

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        if len(self.rows) < self.level - 1:  # still filling the window
            self.rows = (*(row[1:] for row in self.rows), self.new[1:])
            return
        keys = (int(kept.tokens[0]), *self.rows[0])
        for i in range(self.window):
            self._file(keys[i], (*(row[i] for row in self.rows[1:]), self.new[i]))
        self.rows = (self.rows[1][1:], *self.rows[2:], self.new)  # by one, however much was accepted

    def state(self) -> State:
        table = tuple(sorted(self.pool.items()))
        return {"pool.rows": self.rows, "pool.table": table, "pool.tail": self.tail, "pool.filed": self.filed}

    def restore(self, state: State) -> None:
        self.rows, self.pool = state["pool.rows"], dict(state["pool.table"])
        self.tail, self.filed = state["pool.tail"], state["pool.filed"]

    def look(self, anchor: int, start: int) -> Tensor:
        """Logits [W, V] after the window's last row, with the anchor at position `start`. Leaves no row behind."""
        rows = window_rows(((anchor, *self.rows[0]), *self.rows[1:]), start, self.target.device)
        logits = self.target.run(rows).logits
        self.target.keep(())
        return logits[-len(self.rows[-1]) :]

    def _file(self, key: int, gram: Tokens) -> None:
        """Newest last, each once, at most G of them."""
        others = [known for known in self.pool.get(key, ()) if known != gram]
        self.pool[key] = (*others, gram)[-self.guesses :]

    def _file_text(self, tokens: Tokens) -> None:
        for token in tokens:
            gram = (*self.tail, token)
            if len(gram) == self.level:
                self._file(gram[0], gram[1:])
            self.tail = gram[1 - self.level :]


def window_rows(grid: tuple[Tokens, ...], start: int, device: torch.device) -> Rows:
    """The window as rows of one pass. grid[0] is the anchor and row 0; all rows are equally long.

    Element i of row r is at position start + i + r and sees grid[0][: i + 1] and element i of rows 1 to r.
    """
    width = len(grid[0])
    at = [(r, i) for r in range(len(grid)) for i in range(width)]
    sees = [[(s == 0 and j <= i) or (0 < s <= r and j == i) for s, j in at] for r, i in at]
    positions = torch.tensor([start + i + r for r, i in at], device=device)
    tokens = torch.tensor([token for row in grid for token in row], device=device)
    return Rows(tokens, positions, torch.tensor(sees, device=device))


def _trie(guesses: list[Tokens]) -> tuple[Tokens, Tokens]:
    """Tokens and parents of the guesses, shared beginnings merged; siblings in the order of the guesses."""
    node_of: dict[Tokens, int] = {}
    for guess in guesses:
        for length in range(1, len(guess) + 1):
            node_of.setdefault(guess[:length], len(node_of))
    return tuple(path[-1] for path in node_of), tuple(node_of.get(path[:-1], ROOT) for path in node_of)


def _argmax(logits: Tensor) -> Tokens:
    return tuple(logits.argmax(-1).tolist())
