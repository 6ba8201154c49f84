"""What training does in small, over seeds: committed results of drafters that were trained differently, as findings.

The drafters take minutes to train (`benchmarks/training`, `benchmarks/fused_taps.py`), too long for a report: what was
found is shown as long as the scripts that found it are those that stand here, and is `not tested` from then on.

A finding compares variants by differences of one measure, each with its interval over the seeds. Those that are judged
say what the claim says: it is consistent where every interval is above 0, violated where one is below it, and not
tested where eight seeds of this size do not tell the variants apart.
"""

from collections.abc import Mapping
from functools import cache
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student

from refengine.report.finding import Finding, Quantity, Recipe
from refengine.selfcheck.effects.trained_variants import EFFECTS, FUSED_TAPS, Difference, Effect
from refengine.source_edits.committed import Committed, digest, file_digest, own_code
from refengine.source_tree import FIXTURES, RESULTS

CONFIDENCE = 0.95
SCRIPTS, FUSED_SCRIPT = RESULTS.parent / "training", RESULTS.parent / "fused_taps.py"
LOSSES = FIXTURES / "train" / "losses.py"
COMMAND = "python -m benchmarks.training"
# Of the package, a result is computed from the networks; the rest of it neither trains nor measures.
OTHERS = (
    "benchmarks.fused_taps",
    *(f"refengine.{room}." for room in ("engine", "exact", "selfcheck", "report", "errors")),
    *(f"refengine.decoder.{part}." for part in ("protocols", "loop", "rows", "checkpoints", "targets")),
)

Values = Mapping[str, Mapping[str, list[float]]]  # variant -> measure -> one value a seed


@cache
def digest_of(run: str) -> str:
    """Of the scripts that train, the losses, and the networks that are trained."""
    file = SCRIPTS / f"{run.partition('.')[0]}.py"
    if not file.is_file():
        return "no script"
    return digest(file_digest(file, OTHERS), *(own_code(shared)[0] for shared in (LOSSES, FUSED_SCRIPT)))


@cache
def digest_of_fused_taps(_: str) -> str:
    """Of its script alone: the networks that it trains are its own."""
    return digest(own_code(FUSED_SCRIPT)[0]) if FUSED_SCRIPT.is_file() else "no script"


RUNS = tuple(dict.fromkeys(effect.run for effect in EFFECTS.values() if effect.run != FUSED_TAPS))
RECORD = Committed(RESULTS / "training.json", digest_of, COMMAND, lambda: RUNS)
FUSED_RECORD = Committed(
    RESULTS / "fused_taps.json", digest_of_fused_taps, "python benchmarks/fused_taps.py", lambda: [FUSED_TAPS]
)


def trained() -> list[Finding]:
    """Every effect."""
    return [finding for name in EFFECTS for finding in effect(name)]


def effect(name: str) -> list[Finding]:
    """One effect: its differences with their intervals, and what they say of its claim."""
    told = EFFECTS[name]
    record = FUSED_RECORD if told.run == FUSED_TAPS else RECORD
    if stale := record.stale(told.run):
        return [_finding(name, told, None, stale)]
    entry = record.entries()[told.run]
    return [_finding(name, told, by_language(entry) if told.run == FUSED_TAPS else entry["values"], "")]


def by_language(entry: Mapping[str, Any]) -> Values:
    """The result of `benchmarks/fused_taps.py`, which stands seed by seed."""
    found: dict[str, dict[str, list[float]]] = {}
    for language, runs in entry["languages"].items():
        for variant in next(iter(runs.values()))["overlap"]:
            depths = [run["overlap"][variant] for run in runs.values()]
            held = {f"overlap {k}": list(column) for k, column in enumerate(zip(*depths, strict=True), 1)}
            sizes = [float(run["parameters"][variant]) for run in runs.values()]
            found[f"{language}, {variant}"] = held | {"mean overlap": [fmean(x) for x in depths], "parameters": sizes}
    return found


def _finding(name: str, told: Effect, values: Values | None, stale: str) -> Finding:
    about: dict[str, Any] = {
        "id": f"effects/{name}",
        "subject": "documents on training, in miniature",
        "role": "subject",
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
    if against := [f"{sentence(x)}: {low:+.3f} to {high:+.3f}" for x, _, low, high in rows if x.judged and high < 0]:
        return {"verdict": "violated", "notes": notes, "witness": {"seeds": seeds, "the other way round": against}}
    if doubtful := "; ".join(sentence(x) for x in unclear if x.judged):
        return {"verdict": "not tested", "reason": f"{seeds} seeds do not tell apart {doubtful}", "notes": notes}
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
