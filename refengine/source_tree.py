"""Where stands what is not code of the package: fixtures, proofs, records, tests.

In the source tree that is beside the package. A wheel carries what the commands read (`hatch_build.py`) in `shipped/`;
the tests and the recordings of official code are in the source tree alone, and what needs them says so.
"""

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
