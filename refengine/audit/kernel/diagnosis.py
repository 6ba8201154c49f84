"""The diagnosis of a sampled violation: the class of a listed defect that explains the counts, or where it shows.

The posterior weighs the listed defects against one another and against bets that learn, and `explain_counts.py` tests
the likeliest: a defect that nobody listed may look more like one of them than like chance. The same test of p itself
comes before a word of coins that rows or rounds share: what shares a coin with others is right by itself.
"""

from copy import copy

import numpy as np

from refengine.audit.inputs.case import Case
from refengine.audit.kernel.campaign import Campaign, Tried
from refengine.audit.kernel.exact_law import context_after
from refengine.audit.kernel.explain_counts import DOUBT, MIN_POSTERIOR, NULL, explains, over_inputs, ways_that_explain
from refengine.audit.kernel.history import ABOVE, FURTHER_BACK, LAGS, ROUND_BEFORE
from refengine.audit.kernel.place import words
from refengine.audit.kernel.shared_coins import WAYS
from refengine.evidence.bets.learned_bets import Learner
from refengine.evidence.e_process import ALONE, EVERYWHERE, LISTED
from refengine.evidence.naming import (
    COUNTED_CALLS,
    DEPENDENT_ROUNDS,
    DEPENDENT_ROWS,
    DISTANT_ROUNDS,
    SELDOM,
    joined,
)
from refengine.evidence.rows import Rows

DIAGNOSIS_CALLS, DIAGNOSIS_CALLS_WIDE = 2000, 4  # over all inputs, and of each that has many ids
# The diagnosis where emitted tokens depend on a feature of the history.
SHARED = {
    **{feature: DEPENDENT_ROWS for where in ABOVE for feature in (f"the same position {where}", f"so far {where}")},
    **dict.fromkeys(ROUND_BEFORE, DEPENDENT_ROUNDS),
    FURTHER_BACK: DISTANT_ROUNDS,
    "the number of the call": COUNTED_CALLS,
}


def diagnose(campaign: Campaign) -> str:
    """The listed defects that explain the counts. Some more calls of every input tell them apart, and from defects that
    nobody listed."""
    usable = [name for name in campaign.cases if name not in campaign.skipped]
    for name in usable:
        wide = campaign.cases[name].case.cell is not None  # a call of many ids takes long
        campaign.run(name, DIAGNOSIS_CALLS_WIDE if wide else DIAGNOSIS_CALLS // len(campaign.cases), stop=False)
    names, posterior = campaign.evidence.components(), campaign.evidence.posterior()
    likely = [names[i] for i in np.argsort(-posterior) if posterior[i] > MIN_POSTERIOR]
    tried = [campaign.cases[name] for name in usable if campaign.cases[name].calls]
    shown = [name.removeprefix(EVERYWHERE).removeprefix(ALONE) for name in likely]
    features = [name for name in dict.fromkeys((*shown, *SHARED)) if name in SHARED]
    if feature := next((feature for feature in features if depends(feature, tried)), None):
        named = SHARED[feature]
        sharers = [item.case.lanes if named == DEPENDENT_ROWS else int(LAGS[-1]) for item in tried]
        if named == COUNTED_CALLS or explains(NULL, tried, sharers):
            return named
        return f"{where_it_shows(tried)}; it depends on {feature}"
    listed = [name for name in likely if name in LISTED and name not in WAYS]
    listed = [name for name in listed if explains(name.removesuffix(SELDOM), tried)]
    found = listed or ways_that_explain(tried)
    return joined(found) if found else where_it_shows(tried)


def depends(feature: str, tried: list[Tried]) -> bool:
    """Whether the law of a token differs from one state of the feature to another. A learner that tells states apart
    also grows where the law is wrong in all of them alike; so its null here is the law observed at the site, whatever
    the state."""
    learners = [item.evidence.learners[feature] for item in tried]
    return bool(max(over_inputs([_to_its_place(learner) for learner in learners])) > np.log(len(SHARED) / DOUBT))


def _to_its_place(learner: Learner) -> tuple[float, float]:
    """The wealth of a learner whose null is the law that it counted itself, over all states of its feature."""
    own, width = copy(learner), learner.mass.shape[1]
    counts = learner.counts[0].reshape(-1, learner.states, width).sum(1)
    own.mass = np.repeat(counts / np.maximum(counts.sum(1, keepdims=True), 1.0), learner.states, axis=0)
    own.log_null = np.log(np.where(own.mass > 0, own.mass, 1.0))
    everywhere, alone = own.log_wealth()
    return float(everywhere[0]), float(alone[0])


def where_it_shows(tried: list[Tried]) -> str:
    """The site where the evidence is strongest, and the token there that is furthest from its expected share; behind
    one token where the law depends on the token before."""
    features = "the site", "the token before"
    feature, item = max(
        ((feature, item) for feature in features for item in tried),
        key=lambda one: float(one[1].evidence.learners[one[0]].log_wealth()[1][0]),
    )
    if depends(features[1], tried):
        feature = features[1]
        item = max(tried, key=lambda item: float(item.evidence.learners[feature].log_wealth()[1][0]))
    behind = feature == features[1]
    learner = item.evidence.learners[feature]
    kind, before = divmod(learner.strongest()[0], learner.states)
    sites = [_place(item.case, int(site)) for site in np.flatnonzero(learner.group == kind)]
    due = item.case.p[sites[0]]
    came = _came(item, sites, before if behind else None)
    counts, draws = came.sum(0), max(came.sum(), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.abs(counts - draws * due) / np.sqrt(draws * due * (1.0 - due))
    token = int(np.nanargmax(np.where(due > 0, far, np.where(counts > 0, np.inf, 0.0))))
    return words(item.case, sites[0], came, token, f"behind token {before}" if behind else "")


def _place(case: Case, site: int) -> tuple[int, int, int]:
    lane, rest = divmod(site, (case.gamma + 1) * case.contexts)
    return lane, *divmod(rest, case.contexts)


def _came(item: Tried, sites: list[tuple[int, int, int]], before: int | None) -> Rows:
    """The tokens that came there, behind one token or any: [2, V], those that more followed and those that none did."""
    found, position = np.zeros((2, item.case.vocabulary)), sites[0][1]
    for (lane, *tokens), count in item.lanes.items():
        met = len(tokens) > position and before in (None, tokens[position - 1])
        if met and (lane, position, context_after(item.case, tokens[:position])) in sites:
            found[int(len(tokens) == position + 1), tokens[position]] += count
    return found
