"""A made-up report for the tests of refengine.report: every role, verdict, table and kind of number. Not a result."""

import math
import random

from refengine.report.finding import DefectClass, Finding, Magnitude, Quantity, Recipe
from refengine.report.report import Report, make_report

MODULE = "refengine.made_up"  # the tests put a module of this name into sys.modules
HF = "transformers 5.23.0 _speculative_sampling"
GENERATE = "transformers 5.23.0 generate(assistant_model=...)"
OWN = "refengine 0.1.0 leviathan"
HOSTILE = '</style><script>alert("x")</script>&amp;\'">'


def recipe(name: str = "findings", **arguments: object) -> Recipe:
    return Recipe(function=f"{MODULE}:{name}", arguments=arguments)


def exact(value: float) -> Quantity:
    return Quantity(value=value, tolerance=1e-12)


def wealth(drift: float, draws: int = 40_000) -> dict[str, list[object]]:
    """A walk of log10 wealth in 200 steps."""
    source, level = random.Random(7), 0.0
    levels = [level := level + drift + source.gauss(0, 0.12) for _ in range(200)]
    return {
        "draws": [(i + 1) * draws // 200 for i in range(200)],
        "log10_wealth": levels,
        "log10_threshold": [6.0] * 200,
    }


def subjects() -> list[Finding]:
    return [
        Finding(
            id="audit.kernel.hf/zero-at-zero",
            subject=HF,
            claim="A token to which the target gives probability zero is never emitted.",
            source="Leviathan 2023, Theorem 3.5",
            verdict="violated",
            method="exact law, 5 901 runs, every random call intercepted",
            role="subject",
            recipe=recipe(seed=1),
            numbers={"runs": 5901, "smallest uniform": exact(0.0), "boundary": exact(2.0**-24), "strict": False},
            magnitude=Magnitude(tv=exact(2.0**-24), exact=True, breaks_mask=True),
            witness={
                "p": ["0", "1/2", "1/2"],
                "q": ["1/2", "1/4", "1/4"],
                "draft": [0],
                "decisions": [{"site": ["accept", 0], "uniform": 0}, {"site": ["bonus", 1], "uniform": 12582912}],
                "emitted": [0, 2],
            },
            diagnosis="accept-non-strict: <= where < is meant",
            notes=["The accept test compares r <= p/q; torch.rand can return exactly 0."],
            tables={
                "law": {
                    "outcome": [[0], [1], [2], [0, 1]],
                    "target": ["0", "1/2", "1/2", "0"],
                    "observed": [5.96e-08, 0.4999999702, 0.4999999702, 0.0],
                }
            },
        ),
        Finding(
            id="audit.generate.hf/different-tokenizers",
            subject=GENERATE,
            claim="Sampling with a draft model of another vocabulary leaves the target's distribution unchanged.",
            source="transformers documentation, Universal Assisted Decoding",
            verdict="violated",
            method="sequential evidence, alpha 1e-07, 11 240 draws, TV >= 0.004 with power 0.99",
            role="subject",
            recipe=recipe(seed=1),
            numbers={"draws": 11240, "log10 wealth": Quantity(value=9.217, tolerance=1e-6)},
            magnitude=Magnitude(tv=Quantity(value=0.4498, tolerance=1e-9), exact=False),
            witness={"prompt": [3, 1, 4, 1, 5], "draft": [9, 2], "emitted": [9, 2, 6]},
            diagnosis="q-permuted: q is read in the order of the draft's vocabulary",
            tables={
                "evidence": wealth(0.05),
                "law": {
                    "outcome": [f"token {i}" for i in range(26)],
                    "target": [2 + (i * 37) % 91 for i in range(26)],
                    "observed": [2 + (i * 53) % 97 for i in range(26)],
                },
            },
        ),
        Finding(
            id="audit.generate.hf/greedy-equals-greedy",
            subject=GENERATE,
            claim="Greedy assisted generation emits the tokens of plain greedy decoding.",
            source="transformers documentation, Assisted decoding",
            verdict="consistent",
            method="token for token on 24 prompts, smallest top-2 margin 1.3e-4",
            role="subject",
            recipe=recipe(seed=1),
            numbers={"prompts": 24, "tokens": 1536, "smallest margin": Quantity(value=1.3e-4, tolerance=1e-6)},
            tables={"evidence": wealth(-0.01)},
        ),
        Finding(
            id="audit.generate.hf/prompt-lookup",
            subject=GENERATE,
            claim="Prompt lookup leaves the sampling distribution unchanged.",
            source="transformers documentation, prompt_lookup_num_tokens",
            verdict="not tested",
            reason="the installed torch has no CUDA device, and this cell asks for one",
            method="none",
            role="subject",
            recipe=recipe(seed=1),
        ),
    ]


def references() -> list[Finding]:
    out = []
    for rule in ("leviathan", "greedy", "point_mass", "block", "iid_candidates", "without_replacement"):
        expected = [0.93 * math.exp(-0.11 * k) for k in range(6)]
        out.append(
            Finding(
                id=f"exact.{rule}/lossless",
                subject=f"refengine 0.1.0 {rule}",
                claim=f"One round of {rule} followed by target draws has the target's joint law.",
                source="design: the null hypothesis",
                verdict="consistent",
                method="exact law in fractions, V = 5, gamma = 4",
                recipe=recipe(rule=rule),
                numbers={"runs": 48_211, "TV": exact(0.0)},
                magnitude=Magnitude(tv=exact(0.0), exact=True),
                tables={
                    "acceptance": {
                        "position": list(range(6)),
                        "expected": expected,
                        "observed": [round(e + 0.012 * math.sin(3 * k), 6) for k, e in enumerate(expected)],
                    },
                    "mass": {
                        "part": ["rejection", "bonus", "rollback > 1", "stop"],
                        "share": ["1/4", "3/8", "1/8", "1/4"],
                    },
                },
            )
        )
    return out


BUGS = [
    ("accept-non-strict", "accept test"),
    ("accept-inverted", "accept test"),
    ("accept-clamped-below", "accept test"),
    ("residual-not-renormalised", "residual"),
    ("residual-from-p", "residual"),
    ("residual-argmax", "residual"),
    ("bonus-from-last-row", "bonus"),
    ("bonus-dropped", "bonus"),
    ("shared-uniform", "coins"),
    ("q-untempered", "q-contract"),
    ("q-permuted", "q-contract"),
]
CHECKS = [
    "exact law",
    "branching coins",
    "boundary coins",
    "full grid",
    "sequential evidence",
    "chi-square",
    "greedy match",
]


def outcome(i: int, j: int) -> str:
    """What check j says of bug i."""
    if BUGS[i][0] == "bonus-dropped":
        return "survived"
    return "killed" if (3 * i + 5 * j + i * j) % 7 < 4 or j == 6 else ("survived", "not tested", "hung")[(i + j) % 3]


def matrix_of(i: int) -> dict[str, list[object]]:
    """The row of bug i; check 3 does not apply to bug 9."""
    checks = [(j, check) for j, check in enumerate(CHECKS) if (i, j) != (9, 3)]
    return {
        "bug": [BUGS[i][0]] * len(checks),
        "class": [BUGS[i][1]] * len(checks),
        "check": [check for _, check in checks],
        "outcome": [outcome(i, j) for j, _ in checks],
    }


def kill_matrix() -> Finding:
    return Finding(
        id="bugs/kill-matrix",
        subject="the catalogue of bugs",
        claim="Every bug of the catalogue is killed by at least one general check.",
        source="issue: how it is judged",
        verdict="consistent",
        method="each bug applied in a fresh process",
        recipe=recipe(),
        numbers={"bugs": len(BUGS)},
    )


def controls() -> list[Finding]:
    return [
        Finding(
            id=f"control/{bug}",
            subject="refengine 0.1.0 leviathan with a planted defect",
            claim=f"leviathan with {bug} is lossless.",
            source="bugs catalogue",
            verdict="violated",
            method="exact law in fractions",
            role="control",
            recipe=recipe(bug=bug),
            magnitude=Magnitude(tv=exact(10.0 ** -(1 + i % 7)), exact=True),
            witness={"p": ["7/10", "3/10"], "q": ["1/2", "1/2"], "draft": [0]},
            tables={"kill matrix": matrix_of(i)},
        )
        for i, (bug, _) in enumerate(BUGS)
    ]


def findings() -> list[Finding]:
    return subjects() + references() + [kill_matrix()] + controls()


def report() -> Report:
    defects = {
        finding.diagnosis: [DefectClass(name=name, titles=[f"what {name} is"], sources=["made up"])]
        for finding in findings()
        if (name := finding.diagnosis.partition(":")[0])
    }
    return make_report(findings(), seed=20261121, defects=defects)
