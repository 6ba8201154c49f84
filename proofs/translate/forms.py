"""That a function has no form that the translator would pass over: whatever it does not put into Gallina is refused.

The translator reads the parts that it knows of each node. What may stand in the others (a star or an item that is
assigned to, a keyword, an argument of `Round` that is no tuple, a call in a site) runs in Python and is in no theorem.
So each part is one of those below.
"""

import ast
import itertools
from collections import Counter
from collections.abc import Iterator

from proofs.translate.terms import refuse

STATEMENTS = (
    ast.FunctionDef,
    ast.Expr,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.For,
    ast.While,
    ast.If,
    ast.Return,
)
JUMPS = (ast.Break, ast.Continue, ast.Raise)
OPERATORS = (ast.boolop, ast.Not, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.cmpop, ast.Load, ast.Store)
WORDS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.keyword, ast.arg, ast.arguments)
LISTS = (ast.Starred, ast.Tuple, ast.List, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.comprehension, ast.Lambda)
MESSAGES = (ast.JoinedStr, ast.FormattedValue)  # of an error, which are left out
SUMS = (ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp)
NODES = (*STATEMENTS, *JUMPS, *OPERATORS, *WORDS, *LISTS, *SUMS)
METHODS = {"accept", "choose", "append", "children", "path"}
MADE_TUPLES = {"tuple", "ancestry"}  # functions that return a tuple
STRICT = "strict=True"  # of zip
READ_ONCE = {"reversed", "enumerate", "zip", "iter", "map", "filter"}  # what these give
READERS = {"tuple", "sum", "max", "min", "next"}


def check(function: ast.FunctionDef) -> None:
    """Raises Untranslated."""
    said = {id(part) for node in ast.walk(function) if isinstance(node, ast.Raise) for part in ast.walk(node)}
    for node in ast.walk(function):
        known = isinstance(node, NODES) or (isinstance(node, MESSAGES) and id(node) in said)
        if not known or (isinstance(node, ast.FunctionDef) and node is not function):
            raise refuse(node, "there is no translation of it")
        if _cuts(node):
            raise refuse(node, f"zip is said with {STRICT}: without it what is longer is cut")
        for after in _never_reached(node):
            raise refuse(after, "it is never reached")
        for part in _strange(node, function):
            raise refuse(part, "the translation would pass over this")
        for place, part in parts(node):
            if _is_read_once(part) and not _reads_at_once(node, place):
                raise refuse(part, "it can be read once, and has a name")
    for quotient in _unguarded(function):
        raise refuse(quotient, "what may be 0 divides: an error in Python, and 0 in Gallina")
    for target in _given_otherwise(function):
        raise refuse(target, "a loop's variable has another meaning")
    for value in _lists_for_tuples(function):
        raise refuse(value, "it is a list, and is a tuple elsewhere, or is added: an error in Python")
    for name in _lost(function):
        raise refuse(name, "it may never have been assigned")


def _never_reached(node: ast.AST) -> Iterator[ast.AST]:
    """What stands behind a jump: a reader of a text takes it for a part of it."""
    for body in (getattr(node, part, ()) for part in ("body", "orelse")):
        for before, after in itertools.pairwise(body if isinstance(body, list) else ()):
            if isinstance(before, ast.Return | ast.Raise | ast.Break | ast.Continue):
                yield after


def _cuts(node: ast.AST) -> bool:
    named = isinstance(node, ast.Call) and ast.unparse(node.func) == "zip"
    return named and STRICT not in map(ast.unparse, node.keywords)


def _is_read_once(node: ast.AST) -> bool:
    """A list in Gallina, and in Python nothing when it is read a second time."""
    match node:
        case ast.Call(ast.Name(name)):
            return name in READ_ONCE
    return isinstance(node, ast.GeneratorExp)


def _reads_at_once(node: ast.AST, place: str) -> bool:
    match node:
        case ast.Call(ast.Name(name)):
            return name in READ_ONCE | READERS
    return isinstance(node, ast.Starred) or (isinstance(node, ast.For | ast.comprehension) and place == "iter")


def _unguarded(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Quotients but `a / b if a < b else ...`, of numbers that are not negative since nothing is taken away from any,
    and but those by what is given once and has ended the rule where it is 0."""
    guarded, not_zero = set[int](), set[str]()
    stored = Counter(n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    signed = any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) for node in ast.walk(function))
    for node in ast.walk(function):
        match node:
            case ast.IfExp(ast.Compare(low, [ast.Lt()], [high]), ast.BinOp(a, ast.Div(), b) as quotient):
                same = (ast.unparse(low), ast.unparse(high)) == (ast.unparse(a), ast.unparse(b))
                guarded |= {id(quotient)} if same and not signed else set()
            case ast.If(ast.Compare(ast.Name(name), [ast.Eq()], [ast.Constant(0)]), [ast.Raise()], []):
                not_zero |= {name} if stored[name] == 1 and node in function.body else set()
    for node in ast.walk(function):
        match node:
            case ast.BinOp(_, ast.Div(), divisor) if id(node) not in guarded and ast.unparse(divisor) not in not_zero:
                yield node


def _given_otherwise(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Variables of a loop that are parameters, assigned, or those of another loop: in Python one variable, and in
    Gallina one that hides another."""
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For)]
    several = Counter(n.id for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name))
    turns = (node.target for node in ast.walk(function) if isinstance(node, ast.For | ast.comprehension))
    of_loops = {id(inner) for target in turns for inner in ast.walk(target)}
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    given = {name.id for name in names if id(name) not in of_loops} | {argument.arg for argument in function.args.args}
    given |= {name for name, count in several.items() if count > 1}
    for loop in loops:
        inside = [node.target for part in loop.body for node in ast.walk(part) if isinstance(node, ast.For)]
        hidden = given | {inner.id for target in inside for inner in ast.walk(target) if isinstance(inner, ast.Name)}
        yield from (n for n in ast.walk(loop.target) if isinstance(n, ast.Name) and n.id in hidden)


def _lost(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What is read beside a loop and assigned in it alone."""
    for loop in (node for node in ast.walk(function) if isinstance(node, ast.For | ast.While)):
        inside = {id(node) for part in loop.body for node in ast.walk(part)}
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        stored = {n.id for n in names if isinstance(n.ctx, ast.Store) and id(n) in inside}
        stored -= {n.id for n in names if isinstance(n.ctx, ast.Store) and id(n) not in inside}
        stored -= {argument.arg for argument in function.args.args}
        yield from (n for n in names if n.id in stored and id(n) not in inside)


def _strange(node: ast.AST, function: ast.FunctionDef) -> Iterator[ast.AST]:
    match node:
        case ast.Slice(step=ast.expr()) | ast.Raise(cause=ast.expr()):
            yield node
        case ast.For(orelse=[_, *_]) | ast.While(orelse=[_, *_]):
            yield node
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            if not _entry(target, function):
                yield from _no_names(target)
        case ast.Assign():
            yield node
        case ast.ListComp(generators=turns) | ast.GeneratorExp(generators=turns) if any(
            turn.is_async for turn in turns
        ):
            yield node
        case ast.Constant(float() | complex() as value) if value != 0:  # equal to a whole number, and no index
            yield node
        case ast.For(target=target) | ast.comprehension(target=target):
            yield from _no_names(target)
        case ast.Starred(value=ast.Call(ast.Attribute(ast.Name("block"), "path"), [ast.Name()], [])):
            pass
        case ast.Starred(value=value) if any(isinstance(inner, ast.Call) for inner in ast.walk(value)):
            yield node
        case ast.Call(ast.Name("Round"), arguments, []):
            yield from (a for a in arguments if not _tuple(a, function))
        case ast.Call(ast.Attribute(attr="accept" | "choose"), [*_, ast.Tuple([ast.Constant(), *counts])], []):
            yield from (count for count in counts if not _count(count))
        case ast.Call(ast.Attribute(attr=method), _, []) if method in METHODS:
            pass
        case ast.Call(ast.Attribute()):
            yield node
        case ast.Call(ast.Name("zip"), _, [keyword]) if ast.unparse(keyword) == STRICT:
            pass
        case ast.Call(ast.Name("max"), [ast.Name()], [ast.keyword("key", ast.Lambda())]):
            pass
        case ast.Call(_, _, [_, *_]):
            yield node


def _no_names(target: ast.expr) -> Iterator[ast.AST]:
    """What is assigned to and is no variable."""
    match target:
        case ast.Name():
            pass
        case ast.Tuple(several):
            for inner in several:
                yield from _no_names(inner)
        case _:
            yield target


def _entry(target: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether it is an entry of a dict that the function itself begins."""
    match target:
        case ast.Subscript(ast.Name(name), ast.Name()):
            return any(isinstance(value, ast.Dict) for value in _given(name, function))
    return False


def _given(name: str, function: ast.FunctionDef) -> list[ast.expr]:
    """All that a function assigns to a variable; of a dict that it begins, and to its entries."""
    found = []
    for node in ast.walk(function):
        match node:
            case ast.Assign([ast.Name(other)], value) | ast.AnnAssign(ast.Name(other), _, ast.expr() as value):
                found += [value] if other == name else []
            case ast.Assign([ast.Subscript(ast.Name(other), _)], value):
                found += [value] if other == name else []
    return found


def _tuple(argument: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether it is a tuple, and not a list of the same items."""
    match argument:
        case ast.Tuple():
            return True
        case ast.Call(ast.Name(name)):
            return name in MADE_TUPLES
        case ast.Subscript(ast.Name(name), ast.Slice()) | ast.Name(name):
            given = _given(name, function)
        case ast.Subscript(ast.Name(name), ast.Name()):
            given = _given(name, function)
            dicts = [value for value in given if isinstance(value, ast.Dict)]
            given = [*(value for value in given if value not in dicts), *(v for begun in dicts for v in begun.values)]
        case _:
            return False
    return bool(given) and all(value is not argument and _tuple(value, function) for value in given)


def _lists_for_tuples(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Lists that variables are given which hold tuples too, or which are added to something."""
    nodes = [*ast.walk(function)]
    added = [end for node in nodes if isinstance(node, ast.BinOp) for end in (node.left, node.right)]
    lists = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for name in lists if any(isinstance(node, ast.List | ast.ListComp) for node in nodes) else ():
        values = _given(name, function)
        if any(isinstance(value, ast.Tuple) for value in values) or name in map(ast.unparse, added):
            yield from (value for value in values if isinstance(value, ast.List | ast.ListComp))
    yield from (end for end in added if isinstance(end, ast.List | ast.ListComp))


def _count(count: ast.expr) -> bool:
    """A number, a variable, a length, or such a one more or less than another."""
    match count:
        case ast.Name() | ast.Constant(int()) | ast.Call(ast.Name("len"), [ast.Name()], []):
            return True
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return _count(left) and _count(right)
    return False


def parts(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for name, value in ast.iter_fields(node):
        yield from (
            (name, part) for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST)
        )
