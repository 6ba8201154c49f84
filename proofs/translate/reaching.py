"""What a text may change when one of its functions runs: its own variables and what hangs on them, and nothing else.

A word of a module could else be another one from some call on: a function that makes rows, or looks at them, may put
another function in the place of what a rule reads. So a function, a class and a module are no values: they are called,
asked for a part, inherited, or named to `isinstance`. An attribute is stored on a method's own `self` alone, and an
entry, or what a tensor holds, only in what the function made. Notes of types are names. Nothing leads to the words of a
module but its name. Standard library.
"""

import ast
from collections.abc import Iterator, Mapping, Set
from typing import Any

from proofs.translate.constants import READS, SCOPES, constants, given, modules
from proofs.translate.libraries import unlisted

CHANGING = {"globals", "locals", "vars", "setattr", "delattr", "exec", "eval", "compile", "__import__", "__builtins__"}
CHANGING |= {"type", "object", "breakpoint", "input", "open"}
CHANGES_ITSELF = {"update", "setdefault", "append", "extend", "insert", "pop", "popitem", "remove", "clear", "sort"}
CHANGES_ITSELF |= {"reverse", "add", "discard", "appendleft", "popleft", "rotate", "cache_clear", "difference_update"}
CHANGES_ITSELF |= {"intersection_update", "symmetric_difference_update", "subtract", "move_to_end"}
# Parts of objects that lead to the words of a module, and a method that changes what it is handed.
LEADS = {"f_globals", "f_locals", "f_builtins", "f_back", "gi_frame", "cr_frame", "ag_frame", "tb_frame"}
LEADS |= {"currentframe", "shuffle"}
PLAIN = {"__name__", "__module__"}
# What gives, of a tensor or a table, something that holds the same numbers at times.
VIEWS = {"values", "items", "view", "view_as", "unsqueeze", "squeeze", "expand", "expand_as", "transpose", "permute"}
VIEWS |= {"reshape", "flatten", "unflatten", "ravel", "contiguous", "detach", "narrow", "select", "split", "chunk"}
VIEWS |= {"unbind", "tensor_split", "diagonal", "unfold", "swapaxes", "movedim", "t", "to", "type", "type_as", "numpy"}
VIEWS |= {"double", "float", "half", "bfloat16", "int", "long", "bool", "cpu", "cuda", "astype", "as_strided"}
VIEWS |= {"setdefault", "get", "pop", "as_tensor", "from_numpy", "ascontiguousarray", "storage", "untyped_storage"}
NOTES = ast.Name | ast.Attribute | ast.Subscript | ast.Constant | ast.Tuple | ast.List | ast.BinOp | ast.operator
NOTES |= ast.expr_context
READING = {"len", "list", "tuple", "dict", "set", "frozenset", "sorted", "enumerate"}  # a table, and give a new one
OF_CLASSES = {"isinstance", "issubclass", "suppress"}  # whose arguments may be classes
MADE, HANDED, LENT = range(3)


def reaching(tree: ast.Module, filled: bool = False) -> Iterator[ast.AST]:
    """Nodes that may change what is no function's own. filled: whether its functions fill the arrays that they are
    handed, as those of kernels do."""
    words, text = {name for top in tree.body for name in given(top)}, ast.unparse(tree)
    asked = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    own = {id(name) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for name in selves(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(of, ctx=ast.Store() | ast.Del()) if id(of) not in own:
                yield node
            case ast.Attribute(of, attr) if attr.startswith("_") and not attr.endswith("__") and id(of) not in own:
                yield node
            case (
                ast.arg(annotation=ast.expr() as note)
                | ast.AnnAssign(annotation=note)
                | ast.FunctionDef(returns=ast.expr() as note)
            ) if not all(isinstance(part, NOTES) for part in ast.walk(note)):
                yield note  # it runs where the function is made
            case ast.Name("getattr") if id(node) not in asked:
                yield node
            case ast.Call(ast.Name("getattr"), args) if not _plainly(args[1:2]):
                yield node
            case ast.Name(name, ast.Load()) if name in CHANGING:
                yield node
            case ast.Global() | ast.Nonlocal():
                yield node
            case _ if any(map(leads, _said(node))):
                yield node
    yield from unlisted(tree)
    reader = _Reader(words - constants(text, True), constants(text, False), modules(tree), filled)
    for top in tree.body:
        yield from reader.top(top)


def leads(name: str) -> bool:
    return (name.startswith("__") and name not in PLAIN) or name in LEADS


def _said(node: ast.AST) -> Iterator[str]:
    """The words of a node that may lead to others: not those that it defines."""
    match node:
        case ast.Name(name, ast.Load()) | ast.Attribute(attr=name):
            yield name
        case ast.Import(aliases) | ast.ImportFrom(names=aliases):
            yield from (part for alias in aliases for part in alias.name.split("."))
        case ast.MatchClass(kwd_attrs=names):
            yield from names


def selves(node: ast.ClassDef) -> Iterator[ast.Name]:
    """The names of the object in its methods, where they are nothing else."""
    for method in (part for part in node.body if isinstance(part, ast.FunctionDef)):
        names = [n for n in ast.walk(method) if isinstance(n, ast.Name) and n.id == "self"]
        inner = [scope for scope in ast.walk(method) if isinstance(scope, SCOPES) and "self" in parameters(scope)]
        bound = any("self" in given(part) for part in method.body) or not all(
            isinstance(n.ctx, ast.Load) for n in names
        )
        if inner == [method] and [first.arg for first in method.args.args[:1]] == ["self"] and not bound:
            yield from names


def parameters(function: ast.FunctionDef | ast.Lambda) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


class _Reader:
    """Of one statement of a module.

    words    its functions, classes, modules and tables, which are no values
    numbers  the names of constants
    modules  those of ours, whose words are no values either

    A variable stands for what the function MADE, for what it was HANDED, or for what is LENT by a word.
    """

    def __init__(self, words: Set[str], numbers: Set[str], modules: Set[str], filled: bool) -> None:
        self.words, self.numbers, self.modules, self.filled = words, numbers, modules, filled

    def top(self, node: ast.AST) -> Iterator[ast.AST]:
        """The functions that stand in it, wherever."""
        if isinstance(node, SCOPES):
            yield from self.function(node, {})
        else:
            for inner in ast.iter_child_nodes(node):
                yield from self.top(inner)

    def function(self, node: ast.FunctionDef | ast.Lambda, outer: Mapping[str, int]) -> Iterator[ast.AST]:
        """outer: the variables around it."""
        body = node.body if isinstance(node.body, list) else [node.body]
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            yield from self.read(default, outer, True)
        handed = parameters(node)
        own = {**outer, **dict.fromkeys(set[str]().union(*map(given, body)), MADE), **dict.fromkeys(handed, HANDED)}
        while later := {name: kind for name, kind in self.bound(body, own) if kind > own.get(name, LENT)}:
            own |= later
        for part in body:
            yield from self.read(part, own, True)

    def bound(self, body: list[Any], own: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """Variables with what they are bound to."""
        for node in (node for part in body for node in ast.walk(part)):
            pairs: list[tuple[ast.AST, ast.expr]] = []
            match node:
                case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                    pairs = [*zip(targets, values, strict=True)]
                case ast.Assign(targets, value):
                    pairs = [(target, value) for target in targets]
                case ast.AnnAssign(target, _, ast.expr() as value) | ast.NamedExpr(target, value):
                    pairs = [(target, value)]
                case (
                    ast.For(target, value)
                    | ast.comprehension(target, value)
                    | ast.withitem(value, ast.expr() as target)
                ):
                    pairs = [(target, value)]
                case ast.Import() | ast.ImportFrom() | ast.Match():
                    yield from ((name, LENT) for name in given(node))
            yield from ((name, self.kind(value, own)) for target, value in pairs for name in given(target))

    def kind(self, value: ast.expr, own: Mapping[str, int]) -> int:
        """What a value may be, or hold. What is called gives something new, but for parts of what it is asked of."""
        match value:
            case ast.Name(name):
                return own.get(name, MADE if name in self.numbers else LENT)
            case ast.Attribute(of) | ast.Subscript(of):
                return self.kind(of, own)
            case ast.Call(ast.Attribute(of, word), args) if word in VIEWS:
                return max(self.kind(a, own) for a in ([*args] if is_library(of) and args else [of]))
            case ast.Call(ast.Name("zip" | "enumerate" | "reversed" | "max" | "min" | "next" | "iter"), args):
                return max((self.kind(a, own) for a in args), default=MADE)
            case ast.Call(ast.Name(word), args) if word in READING:  # its entries are those of a table
                return LENT if LENT in (self.kind(a, own) for a in args) else MADE
            case ast.Call() | ast.Compare() | ast.BinOp() | ast.UnaryOp() | ast.Lambda() | ast.JoinedStr():
                return MADE
        own = self.within(value, own)
        parts = (part for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr))
        return max((self.kind(part, own) for part in parts), default=MADE)

    def read(self, node: ast.AST, own: Mapping[str, int], value: bool) -> Iterator[ast.AST]:
        """value: whether what stands here is handed on."""
        if isinstance(node, SCOPES):
            for mark in getattr(node, "decorator_list", []):
                yield from self.read(mark, own, False)
            yield from self.function(node, own)
            return
        own = self.within(node, own)
        match node:
            case ast.Name(name, ast.Load()) if value and name not in own and name in self.words:
                yield node
            case ast.Attribute(ast.Name(name)) if value and name not in own and name in self.modules:
                yield node
            case ast.Subscript(of, ctx=ast.Store() | ast.Del()) if self.kind(of, own) > HANDED * self.may_fill(of):
                yield node
            case ast.Attribute(of, attr) if (
                attr in CHANGES_ITSELF and self.kind(of, own) == LENT and not is_library(of)
            ):
                yield node
            case ast.Attribute(of, attr) if (
                attr.endswith("_") and not is_library(of) and self.kind(of, own) > HANDED * self.may_fill(of)
            ):
                yield node
            case ast.AugAssign(ast.Name() as of) | ast.keyword("out", of) if self.kind(of, own) > HANDED * self.filled:
                yield node
        for part, inner in ast.iter_fields(node):
            for one in inner if isinstance(inner, list) else [inner]:
                if isinstance(one, ast.AST) and part not in ("annotation", "returns"):
                    yield from self.read(one, own, not _asks(node, part))

    def within(self, node: ast.AST, own: Mapping[str, int]) -> Mapping[str, int]:
        """The variables that a reading has besides."""
        for part in node.generators if isinstance(node, READS) else ():
            own = {**own, **dict.fromkeys(given(part.target), self.kind(part.iter, own))}
        return own

    def may_fill(self, node: ast.expr) -> bool:
        """What hangs on an object is changed by its own methods."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return self.filled or (isinstance(node, ast.Name) and node.id in ("self", "out", "into"))


def is_library(node: ast.expr) -> bool:
    """As in `torch.sort(p)`: what it gives is new, but for VIEWS."""
    return isinstance(node, ast.Name) and node.id in ("torch", "np", "math")


def _asks(node: ast.AST, part: str) -> bool:
    """Whether what stands in that part of a node is called, asked, raised or named to a question about classes."""
    match node:
        case ast.Call(ast.Name(name)) if name in OF_CLASSES:
            return True
        case ast.Call(ast.Attribute(ast.Constant(), "join")) | ast.Compare():
            return True
        case ast.Call(ast.Name(word)) if word in READING:
            return part in ("func", "args")
        case ast.For() | ast.comprehension():
            return part == "iter"
        case ast.Call():
            return part == "func"
        case ast.Attribute() | ast.Subscript():
            return part == "value"
        case ast.Raise() | ast.ExceptHandler() | ast.ClassDef() | ast.FunctionDef():
            return True
    return False


def _plainly(named: list[ast.expr]) -> bool:
    return all(isinstance(n, ast.Constant) and isinstance(n.value, str) and not leads(n.value) for n in named)
