"""The instrument measured in the report itself: how often it accuses what is right, and how fast it finds what is not.

Small versions of benchmarks/calibration.py and benchmarks/power.py, whose committed figures have 10^5 audits and every
defect: enough to be made again by `rerun`, too few to replace them.
"""

from collections.abc import Callable, Iterator

import numpy as np

from refengine.evidence.alpha import ALPHA
from refengine.evidence.bets.defect_laws import alternatives
from refengine.report.finding import Finding, Recipe
from refengine.selfcheck.instrument.calibration import audits
from refengine.selfcheck.instrument.simulated import CAP, Audits

CALIBRATION_AUDITS = 300  # audits
DECADES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)  # log10 of 1 / alpha
MAX_CALLS = 30_000
SHOWN_DEFECTS = (  # one to about every half decade of nats a call
    "greedy at temperature: every pick is the argmax",
    "temperature dropped: the ratio takes p at temperature 2",
    "resample from target: corrected from p instead of the residual",
    "temperature dropped: the target has temperature 0.8",
    "draft and verifier share coins: one noise drafts and corrects",
    "another acceptance: the ratio has exponent 1.1",
    "half precision: everything is in bfloat16",
    "temperature dropped: the target has temperature 1.05",
)
SOURCE = "Ville 1939; Wald 1947"


def findings() -> Iterator[Finding]:
    yield calibration()
    yield power()


def replay(which: str) -> list[Finding]:
    """One of the two again."""
    made: dict[str, Callable[[], Finding]] = {"calibration": calibration, "power": power}
    if which not in made:
        raise ValueError(f"the instrument has a calibration and a power, not {which!r}")
    return [made[which]()]


def calibration() -> Finding:
    """Correct samplers reach the evidence 1/alpha in at most a share alpha of the audits, but for chance."""
    most = audits(CALIBRATION_AUDITS, np.random.default_rng(0)) / np.log(10)
    reached = [int((most >= bar).sum()) for bar in DECADES]
    # P(more than this many of CALIBRATION_AUDITS audits at rate alpha) < 1e-6 at every bar: mean + 5 deviations + 5
    allowed = [CALIBRATION_AUDITS * 10**-bar + 5 * np.sqrt(CALIBRATION_AUDITS * 10**-bar) + 5 for bar in DECADES]
    return Finding(
        id="evidence.calibration",
        subject="the sequential evidence of audit kernel",
        claim="At any stopping time, correct samplers are accused at level alpha in at most a share alpha of audits.",
        source=SOURCE,
        verdict="consistent" if all(n <= most for n, most in zip(reached, allowed, strict=True)) else "violated",
        method=f"{CALIBRATION_AUDITS} vectorised audits of two correct rules, looked at after every block",
        recipe=Recipe(function=f"{__name__}:replay", arguments={"which": "calibration"}),
        numbers={"audits": CALIBRATION_AUDITS, "false_alarms_at_1e-3": reached[-1]},
        tables={
            "calibration": {
                "log10_bar": list(DECADES),
                "reached": [round(n / CALIBRATION_AUDITS, 6) for n in reached],
                "allowed": [round(10**-bar, 6) for bar in DECADES],
            }
        },
    )


def power() -> Finding:
    """Listed defects are found, with the calls beside the fewest that information theory allows on those inputs."""
    tried, told, calls, nats_a_call = Audits(), [], [], []
    tables = {case: alternatives(item.p, item.q, item.sizes) for case, item in tried.told.items()}
    for name in SHOWN_DEFECTS:
        campaign, end, spent = tried.run({case: table[name] for case, table in tables.items()}, 0, MAX_CALLS)
        if end is not None:
            told.append(name)
            calls.append(campaign.calls)
            nats_a_call.append(round(spent / campaign.calls, 6))
    return Finding(
        id="evidence.power",
        subject="the default schedule of audit kernel",
        claim="A listed defect is found in a small multiple of log(1/alpha)/KL calls, counted from the first.",
        source=SOURCE,
        verdict="consistent" if len(told) == len(SHOWN_DEFECTS) else "violated",
        method=f"simulated subjects with the laws of {len(SHOWN_DEFECTS)} defects, at most {MAX_CALLS} calls each",
        recipe=Recipe(function=f"{__name__}:replay", arguments={"which": "power"}),
        numbers={"found": len(told), "defects": len(SHOWN_DEFECTS)},
        notes=[f"alpha {ALPHA:g}: the line is log(1/alpha)/KL = {CAP:.1f}/KL."],
        tables={
            "power": {
                "defect": told,
                "nats_a_call": nats_a_call,
                "calls": calls,
                "fewest": [round(CAP / nats, 3) for nats in nats_a_call],
            }
        },
    )
