"""The tests that claims cite, and what they call: the digest of each definition, as somebody last read it.

A test that returns before it has asked anything, is skipped, or draws less than it did is green, as a weaker theorem is
proved. So each cited test is held as a cited theorem is, with the tests that link the chains and what `make prove`
runs; and the words that they are said in, each by itself, so that a change is told once and where it stands:
functions, tables, fixtures and strategies of `HELD`, which is what is evidence, and not what it is about. What can
switch any test off is held whole: each conftest.py, our plugin, pytest's options, what `make prove` runs, what of the
root could be found before it (a `pytest.py`, a `GNUmakefile`, a `pytest.ini`), and each `__init__.py` of the package,
which runs before all that stands below it and could change any word of it; and what is installed and how
(`pyproject.toml`, `hatch_build.py`, `constraints.txt`), since a plugin or a start-up file of an environment comes
before everything. Code that is no text, and that Python would run in place of one, is told, and so is a link, and a
text that Python reads as another one than is read here, or never, because a package has its name. Of every file that is
read, of those of `HELD` that it imports and of the `__init__.py` above them, whatever else stands there: it runs while
the file is imported, or may be called by what does. Comments, docstrings and how a text is laid out are not read, nor
words that are looked up by a text, nor the numbers that a test reads from a file of results. The standard library
alone.
"""

import ast
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from proofs.gate.first import EMPTY, HELD, TESTS, bound, digest, held, imported, rest, run_instead, told, tree
from refengine.selfcheck.claims.chains import CHAINS, links
from refengine.source_tree import PACKAGE, ROOT

EVALUATORS = (
    *("proofs/bridge.py::main", "proofs/translate/__main__.py::main", "proofs/hypotheses.py::main"),
    *("proofs/translate/running.py::told", "proofs/statements.py::named_by"),
)
JUDGES = (  # of mutants, which a child looks up by a string
    *("refengine/selfcheck/claims/checks.py::exact", "refengine/selfcheck/claims/checks.py::engine"),
    "refengine/bugs/process/job.py::make",
)
PLUGIN = "refengine/pytest_plugin.py"
RUN = (
    *("Makefile", "proofs/check.sh", "proofs/translate/known.txt", "hatch_build.py", "constraints.txt"),
    # Results under digests, and excuses of mutants, which a hand could write.
    *("proofs/links.json", "proofs/own_tests.json", "refengine/bugs/mutation/survivors.toml"),
    "proofs/hypotheses.json",
)
CHEATS = "proofs/cheats"
INSTALLED = ("build-system", "project", "dependency-groups")  # tables of pyproject.toml, with tools that run or build
TOOLS = ("pytest", "hatch")
# How names of a module begin that pytest or Python look for.
READ_BY_NAME = ("pytest", "setup", "teardown", "__all__", "__getattr__", "__test__")

Place = tuple[str, str]  # a file and a name of it


def linking() -> list[str]:
    """The tests of the chains, and what `make prove` runs: evaluators, and tests of which no claim need know."""
    files = sorted((ROOT / "proofs").glob("test_*.py"))
    every = [test for file in files for test in asked_by(file)]
    return [
        *EVALUATORS,
        *JUDGES,
        *every,
        *(test for chain in CHAINS for tests in links(chain).values() for test in tests),
    ]


def asked_by(file: Path) -> Iterator[str]:
    """The tests of a file; those that it has from another one are the other's."""
    for name, nodes in bound(file).items():
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                other = f"{node.module.replace('.', '/')}.py"
                yield from (f"{other}::{t}" for t in bound(ROOT / other) if name in ("*", t) and t.startswith("test_"))
            elif name.startswith("test_"):
                yield f"{file.relative_to(ROOT)}::{name}"


def digests(tests: Sequence[str], root: Path = ROOT) -> dict[str, str]:
    """Of every test and of every word that it is said in, by `test/file/name`."""
    todo = [place(test) for test in tests]
    files = [root / "conftest.py", root / PLUGIN, *(f for top in TESTS for f in (root / top).rglob("conftest.py"))]
    files += (file for file in (root / PACKAGE.name).rglob("__init__.py") if told(tree(file)) != EMPTY)
    whole = sorted(str(file.relative_to(root)) for file in files if file.is_file())
    todo += ((file, name) for file in whole for name in bound(root / file))
    found = dict[Place, str]()
    while todo:
        here = todo.pop()
        if here not in found and (nodes := bound(root / here[0]).get(here[1])):
            found[here] = digest(*map(told, nodes))
            todo += (there for node in nodes for there in words(here[0], node, root))
    said = {f"test/{file}/{name}": text for (file, name), text in found.items() if file not in whole}
    said |= {f"test/{file}": digest(told(tree(root / file))) for file in whole}
    # Some are looked up by a text, and pytest looks at all that stands in the folder of the proofs.
    ours = {str(file.relative_to(root)) for room in (PACKAGE.name, "proofs") for file in (root / room).rglob("*.py")}
    read, todo_files = set[str](), {*(file for file, _ in found), *filter(held, ours)}.difference(whole)
    while todo_files:
        read |= todo_files
        others = {other for file in todo_files for other in imported(root / file, root)}
        todo_files = {other for other in others if held(other)}.difference(read, whole)
    rooms = {str(folder / "__init__.py") for file in read for folder in Path(file).parents}
    read |= {room for room in rooms.difference(whole) if room.startswith(HELD) and (root / room).is_file()}
    texts = {file: rest(root / file, {name for other, name in found if other == file}) for file in read}
    said |= {f"test/{file}": digest(text) for file, text in texts.items() if text != EMPTY}
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    options = [project.get(table) for table in INSTALLED] + [project["tool"].get(tool) for tool in TOOLS]
    said |= {f"run/{name}": digest((root / name).read_text("utf-8")) for name in RUN if (root / name).is_file()}
    if cheats := sorted(file.name for file in (root / CHEATS).glob("*.v")):  # one that is gone misses nobody else
        said[f"run/{CHEATS}"] = digest(*cheats)
    return said | run_instead(root) | {"test/pyproject.toml": digest(repr(options))}


def place(test: str) -> Place:
    """`path::name[case]` as a file and a name."""
    path, _, name = test.partition("::")
    return path, name.partition("[")[0]


def words(file: str, node: ast.stmt, root: Path) -> Iterator[Place]:
    """Where the words of a definition stand, of those that are held. An argument is one: it may be a fixture."""
    every = [*ast.walk(node)]
    names = {n.id for n in every if isinstance(n, ast.Name)} | {n.arg for n in every if isinstance(n, ast.arg)}
    attributes = {n.attr for n in every if isinstance(n, ast.Attribute)}
    for name in sorted(names | unasked(root / file)):
        for binding in bound(root / file).get(name, []):
            if not isinstance(binding, ast.Import | ast.ImportFrom):
                yield file, name
            elif isinstance(binding, ast.ImportFrom) and binding.module:
                yield from _imported(binding, name, attributes, root)


@cache
def unasked(file: Path) -> set[str]:
    """What is of every test of a file, though none names it."""
    autouse = {name for name, nodes in bound(file).items() if any("autouse" in told(node) for node in nodes)}
    return autouse | {name for name in bound(file) if name.lower().startswith(READ_BY_NAME)}


def _imported(binding: ast.ImportFrom, name: str, attributes: set[str], root: Path) -> Iterator[Place]:
    """A word of another file, or those words of it that are asked for where the file itself is the word."""
    original = next(alias.name for alias in binding.names if name == (alias.asname or alias.name))
    folder = (binding.module or "").replace(".", "/")
    for file, asked in ((f"{folder}.py", [original]), (f"{folder}/{original}.py", sorted(attributes))):
        if held(file) and (root / file).is_file():
            yield from ((file, word) for word in asked)
    if folder.startswith(HELD) and (root / folder / "__init__.py").is_file():
        yield f"{folder}/__init__.py", original
