"""Tests on record: what has passed on the text that runs is not run whole at every commit.

Tests that are marked `on_record` are dear. Where their file, what it imports, the fixtures or the libraries have
changed since all of them passed, `make test` runs all of them. Where nothing has, it runs one case in SHARE, drawn by
the commit's id. `make test-full` runs everything in any case, and so does pytest without `--drawn`.
`python -m refengine.selfcheck.tests_on_record` runs what is stale, file by file, and records each file that passes.
"""

import ast
import platform
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from refengine.report.report import environment
from refengine.report.terminal import Progress
from refengine.source_edits.committed import Committed, digest, own_code
from refengine.source_edits.imports import file_of, imported_names, is_module
from refengine.source_tree import FIXTURES, PROPERTIES, RESULTS, ROOT, commit_id

COMMAND = "make records RECORDS=tests"
SHARE = 4
MARK = "on_record"
# Folders and files that tests on record read. No other: no page, no proof, no record.
READ = (FIXTURES, ROOT / "examples", ROOT / "docs" / "vectors.md", ROOT / "constraints.txt")
LISTS = re.compile(r"__path__|import_module")  # in a text that loads what stands in a folder
PYTEST = ("-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", f"{MARK} and not stat")


def spared(names: Iterable[str]) -> set[str]:
    """Of these cases of tests on record, those that this commit does not run again. names: ids of pytest."""
    cases = defaultdict(list)
    for name in names:
        cases[name.partition("::")[0]].append(name)
    left, commit = set[str](), commit_id()
    for file, of_file in cases.items():
        if RECORD.fresh(file):
            again = random.Random(f"{commit} {file}").sample(of_file, -(-len(of_file) // SHARE))
            left.update(set(of_file).difference(again))
    return left


def summary() -> str:
    """What `make test` says of them."""
    stale = RECORD.every_stale()
    drawn = f"of {len(files()) - len(stale)} files of tests that are on record one case in {SHARE} ran, drawn by the "
    changed = f"; all cases of what has changed since: {', '.join(stale)} ({COMMAND})" if stale else ""
    return f"{drawn}commit's id (all of them: make test-full){changed}"


def files() -> list[str]:
    """Those that have tests on record, as pytest names them."""
    found = sorted(PROPERTIES.rglob("test_*.py"))
    return [file.relative_to(ROOT).as_posix() for file in found if f"pytest.mark.{MARK}" in file.read_text("utf-8")]


def _digest(name: str) -> str:
    return digest(*sorted(f"{own_code(file)}" for file in reached(ROOT / name)), _surroundings())


def reached(file: Path) -> set[Path]:
    """The file, and whatever of ours it may run: what it imports, anywhere in the text, with the packages around that;
    what a string names, for a child that imports it; and what listings load. `file_digest`, which is of what one thing
    is computed from, knows no circles."""
    pending = [file, *(folder / "conftest.py" for folder in file.parents if (folder / "conftest.py").is_file())]
    found = set(pending)
    while pending:
        text = pending.pop()
        names = [name.split(".") for name in imported_names(text) | _loaded(text)]
        around = {".".join(parts[:end]) for parts in names for end in range(1, len(parts) + 1)}
        new = {file_of(name) for name in around if is_module(name)} - found
        pending += new
        found |= new
    return found


@cache
def _loaded(file: Path) -> frozenset[str]:
    """The modules that a file names in a string, with or without a function behind a colon; and, where it loads what
    stands in a folder, those of every package that it is or imports."""
    text = file.read_text("utf-8")
    nodes = ast.walk(ast.parse(text))
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    packages = [one for one in (file, *map(file_of, imported_names(file))) if one.name == "__init__.py"]
    beside = [one for package in packages if LISTS.search(text) for one in package.parent.rglob("*.py")]
    inside = {".".join(one.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for one in beside}
    return frozenset(name for name in inside | {text.partition(":")[0] for text in strings} if is_module(name))


@cache
def _surroundings() -> str:
    """What no import tells: what the tests read, and the versions of libraries."""
    inside = [file for folder in READ for file in sorted(folder.rglob("*")) if "__pycache__" not in file.parts]
    data = [file.read_bytes() for file in (*READ, *inside) if file.is_file()]
    return digest(f"{environment()} {sys.platform} {platform.machine()}", *data)


RECORD = Committed(RESULTS / "tests.json", _digest, COMMAND, files)


def main() -> int:
    """Run all cases of what is stale; exit code 1 where a file did not pass."""
    stale = RECORD.every_stale()
    failed = []
    with Progress("tests", len(stale)) as shown:
        for name in stale:
            shown.at(name)
            ran = subprocess.run([sys.executable, *PYTEST, name], cwd=ROOT, capture_output=True, text=True, check=False)
            last = ([line for line in ran.stdout.splitlines() if line] or ["no test ran"])[-1].strip("= ")
            if ran.returncode == 0:
                RECORD.put(name, {"ended": last.partition(" in ")[0]})
            else:
                failed.append(f"{ran.stdout}{ran.stderr}")
            shown.finish(f"{name}: {last}")
    print("\n".join(failed), end="")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
