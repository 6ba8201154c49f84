"""That a text reckons with the numbers of nodes, depths and places no further than to the one before and the one after.

The blocks that the equality is asked about have a few nodes. A text that halves a depth, counts in threes, adds two
places or compares with the fourth could be right on all of them, and wrong on the next: so none may. What is a term
when the text runs is watched there (`tensor.Terms.number`, whatever functions it goes through); here the rest is read
from the syntax tree: Python's numbers, torch's own ones, the words by which either may be reckoned with, and those by
which a text may know which process it runs in. Not seen: numbers that are counted up in a loop or padded on.
"""

import ast
from collections.abc import Iterator
from dataclasses import fields

from proofs.batched.functions import WORDS
from proofs.batched.tensor import Terms
from refengine.engine.block import Block

OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr)
FROM = ("refengine.", "torch", "collections.abc", "dataclasses", "typing")
# Words of types, which hold nothing.
TYPES = {"Any", "Callable", "Iterator", "Mapping", "Protocol", "Sequence", "TypeAlias", "dataclass"}
MAKERS = {"arange", "full", "ones", "zeros", "bool", "int64", "float64", "nn", "functional", "special", "exp2"}
OTHERS = {"accept", "choose", "append", "exponent", *(field.name for field in fields(Block))}


def counting(text: str) -> set[str]:
    """What a text of the engine may not say."""
    tree = ast.parse(text)
    scopes: list[ast.AST] = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)] or [tree]
    strange = (n for n in ast.walk(tree) if isinstance(n, ast.Attribute | ast.Import | ast.ImportFrom) and not known(n))
    return {ast.unparse(n) for n in (*strange, *(found for scope in scopes for found in reckoned(scope)))}


def known(node: ast.AST) -> bool:
    """A word that terms have too, and that is not an operator under another name; what the rules are handed."""
    match node:
        case ast.Attribute(attr=word):
            said = {word, f"special_{word}"} & {*WORDS, *MAKERS, *OTHERS}
            return bool(said) or (hasattr(Terms, word) and not hasattr(Terms, f"__{word}__"))
        case ast.ImportFrom(str() as module, names):
            room = module.split(".")[0]
            fine = {"Tensor", *WORDS} if room == "torch" else TYPES
            return f"{module}.".startswith(FROM) and all(room == "refengine" or a.name in fine for a in names)
        case ast.Import([ast.alias("torch", None)]):
            return True
    return False


def reckoned(scope: ast.AST) -> Iterator[ast.AST]:
    numbers, moved = {"shape", "len", *counted(scope)}, set[str]()
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and any(map(steps, passed(node.value))):
            moved |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(scope):
        match node:
            case ast.Compare(left=left, comparators=others):
                if any(is_number(n) and ast.unparse(n) not in ("0", "None") for n in (left, *others)):
                    yield node
            case ast.BinOp(left, operator, right):
                both = {first(left), first(right)}
                if not isinstance(operator, OPERATORS):
                    yield node
                elif is_number(left) or is_number(right):
                    if not steps(node) or both & moved or any(map(steps, passed(left))):
                        yield node
                elif both & numbers:
                    yield node


def steps(node: ast.AST) -> bool:
    """One more, or one less."""
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(1)):
            return True
    return False


def passed(node: ast.AST) -> Iterator[ast.AST]:
    """The parts that a value may come from: not where it stands in a tensor, nor how large one is made."""
    yield node
    match node:
        case ast.Subscript(value):
            yield from passed(value)
        case ast.Call(ast.Attribute(attr="zeros" | "ones" | "full" | "gather")):
            yield from passed(node.func)
        case _:
            for part in ast.iter_child_nodes(node):
                yield from passed(part)


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def counted(scope: ast.AST) -> set[str]:
    """The names of whole numbers that are no terms: of a loop, of a shape, of torch's own tensors."""
    found = set[str]()
    for node in ast.walk(scope):
        match node:
            case ast.For(target, ast.Call()) | ast.comprehension(target, ast.Call()):
                found.add(first(target.elts[0] if isinstance(target, ast.Tuple) else target))
            case ast.Assign([target], value) if "shape" in ast.unparse(value) or "torch.arange" in ast.unparse(value):
                found |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return found


def first(node: ast.AST) -> str:
    """The name of what is looked at: of `depth.gather(1, up)[:, 0]` it is `depth`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return "shape"
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
