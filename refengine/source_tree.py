"""Where the source tree keeps what stands beside the package: tests, proofs, fixtures, figures.

An installed wheel has no such folders; what needs one of them asks for it here and says so in one line.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROPERTIES = ROOT / "properties"
PROOFS = ROOT / "proofs"
FIXTURES = ROOT / "fixtures"
GOLDEN = FIXTURES / "golden"  # recordings of official code
RESULTS = ROOT / "benchmarks" / "results"
