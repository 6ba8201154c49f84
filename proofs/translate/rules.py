"""Which functions of refengine/exact are translated, and the file that they are written to."""

import ast
import copy
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import cache

from proofs.translate import forms, sites, words
from proofs.translate.calls import RESULTS
from proofs.translate.scope import Scope
from proofs.translate.statements import statements
from proofs.translate.terms import Untranslated, names, refuse
from refengine.exact import rules
from refengine.source_tree import PROOFS, ROOT

EXACT = ROOT / "refengine" / "exact"
FILE = PROOFS / "rocq" / "Translated.v"
# The rules, those that are lossy by design too, and the loop: (file, function). What typical acceptance takes of floats
# and their logarithms is a number of the row, any one (`threshold`); the head of a sorted row is a word of Python.v.
RULES = tuple((f"rules/{card.file}", card.name) for card in rules.RULES.values())
LOOPS = (("loop", "generate"), ("loop", "plain"))
# What Python.v defines by hand, or sites.py relies on, and what a chance is, by the text that it had when that was
# written: another text is refused. Each block begins with its file and its name; no name stands for the whole file.
KNOWN = {
    (file, name): text.strip()
    for file, name, text in re.findall(
        r"^## (\S+) ?(\w*)\n(.*?)(?=^## |\Z)", (PROOFS / "translate" / "known.txt").read_text(), re.M | re.S
    )
}
HANDED = ["p", "block", "chance"]  # a rule, before its options
TRANSLATED_BY_NAME = {"Fraction", *words.RENAMED, *(name for _, name in KNOWN if name)}
WHOLE = {"card", "rules/__init__"}  # nothing of the law is there: that a card is of the rule that stands above it
# Names that mean something else in Gallina.
OTHERWISE = {"at": "here", "left": "rest", "out": "said", "last": "final", "total": "mass"}
COQ = {"rows": "seq (V -> R)", "block": "flat_block R V", "row": "V -> R", "token": "V", "node": "nat"}
COQ |= {"num": "R", "float": "R", "bool": "bool", "seq bool": "seq bool", "pair": "outcome V"}
COQ |= {"seq num": "seq R", "option": "option nat", "seq token": "seq V", "nat": "nat", "set": "V -> bool"}
COQ |= {"target": "seq V -> V -> R", "drafter": "seq V -> law R (flat_block R V)"}
COQ |= {"rule": "seq (V -> R) -> flat_block R V -> law R (outcome V)"}
TYPES = {
    "Sequence[Row]": "rows",
    "Block": "block",
    "Sequence[Fraction]": "row",
    "int": "token",
    "frozenset[int]": "set",
    "Sequence[bool]": "seq bool",
    "float": "float",
    "Fraction": "num",
    "bool": "bool",
}
TYPES |= {"tuple[int, ...]": "seq token", "Target": "target", "Drafter": "drafter", "Rule": "rule"}
NAMED = {OTHERWISE["at"]: "node", "max_new_tokens": "nat", "chance": "chance"}  # where the annotation does not tell
MARK = "_variable"  # behind a name while the text is written
RETURNED = {"Round": "(outcome V)", "tuple[int, ...]": "(seq V)"}  # by a function that asks chance
HEADER = """(** The rules of refengine/exact, as they run.

    Written by proofs/translate from their text; do not edit. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Python.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

"""
SECTION = """Section {name}.
Variables (R : realFieldType) (V : vocab).
Variable raised : law R {result}.
"""
# A number of the row after each node and of three more, any: exact/rules/typical.py reckons it in floats.
LOSSY = """Variable threshold : (V -> R) -> R -> R -> R -> R.
Variable inside_log : R.
"""


def source(file: str) -> str:
    return (EXACT / f"{file}.py").read_text()


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Whatever cannot be translated meanwhile names the file."""
    try:
        yield
    except Untranslated as refused:
        named = str(refused) if str(refused).startswith(words.EXACT) else f"{words.EXACT}/{file}.py, {refused}"
        raise Untranslated(named) from None
    except (KeyError, ValueError) as lost:
        raise Untranslated(f"refengine/exact/{file}.py: a variable or a form is not known here: {lost}") from lost


def definition(file: str, name: str) -> ast.FunctionDef:
    """A function, its variables named as in Gallina; raises Untranslated where one of its words is another's."""
    return _definition(source(file), file, name)


@cache
def _definition(text: str, file: str, name: str) -> ast.FunctionDef:
    found = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == name]
    given = [type(node) for node in words.bound(text, file).get(name, [])]
    if not found or given != [ast.FunctionDef] * len(found):
        raise Untranslated(
            f"refengine/exact/{file}.py: {name} is no function: a rule reads functions, and no constants"
        )
    if len(found) != 1:
        raise Untranslated(f"refengine/exact/{file}.py defines {name} {len(found)} times")
    with reading(file):
        words.variables(found[0], OTHERWISE)
    renamed = {name: OTHERWISE.get(name, name) for name in words.own(found[0])}
    for node in ast.walk(found[0]):  # a word that is not the function's own keeps its name
        if isinstance(node, ast.Name):
            node.id = renamed.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = renamed[node.arg]
    return found[0]


def known_text(file: str, name: str) -> str:
    return _known_text(source(file), file, name)


@cache
def _known_text(text: str, file: str, name: str) -> str:
    """The text of what Python.v defines by hand: without docstrings, and without what an error says."""
    found = words.bound(text, file).get(name, []) if name else ast.parse(text).body
    if name and len(found) != 1:
        raise Untranslated(f"{file}.py defines {name} {len(found)} times")
    whole = ast.Module([copy.deepcopy(node) for node in found], [])
    for node in ast.walk(whole):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            said = [part for argument in node.exc.args for part in ast.walk(argument)]
            if node.exc.keywords or any(isinstance(part, ast.Yield | ast.YieldFrom | ast.Call) for part in said):
                raise Untranslated(f"{file}.py: {name or 'the file'} runs something where it raises")
            node.exc = node.exc.func
    return ast.unparse(whole).strip()


def translated(file: str, name: str, helpers: Set[str]) -> str:
    """The Gallina definition of one function."""
    return _translated(source(file), file, name, frozenset(helpers))


@cache
def _translated(whole: str, file: str, name: str, helpers: Set[str]) -> str:
    function = _definition(whole, file, name)
    with reading(file):
        forms.check(function)
        sites.check(function)
        types = types_of(function)
    binders = " ".join(f"({arg} : {COQ[type]})" for arg, type in types.items() if type != "chance")
    rule = "chance" in {a.arg for a in function.args.args}
    sums = (node for node in ast.walk(function) if isinstance(node, ast.Call) and ast.unparse(node.func) == "sum")
    if not file.startswith("rules/") and any(len(call.args) == 1 for call in sums):
        raise Untranslated(f"refengine/exact/{file}.py: {name}: a sum of whole numbers is none that divides exactly")
    if file.startswith("rules/") and rule and [a.arg for a in function.args.args][:3] != HANDED:
        raise Untranslated(f"refengine/exact/{file}.py: {name} is handed {', '.join(HANDED)} first, in this order")
    result = ast.unparse(function.returns) if function.returns else ""
    answer = "law R (seq V)" if result == "tuple[int, ...]" else "answer R V"
    k = "" if rule else f" (k : ({COQ[RESULTS.get(name, 'row')]}) -> {answer})"
    with reading(file):
        body = text(function, types, helpers, takes(file, function, helpers))
    start = f"let k := @ret R {RETURNED[result]} in\n" if rule else ""
    head = f"(** refengine/exact/{file}.py, {name} *)\nDefinition py_{name} {binders}{k} : {answer} :="
    return f"{head}\n{indented(start + body)}.\n"


def types_of(function: ast.FunctionDef) -> dict[str, str]:
    """Of its arguments, by their names in Gallina; raises Untranslated."""
    found = {}
    for argument in function.args.args:
        type = NAMED.get(argument.arg) or TYPES.get(ast.unparse(argument.annotation) if argument.annotation else "")
        if type is None:
            raise refuse(argument, f"a type that is none of {', '.join(sorted(TYPES))}")
        found[argument.arg] = type
    return found


def takes(file: str, function: ast.FunctionDef, helpers: Set[str]) -> dict[str, list[str]]:
    """The types of what the helpers take that a function calls."""
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    called = helpers & {word.id for word in calls if isinstance(word, ast.Name)}
    return {name: [*types_of(definition(*words.home(file, name, source))).values()] for name in sorted(called)}


def text(function: ast.FunctionDef, types: dict[str, str], helpers: Set[str], taken: Mapping[str, list[str]]) -> str:
    """Its statements in Gallina, read twice: the first reading says what the empty lists will hold. Its variables are
    marked meanwhile; raises Untranslated where one of them is a word of the rest."""
    own = words.own(function) - {"block", "chance"}
    if marked := [name for name in sorted(words.own(function) | names(function)) if MARK in name]:
        raise Untranslated(
            f"line {function.lineno}: {function.name}: {marked[0]} has {MARK} in it, as marked ones have"
        )
    types = {name + MARK * (name in own): type for name, type in types.items()}
    learned: dict[str, str] | None = None
    for _ in range(2):
        marked = Marked(own).visit(copy.deepcopy(function))
        counters = {ast.unparse(n.target) for n in ast.walk(marked) if isinstance(n, ast.AugAssign)}
        scope = Scope(helpers, dict(types), counters, takes=taken, learned=learned)
        try:
            written = statements(scope, marked.body, lambda: "raised", None)
        except Untranslated as refused:
            raise Untranslated(str(refused).replace(MARK, "")) from None
        learned = scope.types
    if taken := sorted(own & {*re.findall(r"[\w']+", written)}):
        raise Untranslated(f"line {function.lineno}: {function.name}: {taken[0]} is a word of the translation")
    return written.replace(MARK, "")


class Marked(ast.NodeTransformer):
    """Variables with a mark behind them."""

    def __init__(self, own: set[str]) -> None:
        self.own = own

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(node.id + MARK * (node.id in self.own), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg + MARK * (node.arg in self.own))


def read(file: str, name: str) -> list[tuple[str, str]]:
    """Where the words of a function are defined, those of the language and what Python.v knows aside."""
    return elsewhere(file, [definition(file, name)])


def elsewhere(file: str, functions: Sequence[ast.FunctionDef]) -> list[tuple[str, str]]:
    with reading(file):
        found = sorted({word for function in functions for word in words.free(function)})
    places = [words.home(file, word, source) for word in found]
    others = [place for place in places if place not in KNOWN and place[0] not in words.LANGUAGE]
    for place in others:
        if place[1] in TRANSLATED_BY_NAME:
            raise Untranslated(f"refengine/exact/{place[0]}.py: {place[1]} is a word of Python.v, and here another one")
    return others


def needed(file: str, name: str) -> list[tuple[str, str]]:
    """The function, after those of refengine.exact that it reads and Python.v does not know."""
    before = [deeper for place in read(file, name) for deeper in needed(*place)]
    return list(dict.fromkeys([*before, (file, name)]))


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def outermost(node: ast.AST) -> list[ast.FunctionDef]:
    """The functions in it, without those that stand in another one."""
    inner = [*ast.iter_child_nodes(node)]
    return [f for n in inner for f in ([n] if isinstance(n, ast.FunctionDef) else outermost(n))]


def indented(text: str) -> str:
    out, depth = [], 1
    for line in text.splitlines():
        out.append("  " * min(depth, 12) + line)
        depth += line.count("(") - line.count(")")
    return "\n".join(out)


def section(name: str, result: str, functions: Sequence[tuple[str, str]], given: str = "") -> str:
    """Functions that end in one kind of result, helpers first."""
    parts, helpers = [], set()
    for file, function in dict.fromkeys(place for wanted in functions for place in needed(*wanted)):
        parts.append(translated(file, function, helpers))
        helpers.add(function)
    return "\n".join([SECTION.format(name=name, result=result) + given, *parts, f"End {name}.\n"])


def rules_of_their_files(file: str, found: Mapping[str, list[ast.stmt]]) -> None:
    """Refuses a file that has a rule's name for another function, or a rule by a name that is not its own."""
    at_home = {name: home for home, name in RULES}
    for name, nodes in found.items() if file.startswith("rules/") else ():
        taken = [a.name for node in nodes if isinstance(node, ast.ImportFrom) for a in node.names if a.asname]
        if (name in at_home and words.home(file, name, source) != (at_home[name], name)) or at_home.keys() & {*taken}:
            raise Untranslated(f"refengine/exact/{file}.py: {name} is the rule of another file, or under another name")


def cards_of(file: str) -> int:
    """How many cards stand in a file: one that is of a name that another one has stands in no list."""
    calls = (node for node in ast.walk(parsed(source(file))) if isinstance(node, ast.Call))
    return sum(ast.unparse(call.func) == "Card" for call in calls)


def unlike(before: str, now: str) -> list[str]:
    """The functions whose Gallina text is another than it was, or that one of the two lacks."""
    texts = [
        dict(re.findall(r"^\(\*\* (\S+, \w+) \*\)\n(.*?)\n\n", f"{text}\n\n", re.M | re.S)) for text in (before, now)
    ]
    return [name for name in {**texts[0], **texts[1]} if texts[0].get(name) != texts[1].get(name)]


def written() -> str:
    """The whole of Translated.v; raises Untranslated."""
    for (file, name), text in KNOWN.items():
        if known_text(file, name) != text:
            what = f"{file}.py: {name or 'the file'}"
            raise Untranslated(f"{what} is not what Python.v says it is: its text is in proofs/translate/known.txt")
        functions = outermost(parsed(text))
        if file not in WHOLE and (others := elsewhere(file, functions)):
            raise Untranslated(f"{file}.py: {name} reads {others}, of which Python.v says nothing")
    for file in sorted(str(path.relative_to(EXACT).with_suffix("")) for path in EXACT.rglob("*.py")):
        if (EXACT / file).is_dir():
            raise Untranslated(f"refengine/exact/{file}: a folder is imported in place of the file beside it")
        if (file, "") not in KNOWN:
            with reading(file):
                rules_of_their_files(file, words.bound(source(file), file))  # it is refused, or defines
    if len(RULES) != sum(cards_of(file) for file in {file for file, _ in RULES}):
        raise Untranslated("refengine/exact/rules: two cards have one name")
    if words.bound(source("__init__"), "__init__"):
        raise Untranslated("__init__.py: what is imported first may change the words of the others")
    return "\n".join([HEADER, section("Rules", "(outcome V)", RULES, LOSSY), section("Loops", "(seq V)", LOOPS)])
