"""What a wheel carries beside the package: what the commands read of fixtures, proofs and records."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = (
    "fixtures/**/*",
    "properties/helpers/**/*.py",  # what planted bugs are held to counts in the digests of their records
    "properties/exact_and_engine/test_*.py",
    "properties/decoder/test_ends.py",
    "proofs/*.json",
    "proofs/claims/*.toml",
    "proofs/rocq/*",
    "benchmarks/fused_taps.py",
    "benchmarks/training/*.py",
    "benchmarks/results/*.json",
    "benchmarks/results/stat_long.txt",
)
LEFT_OUT = ("fixtures/golden",)  # recordings of official code, 27 MB, which only tests read
# The large samples as a package of their own, `pytest --pyargs refengine_tests -m stat`; what they import of
# properties/helpers is in shipped/.
TESTS = {
    "statistical_tests/__init__.py": "refengine_tests/__init__.py",
    "conftest.py": "refengine_tests/conftest.py",
    "statistical_tests/[a-z]*.py": "refengine_tests/statistical_tests/",
}


class ShippedFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Puts them below refengine/shipped, where `refengine/source_tree.py` finds them, and the tests beside it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        for file in sorted({file for pattern in SHIPPED for file in root.glob(pattern) if file.is_file()}):
            path = file.relative_to(root).as_posix()
            if not path.startswith(LEFT_OUT) and "__pycache__" not in path:
                build_data["force_include"][str(file)] = f"refengine/shipped/{path}"
        for pattern, place in TESTS.items():
            for file in sorted(root.glob(pattern)):
                build_data["force_include"][str(file)] = place + file.name * place.endswith("/")
