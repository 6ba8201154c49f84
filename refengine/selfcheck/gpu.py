"""The committed figures of a GPU: of which device they are, and whether they are of this source."""

import hashlib
import json
from typing import Any

from refengine.report.finding import Finding, Recipe, Verdict
from refengine.source_tree import RESULTS, ROOT

FIGURES = RESULTS / "gpu.json"
SOURCES = ("refengine/engine", "refengine/decoder", "properties/decoder/test_cuda.py", "statistical_tests/test_cuda.py")


def digest() -> str:
    """Of everything that was run: the engine, the decoder, and the tests."""
    files = [file for name in SOURCES for file in sorted((ROOT / name).rglob("*.py")) or [ROOT / name]]
    sums = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return hashlib.sha256("".join(sums).encode()).hexdigest()[:16]


def findings() -> list[Finding]:
    """One finding for each part of `make gpu`; a single one, not tested, where there are no figures of this source."""
    if not FIGURES.exists():
        return [
            _finding("gpu", "not tested", "no GPU has run this: `make gpu` on a machine with one writes the figures")
        ]
    found = json.loads(FIGURES.read_text())
    if found["digest"] != digest():
        reason = f"the figures are of {found['device']} and of another state of the source ({found['digest']})"
        return [_finding("gpu", "not tested", f"{reason}: run `make gpu` again")]
    parts = []
    for name, part in found["parts"].items():
        tests = part.get("tests", {})
        failed = sorted(test for test, one in tests.items() if one["outcome"] == "failed")
        outcome = part["outcome"]
        if tests and all(one["outcome"] == "skipped" for one in tests.values()):
            outcome = "every test was skipped"
        verdict: Verdict = "violated" if failed else "consistent" if outcome == "passed" else "not tested"
        parts.append(
            _finding(
                f"gpu/{name}",
                verdict,
                outcome if verdict == "not tested" else "",
                subject=f"refengine on {found['device']}",
                numbers={"tests": len(tests), "failed": len(failed)} if tests else {},
                notes=[*failed[:5], f"digest {found['digest']}, torch {found['torch']}, CUDA {found['cuda']}"],
            )
        )
    return parts


def _finding(name: str, verdict: Verdict, reason: str, subject: str = "refengine on a GPU", **more: Any) -> Finding:
    return Finding(
        id=name,
        subject=subject,
        claim="On a GPU the engine and the decoder compute what they compute on a CPU, with the same laws and bits.",
        source="benchmarks/gpu.py",
        verdict=verdict,
        reason=reason,
        method="committed figures of `make gpu`, held to a digest of the engine, the decoder and the tests",
        recipe=Recipe(function=f"{__name__}:findings", arguments={}),
        **more,
    )
