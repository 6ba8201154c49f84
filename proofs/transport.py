"""The most that any lossless rule can accept of k independent drafts, with its certificate, in exact rationals.

A rule that emits an accepted candidate moves mass from tuples of candidates to tokens: a flow from sets of tokens (what
was drafted) to the tokens in them, of at most the sets' probability and at most p. The largest flow is found by
augmenting paths; the cut that stops it is the dual solution. Flow = cut proves that both are optimal.
"""

from fractions import Fraction
from itertools import product

from refengine.exact.row import Row

Tokens = frozenset[int]


def supply(q: Row, k: int) -> dict[Tokens, Fraction]:
    """The probability of every set of drafted tokens."""
    found: dict[Tokens, Fraction] = {}
    for draft in product(range(len(q)), repeat=k):
        mass = Fraction(1)
        for x in draft:
            mass *= q[x]
        found[frozenset(draft)] = found.get(frozenset(draft), Fraction(0)) + mass
    return {tokens: mass for tokens, mass in found.items() if mass}


def largest_flow(p: Row, q: Row, k: int) -> tuple[dict[tuple[Tokens, int], Fraction], Tokens]:
    """The flow from drafted sets to tokens, and the tokens H on the source's side of the cut."""
    sets = supply(q, k)
    flow = {(s, x): Fraction(0) for s in sets for x in s}
    while True:
        parent: dict[object, object] = {s: None for s, mass in sets.items() if mass > sum(flow[s, x] for x in s)}
        queue = list(parent)
        end = None
        for node in queue:  # grows while it is read
            if isinstance(node, frozenset):
                onward: list[object] = [x for x in node if x not in parent]
            else:
                if sum(f for (_, x), f in flow.items() if x == node) < p[node]:
                    end = node
                    break
                onward = [s for s in sets if s not in parent and node in s and flow[s, node] > 0]
            for other in onward:
                parent[other] = node
                queue.append(other)
        if end is None:
            return flow, frozenset(x for x in range(len(p)) if x in parent)
        path = [end]
        while parent[path[-1]] is not None:
            path.append(parent[path[-1]])
        steps = list(zip(path[1:], path, strict=False))
        room = [sets[path[-1]] - sum(flow[path[-1], x] for x in path[-1])]
        room.append(p[end] - sum(f for (_, x), f in flow.items() if x == end))
        room += [flow[b, a] for a, b in steps if not isinstance(a, frozenset)]
        for a, b in steps:
            if isinstance(a, frozenset):
                flow[a, b] += min(room)
            else:
                flow[b, a] -= min(room)
