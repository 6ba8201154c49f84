"""The one way through the house, read off the source: who may import whom, and where uniforms may be compared."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import refengine
from refengine.source_edits.imports import dotted

HOUSE = Path(refengine.__file__).parent

# One way up: a package imports itself and the packages of lower floors, never a neighbour of its own floor.
FLOORS = (
    ("exact", "evidence", "errors", "source_tree"),
    ("files",),
    ("engine", "report", "source_edits"),
    ("jobs",),
    ("decoder", "audit", "strategies"),
    ("bugs",),
    ("selfcheck",),
    ("commands",),
    ("cli", "pytest_plugin"),
    ("__main__",),
)
# Of what else lies below a package may import, where that is less than everything, as prefixes of dotted names.
# "stdlib" is the standard library, "others" any third party.
NARROWER: dict[str, tuple[str, ...]] = {
    "exact": ("stdlib",),
    "engine": ("stdlib", "torch", "refengine.exact.chance"),
    "decoder": ("stdlib", "others", "refengine.engine", "refengine.errors", "refengine.exact.chance"),
    "report": ("stdlib", "others", "refengine.errors", "refengine.__version__", "refengine.files"),
    "errors": (),
    "source_tree": ("stdlib",),
    "files": ("stdlib", "refengine.errors"),
    "source_edits": ("stdlib", "refengine.source_tree", "refengine.errors", "refengine.files"),
}


COMPILERS = ("numpy", "numba", "triton")  # for the engine's kernels, and for nothing else below `decoder`


def law(package: str) -> tuple[str, ...]:
    """What a package may import, as prefixes of dotted names."""
    own = f"refengine.{package}"
    if package in NARROWER:
        return (*NARROWER[package], own)
    floor = next(level for level, packages in enumerate(FLOORS) if package in packages)
    below = [f"refengine.{other}" for packages in FLOORS[:floor] for other in packages]
    return ("stdlib", "others", "refengine.__version__", "refengine.source_tree", "refengine.errors", *below, own)


def modules(under: str) -> list[str]:
    """Every module below a package, as dotted names."""
    base = HOUSE.parent / under.replace(".", "/")
    paths = sorted(base.rglob("*.py")) if base.is_dir() else [base.with_suffix(".py")]
    return [".".join(p.relative_to(HOUSE.parent).with_suffix("").parts).removesuffix(".__init__") for p in paths]


def tree_of(module: str) -> ast.Module:
    path = HOUSE.parent / module.replace(".", "/")
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())


def allowed(name: str, permitted: tuple[str, ...]) -> bool:
    first = name.split(".")[0]
    if first in sys.stdlib_module_names:
        return "stdlib" in permitted
    if first != "refengine" and "others" in permitted:
        return True
    if re.fullmatch(r"refengine\.exact\.rules\.\w+\.[A-Z_]+", name):
        return True  # a constant of a rule, such as a default: said once, beside the exact text, and read anywhere
    return name == "refengine" or any(name == p or name.startswith(p + ".") for p in permitted)


def test_every_package_has_its_floor() -> None:
    """Kills a package that no law is about."""
    there = {path.stem for path in HOUSE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert there - {"__init__"} == {package for packages in FLOORS for package in packages}


@pytest.mark.parametrize("package", [package for packages in FLOORS for package in packages])
def test_a_package_imports_only_what_the_law_grants(package: str) -> None:
    """Kills a definition that leans on the code it judges, an arrow back up, and a circle between packages."""
    for module in modules(f"refengine.{package}"):
        more = COMPILERS if module.startswith("refengine.engine.kernels.") else ()
        for name in dotted(tree_of(module)):
            assert allowed(name, (*law(package), *more)), f"{module} imports {name}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Kills a circle inside a package, imports within functions and for type checkers included."""
    known = set(modules("refengine"))
    graph = {module: {n for n in map(of_ours(known), dotted(tree_of(module))) if n != module} for module in known}
    TopologicalSorter(graph).prepare()


def of_ours(known: set[str]) -> Callable[[str], str]:
    """The module that holds an imported name; a package itself counts only where it is more than its listing."""

    def holder(name: str) -> str:
        while name not in known and "." in name:
            name = name.rpartition(".")[0]
        return name

    return holder


def test_every_package_says_what_it_is_for() -> None:
    """Kills a room without a word on what it is for and in which order its files are read."""
    for init in HOUSE.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(init.read_text())), f"{init.relative_to(HOUSE)} has no docstring"


# Folders of files of one kind, which nobody reads in order.
LISTINGS = ("commands", "decoder/drafters", "decoder/checkpoints/layouts", "selfcheck/drafters/rows")
MOST_FILES = 15


def test_a_room_can_be_overlooked() -> None:
    """Kills a room that has become a heap: more files than anyone keeps apart."""
    for init in HOUSE.rglob("__init__.py"):
        room, files = init.parent.relative_to(HOUSE).as_posix(), list(init.parent.glob("*.py"))
        assert len(files) - 1 <= MOST_FILES or room in LISTINGS, f"{room} has {len(files) - 1} files: make rooms of it"


def test_the_law_itself_can_be_broken() -> None:
    """Kills a check that lets everything through."""
    broken = ast.parse("def f():\n    from refengine.exact.rules import leviathan\n    import torch.nn")
    assert list(dotted(broken)) == ["refengine.exact.rules.leviathan", "torch.nn"]
    assert not allowed("refengine.exact.rules.leviathan", law("engine"))
    assert not allowed("refengine.exact.chances", law("engine"))
    assert not allowed("torch.nn", law("exact"))
    assert not allowed("numpy", law("engine"))
    assert not allowed("refengine.audit.sandbox.child", law("decoder"))
    assert not allowed("refengine.exact.law.tv", law("decoder"))
    assert not allowed("refengine.decoder.loop", law("audit"))
    assert not allowed("refengine.commands.decode", law("selfcheck"))
    assert allowed("refengine.exact.chance.Site", law("engine"))
    assert allowed("fractions.Fraction", law("exact"))


RANDOM = """
rand randn randint rand_like randperm multinomial bernoulli uniform_ exponential_ random_ normal normal_ manual_seed
Generator random randrange choices sample gumbel_softmax Categorical accept_below choose_below philox4x32
"""


def names(tree: ast.AST) -> set[str]:
    return {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)} | {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name)
    }


@pytest.mark.parametrize("package", ["refengine.engine.rules", "refengine.exact.rules"])
def test_rules_take_all_their_randomness_from_coins(package: str) -> None:
    """Kills a rule with randomness of its own, or one that reaches for a uniform and compares it itself."""
    rules = [m for m in modules(package) if m != package]
    assert len(rules) >= 9
    for module in rules:
        tree = tree_of(module)
        forbidden = names(tree) & set(RANDOM.split())
        assert not forbidden, f"{module} uses {forbidden}"
        asked = {n.func.attr for n in ast.walk(tree) if isinstance(n, ast.Call) and _receiver(n) in ("coins", "chance")}
        assert asked <= {"accept", "choose"}, f"{module} asks its coins for {asked}"
        odd = [
            n for n in ast.walk(tree) if isinstance(n, ast.Compare) and names(n) & {"coins", "chance", "uniform", "u"}
        ]
        assert not odd, f"{module} compares a uniform in line {odd[0].lineno if odd else 0}"


def _receiver(call: ast.Call) -> str | None:
    func = call.func
    return func.value.id if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else None


def test_both_texts_have_the_same_rules() -> None:
    """Kills a rule that exists in one text only, and a twin whose name or arguments drifted."""
    exact = {m.rpartition(".")[2]: m for m in modules("refengine.exact.rules")}
    engine = {m.rpartition(".")[2]: m for m in modules("refengine.engine.rules")}
    assert exact.keys() - engine.keys() == {"truncation"}, "truncation is a way of drafting: its twins are the drafters"
    assert engine.keys() <= exact.keys()
    for name in engine.keys() - {"rules"}:
        here, there = signatures(tree_of(engine[name])), signatures(tree_of(exact[name]))
        judged = {f for f in there if there[f][:3] == ["p", "block", "chance"]}
        assert judged
        for function in judged:
            assert here[function] == ["p", "block", "coins", *there[function][3:]], function


def signatures(tree: ast.Module) -> dict[str, list[str]]:
    return {f.name: [a.arg for a in f.args.args] for f in tree.body if isinstance(f, ast.FunctionDef)}


def test_the_definition_runs_on_the_standard_library_alone() -> None:
    """Kills an import that only the source check misses: exact is imported with torch and numpy made unavailable."""
    code = (
        "import sys; sys.modules.update(torch=None, numpy=None, scipy=None, sympy=None); import importlib;"
        f"[importlib.import_module(m) for m in {modules('refengine.exact')!r}]"
    )
    assert subprocess.run([sys.executable, "-S", "-c", code], check=False, cwd=HOUSE.parent).returncode == 0


def test_nothing_at_the_root_stands_before_the_standard_library() -> None:
    """Kills: a file by whose name another text is read wherever a command runs from the root."""
    root = HOUSE.parent
    assert not {path.stem for path in root.iterdir()} & {*sys.stdlib_module_names}
