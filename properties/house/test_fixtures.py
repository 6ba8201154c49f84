"""Every committed fixture is what its generator made: one stamp a folder, compared with what lies there."""

import json
import runpy
from pathlib import Path

import pytest

from refengine.source_tree import FIXTURES

GENERATORS = sorted(FIXTURES.glob("make_*.py"))


@pytest.mark.parametrize("generator", GENERATORS, ids=[generator.stem for generator in GENERATORS])
def test_the_fixtures_are_what_their_generator_made(generator: Path) -> None:
    """Kills a fixture that was edited, a generator that was, or a target trained again, without the other."""
    made = runpy.run_path(str(generator))
    stamp = made["STAMPS"]["stamp"](made["OUT"], made["SOURCES"])
    assert json.loads((made["OUT"] / "stamp.json").read_text()) == stamp, f"run {generator.name}, or restore the files"
    assert generator.name in stamp["sources"]
    assert stamp["files"]
