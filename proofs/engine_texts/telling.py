"""That a text can tell where it runs, on what numbers, in what company, or makes a number that nobody would see.

z3's tensors are no tensors of torch, are never changed in place, and their lanes are three: a text that asks about any
of these could be right there and wrong elsewhere. All of it is read from the syntax tree.
"""

import ast
import builtins
from math import prod

PLAIN = {"len", "tuple", "range", "enumerate", "reversed", "bool", "int", "float", "ValueError"}
TELL = ("dtype", "ndim", "dim", "size", "layout")
KINDS = ("torch.bool", "torch.int64", "torch.float64")
MAKERS = ("torch.full", "torch.ones", "torch.zeros", "torch.arange")
NARROW = ("half", "float", "bfloat16", "to", "type", "type_as", "int", "short", "char", "byte", "view")


def telling(text: str) -> set[str]:
    """Words by which a text may do something else on other numbers, devices or batches. A number of lanes and a device
    may be handed on to what makes a tensor, and no more."""
    tree = Bare().visit(ast.parse(text))
    scopes: list[ast.AST] = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)] or [tree]
    numbers = {ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Call) and is_hidden(n)}
    return numbers.union(*map(_telling, scopes))


class Bare(ast.NodeTransformer):
    """Without what says nothing while a text runs: its types, and the message of an error."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)


def _telling(scope: ast.AST) -> set[str]:
    made = {id(part) for call in ast.walk(scope) if makes(call) for part in handed(call)}
    counts = {first_name(n) for n in ast.walk(scope) if isinstance(n, ast.Assign) and of_shape(n.value)}
    found = {ast.unparse(node) for node in numbered(scope, counts)}
    for node in ast.walk(scope):
        match node:
            case ast.Name(id=name) if name.startswith("__") or (hasattr(builtins, name) and name not in PLAIN):
                found.add(name)
            case ast.Attribute(attr=attr) if attr in TELL or attr.startswith(("is_", "_")):
                found.add(ast.unparse(node))
            case ast.BinOp(left, _, right) if is_number(left) and is_number(right):
                found.add(ast.unparse(node))
            case ast.Compare(ops=ops, comparators=others) if not _known_by_equality(ops, others):
                found.add(ast.unparse(node))
            case ast.keyword(arg="dtype", value=kind) if ast.unparse(kind) not in KINDS:
                found.add(ast.unparse(kind))
            case (
                ast.Match() | ast.AugAssign() | ast.NamedExpr() | ast.Delete() | ast.keyword(arg=None) | ast.JoinedStr()
            ):
                found.add(f"{type(node).__name__}: {ast.unparse(node)}")
            case ast.Attribute(attr=attr) if attr in NARROW or attr.endswith("_"):  # a method that changes in place
                found.add(ast.unparse(node))
            case ast.Subscript(ast.Attribute(attr="shape"), ast.Slice() | ast.UnaryOp(operand=ast.Constant(2))):
                if id(node) not in made:
                    found.add(ast.unparse(node))
            case ast.Subscript(slice=ast.Slice()) | ast.Starred(ctx=ast.Store()):  # of a list, or of the lanes
                found.add(ast.unparse(node))
            case ast.Call() if (makes(node) and is_large(node)) or lies_elsewhere(node):
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


def _known_by_equality(ops: list[ast.cmpop], others: list[ast.expr]) -> bool:
    """Whether one tensor is another, or in a list, says of what type it was: `is` is for None."""
    nothing = [isinstance(other, ast.Constant) and other.value is None for other in others]
    odd = [isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops]
    return all(known or not is_odd for known, is_odd in zip(nothing, odd, strict=True))


def numbered(scope: ast.AST, counts: set[str]) -> list[ast.AST]:
    """The numbers of the lanes, where they are anything but an index of a row."""
    lanes = [node for node in ast.walk(scope) if isinstance(node, ast.Call) and of_lanes(node, counts)]
    assigns = [
        n for n in ast.walk(scope) if isinstance(n, ast.Assign) and any(part in lanes for part in ast.walk(n.value))
    ]
    kept = {first_name(n): n for n in assigns if not isinstance(n.value, ast.Subscript) or n.value.value in lanes}
    places = [n.slice for n in ast.walk(scope) if isinstance(n, ast.Subscript)]
    alike = [n for n in ast.walk(scope) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("_like")]
    indices = {id(x) for part in (*places, *(n.args[0] for n in alike if n.args)) for x in ast.walk(part)}
    named = {id(node) for n in kept.values() for node in (n.value, getattr(n.value, "value", None))}
    uses = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in kept]
    return [n for n in (*uses, *(n for n in lanes if id(n) not in named)) if id(n) not in indices]


def of_lanes(call: ast.Call, counts: set[str]) -> bool:
    if ast.unparse(call.func) != "torch.arange" or not call.args:
        return False
    count = ast.unparse(call.args[0])
    return count.startswith("len(") or count.endswith(".shape[0]") or count in counts


def is_large(call: ast.Call) -> bool:
    """More places than a text may have a number for, whether they are handed one by one or together."""
    sizes = [n for a in call.args for n in (a.elts if isinstance(a, ast.Tuple | ast.List) else [a])]
    return prod(n.value for n in sizes if isinstance(n, ast.Constant) and isinstance(n.value, int)) > 2


def lies_elsewhere(call: ast.Call) -> bool:
    """A tensor that is made, and not said to lie where one that was handed over does."""
    said = [ast.unparse(word.value) for word in call.keywords if word.arg == "device"]
    return ast.unparse(call.func) in MAKERS and not (said and said[0].endswith(".device"))


def is_hidden(call: ast.Call) -> bool:
    """A number that is read from a text, or made of others: it may be any."""
    made = ast.unparse(call.func) in ("int", "float", "len", "Fraction") and any(map(is_number, call.args))
    return made and ast.unparse(call) not in ("float('inf')", "float('-inf')", "float('nan')")


def is_number(node: ast.AST) -> bool:
    """Made of nothing but numbers: a larger one than those that a text may have."""
    return all(not isinstance(part, ast.Name | ast.Attribute | ast.Call) for part in ast.walk(node))


def makes(node: ast.AST) -> bool:
    """A call that makes a tensor, or spreads one over lanes."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith((*MAKERS, ".expand", ".reshape", "_like"))


def handed(call: ast.AST) -> list[ast.expr]:
    """What says how large a tensor is, and where; not what it is filled with."""
    assert isinstance(call, ast.Call)
    sizes = call.args[:1]  # the lanes come first: along another axis they could be counted
    spread = [a.value for a in sizes if isinstance(a, ast.Starred)]
    parts = [e for a in sizes if isinstance(a, ast.Tuple) for e in a.elts[:1]]
    return [*sizes, *spread, *parts, *(k.value for k in call.keywords if k.arg == "device")]


def of_shape(value: ast.expr) -> bool:
    first = value.elts[0] if isinstance(value, ast.Tuple) else value
    return isinstance(first, ast.Attribute) and first.attr == "shape"


def first_name(node: ast.Assign) -> str:
    """The first of the names that are bound: of a shape, the number of lanes."""
    (target,) = node.targets
    while isinstance(target, ast.Tuple):
        target = target.elts[0]
    return ast.unparse(target)
