"""The classes of defects: what a diagnosis names, with a description and sources.

One vocabulary serves the laws that evidence bets on, the diagnoses of audits, the entries of this catalogue, the state
bugs that are planted in drafters and z3's defects. A class is that of the entries which have it, and says what their
titles say; classes that no edit of the source expresses stand here in `KNOWN`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from refengine.bugs.catalogue import all_bugs
from refengine.evidence.naming import NO_CLASS, parts
from refengine.report.finding import DefectClass
from refengine.source_edits.edit import Bug

PREDICTED = "predicted: no report of it is known to this project"
NO_DEFECT = "none"  # the class of what the field takes for a defect and is none


@dataclass(frozen=True)
class Known:
    """A class without an edit: its name, what goes wrong in one line, and where it was reported."""

    law_class: str
    title: str
    source: str = PREDICTED


KNOWN = (
    # the acceptance
    Known("accepts never", "every draft is refused, also where p = q, and the correction comes from an empty residual"),
    Known("another acceptance", "a draft is accepted with another probability than min(1, p/q)"),
    Known("no coin", "drafts are accepted and refused without a coin, or with one that is always the same"),
    Known("ratio upside down", "a draft is accepted with min(1, q/p)", "a common slip"),
    Known("row slip of q", "a draft is judged by the draft row of its neighbour"),
    Known("epsilon", "a constant is added to a probability, or clamps it from below, to avoid a division by zero"),
    Known("half precision", "rows, ratio or residual are rounded to 8 or 11 significant bits"),
    Known("coarse coin", "the coin has so few bits that a rare token is accepted too often"),
    Known("last draft unverified", "the last draft token is committed without being judged"),
    # the correction and the bonus
    Known("another correction", "a refused draft is replaced by a draw from another row than (p - q)+"),
    Known("ids off by one", "what is drawn is emitted as the id beside it"),
    Known("an end of the vocabulary is lost", "the first or the last id is never drawn"),
    Known(
        "bonus from the row before",
        "the token after a block that was kept whole comes from an earlier row",
        "vllm-project/vllm #44006, #42744 (what the bonus row is processed with)",
    ),
    Known("another bonus", "the token after a block that was kept whole comes from another row than the target's last"),
    Known("another filter", "the rows are cut to their heaviest ids, which nobody asked for"),
    Known("zero mass", "a token to which the target gives probability zero is emitted; most classes can do this"),
    # the coins
    Known("positions share coins", "one coin or one noise decides at several positions of a block"),
    Known("state between calls", "a call depends on how many came before it, although nothing of them was passed on"),
    # the proposer and its candidates
    Known(
        "q in another order",
        "the draft's row is permuted after the draw",
        "transformers 5.23.0 candidate_generator.py, assistants with a vocabulary of their own",
    ),
    Known("equal candidates merged", "a candidate that was drawn twice is judged once", "trees of sampled candidates"),
    Known(
        "candidates without renormalisation",
        "point-mass candidates are judged by p itself although earlier ones were refused",
        "trees of deterministic candidates",
    ),
    Known(
        "agreement draws again after a mismatch",
        "the target's own sample, which refused the draft, is thrown away and drawn again",
        "FasterDecoding/Medusa, nucleus mode",
    ),
    # the drafter's state
    Known("feature of another position", "the drafter reads the activation, confidence or row of a neighbour"),
    Known("steps not carried on", "every step of a block is drafted as if it were the first"),
    Known("look-up under another token", "what was seen is filed or looked up under another token than the last one"),
    # the contract
    Known("contract broken", "the answer is no list of emitted tokens: none, too many, or outside the vocabulary"),
)


def classes() -> dict[str, DefectClass]:
    """Every class by its name, those of the entries first."""
    found: dict[str, list[tuple[str, str]]] = {}
    entries: list[Bug | Known] = [*(bug for bug in all_bugs() if bug.law_class != NO_DEFECT), *KNOWN]
    for entry in entries:
        found.setdefault(entry.law_class, []).append((entry.title, entry.source))
    return {
        name: DefectClass(name=name, titles=[title for title, _ in said], sources=[source for _, source in said])
        for name, said in found.items()
    }


def named(diagnosis: str) -> list[DefectClass]:
    """The classes that a diagnosis names, in its order; none where it says that none fits.

    Raises ValueError for a diagnosis outside the vocabulary.
    """
    known = classes()
    found = []
    for part in parts(diagnosis):
        if part.startswith(NO_CLASS):
            continue
        fitting = [name for name in known if part == name or part.startswith(f"{name}: ")]
        if not fitting:
            raise ValueError(f"the diagnosis {part!r} names no class of `refengine bugs`")
        found.append(known[max(fitting, key=len)])
    return found


def glossary(diagnoses: Iterable[str]) -> dict[str, list[DefectClass]]:
    """What each of these diagnoses names, for a report that explains itself; a stranger's diagnosis is left out."""
    explained = {}
    for diagnosis in sorted({*diagnoses} - {""}):
        try:
            explained[diagnosis] = named(diagnosis)
        except ValueError:  # an old report's words, made again by its recipe
            continue
    return {diagnosis: found for diagnosis, found in explained.items() if found}
