"""What kernels are asked that run in an interpreter, with what is due."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from refengine.audit.inputs.case import Case
from refengine.audit.inputs.hostile import cases

MOST_IDS, MOST_ROWS = 64, 24  # of an input that is sampled: each row of a lane is a program of the interpreter
GRID = 2.0**-24  # of torch.rand in float32
Asked: TypeAlias = dict[str, Any]


def small() -> list[Case]:
    """The inputs that an interpreter gets through in less than a second."""
    return [case for case in cases() if case.width <= MOST_IDS and case.lanes * (case.gamma + 1) <= MOST_ROWS]


def batch(rng: np.random.Generator, mixed: bool) -> list[Asked]:
    """1 to 5 lanes of at most 4 drafts over one vocabulary, with what each has to emit. A lane is drawn from rows with
    one token, or, in a mixed batch, at temperature 0 from any; then lanes have drafts of their own number, 0 too."""
    gamma, lanes, vocabulary = int(rng.integers(1, 5)), int(rng.integers(1, 6)), int(rng.choice([2, 5, 33]))
    made: list[Asked] = []
    for _ in range(lanes):
        greedy = mixed and rng.random() < 0.5
        count = int(rng.integers(0, gamma + 1)) if mixed and made else gamma  # the first has all of them
        rows = rng.dirichlet(np.ones(vocabulary), 2 * gamma + 1).astype(np.float32)
        p, q = rows[: gamma + 1], rows[gamma + 1 :]
        best = p.argmax(-1)
        if not greedy:
            p[: count + 1] = np.eye(vocabulary, dtype=np.float32)[best[: count + 1]]
        draft = best[:gamma].copy()
        kept = int(rng.integers(0, count + 1))
        draft[kept:] = (draft[kept:] + 1) % vocabulary
        shown = {"p": p.tolist(), "q": q.tolist(), "draft": draft.tolist(), "count": count, "greedy": greedy}
        made.append(shown | {"due": best[: kept + 1].tolist()})
    return [made[i] for i in rng.permutation(lanes)]


def as_case(lanes: list[Asked], seed: int) -> Asked:
    """What a worker's `verify` is asked with."""
    together = {name: [lane[name] for lane in lanes] for name in ("p", "q", "draft", "greedy")}
    return {**together, "counts": [lane["count"] for lane in lanes], "seed": seed}


def less(lanes: list[Asked]) -> Iterator[list[Asked]]:
    """The batch without one of its lanes; one with drafts stays."""
    for i in range(len(lanes)):
        rest = lanes[:i] + lanes[i + 1 :]
        if any(lane["count"] for lane in rest):
            yield rest


def trees(rng: np.random.Generator) -> Asked:
    """Trees of one size, whose root is node 0, with the target's token after each node, one in reach more often than
    not."""
    lanes, nodes, vocabulary = int(rng.integers(1, 5)), int(rng.integers(2, 12)), 12
    parents = [[-1, *(int(rng.integers(0, node)) for node in range(1, nodes))] for _ in range(lanes)]
    tokens, best = [], []
    for lane in parents:
        names = [0] * nodes
        follows = rng.integers(vocabulary, size=nodes).tolist()
        for parent in range(nodes):
            children = [node for node in range(1, nodes) if lane[node] == parent]
            for node, name in zip(children, rng.permutation(vocabulary).tolist(), strict=False):
                names[node] = name
            if children and rng.random() < 0.8:
                follows[parent] = names[int(rng.choice(children))]
        tokens.append(names)
        best.append(follows)
    return {"tokens": tokens, "parents": parents, "best": best}


def along(tokens: list[int], parents: list[int], best: list[int]) -> list[int]:
    """What a greedy tree emits."""
    node, emitted = 0, []
    while True:
        emitted.append(best[node])
        agrees = [child for child, parent in enumerate(parents) if parent == node and tokens[child] == best[node]]
        if not agrees:
            return emitted
        (node,) = agrees


def filtered(number: int, vocabulary: int) -> Asked:
    """Rows as a top-k filter leaves them, the last id without mass, and drafts from q."""
    rng = np.random.default_rng(number)
    lanes, gamma = 8, 2
    p, q = (_top(rng, (lanes, gamma + 1 - side, vocabulary)) for side in (0, 1))
    cumulative = q.cumsum(-1)
    draft = (cumulative < rng.random((lanes, gamma, 1)) * cumulative[..., -1:]).sum(-1).clip(max=vocabulary - 1)
    return {"p": p, "q": q, "draft": draft}


def _top(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    rows = rng.gamma(0.3, size=shape) + 1e-6
    rows[..., -1] = 0.0
    rows[rows < np.quantile(rows, 0.5, axis=-1, keepdims=True)] = 0.0
    return np.asarray(rows / rows.sum(-1, keepdims=True), dtype=np.float32)
