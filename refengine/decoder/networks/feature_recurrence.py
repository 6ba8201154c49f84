"""What the EAGLE family shares: a recurrence over features, its cache, and the rows of one round's draft.

Row i is the pair (x_{i+1}, f_i): the token at i + 1 beside the target's feature at i, at rotary position i. What comes
out is a guess at the feature at i + 1; its logits are about x_{i+2}. Fed back in the place of a feature, together with
the token drawn from those logits, it makes the next row of the draft.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from refengine.decoder.networks.cache import Cache, Pair, append, causal, restore, state
from refengine.decoder.networks.layers import Heads, Weights, attend
from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.engine.block import Block


class Network(Protocol):
    """The weights of one EAGLE generation. H is its own width, F that of the target's features side by side."""

    @property
    def taps(self) -> tuple[int, ...]: ...

    def fused(self, features: Tensor) -> Tensor:
        """Target features [n, F] as the recurrence takes them, [n, H]."""
        ...

    def rows(
        self, tokens: Tensor, hidden: Tensor, positions: Tensor, past: Cache, sees: Tensor, text: int | None = None
    ) -> tuple[Tensor, Cache]:
        """Rows (tokens [n], hidden [n, H]) after the m cached ones: what they put out [n, H], and the longer cache.

        sees  bool [n, m + n]
        text  how many of the m + n rows are of the text, for sliding layers; None: all. The others are of the round
        """
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [n, V] over the target's vocabulary; -inf for tokens that this network cannot draft."""
        ...

    def empty(self) -> Cache: ...


class Plan(Protocol):
    """How a round's candidates are grown from the recurrence: a chain or a tree."""

    def __call__(self, draft: "Draft", turn: Turn) -> Block: ...


class FeatureRecurrence:
    """A drafter: a network and a plan. Cache: rows 0 .. n - 2 of a prefix[:-1] of n tokens; the feature at n - 1 waits
    for its token, the anchor."""

    def __init__(self, network: Network, plan: Plan) -> None:
        self.network, self.plan, self.taps = network, plan, network.taps
        self.cache, self.length = network.empty(), 0

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.cache, self.length = self.network.empty(), 0
        features = self._features(passed)
        self._extend(passed.tokens[1:], features[:-1])
        self.feature = features[-1:]

    def propose(self, turn: Turn) -> Block:
        draft = Draft(self.network, self.cache, self.length, turn.prefix[-1], self.feature)
        return self.plan(draft, turn)

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        """The draft's own rows are dropped: the accepted tokens come again, now beside the target's features."""
        features = torch.cat((self.feature, self._features(kept)))
        self._extend(kept.tokens, features[:-1])
        self.feature = features[-1:]

    def state(self) -> State:
        return {"length": self.length, "feature": self.feature, **state(self.cache)}

    def restore(self, state: State) -> None:
        self.length, self.feature, self.cache = state["length"], state["feature"], restore(state)

    def _features(self, passed: Pass) -> Tensor:
        return self.network.fused(torch.cat([passed.taps[j] for j in self.taps], -1))

    def _extend(self, tokens: Tensor, features: Tensor) -> None:
        """Append the pairs of these tokens and the features before them."""
        count = len(tokens)
        positions = torch.arange(self.length, self.length + count, device=tokens.device)
        sees = causal(count, self.length, tokens.device)
        _, self.cache = self.network.rows(tokens, features, positions, self.cache, sees)
        self.length += count


class Draft:
    """The rows of one round, none of which outlives it: row 0 is the anchor's, every other one follows a parent.

    first  logits [V] about the first token to be drafted
    """

    def __init__(self, network: Network, cache: Cache, kept: int, anchor: int, feature: Tensor) -> None:
        self.network, self.cache, self.kept = network, cache, kept
        self.device = feature.device
        self.out = feature.new_empty(0, feature.shape[-1])  # what each row put out
        self.sees = torch.ones(0, 0, dtype=torch.bool, device=self.device)  # which rows of the round each one sees
        self.first = self._run((anchor,), feature, torch.ones(1, 1, dtype=torch.bool, device=self.device))[0]

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Tensor:
        """Run each token as the one that follows its parent row: logits [n, V] about what comes after it.

        New rows are numbered on from those that are there.
        """
        above = torch.tensor(parents, device=self.device)
        return self._run(tokens, self.out[above], torch.cat((self.sees[above], _eye(len(tokens), self.device)), -1))

    def append(self, tokens: Sequence[int], hidden: Tensor) -> Tensor:
        """Run a chain of tokens beside given hidden states [n, H], each row seeing all before it: logits [n, V]."""
        return self._run(tokens, hidden, causal(len(tokens), self.sees.shape[1], self.device))

    def _run(self, tokens: Sequence[int], hidden: Tensor, sees: Tensor) -> Tensor:
        positions = self.kept + sees.sum(1) - 1  # one for each row above it in the round
        everything = torch.cat((sees.new_ones(len(tokens), self.kept), sees), -1)
        ids = torch.tensor(tokens, dtype=torch.long, device=self.device)  # of no token too
        out, self.cache = self.network.rows(ids, hidden, positions, self.cache, everything, self.kept)
        self.out = torch.cat((self.out, out))
        self.sees = torch.cat((torch.nn.functional.pad(self.sees, (0, len(tokens))), sees))
        return self.network.logits(out)


def _eye(count: int, device: torch.device) -> Tensor:
    return torch.eye(count, dtype=torch.bool, device=device)


def self_attention(
    w: Weights, heads: Heads, x: Tensor, positions: Tensor, past: Pair, sees: Tensor
) -> tuple[Tensor, Pair]:
    """Attention of rows x [n, *] over `past` and themselves: [n, H], and keys and values with the rows in them."""
    k, v = append(past, heads.keys_and_values(w, x, positions))
    return w.linear("o_proj", attend(heads.queries(w, x, positions), k, v, heads.scale, sees)), (k, v)
