"""That every word of a function is what the translator takes it for.

The translator reads a rule by its words: `residual`, `sum`, `ROOT`. So each must be what its module says once and by
its own name: a `def`, an import from where it is defined, or a word of the language that the module leaves alone. A
module that binds a name twice, under another name or by running code, is refused; so are decorators and defaults that
the text of the function does not show, and a list under two names, which is one list in Python and two in Gallina.
"""

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from functools import cache

from proofs.translate.importing import MARKED_BY, OWN, more_than_defined
from proofs.translate.reaching import reaching
from proofs.translate.terms import Untranslated, assigned, grown, names, refuse

CALLED = {"target", "drafter", "rule", "program"}  # parameters that are functions
# What a parameter is where nobody says: no stop token, and numbers that known.txt has.
DEFAULTS = {
    "stop": ("frozenset[int]", "frozenset()"),
    "epsilon": ("float", "EPSILON"),
    "delta": ("float", "DELTA"),
    "top_p": ("Fraction", "TOP_P"),
    "fast": ("bool", "False"),
}
RENAMED = {"keep_top_p": "top_p"}  # the names under which something may be imported that has another one
LANGUAGE = ("", "fractions", "math")  # where its words come from: from nowhere, Fraction, and logarithms
# What a module may call while it is imported.
AT_THE_TOP = {"Card", "Loss", "Fraction", "TypeVar", "dataclass", "field", "frozenset", "RULES.items"}
EXACT = "refengine/exact"
TABLE = "rules/__init__"  # the file of the rules' table
MARKS = {"dataclass", "property", "cached_property"}  # on what a module defines; none on a function that is translated
HOMES: dict[str, tuple[str, ...]] = {
    **MARKED_BY,
    **dict.fromkeys(("Card", "Loss"), ("refengine.exact.card",)),
    "RULES": ("refengine.exact.rules",),
    "frozenset": (),
    "cached_property": ("functools",),
    "Fraction": ("fractions",),
    "TypeVar": ("typing",),
}
# Of the files that define them themselves, which `known.txt` has.
AT_HOME: dict[str, dict[str, tuple[str, ...]]] = {
    "card": dict.fromkeys(("Card", "Loss"), (OWN,)),
    TABLE: {"RULES": ("",)},
}
REFLECTS = {TABLE, "unknowns", "merged"}  # files that look at modules; they are among what was read
READ = {"iter", "test"}  # the parts of a loop or a branch in which a list is read
READERS = {"tuple", "len", "max"}
GALLINA = re.compile(r"[vz]\d*|either\d+|both\d+|holds\d*|k|next|raised|R|V|fun|let|in|if|is|then|else|match|end|tt")


@cache
def bound(text: str, file: str) -> dict[str, list[ast.stmt]]:
    """What binds each name of a module; raises Untranslated where it does anything else when it is imported."""
    try:
        return _bound(text, file)
    except Untranslated as refused:
        raise Untranslated(f"{EXACT}/{file}.py, {refused}") from None


def _bound(text: str, file: str) -> dict[str, list[ast.stmt]]:
    found: dict[str, list[ast.stmt]] = {}
    tree = ast.parse(text)
    for node in tree.body:
        match node:
            case ast.Expr(ast.Constant()):
                here: list[str] = []
            case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
                here = [alias.asname or alias.name for alias in aliases]
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if _only_defines(node):
                here = [name]
            case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)) if _calls(node) <= AT_THE_TOP:
                here = [name]
            case ast.Assign([ast.Tuple(several)]) if _calls(node) <= AT_THE_TOP and _all_names(several):
                here = [ast.unparse(name) for name in several]
            case _:
                raise refuse(node, "it is not seen what this does to the words of the module")
        for name in here:
            if hasattr(builtins, name):
                raise refuse(node, f"{name} is a word of the language")
            found.setdefault(name, []).append(node)
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "Card"):
        runs = [ast.unparse(k.value) for k in call.keywords if k.arg in ("rule", None)]  # None: of `**`
        if not all(isinstance(node, ast.FunctionDef) for name in runs for node in found.get(name, [call])):
            raise refuse(call, "the card is of another rule")
    for changed in more_than_defined(tree, HOMES | AT_HOME.get(file, {})):
        raise refuse(changed, "it is not seen what this does to the words of the module")
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Global | ast.Nonlocal | ast.NamedExpr):
            raise refuse(inner, "a name may be bound where it is not seen")
    for inner in () if file in REFLECTS else reaching(tree):
        raise refuse(inner, "what is no function's own may be changed by it, or handed to what changes it")
    return found


def _all_names(targets: list[ast.expr]) -> bool:
    return all(isinstance(target, ast.Name) for target in targets)


def _only_defines(node: ast.stmt) -> bool:
    """Whether a definition runs nothing of its own when the module is imported: in marks, defaults, notes of types."""
    match node:
        case ast.FunctionDef(decorator_list=marks, args=arguments, returns=returns):
            now: list[ast.AST] = [arguments, *([returns] if returns else [])]
        case ast.ClassDef(decorator_list=marks, bases=bases, keywords=[], body=body):
            inner = [s for s in body if not isinstance(s, ast.AnnAssign | ast.Expr)]
            if not all(isinstance(s, ast.FunctionDef) and _only_defines(s) for s in inner):
                return False
            now = [*bases, *(s for s in body if s not in inner)]
        case _:
            return False
    return all(map(_is_mark, marks)) and set().union(*map(_calls, now)) <= AT_THE_TOP


def _is_mark(node: ast.expr) -> bool:
    """One of MARKS, with constants alone."""
    if isinstance(node, ast.Call):
        plain = not node.args and all(isinstance(keyword.value, ast.Constant) for keyword in node.keywords)
        return plain and _is_mark(node.func)
    return isinstance(node, ast.Name) and node.id in MARKS


def _calls(node: ast.AST) -> set[str]:
    return {ast.unparse(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}


def home(file: str, name: str, source: Callable[[str], str]) -> tuple[str, str]:
    """The file that defines a word of this file, and the word; of a word of the language ("", word)."""
    match bound(source(file), file).get(name, []):
        case [] if hasattr(builtins, name):
            return "", name
        case [ast.ImportFrom(str() as module, aliases, 0)] if named := _imported(name, aliases):
            if module.startswith("refengine.exact."):
                return home(module.removeprefix("refengine.exact.").replace(".", "/"), named, source)
            if module in LANGUAGE:
                return module, named
        case [ast.Import([ast.alias(module, None)])] if module == name and module in LANGUAGE:
            return module, ""
        case [ast.FunctionDef() | ast.ClassDef() | ast.Assign() | ast.AnnAssign()]:
            return file, name
    raise Untranslated(f"{file}.py: {name} may be something else than it says")


def _imported(name: str, aliases: list[ast.alias]) -> str:
    """The name that a word has where it comes from; "" where that is another than RENAMED says."""
    found = [a.name for a in aliases if (a.asname or a.name) == name]
    return name if found == [name] else found[0] if found == [RENAMED.get(name)] else ""


@cache
def free(function: ast.FunctionDef) -> set[str]:
    """The words of a function that are not its own; raises Untranslated where the function hides one."""
    arguments = function.args
    odd = [arguments.posonlyargs, arguments.kwonlyargs, arguments.vararg, arguments.kwarg, function.decorator_list]
    last = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    given = {
        (a.arg, (ast.unparse(a.annotation) if a.annotation else "", ast.unparse(d)))
        for a, d in zip(last, arguments.defaults, strict=True)
    }
    if any(odd) or not given <= DEFAULTS.items():
        raise Untranslated(f"line {function.lineno}: {function.name}: only plain parameters are read, and no decorator")
    mine = own(function)
    if hidden := sorted(_calls(function) & mine - CALLED):
        raise Untranslated(f"line {function.lineno}: {function.name}: {hidden[0]} is called, and is a variable")
    notes = {id(n) for a in ast.walk(function) for note in _annotations(a) for n in ast.walk(note)}
    read = {n.id for s in function.body for n in ast.walk(s) if isinstance(n, ast.Name) and id(n) not in notes}
    return read - mine


def _annotations(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.AnnAssign(annotation=note) | ast.arg(annotation=ast.expr() as note):
            return [note]
        case ast.FunctionDef(returns=ast.expr() as note):
            return [note]
    return []


def own(function: ast.FunctionDef) -> set[str]:
    """The parameters and variables of a function, those of a lambda, a comprehension or a function in it too."""
    nodes = [*ast.walk(function)]
    inner = {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node is not function}
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return inner | parameters | {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def variables(function: ast.FunctionDef, otherwise: dict[str, str]) -> None:
    """Refuses variables that Gallina would take for something else, and lists that have two names."""
    mine = own(function)
    said = mine | names(function)
    for name in sorted(mine):
        if GALLINA.fullmatch(name) or otherwise.get(name) in said:
            raise Untranslated(f"line {function.lineno}: {function.name}: {name} would be another variable")
    growing = grown(function.body)
    for node in ast.walk(function):
        if isinstance(node, ast.For | ast.comprehension) and growing & names(node.target):
            raise refuse(node.target, "a list that grows has another name, in the list that it is of")
        if isinstance(node, ast.arg) and node.arg in growing:
            raise refuse(node, "a list that grows has another name, where the function is called")
        for target, value in _pairs(node):
            if isinstance(value, ast.Name) and value.id in CALLED:
                raise refuse(value, "what asks chance gets another name")
            if target in growing and not isinstance(value, ast.List | ast.ListComp | ast.Dict):
                raise refuse(value, "a list that grows may have another name")
        for part, read in _named(node):
            if read.id in growing and part not in READ and not _reads(node):
                raise refuse(node, "a list that grows may get another name")
        if isinstance(node, ast.For) and assigned(node.body) & growing & names(node.iter):
            raise refuse(node, "a list grows while it is read")


def _named(node: ast.AST) -> Iterator[tuple[str, ast.Name]]:
    """The names that a node reads, with the part of it that each is."""
    for part, value in ast.iter_fields(node):
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                yield part, inner


def _reads(node: ast.AST) -> bool:
    """Whether its names are read and handed to nobody."""
    match node:
        case ast.Call(ast.Name(name)):
            return name in READERS
        case ast.Compare(_, [ast.In()], _) | ast.Attribute(attr="append") | ast.Starred() | ast.Return():
            return True
        case ast.Subscript(ctx=ast.Load() | ast.Store()):
            return True
    return False


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
            yield from ((t.id, v) for t, v in zip(targets, values, strict=True) if isinstance(t, ast.Name))
        case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, value) if value is not None:
            yield name, value
