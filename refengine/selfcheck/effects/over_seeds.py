"""What training does in small, over seeds: committed results of drafters that were trained differently, as findings.

The drafters take minutes to train (`benchmarks/training`, `benchmarks/fused_taps.py`), too long for a report: what was
found is shown as long as the scripts that found it are those that stand here, and is `not tested` from then on.

A finding compares variants by differences of one measure, each with its interval over the seeds. Those that are judged
say what the claim says: it is consistent where every interval is above 0, violated where one is below it, and not
tested where eight seeds of this size do not tell the variants apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student

from refengine.report.finding import Finding, Quantity, Recipe
from refengine.source_edits.committed import Committed, digest, file_digest, own_code
from refengine.source_tree import FIXTURES, RESULTS

CONFIDENCE = 0.95
SCRIPTS, LOSSES = RESULTS.parent / "training", FIXTURES / "train" / "losses.py"
COMMAND = "python -m benchmarks.training"
# Of the package, a result is computed from the networks; the rest of it neither trains nor measures.
OTHERS = tuple(
    f"refengine.{name}"
    for name in ("engine", "exact", "selfcheck", "report", "errors", "decoder.protocols", "decoder.loop", "decoder.rows",
                 "decoder.checkpoints", "decoder.targets")
)  # fmt: skip

Values = Mapping[str, Mapping[str, list[float]]]  # variant -> measure -> one value a seed


@dataclass(frozen=True)
class Difference:
    """`more` less `less` in one measure, seed by seed. Judged: the claim says that it is above 0."""

    more: str
    less: str
    measure: str
    judged: bool = True


@dataclass(frozen=True)
class Effect:
    """A claim, and what of a run's variants says so.

    run  the file of `benchmarks/training` and its function that trains the variants: the key of the result
    """

    run: str
    claim: str
    source: str
    method: str
    differences: tuple[Difference, ...]


def overlaps(more: str, less: str, *judged: int) -> tuple[Difference, ...]:
    """By depth and in tokens per pass; judged at some depths, or where none is named in tokens per pass."""
    depths = tuple(Difference(more, less, f"overlap {depth}", depth in judged) for depth in (1, 2, 3))
    return (*depths, Difference(more, less, "tau", not judged))


EFFECTS: dict[str, Effect] = {
    "eagle1-inputs": Effect(
        "recurrences.eagle1_inputs",
        "Given features and the tokens that follow them, EAGLE-1's drafter has more tokens per pass than given features "
        "and their own tokens, or features alone.",
        "EAGLE, section 4; EAGLE notes, lines 261-267",
        "EAGLE-1 trained under its own loss (SmoothL1 of the next feature, 0.1 soft cross-entropy) for each kind of input",
        tuple(
            difference
            for other in ("feature and unshifted token", "feature")
            for difference in overlaps("feature and shifted token", other)
        ),
    ),
    "features-or-tokens": Effect(
        "recurrences.eagle1_inputs",
        "Features alone say more to a drafter than tokens alone.",
        "EAGLE, section 1; EAGLE notes, why features?",
        "EAGLE-1 trained under its own loss, given one or the other",
        (
            *overlaps("feature", "token"),
            *(Difference("feature and shifted token", "token", x, judged=False) for x in ("overlap 1", "tau")),
        ),
    ),
    "training-time-test": Effect(
        "recurrences.training_time_test",
        "Training on its own outputs keeps EAGLE-3's acceptance from collapsing over the steps of a draft.",
        "EAGLE-3, section 3.2; EAGLE notes, lines 416-433",
        "EAGLE-3's loss on one depth; on three, fed with its own features beside the text's tokens (as released); and "
        "with tokens drawn from its own rows as well (as the document says), against the target's rows after them",
        (
            *overlaps("own features", "none", 2, 3),
            *overlaps("own features and tokens", "none", 2, 3),
            *(Difference("own features and tokens", "own features", f"overlap {d}", judged=False) for d in (1, 2, 3)),
            *(
                Difference("own features and tokens", "own features", f"overlap {d} after own tokens", judged=False)
                for d in (2, 3)
            ),
        ),
    ),
    "step-weights": Effect(
        "recurrences.step_weights",
        "FastMTP's weights of the steps favour the first drafted token: it overlaps more than after tuning with equal "
        "ones.",
        "FastMTP, Eq. 2; speculators' MTP page, lines 12-13",
        "Qwen's module trained on one step, then tuned on three with weights 0.51, 0.31, 0.18, and with equal ones",
        (
            *overlaps("FastMTP", "uniform", 1),
            *(Difference("FastMTP", "before", x, judged=False) for x in ("overlap 1", "overlap 3", "tau")),
            *(Difference("uniform", "before", x, judged=False) for x in ("overlap 1", "overlap 3", "tau")),
        ),
    ),
    "draft-attention": Effect(
        "recurrences.draft_attention",
        "Without attention between drafts the overlap falls faster along the draft than with it.",
        "Gemma 4 MTP document, line 173",
        "EAGLE-3 trained and run with drafts that attend to the text and to each other, or to the text alone",
        (
            Difference("the text alone", "each other", "fall"),
            *(Difference("each other", "the text alone", x, judged=False) for x in ("overlap 2", "overlap 3", "tau")),
        ),
    ),
    "domains": Effect(
        "recurrences.domains",
        "A drafter trained on one domain accepts more there than elsewhere, and less there than one trained on general "
        "text.",
        "Gemma 4 MTP document, lines 211-214",
        "EAGLE-3 trained on texts of one domain, or on as many of two, for the same target, which knows both",
        (
            Difference("one domain, at home", "one domain, elsewhere", "tau"),
            Difference("both domains, at home", "one domain, at home", "tau"),
            Difference("both domains, elsewhere", "one domain, elsewhere", "tau", judged=False),
        ),
    ),
    "medusa-heads": Effect(
        "heads.medusa_heads",
        "Medusa's heads, distilled from the outputs of a frozen target, overlap more with it at every depth.",
        "Medusa, section 2.2; Medusa, EAGLE and lookahead document, line 60",
        "heads as they start (copies of the target's own) and after Medusa's loss on texts of the target, which stays as "
        "it was, bit for bit",
        overlaps("after", "before", 1, 2, 3),
    ),
    "medusa-own-outputs": Effect(
        "heads.own_outputs",
        "Medusa's heads distilled from the target's own outputs have more tokens per pass than those trained on the text "
        "that the target learned from.",
        "Medusa, EAGLE and lookahead document, line 60; DSpark document, line 577",
        "Medusa's loss on 256 texts of the target, or on 256 of its language",
        overlaps("Medusa, own outputs", "Medusa, text"),
    ),
    "eagle-own-outputs": Effect(
        "heads.own_outputs",
        "EAGLE-1 trained on the target's own outputs has more tokens per pass than trained on the text that the target "
        "learned from.",
        "EAGLE notes, line 222",
        "EAGLE-1's loss, whose labels are the target's rows, on 256 texts of the target, or on 256 of its language",
        overlaps("EAGLE-1, own outputs", "EAGLE-1, text"),
    ),
    "warm-centroids": Effect(
        "heads.centroids",
        "Centroids that start from k-means over the frozen output embedding overlap more than those that start cold.",
        "Gemma 4 MTP document, line 205",
        "Qwen's module, and Gemma 4's head that scores the tokens of two of six centroids, trained beside each other "
        "after the target; cold: clusters and centroids by chance; the gap: to scoring every token",
        (
            Difference("k-means, 100 steps", "cold, 100 steps", "overlap 1"),
            Difference("k-means, 400 steps", "cold, 400 steps", "overlap 1"),
            Difference("k-means, 400 steps", "clusters alone, 400 steps", "overlap 1", judged=False),
            Difference("k-means, 100 steps", "half, 100 steps", "share of the gap", judged=False),
            Difference("k-means, 400 steps", "half, 400 steps", "share of the gap", judged=False),
        ),
    ),
}


@cache
def digest_of(run: str) -> str:
    """Of the scripts that train, the losses, and the networks that are trained."""
    file = SCRIPTS / f"{run.split('.')[0]}.py"
    return digest(file_digest(file, OTHERS), own_code(LOSSES)[0]) if file.is_file() else "no script"


RUNS = tuple(dict.fromkeys(effect.run for effect in EFFECTS.values()))
RECORD = Committed(RESULTS / "training.json", digest_of, COMMAND, lambda: RUNS)


def trained() -> list[Finding]:
    """Every effect."""
    return [finding for name in EFFECTS for finding in effect(name)]


def effect(name: str) -> list[Finding]:
    """One effect: its differences with their intervals, and what they say of its claim."""
    told = EFFECTS[name]
    stale = RECORD.stale(told.run)
    return [_finding(name, told, None if stale else RECORD.entries()[told.run]["values"], stale)]


def _finding(name: str, told: Effect, values: Values | None, stale: str) -> Finding:
    about: dict[str, Any] = {
        "id": f"effects/{name}",
        "subject": "effects in miniature",
        "claim": told.claim,
        "source": told.source,
        "method": f"committed result: {told.method}; {CONFIDENCE:.0%} t intervals over seeds",
        "recipe": Recipe(function=f"{__name__}:effect", arguments={"name": name}),
    }
    if values is None:
        return Finding(verdict="not tested", reason=stale, **about)
    rows = [(x, *interval(differences(x, values))) for x in told.differences]
    seeds = len(differences(told.differences[0], values))
    return Finding(**about, **judged(rows, seeds), numbers={"seeds": seeds}, tables=tables(rows, values))


def judged(rows: list[tuple[Difference, float, float, float]], seeds: int) -> dict[str, Any]:
    """Verdict, reason and notes of differences with their means and intervals."""
    unclear = [x for x, _, low, high in rows if low <= 0 <= high]
    notes = [f"{sentence(x)}: {seeds} seeds do not tell them apart" for x in unclear]
    notes += [f"{sentence(x)}: the other way round ({low:+.3f} to {high:+.3f})" for x, _, low, high in rows if high < 0]
    if any(high < 0 for x, _, _, high in rows if x.judged):
        return {"verdict": "violated", "notes": notes}
    if doubtful := [sentence(x) for x in unclear if x.judged]:
        return {"verdict": "not tested", "reason": f"{seeds} seeds do not tell apart {'; '.join(doubtful)}", "notes": notes}
    return {"verdict": "consistent", "notes": notes}


def sentence(x: Difference) -> str:
    return f"{x.measure}, {x.more} against {x.less}"


def tables(rows: list[tuple[Difference, float, float, float]], values: Values) -> dict[str, dict[str, list[Any]]]:
    """The differences, and the means that they are of."""
    means = [(variant, measure, fmean(xs)) for variant, held in values.items() for measure, xs in held.items()]
    return {
        "differences": {
            "measure": [x.measure for x, *_ in rows],
            "more": [x.more for x, *_ in rows],
            "less": [x.less for x, *_ in rows],
            "judged": [x.judged for x, *_ in rows],
            "difference": [quantity(mean) for _, mean, _, _ in rows],
            "from": [quantity(low) for _, _, low, _ in rows],
            "to": [quantity(high) for _, _, _, high in rows],
        },
        "means": {
            "variant": [variant for variant, _, _ in means],
            "measure": [measure for _, measure, _ in means],
            "mean": [quantity(mean) for _, _, mean in means],
        },
    }


def differences(x: Difference, values: Values) -> list[float]:
    """One value a seed."""
    return [a - b for a, b in zip(values[x.more][x.measure], values[x.less][x.measure], strict=True)]


def quantity(value: float) -> Quantity:
    return Quantity(value=value, tolerance=1e-9)


def interval(values: list[float]) -> tuple[float, float, float]:
    """The mean, and the ends of its t interval."""
    mean = fmean(values)
    half = float(student.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return mean, mean - half, mean + half
