"""The exact depth: the law of an in-process torch subject by running it through all its random decisions. In the child.

Every draft is given with its probability under q, and `intercepted` makes the subject's own random calls branch. The
result is its joint law in one call, up to its own rounding, with nothing sampled. The law holds only for a subject
whose answer depends on its inputs and its generators alone, which `stateless` checks first.
"""

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
import torch

from refengine.audit.interception.intercept import Raised, Unmodelled, intercepted
from refengine.audit.kernel.calls import Lanes, Subject, Table, drafts, judge
from refengine.exact.chance import runs


def enumerate_law(subject: Subject, table: Table, most: int, seconds: float) -> dict[str, Any]:
    """{"outcomes": [(tokens per lane, probability)], "runs": n}, or {"unmodelled": reason, "runs": n}.

    most     how many runs are made
    seconds  the outer limit
    """
    until = monotonic() + seconds
    mass: dict[Lanes, float] = {}
    count = 0
    for draft, path, weight in drafts(table, subject.signature):
        program = intercepted(partial(judge, subject, table, draft, path, torch.Generator()))
        try:
            for outcome, chance, _ in runs(program):
                count += 1
                if isinstance(outcome, Raised):
                    return {"unmodelled": f"a run raised: {outcome.error}", "runs": count}
                mass[outcome] = mass.get(outcome, 0.0) + weight * float(chance)
                if count >= most:
                    return {"unmodelled": f"it takes more than {most} runs", "runs": count}
                if monotonic() > until:
                    return {"unmodelled": f"the time was up after {count} runs", "runs": count}
        except (Unmodelled, ValueError) as reason:  # ValueError: runs that do not repeat
            return {"unmodelled": str(reason), "runs": count}
    return {"outcomes": [[list(map(list, lanes)), p] for lanes, p in sorted(mass.items())], "runs": count}


def stateless(run: Callable[..., dict[str, Any]], seeds: Any) -> bool:
    """Whether calls answer alike when they are made in the opposite order: no hidden state, no noise of its own."""
    forwards = [run(seeds[i : i + 1], 2 * i, True)["tokens"] for i in range(len(seeds))]
    backwards = [run(seeds[i : i + 1], 2 * i, True)["tokens"] for i in reversed(range(len(seeds)))]
    return all(np.array_equal(a, b) for a, b in zip(forwards, reversed(backwards), strict=True))
