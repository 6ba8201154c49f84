"""What runs before everything else of `make prove`: whether the files that it imports say what was read.

A file of ours that is imported may end the process, or change what a reader is, before the reader has read anything.
So this file imports nothing of ours: by itself it holds every file of `accepted.txt` to its digests, and follows the
imports of what `proofs/check.sh` runs from there. A file that nobody has read is refused. The texts of rules change
often and are no evidence: of these one is refused that does more than define its words while it is imported, as
`proofs/translate/words.py` and `proofs/engine_texts/defining.py` tell, once they are known to be what was read. So is
what would be found in place of a file: a module of the root that has a name of the standard library's, code that is no
text, a text that Python reads as another one, a link. `tests.py` says what the digests are of. The standard library
alone.

Usage: `python3 -I -S proofs/gate/first.py`. Exit 0: nothing else than what was read would run. 1: these files would.
"""

import ast
import hashlib
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from shutil import which

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED = Path(__file__).resolve().parent / "accepted.txt"
EVIDENCE = (
    *("selfcheck", "evidence", "bugs/checks", "bugs/mutation", "bugs/process", "audit/sandbox", "strategies.py"),
    *("exact/law.py", "exact/merged.py", "exact/unknowns.py", "exact/tables.py", "exact/drafters.py"),
    "exact/card.py",  # which every rule makes one of while it is imported
    "engine/coins.py",  # that coins are uniform and independent is trusted to it
    *("source_edits", "source_tree.py", "errors.py", "files.py"),  # which text is read, and whether a record is of it
)
TESTS = ("proofs", "properties", "statistical_tests")
HELD = (*TESTS, *(f"refengine/{part}" for part in EVIDENCE))
UNHELD = "proofs/gate"  # what it said of its own text would say nothing: it is left to who reads its changes
# What proofs/check.sh runs, and the texts of rules, which are imported by a listing of their folder.
RUNS = ("proofs/gate/*.py", "proofs/translate/*.py", "proofs/bridge.py", "proofs/hypotheses.py")
RUNS += ("refengine/exact/rules/*.py", "refengine/engine/**/*.py")
DEFINE = EXACT, ENGINE = "refengine/exact/", "refengine/engine/"  # what they define is read each time anew
EMPTY = "Module()"
HOLDING = ("body", "handlers", "orelse", "finalbody", "cases")  # fields of statements that hold statements

ROOMS = ("refengine", *TESTS, "benchmarks", "docs", "examples", "fixtures", "build", "out")
AT_HOME = (
    *("Makefile", "conftest.py", "hatch_build.py", "pyproject.toml", "mkdocs.yml", "constraints.txt"),
    *("CITATION.cff", "LICENSE"),
    "__pycache__",  # of conftest.py; `compiled` looks at what is in it
)
HIDDEN = (".pytest.ini", ".pytest.toml")  # of what begins with a full stop, options that stand before ours
OPTIONS = (*HIDDEN, "pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg", "setup.py")  # of a room too
ODD_SIGNS = (b"\r", b"\f", b"\v", b"\0", b"\x1a", b"\xef\xbb\xbf")  # no text of ours has any
BY_DIGEST = 0b01  # of the flags of a `.pyc`: it holds its text's digest, and whose code it is nobody compares
# What a repository has no reason to bring along: what was built, and of what begins with a full stop all but ours.
BROUGHT = ("*.pyc", "*.pyo", "*.pth", "*.so", "*.pyd", "*.egg-link", ".*", "!/.ci", "!/.github", "!.gitignore")
BROUGHT += ("!/.dockerignore", "!/.pre-commit-config.yaml")


def main() -> int:
    wrong = sorted({*instead(), *unlike(), *unknown()})
    then = "read them; then python3 -m proofs.gate --accept-texts, and commit accepted.txt"
    if not wrong:
        sys.path.append(str(ROOT))  # behind the standard library
        wrong = sorted(undefined())
        then = (
            "a file of rules only defines its words, and says what proofs/translate lists: in importing.py what runs "
        )
        then += "while it is imported, in reaching.py what a function may change, in libraries.py the words of others"
    for line in wrong:
        print(f"violated: {line}")
    if wrong:
        print(then)
    return int(bool(wrong))


@cache
def entries() -> dict[str, str]:
    """The digests of files and of their words, by `file` and `file/word`, and of what is run, by `run/file`."""
    return dict(re.findall(r"^(?:test/|(?=run/))(\S+) ([0-9a-f]{16})$", ACCEPTED.read_text("utf-8"), re.M))


@cache
def words_read() -> dict[str, set[str]]:
    """By file, the words that were read one by one."""
    found: dict[str, set[str]] = {}
    for file, _, name in (place.rpartition("/") for place in entries() if ".py/" in place):
        found.setdefault(file, set()).add(name)
    return found


def is_read(file: str) -> bool:
    return file in entries() or file in words_read()


def instead() -> Iterator[str]:
    """Files that would be run or read in place of what was read, and that nobody has read."""
    for place, said in run_instead(ROOT).items():
        if entries().get(place) != said:
            yield f"{place.removeprefix('run/')} would be run, or found, in place of what was read"


def unlike() -> Iterator[str]:
    """Files that do not say what was read of them."""
    for file in sorted({*words_read(), *(place for place in entries() if place.endswith(".py"))}):
        path, names = ROOT / file, words_read().get(file, set())
        if not path.is_file():
            continue  # what is gone is told by the gate
        other = [name for name in names if digest(*map(told, bound(path).get(name, []))) != entries()[f"{file}/{name}"]]
        known = entries().get(file, digest(EMPTY))
        if other or (digest(rest(path, names)) != known and (not names or digest(told(tree(path))) != known)):
            yield f"{file} is not what was read: {', '.join(sorted(other)) or 'what stands beside its words'}"


def unknown() -> Iterator[str]:
    """Files that would be imported, and that nobody has read: also by pytest, which looks for tests in each."""
    collected = {str(file.relative_to(ROOT)) for file in (ROOT / "proofs").rglob("*.py")}
    for file in sorted({*imports(), *collected}):
        if not (file.startswith((UNHELD, *DEFINE)) or is_read(file)) and told(tree(ROOT / file)) != EMPTY:
            yield f"{file} would be imported, and was not read"


def undefined() -> Iterator[str]:
    """Texts of rules that do more than define their words while they are imported."""
    from proofs.engine_texts.defining import undefined as runs
    from proofs.translate.terms import Untranslated
    from proofs.translate.words import EXACT
    from proofs.translate.words import bound as defines

    for file in (file for file in imports() if file.startswith(DEFINE) and not is_read(file)):
        text = (ROOT / file).read_text("utf-8")
        if file.startswith(ENGINE):
            yield from (
                f"{file} does more than define its words: {said[:100]}"
                for said in sorted(runs(text, filled="/kernels/" in file))
            )
            continue
        try:
            defines(text, file.removeprefix(f"{EXACT}/").removesuffix(".py"))
        except Untranslated as refused:
            yield str(refused)


@cache
def imports() -> tuple[str, ...]:
    """The files of ours that are imported by what RUNS, and the packages that they stand in."""
    found, todo = set[str](), {str(file.relative_to(ROOT)) for pattern in RUNS for file in ROOT.glob(pattern)}
    while todo:
        found |= todo
        named = {other for file in todo for other in imported(ROOT / file, ROOT, at_once=True)}
        rooms = {str(folder / "__init__.py") for file in todo for folder in Path(file).parents if str(folder) != "."}
        todo = {file for file in named | rooms if (ROOT / file).is_file()} - found
    return tuple(sorted(found))


def run_instead(root: Path) -> dict[str, str]:
    """Digests, by `run/file`, of what would be found, run or read in place of what was read."""
    said = {f"run/{entry.name}": digest(entry.name) for entry in root.iterdir() if comes_first(entry.name)}
    unread = {*compiled(root), *read_otherwise(root), *ignored(root), *options_of_rooms(root)}
    said |= {f"run/{file.relative_to(root)}": digest(file.read_bytes().hex()) for file in sorted(unread)}
    return said | {f"run/{link.relative_to(root)}": digest(str(link.readlink())) for link in links_of(root)}


def of_rooms(root: Path, pattern: str) -> list[Path]:
    """The files of the rooms, and of what was compiled of the root's, whose names are of that pattern."""
    found = (file for room in ("refengine", *TESTS, "__pycache__") for file in (root / room).rglob(pattern))
    return sorted(file for file in found if file.is_file())


def compiled(root: Path) -> Iterator[Path]:
    """Files of the rooms that Python runs in place of a text, and does not compare with it: a library, a `.pyc` beside
    a text, and one in `__pycache__` that is believed by its text's digest, which anybody may write there (PEP 552). So
    does pytest, here: where git tells what came with the repository, `ignored` finds those that did."""
    told_by_git = has_git(root)
    for file in of_rooms(root, "*.*"):
        believed = file.suffix == ".pyc" and int.from_bytes(file.read_bytes()[4:8], "little") & BY_DIGEST
        beside = file.suffix == ".pyc" and file.parent.name != "__pycache__"
        if (believed and not told_by_git) or beside or file.suffix in (".so", ".pyd"):
            yield file


def has_git(root: Path) -> bool:
    return (root / ".git").exists() and which("git") is not None


def read_otherwise(root: Path) -> Iterator[Path]:
    """Texts that are not what Python runs: in another encoding a comment may be code, and a package that has the name
    of a file beside it is imported in its place."""
    for file in (*root.glob("*.py"), *of_rooms(root, "*.py")):
        hides = file.name == "__init__.py" and file.parent.with_suffix(".py").is_file()
        if hides or is_read_otherwise(file.read_bytes()):
            yield file


def is_read_otherwise(text: bytes) -> bool:
    """Whether Python may take bytes for another text than they are in UTF-8. It ends a line at what no reader need end
    one at, and looks for the name of an encoding in the first two of its own."""
    if any(sign in text for sign in ODD_SIGNS):
        return True
    try:
        read = text.decode("utf-8")
        if b"coding" not in b"".join(text.split(b"\n", 2)[:2]):
            return False  # these lines can name none
        encoding = tokenize.detect_encoding(BytesIO(text).readline)[0]
        return encoding != "utf-8" or told(ast.parse(text)) != told(ast.parse(read))
    except (SyntaxError, ValueError):
        return True


def ignored(root: Path) -> Iterator[Path]:
    """Files that came with a repository though it ignores their like, or should: a start-up file of `.venv`, what was
    built."""
    brought = (word for pattern in BROUGHT for word in ("-x", pattern))
    asked = ["git", "-C", str(root), "ls-files", "-z", "-ci", *brought, "--exclude-standard"]
    if has_git(root):
        run = subprocess.run(asked, capture_output=True, text=True, check=True)
        yield from (root / name for name in run.stdout.split("\0") if (root / name).is_file())


def options_of_rooms(root: Path) -> Iterator[Path]:
    """What pytest, asked for a room of tests, may find there before the root's options."""
    yield from (file for top in TESTS for file in (root / top).rglob("*") if file.name in OPTIONS)


def links_of(root: Path) -> Iterator[Path]:
    """Links that Python follows: whatever they lead to is looked at under no name."""
    inside = (file for room in ("refengine", *TESTS) for file in (root / room).rglob("*"))
    yield from (file for file in (*root.iterdir(), *inside) if file.is_symlink() and not file.name.startswith("."))


def comes_first(name: str) -> bool:
    """Of an entry of the root: that Python, make or pytest may find it before what they are asked for."""
    plain = name.endswith(".md") or (name.startswith(".") and name not in HIDDEN)
    return not plain and name not in (*ROOMS, *AT_HOME)


def held(file: str) -> bool:
    """Whether a file is evidence, and not what it is about."""
    return file.startswith(HELD) and not file.startswith(UNHELD)


@cache
def tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text("utf-8"))
    except (SyntaxError, ValueError) as error:
        sys.exit(f"violated: {file} is no Python text in UTF-8: {error}")


def rest(file: Path, told_of: set[str]) -> str:
    """What stands in a file besides the definitions of these names: it may run while the file is imported, or be called
    by what does."""
    left = [node for node in tree(file).body if not {*names_of(node)} & told_of]
    return told(ast.Module(left, []))


def imported(file: Path, root: Path, at_once: bool = False) -> Iterator[str]:
    """The files of ours that a file imports, wherever in it; or at once, and in none of its functions."""
    for node in statements(tree(file), but=ast.FunctionDef if at_once else ()):
        match node:
            case ast.Import(names=aliases):
                named = [alias.name for alias in aliases]
            case ast.ImportFrom(module=module, names=aliases, level=level):
                above = file.relative_to(root).parts[:-level] if level else ()  # `from ..a import b`
                within = ".".join([*above, *([module] if module else [])])
                named = [within, *(f"{within}.{alias.name}" for alias in aliases)]
            case _:
                named = []
        files = (f"{name.replace('.', '/')}{end}" for name in named for end in (".py", "/__init__.py"))
        yield from (name for name in files if (root / name).is_file())


def statements(whole: ast.AST, but: type | tuple[()] = ()) -> Iterator[ast.AST]:
    """The statements of a text, the outer ones first, and of those that are left out not what stands in them. No
    expression holds one."""
    todo = [whole]
    for node in todo:
        yield node
        if not isinstance(node, but):
            todo += (inner for field in HOLDING for inner in getattr(node, field, ()))


@cache
def bound(file: Path) -> dict[str, list[ast.stmt]]:
    """What binds each name of a file, wherever a `def` or an import stands."""
    found: dict[str, list[ast.stmt]] = {}
    whole = tree(file) if file.is_file() else ast.Module([], [])
    anywhere = ast.FunctionDef | ast.ClassDef | ast.ImportFrom
    inside = [node for node in statements(whole) if isinstance(node, anywhere)]
    for node in [*inside, *(node for node in whole.body if not isinstance(node, anywhere))]:
        for name in names_of(node):
            found.setdefault(name, []).append(node)
    return found


def names_of(node: ast.stmt) -> Iterator[str]:
    """The names that a statement gives; of what is no definition, those that it may change."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)
        case ast.Assign() | ast.AnnAssign():  # of `a.b = c` what is changed
            stored = [n for n in ast.walk(node) if isinstance(getattr(n, "ctx", None), ast.Store)]
            yield from {inner.id for n in stored for inner in ast.walk(n) if isinstance(inner, ast.Name)}
        case _:
            yield from {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def told(node: ast.AST) -> str:
    """A syntax tree, without where it stands and without docstrings; the same under every Python."""
    parts = []
    for field in node._fields:
        value = getattr(node, field, None)
        if value is None or value == []:
            continue
        inner = value if isinstance(value, list) else [value]
        if field == "body":
            inner = [s for s in inner if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if said := [told(v) if isinstance(v, ast.AST) else repr(v) for v in inner]:
            parts.append(f"{field}=[{', '.join(said)}]")
    return f"{type(node).__name__}({', '.join(parts)})"


if __name__ == "__main__":
    sys.exit(main())
