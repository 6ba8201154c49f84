"""Where stands what is not code of the package: fixtures, proofs, records, tests.

In the source tree that is beside the package. A wheel carries what the commands read (`hatch_build.py`) in `shipped/`;
the tests and the recordings of official code are in the source tree alone, and what needs them says so.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IN_SOURCE_TREE = (PACKAGE.parent / "proofs" / "claims").is_dir()
ROOT = PACKAGE.parent if IN_SOURCE_TREE else PACKAGE / "shipped"
PROPERTIES = ROOT / "properties"
PROOFS = ROOT / "proofs"
FIXTURES = ROOT / "fixtures"
GOLDEN = FIXTURES / "golden"  # recordings of official code
RESULTS = ROOT / "benchmarks" / "results"
NOT_SHIPPED = "it needs the tests, which are in the source tree and not in the wheel"


def commit_id() -> str:
    """Of the commit that is checked out, 40 hex digits; "" where there is no git or no repository."""
    if IN_SOURCE_TREE:
        with suppress(OSError, subprocess.CalledProcessError):
            git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
            return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    return ""


def commit_seed() -> int:
    """The number that chance is drawn from where a check takes a sample: another one for every commit."""
    return int(commit_id() or "0", 16)
