"""Where a violation shows that no class of defects explains: position, prefix, token, kept or replaced, in words."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from refengine.audit.inputs.case import Case
from refengine.audit.kernel.exact_law import ExactLaw, context_after, target_row
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.naming import unexplained
from refengine.evidence.rows import Rows, residual

Lane = tuple[int, ...]  # its number, then what it emitted
Behind = dict[Lane, Rows]  # the weight of every next token: [2, V], of those that more follow, and of those that end it
SHOWN_PREFIXES = 3  # behind which all is right
SIGMAS, ENOUGH = 4.0, 100  # of a count, from which on it differs; draws that say so


def behind(lanes: Mapping[Lane, float], case: Case, longest: int | None = None) -> Behind:
    """What comes behind every prefix of a lane, or every one that is no longer than that."""
    found: Behind = defaultdict(lambda: np.zeros((2, case.vocabulary)))
    for (lane, *tokens), weight in lanes.items():
        for i, token in enumerate(tokens[: None if longest is None else longest + 1]):
            found[lane, *tokens[:i]][int(i + 1 == len(tokens)), token] += weight
    return found


def off(case: Case, prefix: Lane, weights: Rows) -> Rows:
    """What every token has more than its due behind a prefix."""
    lane, *emitted = prefix
    return np.asarray(weights.sum(0) - weights.sum() * target_row(case, lane, tuple(emitted)))


def of_law(law: ExactLaw) -> str:
    """The place of an exact law: the prefix behind which it is furthest off at its worst position."""
    case, found = law.case, behind(law.lanes(), law.case)
    apart = {prefix: float(np.abs(off(case, prefix, weights)).sum() / 2) for prefix, weights in found.items()}
    sites: dict[tuple[int, int], float] = defaultdict(float)
    for prefix, much in apart.items():
        sites[prefix[0], len(prefix)] += much
    site = max(sites, key=lambda site: sites[site])
    beside = [prefix for prefix in found if (prefix[0], len(prefix)) == site]
    worst = max(beside, key=lambda prefix: apart[prefix])
    lane, *emitted = worst
    right = [str(list(prefix[1:])) for prefix in beside if apart[prefix] <= BALL]
    others = f" and {len(right) - SHOWN_PREFIXES} others" if len(right) > SHOWN_PREFIXES else ""
    return words(
        case,
        (lane, len(emitted), context_after(case, emitted)),
        found[worst],
        int(np.abs(off(case, worst, found[worst])).argmax()),
        " ".join(filter(None, (f"behind {emitted}" if emitted else "", _beside(law, lane, emitted)))),
        f"it is right behind {', '.join(right[:SHOWN_PREFIXES])}{others}" if right else "",
        exact=True,
    )


def _beside(law: ExactLaw, lane: int, emitted: list[int]) -> str:
    """What the rows above had emitted by then, where it is right beside other rows."""
    at = len(emitted)
    found: dict[Any, Rows] = defaultdict(lambda: np.zeros((1, law.case.vocabulary)))
    for rows, mass in law.outcomes:
        if rows[lane][:at] == emitted and len(rows[lane]) > at:
            found[tuple(tuple(row[: at + 1]) for row in rows[:lane])][0, rows[lane][at]] += mass
    apart = {above: np.abs(off(law.case, (lane, *emitted), weights)).sum() / 2 for above, weights in found.items()}
    worst = max(apart, key=lambda above: apart[above])
    return f"beside rows that emitted {[*map(list, worst)]}" if min(apart.values()) <= BALL else ""


def words(
    case: Case,
    site: tuple[int, int, int],
    weights: Rows,
    token: int,
    history: str,
    more: str = "",
    exact: bool = False,
) -> str:
    """No class fits, and the place: lane, position and context, what came there, and what it stands behind."""
    lane, position, _ = site
    due, came = case.p[site], weights.sum(0) / max(weights.sum(), 1e-300)
    # a subject knows no cells
    which = f"token {token}" if case.cell is None else f"a token like {int(np.argmax(case.cell == token))}"
    often = "often" if came[token] > due[token] else "seldom"
    said = (
        f"on input {case.name!r}{f', lane {lane}' if exact and case.lanes > 1 else ''} {which} comes too {often}, "
        f"{came[token]:.3g} of the time where {due[token]:.3g} is due",
        _kept_or_replaced(weights, due, case.q[site] if position < case.gamma else None, exact),
        more,
    )
    where = f"at position {position} of a block" + f" {history}" * bool(history)
    return unexplained(f"{where}: {'; '.join(filter(None, said))}")


def _kept_or_replaced(weights: Rows, p: Rows, q: Rows | None, exact: bool) -> str:
    """Which half of the ratio rule is right, where one is."""
    if q is None:
        return "it stands behind a whole block"
    kept, replaced = weights
    if replaced.sum() <= (BALL if exact else ENOUGH):
        return ""
    kept_so = _as(kept, weights.sum() * np.minimum(p, q), exact)
    if kept_so == _as(replaced, replaced.sum() * residual(p, q), exact):
        return ""
    if kept_so:
        return "drafts are kept there as often as they should be; what replaces a refused one is wrong"
    return "what replaces a refused draft is right there; how often drafts are kept is wrong"


def _as(weights: Rows, due: Rows, exact: bool) -> bool:
    far = np.abs(weights - due)
    return bool(far.sum() / 2 <= BALL if exact else (far <= SIGMAS * np.sqrt(due + 1.0)).all())
