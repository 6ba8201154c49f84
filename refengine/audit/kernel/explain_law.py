"""The diagnosis of an enumerated law: the listed defects whose laws are nearest to it."""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import numpy as np

from refengine.audit.kernel.exact_law import ExactLaw, context_after, target_row
from refengine.evidence.bets.defect_laws import alternatives
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.bets.one_coin import one_coin_law
from refengine.evidence.naming import BOUNDARY, DEPENDENT_POSITIONS, DEPENDENT_ROWS, ONE_COIN, joined, unexplained
from refengine.evidence.rows import Rows, ratio

MAX_UNEXPLAINED_SHARE = 0.1  # of the deviation, which an explanation may leave over
NEAREST_SHARE = 0.02  # of it, by which defects that are named together may differ


def explain(laws: list[ExactLaw]) -> str:
    """The listed defects whose laws are nearest to the enumerated one, by Kullback-Leibler divergence summed over all
    sites and emitted prefixes; named where they leave less than a tenth of what the null leaves."""
    worst = max((law.worst for law in laws), key=lambda site: site.tv)
    if worst.tv <= BALL:
        return BOUNDARY
    if max(_deviation(law, mass) for law in laws for mass in _own(law)) < MAX_UNEXPLAINED_SHARE * worst.tv:
        return DEPENDENT_ROWS  # each row is right by itself, and not given the others
    simple = [
        law for law in laws if law.case.contexts == 1
    ]  # with several, a neighbour's row is not known from the site
    left = _left(simple if any(law.violates() for law in simple) else laws)
    null = left.pop("")
    least = min(left.values())
    if least <= MAX_UNEXPLAINED_SHARE * null:
        return joined(name for name, value in left.items() if value <= least + NEAREST_SHARE * null)
    if any(_remembers(law) for law in laws):
        return DEPENDENT_POSITIONS
    return unexplained(f"at position {worst.position} of a block")


Masses = dict[tuple[int, ...], Rows]  # emitted prefix of a lane -> mass of every next token


def _own(law: ExactLaw) -> Iterator[Masses]:
    """For every lane and position, whatever the other lanes of the batch emitted."""
    for lane in range(len(law.outcomes[0][0])):
        for position in range(law.case.gamma + 1):
            masses: Masses = defaultdict(lambda: np.zeros(law.case.vocabulary))
            for tokens, mass in law.outcomes:
                if len(tokens[lane]) > position:
                    masses[lane, *tokens[lane][:position]][tokens[lane][position]] += mass
            yield masses


def _deviation(law: ExactLaw, masses: Masses) -> float:
    off = (np.abs(m - m.sum() * target_row(law.case, lane, tuple(prefix))) for (lane, *prefix), m in masses.items())
    return float(sum(part.sum() for part in off) / 2)


def _left(laws: list[ExactLaw]) -> dict[str, float]:
    """Per listed defect, and "" for the null: the divergence that it leaves unexplained, in nats."""
    left: dict[str, float] = defaultdict(float)
    for law in laws:
        tables = {"": law.case.p, **alternatives(law.case.p, law.case.q)}
        for masses in _own(law):
            for (lane, *prefix), mass in masses.items():
                site = lane, len(prefix), context_after(law.case, prefix)
                rows = {name: table[site] for name, table in tables.items()}
                rows[ONE_COIN] = _one_coin(law, lane, tuple(prefix))
                live = mass > 0
                for name, row in rows.items():
                    expected = mass.sum() * np.maximum(row[live], 1e-12)
                    left[name] += float((mass[live] * np.log(mass[live] / expected)).sum())
    return left


def _one_coin(law: ExactLaw, lane: int, prefix: tuple[int, ...]) -> Rows:
    """The next token where one coin decides about the whole block."""
    case, below = law.case, 1.0
    p = target_row(case, lane, prefix)
    if len(prefix) == case.gamma:
        return p
    for i, token in enumerate(prefix):
        site = lane, i, context_after(case, prefix[:i])
        below = min(below, float(ratio(case.p[site], case.q[site])[token]) or 1.0)
    with np.errstate(all="ignore"):
        return one_coin_law(p, case.q[lane, len(prefix), context_after(case, prefix)], np.array(below))


def _remembers(law: ExactLaw) -> bool:
    """Whether the law of the next token depends on the prefix by more than its context, to a good part."""
    return any(
        off > BALL and apart > MAX_UNEXPLAINED_SHARE * off for apart, off in map(partial(_spread, law), _own(law))
    )


def _spread(law: ExactLaw, masses: Masses) -> tuple[float, float]:
    """How far laws given the prefix are from their mean over prefixes of one context, and from the null."""
    means: dict[int, Rows] = defaultdict(lambda: np.zeros(law.case.vocabulary))
    for (_, *prefix), mass in masses.items():
        means[context_after(law.case, prefix)] += mass
    apart = 0.0
    for (_, *prefix), mass in masses.items():
        mean = means[context_after(law.case, prefix)]
        apart += float(np.abs(mass - mass.sum() * mean / mean.sum()).sum() / 2)
    return apart, _deviation(law, masses)
