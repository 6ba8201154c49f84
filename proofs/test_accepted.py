"""What was read of the proofs, and whether it still says so: what is cited, the tests, and what runs before them."""

import ast
import py_compile
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from proofs.gate import accepted, build, kernel, tests, text
from proofs.gate import cited as cites
from proofs.gate.accepted import Entry
from proofs.gate.cited import page, read_beside, to_be_read
from refengine.selfcheck.claims import coq_text
from refengine.selfcheck.claims.claims import markdown, sources
from refengine.source_tree import PROOFS, ROOT


def test_what_is_cited_was_read() -> None:
    """Kills: a theorem that a claim begins to cite, and whose statement nobody has accepted, and a word whose meaning
    nobody is shown; this needs no prover."""
    entries = accepted.read()
    assert to_be_read() - entries.keys() == set(), f"read what these say, then {accepted.COMMAND}"
    assert [name for name, entry in entries.items() if "/" not in name and not entry.says] == []
    assert "r ((complete p n h)^~ k) = target p n h k" in entries["Round.lossless"].says
    assert len(entries) > len(to_be_read()) > 200


def test_every_sentence_and_test_was_read() -> None:
    """Kills: a claim, a row of the index, the page's legend or table of chains that comes to say more, a test that
    comes to ask less, and a grant, while the theorems stay; this needs no prover."""
    read, now = accepted.read(), read_beside()
    unread = list(accepted.unread({name: entry for name, entry in read.items() if "/" in name}, now))
    assert unread == [], f"read what these say now, then {accepted.COMMAND}-texts"
    kinds = {"claim", "comment", "granted", "index", "notation", "prose", "run", "test"}
    assert {name.partition("/")[0] for name in now} == kinds
    assert now["claim/block.optimal"].says.startswith("consistent\nOf rules that emit")


def test_everything_that_the_page_says_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a legend or a table of chains that says more, a row that says something else than its claim, and a grant
    that neither CLAIMS.md nor accepted.txt shows: an axiom stands beside every sentence whose theorems may use it."""
    ours = read_beside()
    rows, around = page()
    assert "they rest on none" in ours["prose/CLAIMS"].says
    assert "| `block` | exact = engine |" in ours["prose/CLAIMS"].says
    more = [line.replace("where none stands", "everywhere") for line in around]
    monkeypatch.setattr(cites, "page", lambda: (rows | {"block.optimal": "**proved** for all"}, more))
    monkeypatch.setitem(coq_text.granted_axioms(), "Cheat.absurd", ["Optimality"])
    monkeypatch.setitem(text.granted()["axioms"], "Cheat.absurd", ["Optimality"])
    now = read_beside()
    changed = {name for name in now if now[name] != ours[name]}
    assert changed >= {"prose/CLAIMS", "claim/block.optimal", "granted/axioms"}
    assert "axioms: Cheat.absurd" in now["claim/block.optimal"].says
    assert "axioms:* `Cheat.absurd`" in markdown(sources())


def test_what_the_bridge_evaluates_was_read() -> None:
    """Kills: an evaluator of Coq's laws, or of ours, that is changed until all of them agree."""
    entries = accepted.read()
    python = (
        "proofs/bridge.py/parse",
        "proofs/instances.py/instances",
        "refengine/selfcheck/claims/coq_bridge.py/lane",
    )
    assert {"Bridge.show", "Rational.frac", *(f"test/{place}" for place in python)} <= entries.keys()


ASKING = """
from hypothesis import given
from properties.helpers import rows
LIMIT = 5
@given(rows.some(LIMIT))
def test_it(row, case):
    \"\"\"Kills a mistake.\"\"\"
    assert helper(row) < LIMIT  # and so on
def helper(row):
    return sum(row)
def unasked():
    return 1
@fixture
def case(): return 1
"""


@pytest.mark.parametrize(
    ("file", "before", "after", "changed"),
    [
        ("proofs/test_a.py", "    assert", "    if case: return\n    assert", "proofs/test_a.py/test_it"),
        ("proofs/test_a.py", "@given(", "@pytest.mark.skip\n@given(", "proofs/test_a.py/test_it"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 6", "proofs/test_a.py/LIMIT"),
        ("proofs/test_a.py", "sum(row)", "0", "proofs/test_a.py/helper"),
        ("proofs/test_a.py", "case(): return 1", "case(): skip()", "proofs/test_a.py/case"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\npytestmark = skip", "proofs/test_a.py/pytestmark"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\ntest_it.__test__ = False", "proofs/test_a.py/test_it"),
        ("proofs/test_a.py", "LIMIT = 5", 'LIMIT = 5\n__all__ = ["test_b"]', "proofs/test_a.py/__all__"),
        ("proofs/test_a.py", "LIMIT = 5", 'LIMIT = 5\npytest_plugins = ("a",)', "proofs/test_a.py/pytest_plugins"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\ndef setUpModule(): skip()", "proofs/test_a.py/setUpModule"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\ndel test_it", "proofs/test_a.py/test_it"),
        (
            "proofs/test_a.py",
            "@fixture\n",
            "@fixture(autouse=True)\ndef at_once(): skip()\n@fixture\n",
            "proofs/test_a.py/at_once",
        ),
        ("proofs/test_a.py", "unasked():\n    return 1", "unasked():\n    return 2", "proofs/test_a.py"),
        ("proofs/test_a.py", "def unasked", "@patch\ndef unasked", "proofs/test_a.py"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\nrows.LEAST = 0", "proofs/test_a.py/rows"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\nhere = rows\nhere.LEAST = 0", "proofs/test_a.py"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\nSIX = Patch[6]", "proofs/test_a.py"),
        ("properties/helpers/others.py", "MOST = 1", "MOST = 1\nclass A(Patch): ...", "properties/helpers/others.py"),
        ("proofs/test_a.py", "Kills a mistake.", "Kills all.", ""),
        ("proofs/test_a.py", "  # and so on", "", ""),
        ("properties/helpers/rows.py", "floats(0, most)", "just(0)", "properties/helpers/rows.py/some"),
        ("proofs/conftest.py", "pass", "skip()", "proofs/conftest.py"),
        ("pyproject.toml", "-m x", "--deselect a", "pyproject.toml"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\n_done = patch(Item)", "proofs/test_a.py"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\nclass A:\n    _done = patch(Item)", "proofs/test_a.py"),
        ("proofs/test_a.py", "def unasked(", "@patch(Item)\ndef unasked(", "proofs/test_a.py"),
        ("proofs/test_a.py", "unasked(", "unasked(x=patch(Item)", "proofs/test_a.py"),
        ("proofs/test_a.py", "unasked()", "unasked() -> patch(Item)", "proofs/test_a.py"),
        ("proofs/test_a.py", "LIMIT = 5", "LIMIT = 5\nclass A(metaclass=patch(Item)): ...", "proofs/test_a.py"),
        (
            "properties/helpers/rows.py",
            "def some",
            "_ = setattr(sympy, 'simplify', min)\ndef some",
            "properties/helpers/rows.py",
        ),
    ],
)
def test_a_cited_test_that_asks_less_is_seen(tmp_path: Path, file: str, before: str, after: str, changed: str) -> None:
    """Kills: a cited test that returns early, is skipped, or draws from less, in its own text or in a word of it."""
    files = {
        "proofs/test_a.py": ASKING,
        "properties/helpers/rows.py": "from properties.helpers import others\ndef some(most): return floats(0, most)\n",
        "properties/helpers/others.py": "MOST = 1\n",
        "proofs/conftest.py": "def pytest_runtest_setup(item):\n    pass\n",
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-m x"\n',
    }
    found = []
    for at, texts in enumerate((files, files | {file: files[file].replace(before, after)})):
        for name, told in texts.items():
            (tmp_path / str(at) / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / str(at) / name).write_text(told)
        found.append(tests.digests(["proofs/test_a.py::test_it[1]"], tmp_path / str(at)))
    assert before in files[file]
    differ = {name for name in {*found[0], *found[1]} if found[0].get(name) != found[1].get(name)}
    assert differ - {f"test/{file}"} == ({f"test/{changed}"} if changed else set()) - {f"test/{file}"}
    assert bool(differ) == bool(changed)
    shown = list(accepted.unread({"test/a": Entry("1")}, {"test/a": Entry("2")}))
    assert shown[0] == "test/a means something else than it did: see `git diff` of " + accepted.where("test/a")


@pytest.mark.parametrize("file", sorted(PROOFS.rglob("*.py")), ids=lambda file: file.stem)
def test_no_test_of_another_file_hides_one(file: Path) -> None:
    """Kills: two tests of one name that a file takes from two others, of which only the last is asked."""
    taken = Counter(test.rpartition("::")[2] for test in {*tests.asked_by(file)})
    assert [name for name, times in taken.items() if times > 1] == []


def test_what_make_prove_runs_and_what_stands_before_our_options_is_read(tmp_path: Path) -> None:
    """Kills: a script that ends before the gate, a table of known texts that is changed beside the text, a file of
    options that deselects what is cited, and a file of the root that is run in place of pytest, z3 or the Makefile."""
    first = "pytest.ini", "pytest.py", "GNUmakefile", "z3/__init__.py", "proofs/pytest.ini", "properties/a/tox.ini"
    for name in (*tests.RUN, *first, "pyproject.toml", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[tool.pytest]\n")
    found = tests.digests([], tmp_path)
    told = {*tests.RUN, "pytest.ini", "pytest.py", "GNUmakefile", "z3", "proofs/pytest.ini", "properties/a/tox.ini"}
    assert {f"run/{name}" for name in told} == {name for name in found if name.startswith("run/")}
    assert {*tests.RUN} <= {name.removeprefix("run/") for name in accepted.read()}


def test_a_sentence_is_shown_beside_its_theorems() -> None:
    """Kills: a sentence that is accepted without a look at what it stands on."""
    before = {"A.t": Entry("1", "a <= b"), "claim/a": Entry("2", "at most\nby: A.t")}
    shown = list(accepted.unread(before, before | {"claim/a": Entry("3", "less\nby: A.t")}))
    assert shown[:2] == [
        "claim/a is not what was read:\n  - at most\n  + less\n    by: A.t",
        "claim/a cites A.t:\n  a <= b",
    ]


def test_code_that_is_no_text_is_told(tmp_path: Path) -> None:
    """Kills: a library or a compiled file that Python runs in place of the text which was read."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\n")
    room = tmp_path / "refengine" / "engine"
    (room / "__pycache__").mkdir(parents=True)
    (room / "a.py").write_text("A = 1\n")
    modes = py_compile.PycInvalidationMode
    for name, mode in (("time", modes.TIMESTAMP), ("checked", modes.CHECKED_HASH), ("not", modes.UNCHECKED_HASH)):
        py_compile.compile(str(room / "a.py"), str(room / "__pycache__" / f"{name}.pyc"), invalidation_mode=mode)
    shutil.copy(room / "__pycache__" / "time.pyc", room / "b.pyc")
    (room / "c.abi3.so").write_bytes(b"")
    told = [name for name in tests.digests([], tmp_path) if name.startswith("run/")]
    names = ("__pycache__/checked.pyc", "__pycache__/not.pyc", "b.pyc", "c.abi3.so")
    assert told == [f"run/refengine/engine/{name}" for name in names]


@pytest.mark.skipif(shutil.which("git") is None, reason="not tested: git is not installed")
@pytest.mark.parametrize("source", ["properties/a.py", "conftest.py"])
def test_what_pytest_compiled_here_is_no_code_of_the_repository(tmp_path: Path, source: str) -> None:
    """Kills: a gate that is red after `make test`, whose compiled tests are believed by their texts' digests; and one
    that lets such a file come with the repository."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\n")
    file = tmp_path / source
    file.parent.mkdir(exist_ok=True)
    file.write_text("A = 1\n")
    py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    (made,) = tmp_path.rglob("*.pyc")
    assert f"run/{made.relative_to(tmp_path)}" in tests.digests([], tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    assert not [name for name in tests.digests([], tmp_path) if name.startswith("run/")]
    subprocess.run(["git", "-C", str(tmp_path), "add", "--force", str(made)], check=True)
    assert f"run/{made.relative_to(tmp_path)}" in tests.digests([], tmp_path)


def test_a_text_that_python_reads_as_another_is_told(tmp_path: Path) -> None:
    """Kills: code in a comment, which another encoding ends, a package that hides a file, and a link."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\n")
    room = tmp_path / "proofs"
    (room / "shadowed").mkdir(parents=True)
    for name in ("plain.py", "shadowed.py", "shadowed/__init__.py"):
        (room / name).write_text("# -*- coding: utf-8 -*-\n")
    (room / "ended.py").write_text("# -*- coding: raw_unicode_escape -*-\n# \\u000aA = 1\n")
    lines = {
        "returned": b"\r# coding: raw_unicode_escape\n",
        "fed": b"\f\n",
    }
    for name, line in lines.items():
        (room / f"{name}.py").write_bytes(line)
    (room / "led").symlink_to(tmp_path)
    told = [name for name in tests.digests([], tmp_path) if name.startswith("run/")]
    assert {*told} == {f"run/proofs/{name}.py" for name in ("ended", "shadowed/__init__", *lines)} | {"run/proofs/led"}


@pytest.mark.parametrize(
    ("one", "other"), [("{'k': a, **b}", "{**a, 'k': b}"), ("lambda *, a, b=1: 0", "lambda *, a=1, b: 0")]
)
def test_two_texts_are_told_apart(one: str, other: str) -> None:
    """Kills: a place that holds nothing, and is left out, so that what stands after it moves."""
    assert tests.told(ast.parse(one)) != tests.told(ast.parse(other))


@pytest.mark.parametrize(
    "line", ['[project.entry-points.pytest11]\nmore = "refengine.more"', '[build-system]\nbackend-path = ["."]']
)
def test_what_is_installed_is_read(line: str, tmp_path: Path) -> None:
    """Kills: a plugin of the project's that drops tests, and a build that writes into the environment."""
    found = []
    for said in ("[tool.pytest]\n", f"[tool.pytest]\n{line}\n"):
        (tmp_path / "pyproject.toml").write_text(said)
        found.append(tests.digests([], tmp_path)["test/pyproject.toml"])
    assert found[0] != found[1]


@pytest.mark.coq
@pytest.mark.parametrize("name", ["Greedy.greedy_tree_lossless", "Greedy.greedy_is_greedy"])
def test_a_faithful_copy_is_what_was_read(name: str, tmp_path: Path) -> None:
    """Kills: cheats that are refused for where they stand, and not for what they say."""
    assert build.compiled("Greedy.vo") == ""
    for file in build.BUILD.glob("*.vo"):
        (tmp_path / file.name).symlink_to(file)
    same = f"ltac:(let t := type of @Proofs.{name} in exact t)"
    head, proof = f"(** It stands for {name}. *)\nFrom Proofs Require Greedy.", f"Proof. exact @Proofs.{name}. Qed."
    (tmp_path / "Cheat.v").write_text(f"{head}\nLemma anything : {same}.\n{proof}\n")
    command = ["coqc", "-q", "-w", "none", "-Q", ".", "Proofs", "Cheat.v"]
    subprocess.run(command, cwd=tmp_path, env=build.clean(), check=True)
    assert kernel.put(tmp_path, ["Cheat"], [accepted.standing_for("Cheat", head)]) == [[]]


AT_ONCE = """
def _at_once(function):
    import os
    os._exit(0)
@_at_once
def width(text): return len(text)
"""
ENDS = "import os\nos._exit(0)\n"
SAYS = {  # by which an exact text imports it
    "refengine/selfcheck/more.py": "from refengine.selfcheck import more\n",
    "refengine/more.py": "from ..more import width\n",
    "examples/more.py": "from examples.more import width\n",
}
WIDE = "class Wide:\n    def __class_getitem__(cls, n): import os; os._exit(0)\nMANY = Wide[50]\n"
RUNS_NO_TEST = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"


@pytest.mark.text
@pytest.mark.parametrize(
    "more",
    [
        {},
        {
            "proofs/statements.py": AT_ONCE,
            "proofs/translate/terms.py": AT_ONCE,
            "proofs/translate/__init__.py": AT_ONCE,
            "refengine/files.py": AT_ONCE,
            "refengine/selfcheck/more.py": AT_ONCE,
            "refengine/more.py": AT_ONCE,
            "examples/more.py": AT_ONCE,
            "proofs/test_more.py": RUNS_NO_TEST,  # pytest imports what it takes for tests
            "proofs/smt/more_test.py": RUNS_NO_TEST,
            "argparse.py": ENDS,  # python3 -m has the root before the standard library
            "refengine/jobs/more.py": f"# coding: utf-7\n#+AAo-{ENDS}",  # one comment, if read as another encoding
        },
        {
            "refengine/exact/path.py": WIDE,
            "refengine/engine/rules/more.py": RUNS_NO_TEST,
            "refengine/engine/kernels/more.py": WIDE,
        },
    ],
)
def test_what_is_imported_says_what_was_read_before_it_is(more: dict[str, str], tmp_path: Path) -> None:
    """Kills: a file that ends the process which imports it, so that the gate is green before it has read anything."""
    for room in ("proofs", "refengine"):
        skipped = shutil.ignore_patterns("__pycache__", "rocq", "cheats", "*.json")
        shutil.copytree(ROOT / room, tmp_path / room, ignore=skipped)
    shutil.copytree(ROOT / "properties", tmp_path / "properties", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "refengine/exact/path.py").open("a") as path:
        path.writelines(line for file, line in SAYS.items() if file in more)
    for file, added in more.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        with (tmp_path / file).open("a") as changed:
            changed.write(added)
    command = [sys.executable, "-I", "-S", str(tmp_path / "proofs" / "gate" / "first.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == int(bool(more)), done.stdout
    told = {line.split()[1].rstrip(",") for line in done.stdout.splitlines() if line.startswith("violated: ")}
    assert told == more.keys(), done.stdout


def test_what_has_changed_is_shown() -> None:
    """Kills: a weaker theorem under its old name, a word of less, and a change that neither of the texts shows."""
    before = {"A.t": Entry("1", "a = b"), "A.u": Entry("2", "n < 2"), "A.w": Entry("3"), "A.gone": Entry("4", "c")}
    now = {"A.t": Entry("5", "a <= b"), "A.u": Entry("6", "n < 2"), "A.w": Entry("7"), "A.v": Entry("8")}
    assert list(accepted.unread(before, before)) == []
    assert list(accepted.unread(before, now)) == [
        "A.gone was read, and is neither cited now nor said in what is",
        "A.t is not what was read:\n  - a = b\n  + a <= b",
        "A.u reads as it did, and is about something else: see `git diff` of proofs/rocq/A.v",
        "A.v is said in what is cited, and was not read",
        "A.w means something else than it did: see `git diff` of proofs/rocq/A.v",
        "read it again, with the claims that cite it; then python3 -m proofs.gate --accept, and commit accepted.txt",
    ]


def test_a_difference_of_what_was_read_is_shown_by_git() -> None:
    """Kills: a weaker theorem whose acceptance is shown as "Binary files differ"."""
    attributes = subprocess.run(
        ["git", "check-attr", "-a", "--", str(accepted.FILE)], capture_output=True, text=True, check=False
    )
    assert not attributes.stdout
    said = accepted.FILE.read_text()
    assert accepted.written(accepted.read(), said.splitlines()[0]) == said


def test_an_entry_that_stands_twice_is_told(tmp_path: Path) -> None:
    """Kills: an old entry that is left where git shows it, and a new one at the end that is read in its place."""
    for stray, told in (("", 0), ("A.t 0123456789abcdef\n  a <= b\n", 1), ("nothing of the kind\n", 1)):
        file = tmp_path / "accepted.txt"
        file.write_text(accepted.written({"A.t": Entry("0123456789abcdef", "a < b")}, "Read.") + stray)
        assert len([*accepted.strays(file)]) == told


@pytest.mark.parametrize("ignores", [".venv/\n", "", "!.venv/\n"])
def test_what_came_with_a_repository_that_ignores_it_is_told(tmp_path: Path, ignores: str) -> None:
    """Kills: a start-up file of an environment that is committed, and runs before all that is read, also where the same
    commit no longer ignores its like."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\n")
    (tmp_path / ".gitignore").write_text(ignores)
    (tmp_path / ".venv").mkdir()
    (tmp_path / "proofs").mkdir()
    for name in (".venv/ours.py", ".venv/theirs.py", "proofs/.gitattributes"):  # by which git shows no difference
        (tmp_path / name).write_text("")
    for line in ("init -q", "add -f .venv/theirs.py proofs/.gitattributes"):
        subprocess.run(["git", "-C", str(tmp_path), *line.split()], check=True)
    told = [name for name in tests.digests([], tmp_path) if name.startswith("run/")]
    assert told == ["run/.venv/theirs.py", "run/proofs/.gitattributes"]


@pytest.mark.parametrize(("options", "refused"), [([], False), (["--deselect=test_a.py::test_b"], True)])
def test_a_test_that_is_left_out_is_no_test_that_passed(tmp_path: Path, options: list[str], refused: bool) -> None:
    """Kills: options from anywhere, under which what links a chain is not even collected."""
    shutil.copy(PROOFS / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_a.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nothing-skipped", *options]
    run = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True)
    assert ("asks every test" in run.stdout + run.stderr) == refused == bool(run.returncode)


@pytest.mark.coq
def test_a_value_that_a_proof_gave_is_told() -> None:
    """Kills: a number in a statement that only the script of a Lemma says."""
    assert build.compiled() == ""
    names = ["FloatNumbers.sealed", "FloatNumbers.sealedE", "FloatNumbers.unit64"]
    assert accepted.values(build.BUILD, names, ["FloatNumbers"]) == names[:1]
