"""Finding: one claim, its verdict and its evidence. The only thing that reports are made of.

A finding is data. Whoever makes one also says how to make it again: `recipe` names a function of this package and its
arguments, and calling it returns findings among which the one with the same `id` must come out with the same verdict,
integers, strings and witness, and with floats within the tolerance that is stored beside each.

Tables are columns of equal length. Ten names are drawn; any other name is shown as a plain table:

"law"          outcome (text or tokens), target, observed: probabilities, counts or exact fractions ("1/3")
"evidence"     draws (int, ascending), log10_wealth; optionally log10_threshold, where the verdict falls
"calibration"  log10_bar (bars of the evidence), reached, allowed: shares of the audits of correct samplers
"power"        defect, nats_a_call, calls until it was found, fewest (the calls that information theory demands)
"acceptance"   position (int), expected (by the rows there, in a chain 1 - TV), observed (the accepted share)
"reliability"  confidence, expected, observed: by bins of the confidence that a drafter states, the mean of 1 - TV there
               and the accepted share
"survival"     position (int), expected (the product of the confidences), observed (the share of rounds that got there)
               These three optionally count: of how many draws `observed` is the share
"sweep"        threshold of the confidence, proposed (drafts a round), tau (tokens a round), cost ((proposed + 1) / tau)
"kill matrix"  bug, class, check, outcome ("killed", "survived", "not tested", "crashed", "hung"): one entry per cell,
               none where a check does not apply. The tables of all findings are drawn as one matrix.
"battery"      row, check: the cell of the table of rows by checks for which the finding's verdict stands

A witness is compared exactly, so it holds integers, strings and dyadic floats. A bare float in a table only draws a
plot, and is compared to within TABLE_TOLERANCE; a cell that matters more is a Quantity.
"""

from typing import Any, Literal, TypeAlias

import msgspec

Verdict: TypeAlias = Literal["consistent", "violated", "not tested"]
# reference: our own cells, expected consistent. control: planted defects, expected violated. subject: third parties.
Role: TypeAlias = Literal["reference", "control", "subject"]

# Relative above 1, absolute below. Two libms differ by a few ulps (1e-16) a term; a sum of 10^6 terms stays under it.
TABLE_TOLERANCE = 1e-9

# The columns that a drawn table has at least.
DRAWN = {
    "law": ("outcome", "target", "observed"),
    "evidence": ("draws", "log10_wealth"),
    "acceptance": ("position", "expected", "observed"),
    "calibration": ("log10_bar", "reached", "allowed"),
    "power": ("defect", "nats_a_call", "calls", "fewest"),
    "reliability": ("confidence", "expected", "observed"),
    "survival": ("position", "expected", "observed"),
    "sweep": ("threshold", "proposed", "tau", "cost"),
    "kill matrix": ("bug", "class", "check", "outcome"),
    "battery": ("row", "check"),
}


class Quantity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A float with the absolute tolerance within which another machine must reproduce it."""

    value: float
    tolerance: float


Number: TypeAlias = int | str | bool | Quantity | None


class Magnitude(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How large a violation is: a total variation distance, exact or a lower bound, and whether a hard mask breaks."""

    tv: Quantity
    exact: bool
    breaks_mask: bool = False  # a token of probability zero can be emitted


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to make a finding again: `function` is "refengine.module:function", called with `arguments` (plain JSON).

    The function is annotated as returning findings, `-> list[Finding]`; a re-run calls nothing else.
    """

    function: str
    arguments: dict[str, Any] = {}


class DefectClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A class of defects that a diagnosis names: what goes wrong, and where it was reported, one of each per entry of
    the catalogue that has the class."""

    name: str
    titles: list[str]
    sources: list[str]


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One claim with its verdict.

    id         stable and unique in a report: "audit.kernel.hf/zero-at-zero"
    subject    what was held to the claim, with its version: "transformers 5.23.0 _speculative_sampling"
    claim      one sentence that could be false
    source     where the claim comes from: a paper, a document, a line of documentation
    verdict    consistent | violated | not tested
    reason     why it was not tested; required exactly then
    method     the instrument: "exact law, 5 901 runs", "sequential evidence, alpha 1e-06, 40 000 calls, TV >= 0.004"
    numbers    what was measured; a float is a Quantity
    witness    inputs and decisions that show the violation; required exactly for a violated subject
    diagnosis  the classes of defects that the evidence points at, if any: "CLASS: what was observed"
    tables     data of the plots: name -> columns of equal length
    replay     "exact", or "statistical" for a subject that ignores our generator: a re-run then draws afresh and only
               the verdict has to come out again
    """

    id: str
    subject: str
    claim: str
    source: str
    verdict: Verdict
    method: str
    recipe: Recipe
    role: Role = "reference"
    reason: str = ""
    numbers: dict[str, Number] = {}
    magnitude: Magnitude | None = None
    witness: dict[str, Any] | None = None
    diagnosis: str = ""
    notes: list[str] = []
    tables: dict[str, dict[str, list[Any]]] = {}
    replay: Literal["exact", "statistical"] = "exact"

    def __post_init__(self) -> None:
        if (self.verdict == "not tested") != bool(self.reason):
            raise ValueError(f"{self.id}: a finding has a reason exactly when it is not tested")
        if self.verdict == "violated" and self.role == "subject" and self.witness is None:
            raise ValueError(f"{self.id}: a violated finding carries a witness that replays")
        for name, number in self.numbers.items():
            if isinstance(number, float):
                raise ValueError(f"{self.id}: {name!r} is a bare float; give it a tolerance (Quantity)")
        for name, columns in self.tables.items():
            if len({len(column) for column in columns.values()}) > 1:
                raise ValueError(f"{self.id}: the columns of table {name!r} differ in length")
            missing = [column for column in DRAWN.get(name, ()) if column not in columns]
            if missing:
                raise ValueError(f"{self.id}: table {name!r} lacks the column {missing[0]!r}")
