"""The table at the end of `make stat`: one line for every drafter and rule, of its tables and of its running loop; and
what all drafters of a rule show together, where a deviation that they share stands out with fewer tokens of each."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from refengine.evidence.power import detectable_tv
from statistical_tests.budget import ALPHA, FAMILY
from statistical_tests.counts import Bet, Places, bets_together, chi_square, p_of, summed, tv_at_most

CONFIDENCE = 0.99  # of all bounds of the table together
LINES = 200  # at least as many as the table has; test_budget.py counts them
MARK = "line of the table: "
LOOP, TABLES = "running loop", "its tables"


@dataclass(frozen=True)
class Line:
    """drafts       LOOP, or rounds of TABLES
    n            emitted tokens that are compared
    decoded      how many of them the loop emitted itself; of the others it was looked up what it says: running_loop.py
    tv           what the mean TV over places, weighted by their draws, is at most
    detectable   which TV at every place the chi-square test of the tokens sees with probability 0.99
    kept         share of rounds whose first draft is kept, and the probability of it: 1 - TV where it is drawn from q
    length       mean tokens of a round, and their expectation
    chi_squares  by question, (statistic, freedom); "tokens" is one
    bets         by question
    """

    drafter: str
    rule: str
    drafts: str
    n: int
    decoded: int
    tv: float
    detectable: float
    kept: tuple[float, float]
    length: tuple[float, float]
    chi_squares: dict[str, tuple[float, int]]
    bets: dict[str, Bet] = field(default_factory=dict)


def line(
    drafter: str,
    rule: str,
    drafts: str,
    seen: Places,
    rows: Places,
    planned: int,
    part: float,
    kept: tuple[float, ...],
    length: tuple[float, ...],
    chi_squares: Mapping[str, tuple[float, int]] | None = None,
    bets: Mapping[str, Bet] | None = None,
    decoded: int | None = None,
) -> Line:
    """Print and return the line of one sample of about `planned` tokens.

    part         the alpha of one of the test's questions
    kept, length as seen, and as they should be
    chi_squares  that of the tokens is made here where it is not given
    """
    n = int(sum(counts.sum() for counts in seen.values()))
    chi = dict(chi_squares or {"tokens": chi_square(seen, rows, 0)})
    found = Line(
        drafter, rule, drafts, n, n if decoded is None else decoded,
        tv_at_most(seen, rows, planned, (1 - CONFIDENCE) / LINES),
        detectable_tv(n, chi["tokens"][1] + 1, part),
        (kept[0], kept[1]), (length[0], length[1]), chi, dict(bets or {}),
    )  # fmt: skip
    print(MARK + json.dumps(asdict(found)))
    return found


def lines_of(printed: Iterable[str]) -> list[Line]:
    """The lines among everything that the tests printed, in the order of the table."""
    read = [json.loads(text.removeprefix(MARK)) for text in printed if text.startswith(MARK)]
    found = [Line(**{**x, "bets": {name: Bet(**one) for name, one in x["bets"].items()}}) for x in read]
    return sorted(found, key=lambda x: (x.drafter, x.rule, x.drafts, x.n))


@dataclass(frozen=True)
class Together:
    """One question about all running loops of a rule. p: exact (chi-square) or a bound on it (bet). sees: the TV."""

    rule: str
    question: str
    drafters: int
    n: int
    p: float
    sees: float


def together(lines: Iterable[Line]) -> list[Together]:
    """Every question, by rule. The loops have coins of their own each, so chi-squares add up and wealth multiplies."""
    found, groups = [], defaultdict[tuple[str, int], list[Line]](list)
    for x in lines:
        if x.drafts == LOOP:
            groups[x.rule, round(np.log10(x.n))].append(x)  # the short version apart from the long one
    for (rule, _), mine in sorted(groups.items()):
        n = sum(x.n for x in mine)
        for question in mine[0].chi_squares:
            chi = summed([x.chi_squares[question] for x in mine])
            found.append(Together(rule, question, len(mine), n, p_of(chi), detectable_tv(n, chi[1] + 1, ALPHA)))
        for question in mine[0].bets:
            bet = bets_together([x.bets[question] for x in mine])
            found.append(Together(rule, question, len(mine), n, bet.p, bet.sees(ALPHA)))
    return found


def shown(lines: list[Line]) -> list[str]:
    """The table."""
    titles = (
        ("tokens", 11), ("decoded", 11), ("p", 7), ("sees TV", 9), ("TV <=", 8), ("1st kept", 10), ("expected", 10),
        ("length", 9), ("expected", 10),
    )  # fmt: skip
    head = f"{'drafter':20}{'rule':20}{'rounds of':13}" + "".join(f"{title:>{width}}" for title, width in titles)
    body = [
        f"{x.drafter:20}{x.rule:20}{x.drafts:13}{x.n:>11,}{x.decoded:>11,}{p_of(x.chi_squares['tokens']):>7.3f}"
        f"{x.detectable:>9.4f}{x.tv:>8.4f}{x.kept[0]:>10.4f}{x.kept[1]:>10.4f}{x.length[0]:>9.4f}{x.length[1]:>10.4f}"
        for x in lines
    ]
    pooled = [f"{x.rule:22}{x.question:26}{x.drafters:>8}{x.n:>13,}{x.p:>8.3f}{x.sees:>9.4f}" for x in together(lines)]
    titled = f"{'all running loops of':22}{'question':26}{'drafters':>8}{'tokens':>13}{'p':>8}{'sees TV':>9}"
    return [head, *body, "", *([titled, *pooled, ""] if pooled else []), *NOTES] if body else []


NOTES = (
    "Emitted tokens are compared with the target's own rows, text by text (a text: what was emitted before).",
    "rounds of: the running loop with its caches, policies, stop and limit; or tables, made once, of all that the",
    "    drafter can propose at six prefixes, and of the target's rows there.",
    "decoded: so many of the tokens were emitted by the loop itself. The other requests' coins answered every",
    "    question as those of a decoded request did, so they say what it said; every eighth is decoded all the same,",
    "    to see that it does. What is decoded answers every coin as the definitions do, or the test fails: what was",
    "    stated above of corrections, coin by coin, is a TV that would part them once with probability 0.99.",
    "p: of the chi-square test that the tokens are draws from those rows; uniform on [0, 1] if they are. A test fails",
    f"    below {ALPHA:.0e} divided by the number of its questions, and a correct build in any test of the suite with",
    f"    probability {FAMILY:.0e} at most.",
    "sees TV: a total variation of this size after every text, or in every round or correction that a question is",
    "    about, would fail the test with probability 0.99.",
    f"TV <=: the mean total variation is at most this. All bounds hold at once with probability {CONFIDENCE}.",
    "1st kept: share of rounds that keep the first drafted token; expected: by the rule's definition, round by round;",
    "    for a chain drawn from q and judged by leviathan that is the mean of 1 - TV(p, q).",
    "length: mean tokens of a round; expected: 1 + the sum over k of the probability that k drafts are kept.",
    "All running loops of a rule: the same questions of all its drafters at once, which see what they share at a",
    "    smaller TV. The p of first draft, length and correction is a bound: 1 where nothing speaks against the rule.",
)
