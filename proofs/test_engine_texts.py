"""That the engine's texts have no words of which the equality on z3's terms says nothing: where they run, on how many
lanes, with what numbers, and what is changed in place or while a file is imported."""

import ast
import builtins
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="not tested: z3-solver is not installed")

import torch

from proofs.batched.counting import counting
from proofs.batched.tensor import Terms, entries
from proofs.batched.terms import Paths
from proofs.translate.forms import changed_at_import
from refengine.source_edits.loader import source_path
from refengine.source_tree import PACKAGE

pytestmark = pytest.mark.text

COUNTING = ["rules.leviathan", "rules.block", "rules.point_mass", "rules.iid_candidates", "rules.without_replacement"]
OTHERS = ["rules.greedy", "rules.agreement", "rules.typical", "rules.nucleus"]


FILES = [*COUNTING, *OTHERS, "row", "path", "block"]
PLAIN = {"len", "tuple", "range", "enumerate", "reversed", "bool", "int", "float", "ValueError"}


@pytest.mark.parametrize("module", FILES)
def test_no_text_has_a_number_above_two(module: str) -> None:
    """Kills: a loop over the first four nodes, which is right on the three that the equality is asked about."""
    tree = ast.parse(source_path(f"refengine.engine.{module}").read_text())
    numbers = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) in (int, float)}
    assert numbers <= {0, 1, 2}


@pytest.mark.parametrize("module", FILES)
def test_no_text_reckons_with_the_numbers_of_nodes(module: str) -> None:
    """Kills: `depth // 2` or the fourth of anything, which is right on the blocks of few nodes that are asked about."""
    assert counting(source_path(f"refengine.engine.{module}").read_text()) == set()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "depth // 2",
            "depth % 2",
            "depth ** 2",
            "depth >> 1",
            "2 * depth",
            "depth - 2",
            "1 - depth",
            "depth - 1 - 1",
        ),
        *("depth == 2", "depth > 1", "depth < -1", "p.shape[1] + p.shape[1]", "nodes.remainder(2)", "nodes.lt(2)"),
        *("torch.floor_divide(nodes, 2)", "torch.arange(n).sub(1).sub(1)", "torch.get_num_threads()"),
        *("[j + j for j in range(n)]", "up - 1 if (up := depth) else 0"),
    ],
)
def test_what_reckons_with_them_is_seen(text: str) -> None:
    """Kills: a reader that lets a number of its own, or a word by which torch reckons, through."""
    assert counting(f"up = depth - 1\nfew = {text}")


def test_a_number_that_is_handed_on_is_seen() -> None:
    """Kills: a depth that is moved once in each of several functions, until it is that of a node nobody asked about."""
    given = Terms(entries((1,), lambda at: 1), torch.int64, Paths())
    assert (given - 1).decided().tolist() == [0]
    for reckoned in (lambda x: x - 1 - 1, lambda x: (x - x) - x, lambda x: x + x, lambda x: x * 2, lambda x: -x):
        with pytest.raises(NotImplementedError, match="may be wrong of those"):
            reckoned(given)
    with pytest.raises(NotImplementedError, match="may be wrong of those"):
        torch.where(given > 0, (given - 1)[:, None], 0)[:, 0] - 1


def test_a_lane_that_is_looked_at_alone_is_seen() -> None:
    """Kills: `live[:2].any()`, by which a text stops when the first two of three lanes have ended."""
    given = Terms(entries((3, 2), lambda at: 1), torch.int64, Paths())
    assert given[:, 0].decided().tolist() == given[torch.arange(3), 0].decided().tolist() == [1, 1, 1]
    for looked in (lambda x: x[:2], lambda x: x[0], lambda x: x[1:, 0], lambda x: x[-1, 0]):
        with pytest.raises(NotImplementedError, match="some lanes"):
            looked(given)


@pytest.mark.parametrize("module", FILES)
def test_no_text_can_tell_where_it_runs(module: str) -> None:
    """Kills: a branch for float32 rows, for a device, for torch's own tensors or for a number of lanes, of which the
    equality asks about one."""
    assert not telling(source_path(f"refengine.engine.{module}").read_text())


@pytest.mark.parametrize(
    "text",
    [
        "q = torch.maximum(q, p) if p.dtype == torch.float32 else q",
        "best = (row.half() if isinstance(row, Tensor) else row).argmax(-1)",
        "if p.device.type == 'cuda': pass",
        "if 'cuda' in str(p.device): pass",
        "if len(p) > width: pass",
        "if block.tokens.shape[0] == width: pass",
        "lanes, n = p.shape\nif lanes > n: pass",
        "few = p.ndim == 2",
        "few = range(len(p))",
        "if torch.is_tensor(p): refused = refused & (depth < 2)",
        "few = depth < 2 ** (2**2)",
        "few = 1 if block.tokens.shape[-2] < 2 else 0",
        "lanes, *_ = p.shape[:1]\nif lanes > 2: pass",
        "try:\n    p.world\nexcept AttributeError:\n    p = q",
        "live = torch.arange(len(p), device=p.device) < 2",
        "lanes = torch.arange(len(p))\nlive = live & (lanes == 2)",
        "lanes, n = p.shape\nlive = torch.arange(lanes)[:, None] < 2",
        "live &= accepted",
        "p.sub_(q)",
        "for j, x in enumerate(block.tokens.unbind(1)[: 2 + 2]): pass",
        "likelihood = torch.ones((lanes, 2), dtype=torch.float16)",
        "left = p.half()",
        "match p:\n    case Tensor(): pass",
        "left = torch.where(**{'condition': p})",
    ],
)
def test_what_tells_where_it_runs_is_seen(text: str) -> None:
    """Kills: a reader that lets everything through."""
    assert telling(text)


TELL = ("dtype", "ndim", "dim", "size", "layout")
KINDS = ("torch.bool", "torch.int64", "torch.float64")
NARROW = ("half", "float", "bfloat16", "to", "type", "type_as", "int", "short", "char", "byte", "view")


def telling(text: str) -> set[str]:
    """Words by which a text may do something else on other numbers, devices or batches. A number of lanes and a device
    may be handed on to what makes a tensor, and no more."""
    tree = ast.parse(text)
    scopes: list[ast.AST] = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)] or [tree]
    return set().union(*map(_telling, scopes))


def _telling(scope: ast.AST) -> set[str]:
    """z3's tensors have no kinds and are never changed in place; its lanes are three."""
    made = {id(part) for call in ast.walk(scope) if makes(call) for part in handed(call)}
    counts = {first_name(n) for n in ast.walk(scope) if isinstance(n, ast.Assign) and of_shape(n.value)}
    found = {ast.unparse(node) for node in numbered(scope, counts)}
    for node in ast.walk(scope):
        match node:
            case ast.Name(id=name) if hasattr(builtins, name) and name not in PLAIN:
                found.add(name)
            case ast.Attribute(attr=attr) if attr in TELL or attr.startswith("is_"):
                found.add(ast.unparse(node))
            case ast.BinOp(left, _, right) if is_number(left) and is_number(right):
                found.add(ast.unparse(node))
            case ast.keyword(arg="dtype", value=kind) if ast.unparse(kind) not in KINDS:
                found.add(ast.unparse(kind))
            case ast.Match() | ast.AugAssign() | ast.NamedExpr() | ast.Delete() | ast.keyword(arg=None):
                found.add(type(node).__name__)
            case ast.Attribute(attr=attr) if attr in NARROW or attr.endswith("_"):  # a method that changes in place
                found.add(ast.unparse(node))
            case ast.Subscript(ast.Attribute(attr="shape"), ast.Slice() | ast.UnaryOp(operand=ast.Constant(2))):
                found.add(ast.unparse(node))
            case ast.Try():
                found.add("try")
            case (
                ast.Name(ctx=ast.Load())
                | ast.Attribute(attr="device")
                | ast.Call(ast.Name("len"))
                | ast.Subscript(ast.Attribute(attr="shape"), ast.Constant(0))
            ) if id(node) not in made and (not isinstance(node, ast.Name) or node.id in counts):
                found.add(ast.unparse(node))
    return found


def numbered(scope: ast.AST, counts: set[str]) -> list[ast.AST]:
    """The numbers of the lanes, where they are anything but an index of a row."""
    lanes = [node for node in ast.walk(scope) if isinstance(node, ast.Call) and of_lanes(node, counts)]
    assigns = [
        n for n in ast.walk(scope) if isinstance(n, ast.Assign) and any(part in lanes for part in ast.walk(n.value))
    ]
    kept = {first_name(n): n for n in assigns if not isinstance(n.value, ast.Subscript) or n.value.value in lanes}
    indices = {id(x) for n in ast.walk(scope) if isinstance(n, ast.Subscript) for x in ast.walk(n.slice)}
    named = {id(node) for n in kept.values() for node in (n.value, getattr(n.value, "value", None))}
    uses = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in kept]
    return [n for n in (*uses, *(n for n in lanes if id(n) not in named)) if id(n) not in indices]


def of_lanes(call: ast.Call, counts: set[str]) -> bool:
    if ast.unparse(call.func) != "torch.arange" or not call.args:
        return False
    count = ast.unparse(call.args[0])
    return count.startswith("len(") or count.endswith(".shape[0]") or count in counts


def is_number(node: ast.AST) -> bool:
    """Made of nothing but numbers: a larger one than those that a text may have."""
    return all(not isinstance(part, ast.Name | ast.Attribute | ast.Call) for part in ast.walk(node))


def makes(node: ast.AST) -> bool:
    """A call that makes a tensor, or spreads one over lanes."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
        ("torch.full", "torch.ones", "torch.zeros", "torch.arange", ".expand")
    )


def handed(call: ast.AST) -> list[ast.expr]:
    assert isinstance(call, ast.Call)
    arguments = [*call.args, *(k.value for k in call.keywords)]
    return [*arguments, *(e for a in arguments if isinstance(a, ast.Tuple) for e in a.elts)]


def of_shape(value: ast.expr) -> bool:
    first = value.elts[0] if isinstance(value, ast.Tuple) else value
    return isinstance(first, ast.Attribute) and first.attr == "shape"


def first_name(node: ast.Assign) -> str:
    """The first of the names that are bound: of a shape, the number of lanes."""
    (target,) = node.targets
    while isinstance(target, ast.Tuple):
        target = target.elts[0]
    return ast.unparse(target)


# What a file of the engine may call while it is imported: it makes something, and changes nothing.
MAKES = {"float", "Textless", "dataclass", "field", "property", "cache", "wraps", "partial", "njit", "overload"}
MAKES |= {"triton.jit", "tl.constexpr", "iter_modules", "import_module", "getmembers", "signature"}
DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


@pytest.mark.parametrize("file", sorted((PACKAGE / "engine").rglob("*.py")), ids=lambda file: file.stem)
def test_a_file_of_the_engine_only_defines_its_words(file: Path) -> None:
    """Kills: a file that puts another function in a rule's place as it is imported: what runs is not what z3 read."""
    assert undefined(file.read_text()) == set()


@pytest.mark.parametrize(
    "text",
    [
        "RULES['block'] = RULES['leviathan']",
        "if debug:\n    from refengine.engine.row import without as residual",
        "class Quiet:\n    if debug:\n        from refengine.engine.row import without as residual",
        "_done = setattr(row, 'residual', without)",
        "@taught(row)\ndef rule(): pass",
        "@taught\ndef rule(): pass",
        "def rule(p=setattr(row, 'residual', without)): pass",
        "class Quiet:\n    vars(row).update(residual=without)",
        "row.__dict__.update(residual=without)",
    ],
)
def test_a_file_that_does_more_is_seen(text: str) -> None:
    """Kills: a reader that lets a branch, a mark or a call through, by which a word means something else."""
    assert undefined(text)


def undefined(text: str) -> set[str]:
    """What a file does besides defining, as it is imported."""
    tree = ast.parse(text)
    return {ast.unparse(node) for node in (*changed_at_import(tree), *others(tree.body))}


def others(body: list[ast.stmt]) -> list[ast.AST]:
    """Statements and calls: of a function its marks, its defaults and its types run."""
    found: list[ast.AST] = []
    for node in body:
        parts: list[ast.AST] = [node]
        marks = getattr(node, "decorator_list", [])
        if isinstance(node, ast.FunctionDef):
            parts = [*marks, node.args, *filter(None, [node.returns])]
        if isinstance(node, ast.ClassDef):
            parts = [*marks, *node.bases, *node.keywords]
            found += others(node.body)
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        found += [] if isinstance(node, DEFINES) or text else [node]
        found += [mark for mark in marks if ast.unparse(mark).partition("(")[0] not in MAKES]
        calls = [inner for part in parts for inner in ast.walk(part) if isinstance(inner, ast.Call)]
        found += [call for call in calls if ast.unparse(call.func) not in MAKES]
    return found
