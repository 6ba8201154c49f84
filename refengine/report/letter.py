"""A violation as a maintainer wants to read it: what is emitted and how far it is off, what explains it, where to look.

Everything is taken from the finding, so a report says it in the same words as the audit did. A finding whose witness is
of another kind than those of functions and programs has no such sentence, and is shown by its claim.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from refengine.report.finding import Finding

# By class of `refengine bugs`: the place in a verifier where it is made.
ACCEPTANCE = "the line that accepts a draft x with probability min(1, p[i][x] / q[i][x])"
CORRECTION = "the line that replaces a refused draft by a draw from (p[i] - q[i])+, normalised"
BONUS = "the draw after a block that was kept whole, which is from the target's last row"
COINS = "where random numbers come from: every decision of every position, row and round needs one of its own"
INDICES = "the indices of rows: row i of p and row i of q judge draft i, in the lane that it was drafted in"
ROWS = "what is done to the rows (temperature, filters, dtype): the same to those drawn from and those judged by"
IDS = (
    "the step from what is drawn to the id that is emitted: offsets, tails of the vocabulary, maps between vocabularies"
)
PROPOSER = "the proposer: q must be the very row that the draft was drawn from"
STATE = "what is kept from one call to the next: caches, counters, generators"
LOOK = {
    **dict.fromkeys(
        (
            *("accepts always", "accepts never", "another acceptance", "no coin", "ratio upside down"),
            *("first draft unverified", "last draft unverified", "zero at zero", "coarse coin"),
            *("lossy by design: typical-by-default", "value-dependent truncation"),
        ),
        ACCEPTANCE,
    ),
    **dict.fromkeys(
        (
            *("resample from target", "one-hot residual", "another correction", "empty residual"),
            *("agreement draws again after a mismatch", "equal candidates merged"),
        ),
        CORRECTION,
    ),
    **dict.fromkeys(("another bonus", "bonus from the row before", "filters on the bonus only"), BONUS),
    **dict.fromkeys(
        (
            *("one coin for two uses", "positions share coins", "requests share coins", "rounds share coins"),
            *("draft and verifier share coins", "generator advanced by nothing", "seed ignored"),
        ),
        COINS,
    ),
    **dict.fromkeys(("row slip", "row slip of q", "rows of another lane"), INDICES),
    **dict.fromkeys(
        (
            *("temperature dropped", "greedy at temperature", "another filter", "half precision", "epsilon"),
            *("half-precision draw", "greedy is sampled"),
        ),
        ROWS,
    ),
    **dict.fromkeys(("ids off by one", "an end of the vocabulary is lost", "draft ids not mapped"), IDS),
    **dict.fromkeys(("greedy proposal, soft q", "raw row as q", "q in another order"), PROPOSER),
    **dict.fromkeys(("state between calls",), STATE),
    "zero mass": "the support: no draw may leave the tokens with p > 0",
    "contract broken": "the value that is returned",
}
MAX_LOOKS = 2  # places that are named together


@dataclass(frozen=True)
class Row:
    """A token at the site of a violation: the probability that is due, how often it came in words, and how much more
    that is than is due."""

    token: str
    due: float
    came: str
    excess: float


@dataclass(frozen=True)
class Site:
    """Where a violation shows: the position in a block, the emitted tokens before it where one history is meant, and
    the target's row."""

    position: int
    emitted: list[int] | None
    rows: list[Row]

    @property
    def worst(self) -> Row:
        """The token that comes too often by most."""
        return max(self.rows, key=lambda row: row.excess)


def site(finding: Finding) -> Site | None:
    """The row of a violation, where its witness has one."""
    witness = finding.witness or {}
    if {"law", "null", "emitted", "position"} <= witness.keys():  # an exact law
        pairs = enumerate(zip(witness["null"], witness["law"], strict=True))
        rows = [Row(str(token), due, f"{came:.6f}", came - due) for token, (due, came) in pairs]
        return Site(witness["position"], witness["emitted"], rows)
    if {"site", "came", "due"} <= witness.keys():  # counts
        draws = witness["site"]["draws"]
        counts = [(token, witness["due"][token], count) for token, count in witness["came"].items()]
        rows = [
            Row(token, due, f"{count / draws:.6f} ({count} of {draws})", count / draws - due)
            for token, due, count in counts
        ]
        return Site(witness["site"]["position"], None, rows)
    if {"position", "tokens", "due"} <= witness.keys():  # one call
        at, tokens = witness["position"], witness["tokens"]
        rows = [
            Row(str(t), due, "it came" * (t == tokens[at]), float(t == tokens[at]))
            for t, due in enumerate(witness["due"])
        ]
        return Site(at, tokens[:at], rows)
    return None


def sentence(finding: Finding) -> str:
    """What is emitted, where, and how far that is off; "" where the witness does not say."""
    witness, shown = finding.witness or {}, site(finding)
    if "call made" in witness:
        return f"It breaks its contract: {witness['what']}."
    if {"position", "tokens"} <= witness.keys():
        at, tokens = witness["position"], witness["tokens"]
        return f"It emits token {tokens[at]}, whose probability is zero, {_place(at, tokens[:at])}."
    if shown is not None:
        worst = shown.worst
        came = worst.due + worst.excess
        times = f"{came / worst.due:.3g} times as often as is right" if worst.due else "it should never come"
        return (
            f"It emits token {worst.token} too often {_place(shown.position, shown.emitted)}: "
            f"{came:.3g} of the time where {worst.due:.3g} is due, {times}."
        )
    if "feature" in witness:
        return (
            f"What it emits depends on {witness['feature']}, which it may not: some tokens came "
            f"{witness['share observed']} times after it where a share of {witness['share expected']:.3g} is due."
        )
    return ""


def _place(position: int, emitted: list[int] | None) -> str:
    where = f"at position {position} of a block"
    return where if emitted is None else f"{where}, after {emitted}" if emitted else f"{where}, before any other"


def where_to_look(classes: Iterable[str]) -> str:
    """The places in a verifier where defects of these classes are made."""
    looks = dict.fromkeys(LOOK[name] for name in classes if name in LOOK)
    return "; or ".join([*looks][:MAX_LOOKS])


def table(shown: Site) -> list[str]:
    """The row of a violation as lines of text: token, due, came."""
    wide = max(len(row.token) for row in shown.rows)
    lines = [f"{'token':>{max(wide, 5)}}  {'due':>8}  came"]
    for row in shown.rows:
        mark = "  <-" if row == shown.worst else ""
        lines.append(f"{row.token:>{max(wide, 5)}}  {row.due:8.6f}  {row.came}{mark}".rstrip())
    return lines
