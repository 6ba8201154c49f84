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
from refengine.audit.kernel.child.calls import Lanes, Subject, Table, drafts, judge
from refengine.exact.chance import runs

DECISIONS_OF_A_RUN = 4  # of a verifier that does not draw in a loop, about


def enumerate_law(subject: Subject, table: Table, most: int, seconds: float) -> dict[str, Any]:
    """{"outcomes": [(tokens per lane, probability)], "runs": n}, or {"unmodelled": reason}; and "spent", of `most`.

    most     how many runs may be made; a long one counts for several, since all its decisions are made anew
    seconds  the outer limit
    """
    until = monotonic() + seconds
    mass: dict[Lanes, float] = {}
    count = spent = 0
    for draft, path, weight in drafts(table, subject.signature):
        program = intercepted(partial(judge, subject, table, draft, path, torch.Generator()))
        try:
            for outcome, chance, decisions in runs(program):
                count, spent = count + 1, spent + max(1, len(decisions) // DECISIONS_OF_A_RUN)
                if isinstance(outcome, Raised):
                    return {"unmodelled": f"a run raised: {outcome.error}", "spent": spent}
                mass[outcome] = mass.get(outcome, 0.0) + weight * float(chance)
                if spent >= most:
                    return {"unmodelled": f"{count} runs used up what was left of the plan", "spent": spent}
                if monotonic() > until:
                    return {"unmodelled": f"the time was up after {count} runs", "spent": spent}
        except (Unmodelled, ValueError) as reason:  # ValueError: runs that do not repeat
            return {"unmodelled": str(reason), "spent": spent}
    outcomes = [[list(map(list, lanes)), p] for lanes, p in sorted(mass.items())]
    return {"outcomes": outcomes, "runs": count, "spent": spent}


def stateless(run: Callable[..., dict[str, Any]], seeds: Any) -> bool:
    """Whether calls answer alike when they are made in the opposite order: no hidden state, no noise of its own."""
    forwards = [run(seeds[i : i + 1], 2 * i, True)["tokens"] for i in range(len(seeds))]
    backwards = [run(seeds[i : i + 1], 2 * i, True)["tokens"] for i in reversed(range(len(seeds)))]
    return all(np.array_equal(a, b) for a, b in zip(forwards, reversed(backwards), strict=True))
