"""Every small mistake that can be made in a file: each comparison, index, prefix, constant and guard, one at a time.

A mutant is the file's text with one piece replaced. Pieces come from the syntax tree, so comments, docstrings, type
annotations and messages are left alone.
"""

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from refengine.source_edits.loader import source_path

COMPARE: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}
BINARY: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Pow: "*", ast.LShift: ">>",
    ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "|", ast.Mod: "*", ast.MatMult: "*",
}  # fmt: skip
SYMBOL: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.FloorDiv: "//", ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.Mod: "%", ast.MatMult: "@",
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "amin": "amax", "amax": "amin", "argmax": "argmin"}
DROPPED = {"clamp", "amax", "cumsum", "double", "any", "sort", "where"}  # methods that may be forgotten
EITHER = {"min", "max", "minimum", "maximum"}  # functions of which one argument may be forgotten
TYPES = {"tuple", "list", "dict", "set", "frozenset", "type", "Callable", "Sequence", "Mapping", "Iterator", "Protocol"}


@dataclass(frozen=True)
class Mutant:
    """One mistake. `line` is the text it stands in, `number` where, `change` what: "`<` to `<=`".

    Where a file has the same change in the same line again, the change says so: "`<` to `<=` (2)".
    """

    module: str
    number: int
    line: str
    change: str
    source: str

    def key(self) -> tuple[str, str, str]:
        """What it is known by when line numbers shift; no other mutant has it."""
        return (self.module, self.line, self.change)


@dataclass(frozen=True)
class Piece:
    """Characters start..end of the text are replaced."""

    start: int
    end: int
    new: str
    change: str


def mutants(module: str) -> list[Mutant]:
    """Every mutant of a module, in the order of the text."""
    text = source_path(module).read_text()
    lines, seen = text.splitlines(), dict[tuple[str, str], int]()
    out: list[Mutant] = []
    for piece in mistakes_in(text):
        number = text.count("\n", 0, piece.start) + 1
        line = lines[number - 1].strip()
        nth = seen[line, piece.change] = seen.get((line, piece.change), 0) + 1
        change = piece.change if nth == 1 else f"{piece.change} ({nth})"
        out.append(Mutant(module, number, line, change, text[: piece.start] + piece.new + text[piece.end :]))
    return out


def mistakes_in(text: str) -> list[Piece]:
    """Every mistake that can be made in a text, in order, each once."""
    view = View(text)
    pieces = {piece for node in running(ast.parse(text)) for piece in mistakes(view, node)}
    return sorted(pieces, key=lambda p: (p.start, p.end, p.new))


class View:
    """A text seen by the spans of its nodes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: Any) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def of(self, node: Any) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def piece(self, node: Any, new: str) -> Piece:
        """The piece that replaces a whole node."""
        return Piece(*self.span(node), new, f"`{' '.join(self.of(node).split())}` to `{' '.join(new.split())}`")

    def between(self, left: Any, right: Any, old: str, new: str) -> Piece:
        """The piece that replaces the operator `old` between two nodes."""
        start = self.text.index(old, self.span(left)[1], self.span(right)[0])
        return Piece(start, start + len(old), new, f"`{old}` to `{new}`")

    def _at(self, line: int, column: int) -> int:
        row = self.text[self._starts[line - 1] : self._starts[line]]
        return self._starts[line - 1] + len(row.encode()[:column].decode())  # columns count bytes


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that decide what the program does: no annotations, docstrings, messages or imports."""
    yield tree
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "exc", "msg", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.JoinedStr | ast.Import | ast.ImportFrom) or not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.AnnAssign) and "TypeAlias" in ast.dump(child.annotation):
                continue
            if isinstance(child, ast.Subscript) and isinstance(child.value, ast.Name) and child.value.id in TYPES:
                continue
            yield from running(child)


def mistakes(view: View, node: ast.AST) -> Iterator[Piece]:
    """The mistakes that can be made in one node itself, not in its parts."""
    match node:
        case ast.Compare():
            for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                for new in COMPARE[type(op)]:
                    yield view.between(left, right, SYMBOL[type(op)], new)
        case ast.BinOp():
            yield view.between(node.left, node.right, SYMBOL[type(node.op)], BINARY[type(node.op)])
            if isinstance(node.op, ast.BitAnd | ast.BitOr):
                yield from forgotten(view, node, (node.left, node.right))
        case ast.AugAssign():
            yield view.between(node.target, node.value, SYMBOL[type(node.op)] + "=", BINARY[type(node.op)] + "=")
            yield view.piece(node, "pass")
        case ast.BoolOp():
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in itertools.pairwise(node.values):
                yield view.between(left, right, old, new)
            yield from (forgotten(view, node, node.values) if len(node.values) == 2 else ())
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield view.piece(node, f"({view.of(node.operand)})")
        case ast.Constant(value=bool()):
            yield view.piece(node, str(not node.value))
        case ast.Constant(value=int(value)):
            yield view.piece(node, str(value + 1))
            yield view.piece(node, str(value - 1) if value else "(-1)")
        case ast.Constant(value=float(number)):
            yield view.piece(node, repr(2 * number + 1))
        case ast.Subscript():
            yield from shifted(view, node.slice)
        case ast.Call():
            yield from calls(view, node)
        case ast.If() | ast.While() | ast.IfExp():
            if not isinstance(node.test, ast.Compare | ast.UnaryOp):
                yield view.piece(node.test, f"(not ({view.of(node.test)}))")
            if not isinstance(node, ast.While):
                yield view.piece(node.test, "False")
                yield view.piece(node.test, "True")
        case ast.comprehension():
            for test in node.ifs:
                yield view.piece(test, "True")
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield view.piece(node, "pass")
        case ast.Assign() if replaces(node):
            yield view.piece(node, "pass")
        case ast.Break():
            yield view.piece(node, "continue")
        case ast.Continue():
            yield view.piece(node, "break")


def forgotten(view: View, node: ast.expr, parts: Sequence[ast.expr]) -> Iterator[Piece]:
    """Only one of the parts instead of the whole: a mask, a condition or a bound that was left out."""
    yield from (view.piece(node, f"({view.of(part)})") for part in parts)


def replaces(node: ast.Assign) -> bool:
    """Whether an assignment gives a name, or part of something, another value: without it the old one stays."""
    used = {name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)}
    return any(not isinstance(target, ast.Name) or target.id in used for target in node.targets)


def shifted(view: View, index: ast.expr) -> Iterator[Piece]:
    """An index or the end of a prefix, one off to either side. Constants have their own mistakes."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for part in parts:
        if isinstance(part, ast.Slice) and (part.lower or part.upper) and not part.step:
            yield view.piece(part, ":")
        for end in (part.lower, part.upper) if isinstance(part, ast.Slice) else (part,):
            if isinstance(end, ast.Name | ast.Call | ast.BinOp | ast.Attribute):
                yield view.piece(end, f"{view.of(end)} + 1")
                yield view.piece(end, f"{view.of(end)} - 1")


def calls(view: View, node: ast.Call) -> Iterator[Piece]:
    """min for max, a clamp or a `where` left out, arguments swapped, a range that ends elsewhere, an order left out."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else view.of(node.func)
    function = view.of(node.func)
    if name in NAMES:
        yield view.piece(node.func, function[: -len(name)] + NAMES[name])
    if function in ("torch.where", *EITHER):
        chosen = node.args[1:] if name == "where" else node.args if len(node.args) == 2 else []
        yield from forgotten(view, node, chosen)
    elif name in DROPPED and isinstance(node.func, ast.Attribute):
        yield view.piece(node, view.of(node.func.value))
    if name in ("sorted", "reversed") and node.args:
        yield view.piece(node, f"list({view.of(node.args[0])})")
    if name == "range":
        for new in ("+ 1", "- 1"):
            end = node.args[1 if len(node.args) > 1 else 0]
            yield view.piece(end, f"{view.of(end)} {new}")
    # The order of what min and max are given is no mistake.
    if (
        name not in ("min", "max", "minimum", "maximum")
        and len(node.args) >= 2
        and not any(isinstance(arg, ast.Starred) for arg in node.args)
    ):
        for left, right in itertools.pairwise(node.args):
            first, second = view.of(left), view.of(right)
            if first != second and not isinstance(left, ast.Constant) and not isinstance(right, ast.Constant):
                between = view.text[view.span(left)[1] : view.span(right)[0]]
                whole = view.span(left)[0], view.span(right)[1]
                yield Piece(*whole, second + between + first, f"`{first}` and `{second}` swapped")
