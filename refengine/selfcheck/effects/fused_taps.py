"""EAGLE-3's fused taps against the top layer alone: the committed result of `benchmarks/fused_taps.py` as a finding.

Forty small drafters take half an hour to train, too long for a report: what was found is shown as long as the script
that found it is the one that stands here, and is `not tested` from then on.
"""

from functools import cache
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student

from refengine.report.finding import Finding, Quantity, Recipe, Verdict
from refengine.source_edits.committed import Committed, digest, own_code
from refengine.source_tree import RESULTS

SCRIPT = RESULTS.parent / "fused_taps.py"
COMMAND = "python benchmarks/fused_taps.py"
RIVALS = {
    "top": "the top layer three times",
    "wide": "the top layer once, and a wider feed-forward",
    "low": "the lowest layer three times",
}
CONFIDENCE = 0.95
MEAN = "mean"  # over the depths


@cache
def digest_of(script: str) -> str:
    """Of the script alone: the networks that it trains are its own."""
    file = SCRIPT.with_stem(script)
    return digest(own_code(file)[0]) if file.is_file() else "no script"


RECORD = Committed(RESULTS / "fused_taps.json", digest_of, COMMAND, lambda: [SCRIPT.stem])


def fused_taps() -> list[Finding]:
    """By language, rival and depth: how much more the fused taps overlap, with its interval over the seeds."""
    if why := RECORD.stale(SCRIPT.stem):
        return [_finding("not tested", reason=why)]
    held = RECORD.entries()[SCRIPT.stem]["languages"]
    rows = [
        (language, rival, depth, *interval(differences))
        for language, runs in held.items()
        for rival in RIVALS
        for depth, differences in by_depth(runs, rival).items()
    ]
    clear = all(low > 0 for _, rival, depth, _, low, _ in rows if (rival, depth) == ("top", MEAN))
    sizes = [run["parameters"].values() for runs in held.values() for run in runs.values()]
    return [
        _finding(
            "consistent" if clear else "violated",
            numbers={
                "languages": len(held),
                "seeds": min(len(runs) for runs in held.values()),
                "parameters that one drafter has more than another": max(max(n) - min(n) for n in sizes),
            },
            tables={
                "overlap, fused taps less": {
                    "language": [row[0] for row in rows],
                    "rival": [RIVALS[row[1]] for row in rows],
                    "depth": [row[2] for row in rows],
                    "difference": [quantity(row[3]) for row in rows],
                    "from": [quantity(row[4]) for row in rows],
                    "to": [quantity(row[5]) for row in rows],
                }
            },
            notes=[
                f"{language}, beside {RIVALS[rival]}: {low:+.3f} to {high:+.3f}, which does not tell them apart"
                for language, rival, depth, _, low, high in rows
                if depth == MEAN and low <= 0 <= high
            ],
        )
    ]


def _finding(verdict: Verdict, **more: Any) -> Finding:
    return Finding(
        id="effects/fused-taps",
        subject="effects in miniature",
        claim="At equal numbers of parameters features of three layers overlap more than those of the top one.",
        source="EAGLE-3, section 3.1",
        verdict=verdict,
        method="committed result: for every language and seed one target of four layers and its drafters, trained "
        f"alike; differences of mean overlap on the target's own texts, {CONFIDENCE:.0%} t intervals over seeds; "
        "judged by the mean of three depths in every language",
        recipe=Recipe(function=f"{__name__}:fused_taps", arguments={}),
        **more,
    )


def by_depth(runs: dict[str, Any], rival: str) -> dict[str, list[float]]:
    """Fused less rival, one value a seed, for each depth and for their mean."""
    pairs = [(run["overlap"]["fused"], run["overlap"][rival]) for run in runs.values()]
    depths = {str(i + 1): [a[i] - b[i] for a, b in pairs] for i in range(len(pairs[0][0]))}
    return depths | {MEAN: [fmean(a) - fmean(b) for a, b in pairs]}


def quantity(value: float) -> Quantity:
    return Quantity(value=value, tolerance=1e-9)


def interval(values: list[float]) -> tuple[float, float, float]:
    """The mean, and the ends of its t interval."""
    mean = fmean(values)
    half = float(student.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return mean, mean - half, mean + half
