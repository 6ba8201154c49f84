"""The exact depth: the law of an in-process torch subject by running it through all its random decisions. In the child.

Every draft is given with its probability under q, and `intercepted` makes the subject's own random calls branch. The
result is its joint law in one call, up to its own rounding, with nothing sampled. It holds only for a subject whose
answer depends on its inputs and its generators: `stateless` asks that first.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from refengine.audit.case import step
from refengine.audit.intercept import Raised, Unmodelled, intercepted
from refengine.exact.chance import runs

if TYPE_CHECKING:
    from refengine.audit.worker import Lanes, Table, Worker

MOST_RUNS = 3000  # a count rather than the clock says what is too much, so that a slow machine says the same


def enumerate_law(worker: "Worker", name: str, seconds: float) -> dict[str, Any]:
    """{"outcomes": [(tokens per lane, probability)], "runs": n}, or {"unmodelled": reason}."""
    from refengine.audit.worker import judge

    table, until = worker.tables[name], monotonic() + seconds
    mass: dict[Lanes, float] = {}
    count = 0
    for draft, path, weight in drafts(table, worker.signature):
        program = intercepted(partial(judge, worker, table, draft, path, torch.Generator()))
        try:
            for outcome, chance, _ in runs(program):
                count += 1
                if isinstance(outcome, Raised):
                    return {"unmodelled": f"a run raised: {outcome.error}"}
                mass[outcome] = mass.get(outcome, 0.0) + weight * float(chance)
                if count >= MOST_RUNS:
                    return {"unmodelled": f"it takes more than {MOST_RUNS} runs"}
                if monotonic() > until:
                    return {"unmodelled": f"{count} runs took {seconds:g} s"}
        except (Unmodelled, ValueError) as reason:  # ValueError: runs that do not repeat
            return {"unmodelled": str(reason)}
    return {"outcomes": [[list(map(list, lanes)), p] for lanes, p in sorted(mass.items())], "runs": count}


def drafts(table: "Table", signature: str) -> Iterator[tuple[list[list[int]], list[tuple[int, ...]], float]]:
    """(draft per lane, path of contexts per lane, probability); a proposer of the subject's own draws for itself."""
    lanes = range(table.p.shape[0] if signature == "verify_batch" else 1)
    if signature == "round":
        yield [[] for _ in lanes], [(lane,) for lane in lanes], 1.0
        return
    per_lane = [list(_chains(table, lane)) for lane in lanes]
    for chosen in product(*per_lane):
        weight = float(np.prod([mass for _, _, mass in chosen]))
        yield [draft for draft, _, _ in chosen], [path for _, path, _ in chosen], weight


def _chains(table: "Table", lane: int) -> Iterator[tuple[list[int], tuple[int, ...], float]]:
    for draft in product(range(table.q.shape[3]), repeat=table.gamma):
        context, path, mass = 0, [0], 1.0
        for i, x in enumerate(draft):
            row = table.q[lane, i, context].double()
            mass *= float(row[x] / row.sum())
            context = int(step(context, x, table.p.shape[2]))
            path.append(context)
        if mass > 0:
            yield list(draft), (lane, *path), mass


def stateless(worker: "Worker", name: str, seeds: Any) -> bool:
    """Whether calls answer alike when they are made in the opposite order: no hidden state, no noise of its own."""
    forwards = [worker.run(name, seeds[i : i + 1], 2 * i, True, 60.0)["tokens"] for i in range(len(seeds))]
    backwards = [worker.run(name, seeds[i : i + 1], 2 * i, True, 60.0)["tokens"] for i in reversed(range(len(seeds)))]
    return all(np.array_equal(a, b) for a, b in zip(forwards, reversed(backwards), strict=True))
