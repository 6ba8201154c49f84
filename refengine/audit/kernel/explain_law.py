"""The diagnosis of an enumerated law: the listed defects whose laws are nearest to it."""

from collections import defaultdict

import numpy as np

from refengine.audit.kernel.exact_law import ExactLaw, context_after
from refengine.audit.kernel.place import behind, of_law, off
from refengine.audit.kernel.shared_coins import WAYS, next_row
from refengine.evidence.bets.defect_laws import alternatives
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.naming import BOUNDARY, DEPENDENT_ROWS, joined

MAX_UNEXPLAINED_SHARE = 0.1  # of the deviation, which an explanation may leave over
NEAREST_SHARE = 0.02  # of it, by which defects that are named together may differ


def explain(laws: list[ExactLaw]) -> str:
    """The listed defects whose laws are nearest to the enumerated one, by Kullback-Leibler divergence summed over all
    sites and emitted prefixes; named where they leave less than a tenth of what the null leaves. Otherwise the place of
    the largest difference."""
    worst = max(laws, key=lambda law: law.worst.tv)
    if worst.worst.tv <= BALL:
        return BOUNDARY
    if max(map(_off_by_itself, laws)) < MAX_UNEXPLAINED_SHARE * worst.worst.tv:
        return DEPENDENT_ROWS  # each row is right by itself, and not given the others
    simple = [
        law for law in laws if law.case.contexts == 1
    ]  # with several, a neighbour's row is not known from the site
    left = _left(simple if any(law.violates() for law in simple) else laws)
    null = left.pop("")
    least = min(left.values())
    if least <= MAX_UNEXPLAINED_SHARE * null:
        return joined(name for name, value in left.items() if value <= least + NEAREST_SHARE * null)
    return of_law(worst)


def _off_by_itself(law: ExactLaw) -> float:
    """The largest total variation of a lane's position, whatever the other lanes of the batch emitted."""
    sites: dict[tuple[int, int], float] = defaultdict(float)
    for prefix, weights in behind(law.lanes(), law.case).items():
        sites[prefix[0], len(prefix)] += float(np.abs(off(law.case, prefix, weights)).sum() / 2)
    return max(sites.values())


def _left(laws: list[ExactLaw]) -> dict[str, float]:
    """Per listed defect, and "" for the null: the divergence that it leaves unexplained, in nats."""
    left: dict[str, float] = defaultdict(float)
    for law in laws:
        tables = {"": law.case.p, **alternatives(law.case.p, law.case.q)}
        for (lane, *emitted), weights in behind(law.lanes(), law.case).items():
            site, mass = (lane, len(emitted), context_after(law.case, emitted)), weights.sum(0)
            rows = {name: table[site] for name, table in tables.items()}
            rows |= {way: next_row(way, law.case, lane, emitted) for way in WAYS}
            live = mass > 0
            for name, row in rows.items():
                expected = mass.sum() * np.maximum(row[live], 1e-12)
                left[name] += float((mass[live] * np.log(mass[live] / expected)).sum())
    return left
