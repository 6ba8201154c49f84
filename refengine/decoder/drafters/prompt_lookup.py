"""Prompt lookup (Saxena 2023): what followed the last tokens the last time they were written. No weights, no state.

As released in transformers' `PromptLookupCandidateGenerator` (5.23): of the longest n-gram with an earlier match, the
leftmost match is continued, not the latest.
"""

from collections.abc import Collection

import torch

from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.decoder.rows import point_block
from refengine.engine.block import Block


class PromptLookup:
    """Drafts up to gamma tokens, deterministically: `point_mass` judges them.

    ngram  longest n-gram that is looked up; shorter ones are tried after it
    stop   a draft is cut before the first of these tokens: nothing after a stop token can be of use
    """

    taps: tuple[int, ...] = ()

    def __init__(self, gamma: int = 10, ngram: int = 2, stop: Collection[int] = (), device: str = "cpu") -> None:
        if gamma < 1 or ngram < 1:
            raise ValueError(f"gamma and ngram are at least 1, got {gamma} and {ngram}")
        self.gamma, self.ngram, self.stop, self.device = gamma, ngram, frozenset(stop), torch.device(device)

    def start(self, tokens: Tokens, passed: Pass) -> None:
        pass

    def propose(self, turn: Turn) -> Block:
        found = continuation(turn.prefix, self.ngram, self.gamma)
        ends = [place for place, token in enumerate(found) if token in self.stop]
        drafted = found[: ends[0]] if ends else found
        return point_block(drafted, tuple(range(-1, len(drafted) - 1)), self.device)

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        pass

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> None:
        pass


def continuation(prefix: Tokens, longest: int, gamma: int) -> Tokens:
    """Up to gamma tokens after the leftmost earlier occurrence of the longest n-gram that ends `prefix`."""
    for n in range(min(longest, len(prefix) - 1), 0, -1):
        pattern = prefix[-n:]
        for start, token in enumerate(prefix[:-n]):  # the n-gram at the very end is the pattern itself
            if token == pattern[0] and prefix[start : start + n] == pattern:
                return prefix[start + n : start + n + gamma]
    return ()
