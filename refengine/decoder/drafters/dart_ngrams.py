"""An n-gram store: how often every run of up to `order` tokens occurred in a text, as DART counts them.

A node is a run of tokens, its parent the run without the last one, its count how often it occurred. A text is cut into
one window of `order` tokens from each of its places (shorter at the end), and a window counts all of its beginnings.
Nothing is discounted or smoothed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from refengine.decoder.protocols import Tokens

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Trie:
    """Nodes as flat arrays, because a released store has very many of them; node 0 is the root, the empty run.

    tokens   int64 [n]  last token of each run
    parents  int64 [n]  smaller than the node itself
    counts   int64 [n]  nobody asks for the root's
    """

    order: int
    tokens: Ints
    parents: Ints
    counts: Ints

    @staticmethod
    def of(texts: Iterable[Sequence[int]], order: int = 3) -> "Trie":
        """Count texts of token ids. No run reaches from one text into the next."""
        if order < 1:
            raise ValueError(f"an n-gram store has an order of at least 1, not {order}")
        nodes: dict[tuple[int, int], int] = {}  # (parent, token) -> node, in the order of their first occurrence
        counts = [0]
        for text in texts:
            for start in range(len(text)):
                node, counts[0] = 0, counts[0] + 1
                for token in text[start : start + order]:
                    node = nodes.setdefault((node, int(token)), len(nodes) + 1)
                    if node == len(counts):
                        counts.append(0)
                    counts[node] += 1
        pairs = np.array([(0, 0), *nodes], dtype=np.int64)
        return Trie(order, pairs[:, 1], pairs[:, 0], np.array(counts, dtype=np.int64))

    def following(self, context: Tokens, tokens: Sequence[int]) -> tuple[Ints, Ints]:
        """For each token: how often it followed the context, and how often the context occurred; (0, 1) if unseen.

        Back-off: the longest end of the context (order - 1 tokens at most) that the token was ever seen after, and
        never the empty one.
        """
        followed, seen = np.zeros(len(tokens), dtype=np.int64), np.ones(len(tokens), dtype=np.int64)
        unseen = np.ones(len(tokens), dtype=bool)
        for length in range(min(self.order - 1, len(context)), 0, -1):
            node = 0
            for token in context[-length:]:
                node = int(self._children(node, np.array([token]))[0]) if node >= 0 else node
            children = self._children(node, np.array(tokens)) if node >= 0 else np.full(len(tokens), -1)
            new = unseen & (children >= 0)
            # Pruning can leave a run a count of 0; what follows such a run counts 0 too.
            followed[new], seen[new] = self.counts[children[new]], max(int(self.counts[node]), 1)
            unseen &= ~new
        return followed, seen

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        """Keys (parent, token) of all nodes but the root, ascending, and the nodes they belong to."""
        keys = (self.parents[1:] << 32) | self.tokens[1:]
        places = np.argsort(keys)
        return keys[places], places + 1

    def _children(self, node: int, tokens: Ints) -> Ints:
        """The child of a node at each token, -1 where there is none."""
        keys, nodes = self._sorted
        wanted = (node << 32) | tokens
        places = np.searchsorted(keys, wanted)
        there = places < len(keys)
        there[there] = keys[places[there]] == wanted[there]
        children = np.full(len(tokens), -1, dtype=np.int64)
        children[there] = nodes[places[there]]
        return children
