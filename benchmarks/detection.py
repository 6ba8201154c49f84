"""Calls and seconds from start to verdict, for every class of defects, beside what no test can go below (Wald).

    python -m benchmarks.detection [--only TEXT] [--out benchmarks/results/detection.json]

Whole audits of real functions, each in a process of its own from its first import to its verdict, so that what is
measured is what `refengine audit kernel` costs. Seconds of processor time are split by who spent them:

    imports    of the auditing process
    evidence   the auditing process after that: schedule, bets, diagnosis
    subject    all other processes: the fork server's imports, the subject's calls, enumeration, replay

`wall` depends on what else the machine does; with two idle cores it is at most `imports + evidence + subject`.
For the classes that the evidence lists (`refengine bugs`) and for laws that nobody listed, the calls come from the
committed campaigns (power.json, unseen.json), with the fewest calls that any test needs on the inputs that were used
(a token of probability zero ends an audit when it comes, so there the bound is on the others alone); seconds are those
calls at the price of one call and of its evidence as measured here, after the start.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.turns import keep
from refengine.evidence.alpha import ALPHA
from refengine.source_tree import FIXTURES

SUBJECTS = FIXTURES / "subjects"
RESULTS = Path(__file__).parent / "results"
AUDITED = {  # function -> signature: gross, small, dependent, and right
    "correct:leviathan": "verify",
    "defective:residual_is_p": "verify",
    "defective:half_precision": "verify",
    "defective:inclusive": "verify",
    "defective:outside": "verify",
    "defective:numpy_off_by_one": "verify",
    "defective:swaps_rows": "verify_batch",
    "shared:one_coin": "verify",
    "shared:rows_share_coins": "verify_batch",
    "shared:draft_and_recovery_share_noise": "round",
    "rounding:residual_bfloat16": "verify",
    "correct:block": "verify",
}
# One audit, in a process of its own: what it prints last is JSON. The fork server is waited for, so its time counts.
AUDIT = """
import json, sys, time
from refengine.audit.kernel import request
from refengine.audit.sandbox import forkserver
forkserver.start_ahead(request.Request(*sys.argv[1:4]).preload())
from refengine.audit.kernel.audit import audit_kernel
from resource import RUSAGE_CHILDREN, getrusage
imports = time.process_time()
(finding,) = audit_kernel(sys.argv[1], sys.argv[2], path=sys.argv[3])
evidence = time.process_time() - imports
forkserver._close()
spent = getrusage(RUSAGE_CHILDREN)
calls = finding.numbers.get("calls", 0)
said = {"verdict": finding.verdict, "diagnosis": finding.diagnosis, "method": finding.method, "calls": calls}
seconds = {"imports": imports, "evidence": evidence, "subject": spent.ru_utime + spent.ru_stime}
print(json.dumps(said | seconds))
"""


def audit(subject: str, signature: str) -> dict[str, Any]:
    """One audit from start to verdict."""
    begun = time.monotonic()
    arguments = [sys.executable, "-c", AUDIT, subject, signature, str(SUBJECTS)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    row = {"function": subject, "signature": signature, **json.loads(done.stdout.splitlines()[-1])}
    row["wall"] = time.monotonic() - begun
    row["processor"] = row["imports"] + row["evidence"] + row["subject"]
    row["evidence / subject"] = row["evidence"] / row["subject"]
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}


def prices(audits: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds before the first call, and of one call with its evidence: an audit that made many calls, less one that
    found a gross defect in its first."""
    most = max(audits, key=lambda row: row["calls"])
    least = min(audits, key=lambda row: row["processor"])
    one = (most["evidence"] + most["subject"] - least["evidence"] - least["subject"]) / max(most["calls"], 1)
    return {"start": least["processor"], "call": max(one, 0.0)}


def listed(price: dict[str, float]) -> list[dict[str, Any]]:
    """Every class that the evidence lists: calls, the fewest possible, seconds at the prices of this run."""
    rows = []
    for row in json.loads((RESULTS / "power.json").read_text())["defects"]:
        calls, fewest = row["calls"], row["floor"]
        ratio = round(calls / fewest, 2) if fewest else None
        out = {"class": row["defect"], "ended": row["ended"], "calls": calls, "fewest": fewest, "calls / fewest": ratio}
        rows.append(out | {"seconds": round(price["start"] + calls * price["call"], 2)})
    return rows


def unlisted(price: dict[str, float]) -> list[dict[str, Any]]:
    """Laws that nobody listed: `ratio` of unseen.json is nats spent over log(1/alpha), so fewest = calls / ratio."""
    rows = []
    for row in json.loads((RESULTS / "unseen.json").read_text())["defects"]:
        calls, nats = row["calls"], row["ratio"]
        out = {"place": row["place"], "ended": row["ended"], "calls": calls, "calls / fewest": nats}
        fewest = math.ceil(calls / nats) if nats else 0
        rows.append(out | {"fewest": fewest, "seconds": round(price["start"] + calls * price["call"], 2)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="subjects whose name holds this")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for subject, signature in AUDITED.items():
        if given.only in subject:
            rows.append(audit(subject, signature))
            print(json.dumps(rows[-1]), flush=True)
            price = prices(rows)
            found = {"alpha": ALPHA, "audits": rows, "prices": price}
            keep(given.out, found | {"listed": listed(price), "unlisted": unlisted(price)})


if __name__ == "__main__":
    main()
