"""The table at the end of `make stat`: one line for every drafter and rule, of stored rows and of the running loop; and
what all drafters of a rule show together, where a deviation that they share stands out with fewer tokens of each."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
from scipy.stats import norm

from refengine.evidence.power import detectable_tv
from statistical_tests.budget import ALPHA, FAMILY
from statistical_tests.counts import Bet, Places, bets_together, chi_square, p_of, summed, tv_at_most

CONFIDENCE = 0.99  # of all bounds of the table together
LINES = 200  # at least as many as the table has; test_budget.py counts them
MARK = "line of the table: "
LOOP, TABLES = "loop", "tables"
Mean = tuple[float, float, float]  # as seen, as due, and the standard error of what is seen


@dataclass(frozen=True)
class Line:
    """drafts       LOOP, or rounds of TABLES
    n            emitted tokens that are compared
    decoded      how many of them the loop emitted itself; of the others it was looked up what it says: running_loop.py
    tv           what the mean TV over places, weighted by their draws, is at most
    detectable   which TV at every place the chi-square test of the tokens sees with probability 0.99
    kept         share of rounds whose first draft is kept: due is 1 - TV where it is drawn from q
    length       mean tokens of a round
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
    kept: Mean
    length: Mean
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
    kept: Mean,
    length: Mean,
    chi_squares: Mapping[str, tuple[float, int]] | None = None,
    bets: Mapping[str, Bet] | None = None,
    decoded: int | None = None,
) -> Line:
    """Print and return the line of one sample of about `planned` tokens.

    part         the alpha of one of the test's questions
    chi_squares  that of the tokens is made here where it is not given
    """
    n = int(sum(counts.sum() for counts in seen.values()))
    chi = dict(chi_squares or {"tokens": chi_square(seen, rows, 0)})
    found = Line(
        drafter, rule, drafts, n, n if decoded is None else decoded,
        tv_at_most(seen, rows, planned, (1 - CONFIDENCE) / LINES),
        detectable_tv(n, chi["tokens"][1] + 1, part),
        kept, length, chi, dict(bets or {}),
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


def shown(lines: list[Line], failed: Collection[Line] = ()) -> list[str]:
    """The table, with what it says in short and how it is read above it. failed: the lines whose test failed."""
    if not lines:
        return []
    body = [_row(x) + ("  FAILED" if x in failed else "") for x in lines]
    pooled = [f"{x.rule:20}{x.question:26}{x.drafters:>9}{x.n:>13,}{_p(x.p):>8}{x.sees:>8.4f}" for x in together(lines)]
    if pooled:
        titled = f"{'rule':20}{'question':26}{'drafters':>9}{'tokens':>13}{'p':>8}{'sees':>8}"
        pooled = ["", *POOLED, "", titled, *pooled]
    return [*_in_short(lines, failed), "", *LEGEND, "", *HEAD, *body, *pooled]


def _row(x: Line) -> str:
    means = "".join(f"{mean[0]:>7.4f}{mean[1]:>7.4f}{off(mean):>+5.1f}" for _, mean in _means(x))
    p = _p(p_of(x.chi_squares["tokens"]))
    source = f"{LOOP} {x.decoded / x.n:.0%}" if x.drafts == LOOP else x.drafts
    return f"{x.drafter:20}{x.rule:20}{source:9}{x.n:>11,}{p:>6}{x.detectable:>7.4f}{x.tv:>8.4f}{means}"


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def _means(x: Line) -> list[tuple[str, Mean]]:
    return [("1st draft kept", x.kept), ("tokens a round", x.length)]


def off(mean: Mean) -> float:
    """What is seen less what is due, in standard errors."""
    return (mean[0] - mean[1]) / max(mean[2], 1e-9)


def _in_short(lines: list[Line], failed: Collection[Line]) -> list[str]:
    """The answer, and of each kind of number the one that speaks most against it."""
    ps = [(p_of(chi), f"{_name(x)}, {question}") for x in lines for question, chi in x.chi_squares.items()]
    offs = [(abs(off(mean)), f"{_name(x)}, {name}") for x in lines for name, mean in _means(x)]
    (p, least), (far, farthest) = min(ps), max(offs)
    bound, loosest = max((x.tv, _name(x)) for x in lines)
    tails = 2 * norm.sf(far) * len(offs)
    said = f"{len(failed)} FAILED." if failed else "nothing speaks against it."
    return [
        "Does a model with a drafter emit what it emits without one?",
        f"{len(lines)} samples of {len({x.drafter for x in lines})} drafters: {said}",
        f"    smallest p         {_p(p):8}{least}; chance gives {p * len(ps):.2g} of {len(ps)}",
        f"    largest TV bound   {bound:<8.4f}{loosest}",
        f"    farthest off       {far:<8.1f}{farthest}; chance gives {tails:.2g} of {len(offs)}",
    ]


def _name(x: Line) -> str:
    return f"{x.drafter}, {x.rule}, {x.drafts}"


LEGEND = (
    "How to read it. One line is one sample. A text: what was emitted before a token. A row: a model's probabilities",
    "of the next token. The null hypothesis: each emitted token is a draw from the target's row after its text.",
    "The models are tiny, and a line has rows of its own: rules and drafters are not compared by it, nor speed.",
    "  from      loop: the running loop with its caches, policies, stop token and limit; so many percent of the tokens",
    "            were decoded. A decoder learns of chance only how coins fall. Where all coins of a request fall as",
    "            those of a decoded one did, it has the same text, which is counted without decoding it again; one in",
    "            eight of these is decoded all the same, and must have that text.",
    "            tables: rounds of the rule on stored rows of drafter and target, at six prefixes, without the loop.",
    "            Equal lines are one drafter in two layouts: one sample.",
    "  tokens    emitted tokens that were compared",
    "  p         of the chi-square test: anything between 0 and 1, each as likely as another, if the null is true.",
    f"            Bad is below {ALPHA:.0e} divided by the number of hypotheses of the test: then it fails.",
    f"            All tests of the suite together fail a correct build with probability {FAMILY:.0e} at most.",
    "  TV        total variation, the largest error in the probability of any event: 0 if the laws are equal.",
    "            sees: a TV of this size after every text fails the test with probability 0.99.",
    "            at most: the upper end of a confidence interval for the mean TV over texts. It falls with more tokens",
    f"            and is never 0. The ends of all lines hold at once with probability {CONFIDENCE}. So it is larger",
    "            than what the test sees. Neither is an error that was measured; after a few texts it may be larger.",
    "  1st draft kept    share of rounds that keep the first drafted token. due: its probability by the definition of",
    "            the rule; under leviathan the mean of 1 - TV(p, q) of the target's row p and the drafter's row q.",
    "  tokens a round    the mean. due: 1 + the sum over k of the probability that k drafts are kept.",
    "  off       seen - due, in standard errors: beyond 2 in one of 22 correct means, beyond 3 in one of 370. The two",
    "            of a line lean together: who keeps more first drafts emits more tokens a round.",
    "  chance gives, above: where the null is true, so many of that many numbers are expected as extreme, or more",
)
HEAD = (
    f"{'':66}{'TV':>8}{'1st draft kept':>22}{'tokens a round':>19}",
    f"{'drafter':20}{'rule':20}{'from':9}{'tokens':>11}{'p':>6}{'sees':>7}{'at most':>8}"
    + f"{'seen':>7}{'due':>7}{'off':>5}" * 2,
)
POOLED = (
    "All loops of a rule at once: a deviation that its drafters share is seen at a smaller TV. The p of tokens and of",
    "rounds is a chi-square test's; the p of the others is an upper bound, 1 where nothing speaks against the rule.",
)
