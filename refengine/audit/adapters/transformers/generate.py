"""`refengine audit library transformers`: generate() with speculation on, compared with speculation off.

Nothing is sampled: the random calls of the whole generate() call are intercepted, drafting included, and the exact law
of the generated tokens is enumerated on tiny float64 models. `generate_cells.py` lists the cells, `generate_law.py`
measures them in a child process; here measurements become findings.
"""

from collections.abc import Iterable
from typing import Any

from refengine.audit.adapters import Absent
from refengine.audit.adapters.transformers.generate_cells import CELLS, Cell
from refengine.audit.adapters.transformers.library import PRELOAD, installed
from refengine.audit.magnitude import small_mass
from refengine.audit.sandbox.child import Child, Outcome
from refengine.evidence.naming import BOUNDARY
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe

CELL_SECONDS = 120.0  # for one cell; the largest takes three on an idle core
TOLERANCE = 1e-6  # of generate_law.py, which cannot be imported where transformers is missing
ONE_GRID_POINT_EACH = 8 * 2.0**-24  # the mass of a handful of accepts at exactly zero
DIVERSE = "DIVERSE, arXiv:2604.07622, named by the documentation of assistant_ensemble_weight"
SOURCE = 'transformers, documentation of assistant_ensemble_weight: its default, None, "keeps decoding lossless"'

# What the cells were built to tell apart; the second of the pair is the control that makes the first an explanation.
DIAGNOSES = {
    "two-tokenizers": "q in another order: the pruned head's columns follow get_vocab's order, get_target_logits "
    "scatters them in the order of the assistant's ids (two-tokenizers-in-id-order has the same models and is "
    "consistent)",
    "gemma-4-assistant-made-constructible": "greedy proposal, soft q: drafts are argmaxes, yet softmax(logits) is "
    "handed over as the q of their draw (SinglePositionMultiTokenCandidateGenerator)",
}
GUIDANCE = "history not rolled back: the guidance processor keeps key-value states of rejected drafts"
SPECULATING = ("draft-model", "prompt-lookup", "greedy/draft-model", "greedy/prompt-lookup")
STOP = "stop inside a block missed: only EOS and the length end a block (a comment in _assisted_decoding says so)"
DIAGNOSES |= {f"{way}/stop-strings": STOP for way in SPECULATING}
DIAGNOSES |= {f"{way}/guidance-scale": GUIDANCE for way in SPECULATING}
MIXTURE = "lossy by design: ensemble-weight: drafts are judged by the documented mixture of target and assistant"
ORDER = "the order of get_vocab is fixed here; Rust tokenizers list theirs in hash order, which differs by process"
MADE = (
    "as released the assistant's config refuses a model all of whose layers share; that one property is overridden here"
)
NOTES = {
    "two tokenizers": (ORDER,),
    "two tokenizers, in id order": (ORDER,),
    "Gemma-4 assistant, made constructible": (MADE,),
}


def audit_generate_hf(cells: Iterable[str] | None = None) -> list[Finding]:
    """The findings of the named cells, or of all of them. Raises ValueError on an unknown name."""
    names = list(CELLS if cells is None else cells)
    for name in names:
        if name not in CELLS:
            raise ValueError(f"unknown cell {name!r} of the transformers audit: generate_cells.py lists them")
    try:
        subject = f"transformers {installed()}"
    except Absent as absent:
        return [_untested(CELLS[name], "transformers", str(absent)) for name in names]
    findings: list[Finding] = []
    for name in names:
        with Child("refengine.audit.adapters.transformers.generate_law:serve", preload=PRELOAD) as child:
            findings += _findings(CELLS[name], subject, child.ask(name, CELL_SECONDS))
    return findings


def _findings(cell: Cell, subject: str, outcome: Outcome) -> list[Finding]:
    if not outcome.ok:
        return [_untested(cell, subject, str(outcome))]
    measured = outcome.value
    if measured["unmodelled"]:
        return [_untested(cell, subject, f"the law cannot be enumerated: {measured['unmodelled']}")]
    if measured["raised"] > TOLERANCE and measured["law"] is None:
        reason = f"the subject raised on runs of probability {measured['raised']:.3g}: {measured['raised_by']}"
        return [_untested(cell, subject, reason)]
    if measured["effect"] == 0:
        return [_untested(cell, subject, "the policy does not change the law of this cell, so nothing was exercised")]
    if max(map(int, measured["blocks"])) < 2:
        return [_untested(cell, subject, "no draft token was ever kept, so nothing speculative was exercised")]
    found = [_finding(cell, subject, measured)]
    if measured["mask"] is not None and measured["law"] is None:
        found.append(_mask_finding(cell, subject, measured))
    return found


def _finding(cell: Cell, subject: str, measured: dict[str, Any]) -> Finding:
    """The law (sampling) or the tokens (greedy) with speculation on, against those with speculation off."""
    violated = measured["law"] is not None
    size = Magnitude(
        tv=Quantity(value=measured["distance"], tolerance=TOLERANCE),
        exact=cell.sampling and measured["raised"] <= TOLERANCE,
        breaks_mask=measured["outside"] > 0,
    )
    return Finding(
        id=f"audit.generate.hf/{cell.name}",
        subject=f"{subject}, {_described(cell)}",
        claim=_claim(cell),
        source=SOURCE if cell.mixture is None else DIVERSE,
        role="subject",
        verdict="violated" if violated else "consistent",
        method=_method(cell, measured),
        recipe=_recipe(cell),
        numbers=_numbers(cell, measured),
        magnitude=size if violated else None,
        witness=_witness(measured["law"]),
        diagnosis=DIAGNOSES.get(cell.name, "") if violated else MIXTURE if cell.mixture is not None else "",
        notes=list(NOTES.get(cell.way, ())),
        tables={"law": _plot(measured["plot"])} if measured["plot"] else {},
    )


def _mask_finding(cell: Cell, subject: str, measured: dict[str, Any]) -> Finding:
    """Outputs that the policy excludes, where they are too rare to move the law: a hard mask has no tolerance."""
    return Finding(
        id=f"audit.generate.hf/{cell.name}/mask",
        subject=f"{subject}, {_described(cell)}",
        claim="No output that is impossible with speculation off is possible with speculation on.",
        source=SOURCE,
        role="subject",
        verdict="violated",
        method=_method(cell, measured),
        recipe=_recipe(cell),
        numbers={"probability of excluded outputs": small_mass(measured["outside"])},
        magnitude=Magnitude(tv=small_mass(measured["outside"]), exact=True, breaks_mask=True),
        witness=_witness(measured["mask"]),
        diagnosis=f"{BOUNDARY} (r <= p/q where r = 0)" if measured["outside"] < ONE_GRID_POINT_EACH else "",
    )


def _untested(cell: Cell, subject: str, reason: str) -> Finding:
    return Finding(
        id=f"audit.generate.hf/{cell.name}",
        subject=f"{subject}, {_described(cell)}",
        claim=_claim(cell),
        source=SOURCE if cell.mixture is None else DIVERSE,
        role="subject",
        verdict="not tested",
        reason=reason,
        method="exact law of generate() by interception" if cell.sampling else "greedy outputs",
        recipe=_recipe(cell),
        notes=list(NOTES.get(cell.way, ())),
    )


def _claim(cell: Cell) -> str:
    if cell.mixture is not None:
        w = f"{cell.mixture:g}"
        return f"With assistant_ensemble_weight {w} the first token follows {w} p + (1 - {w}) q: biased as documented."
    if cell.sampling:
        return f"Speculation leaves the joint law of the next {cell.new_tokens} sampled tokens unchanged."
    return "With greedy decoding, speculation leaves every output unchanged, token for token."


def _described(cell: Cell) -> str:
    decoding = "sampling" if cell.sampling else "greedy"
    policy = ", ".join(f"{name}={value}" for name, value in (cell.policy | cell.settings).items())
    return f"generate(), {cell.way}, {decoding}" + (f", {policy}" if policy else "")


def _method(cell: Cell, measured: dict[str, Any]) -> str:
    runs = (
        f"{measured['runs_on']} runs with speculation, {measured['runs_off']} without, V = {cell.vocabulary}, float64"
    )
    return f"exact law of generate() by interception, {runs}" if cell.sampling else f"greedy outputs, {runs}"


def _numbers(cell: Cell, measured: dict[str, Any]) -> dict[str, Any]:
    def quantity(value: float) -> Quantity:
        return Quantity(value=value, tolerance=TOLERANCE)

    kept = sum(share for size, share in measured["blocks"].items() if int(size) > 1)
    numbers: dict[str, Any] = {
        "runs with speculation": measured["runs_on"],
        "runs without": measured["runs_off"],
        "longest block": max(map(int, measured["blocks"])),
        "share of runs that keep a draft token": quantity(kept),
    }
    if cell.mixture is not None:
        numbers["TV from the documented mixture"] = quantity(measured["distance"])
        numbers["TV from the target, by design"] = quantity(measured["bias"])
    elif cell.sampling:
        numbers["TV"] = quantity(measured["distance"])
        numbers["TV allowed"] = str(TOLERANCE)
        if measured["effect"] is not None:
            numbers["TV between the laws with and without the policy"] = quantity(measured["effect"])
    else:
        numbers["prompts with another output"] = round(measured["distance"] * measured["runs_on"])
        numbers["smallest gap of the two best logits"] = quantity(measured["margin"])
    if cell.sampling and measured["law"] is not None:
        numbers["probability of the witness's tokens, speculation on"] = quantity(measured["law"]["on"])
        numbers["probability of the witness's tokens, expected"] = quantity(measured["law"]["off"])
    if measured["raised"]:
        numbers["probability that the call raises"] = quantity(measured["raised"])
        numbers["raised"] = measured["raised_by"]
    return numbers


def _witness(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """What must come out again to the letter: the run. Its probabilities are numbers with a tolerance."""
    return None if found is None else {k: v for k, v in found.items() if k not in ("off", "on") and v is not None}


def _plot(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    law = {
        side: [Quantity(value=value, tolerance=TOLERANCE) for value in columns[side]] for side in ("target", "observed")
    }
    return {"outcome": columns["outcome"], **law}


def _recipe(cell: Cell) -> Recipe:
    return Recipe(function=f"{__name__}:audit_generate_hf", arguments={"cells": [cell.name]})
