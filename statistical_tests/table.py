"""The table at the end of `make stat`: one line for every drafter and rule, of its tables and of its running loop."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2

from refengine.evidence.fit import g_test, pool, pooled

CONFIDENCE = 0.99  # of all bounds of the table together
LINES = 200  # at least as many as the table has; test_budget.py counts them
MARK = "line of the table: "
Places = Mapping[object, NDArray[np.float64]]  # what was emitted behind a text, or its probabilities: [V] each


@dataclass(frozen=True)
class Line:
    """drafts  "rounds of its tables", or "running loop"
    n         emitted tokens that are compared
    p         p-value of the log likelihood ratios of all places together (their sum is chi-square, freedoms added)
    tv        what the mean TV over places, weighted by their draws, is at most
    kept      share of rounds whose first draft is kept, and the probability of it: 1 - TV where it is drawn from q
    length    mean tokens of a round, and their expectation
    """

    drafter: str
    rule: str
    drafts: str
    n: int
    p: float
    tv: float
    kept: tuple[float, float]
    length: tuple[float, float]


def line(
    drafter: str,
    rule: str,
    drafts: str,
    seen: Places,
    rows: Places,
    kept: tuple[float, float],
    length: tuple[float, float],
) -> Line:
    """Print and return the line of one sample. kept, length: as seen, and as they should be."""
    n = int(sum(counts.sum() for counts in seen.values()))
    found = Line(drafter, rule, drafts, n, fit(seen, rows), tv_at_most(seen, rows), kept, length)
    print(MARK + json.dumps(asdict(found)))
    return found


def fit(seen: Places, rows: Places) -> float:
    """The p-value of all places with a hundred draws or more. Null: each is that many draws from its row."""
    statistic = freedom = 0.0
    for place, counts in seen.items():
        live = np.maximum(rows[place], 0.0)
        cell = pool(live, 1.0 / np.maximum(live, 1e-300), int(counts.sum()))
        if counts[cell < 0].sum():
            return 0.0
        if counts.sum() >= 100:
            test = g_test(pooled(counts, cell), pooled(live, cell))
            statistic, freedom = statistic + test.statistic, freedom + test.freedom
    return float(chi2.sf(statistic, freedom)) if freedom else 1.0


def tv_at_most(seen: Places, rows: Places) -> float:
    """A bound on the mean TV that holds, with every other of the table, at CONFIDENCE.

    Every probability lies in its interval of Clopper and Pearson. TV is what the emitted law has beyond the row, and
    what it lacks of it: the upper ends bound the one, the lower ends the other.
    """
    cells = sum(int((rows[place] > 0).sum()) for place in seen)
    confidence = 1 - (1 - CONFIDENCE) / (LINES * max(cells, 1))
    bound = total = 0.0
    for place, counts in seen.items():
        n, beyond, lacking = int(counts.sum()), 0.0, 0.0
        for count, probability in zip(counts, rows[place], strict=True):
            if probability > 0 or count:
                ends = binomtest(int(count), n).proportion_ci(confidence, method="exact")
                beyond += max(float(ends.high) - probability, 0.0)
                lacking += max(probability - float(ends.low), 0.0)
        bound, total = bound + n * min(beyond, lacking, 1.0), total + n
    return bound / total


def shown(printed: Iterable[str]) -> list[str]:
    """The table, of everything that the tests printed."""
    lines = [Line(**json.loads(text.removeprefix(MARK))) for text in printed if text.startswith(MARK)]
    titles = (
        ("tokens", 11),
        ("G: p", 8),
        ("TV <=", 8),
        ("1st kept", 10),
        ("expected", 10),
        ("length", 9),
        ("formula", 9),
    )
    head = f"{'drafter':22}{'rule':21}{'of':14}" + "".join(f"{title:>{width}}" for title, width in titles)
    body = [
        f"{x.drafter:22}{x.rule:21}{x.drafts:14}{x.n:>11,}{x.p:>8.3f}{x.tv:>8.4f}{x.kept[0]:>10.4f}{x.kept[1]:>10.4f}"
        f"{x.length[0]:>9.4f}{x.length[1]:>9.4f}"
        for x in sorted(lines, key=lambda x: (x.drafter, x.rule, x.drafts))
    ]
    note = (
        f"TV <=: Clopper-Pearson, all lines together hold with probability {CONFIDENCE}. expected: of the first draft, "
        "1 - TV(p, q) for a chain drawn from q. formula: 1 + the sum of the probabilities to keep so many drafts."
    )
    return [head, *body, note] if body else []
