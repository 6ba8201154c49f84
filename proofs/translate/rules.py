"""Which functions of refengine/exact are translated, and the file that they are written to."""

import ast
from collections.abc import Sequence

from proofs.translate import sites, words
from proofs.translate.function import RESULTS, Function
from proofs.translate.terms import Untranslated
from refengine.exact import rules
from refengine.source_tree import PROOFS, ROOT

EXACT = ROOT / "refengine" / "exact"
FILE = PROOFS / "rocq" / "Translated.v"
# The rules whose cards call them lossless, and the loop: (file, function). Those that are lossy by design take
# logarithms of floats or sort rows, which Python.v has no words for.
RULES = tuple((f"rules/{card.file}", card.name) for card in rules.RULES.values() if card.lossless)
LOOPS = (("loop", "generate"), ("loop", "plain"))
# What Python.v defines by hand, or sites.py relies on, by the text that it had then: another text is refused. Of a
# class its fields and the names of what it does, of a number what it is.
KNOWN = {
    ("block", "ROOT"): "-1",
    ("block", "Block"): "@dataclass(frozen=True)\ntokens: tuple[int, ...]\nparents: tuple[int, ...]\n"
    "q: tuple[Row | None, ...]\nsites: tuple[Site | None, ...]\n__post_init__, children, path, is_chain",
    ("block", "__post_init__"): "if not len(self.tokens) == len(self.parents) == len(self.q) == len(self.sites):\n"
    "    raise ValueError\nfor node, parent in enumerate(self.parents):\n    if not ROOT <= parent < node:\n"
    "        raise ValueError",
    ("block", "chain"): "return Block(tuple(tokens), tuple(range(-1, len(tokens) - 1)), tuple(q), tuple(sites))",
    ("block", "Round"): "@dataclass(frozen=True)\ntokens: tuple[int, ...]\npath: tuple[int, ...]\n",
    ("chance", "Shifted"): "@dataclass(frozen=True)\ninner: Chance\noffset: int\naccept, choose, _absolute",
    ("chance", "_absolute"): "kind, depth, *candidate = site\n"
    "return (kind, place(str(kind), int(depth), self.offset), *candidate)",
    ("chance", "place"): "return start + depth if kind == 'emit' else start * DEPTHS + depth",
    ("chance", "DEPTHS"): "1024",
    ("chance", "accept_below"): "return bool(u * den < num)",
    ("block", "row_after"): "return p[node + 1]",
    ("block", "drawn"): "q = block.q[node]\nif q is None:\n    raise ValueError\nreturn q",
    ("block", "check_chain"): "if not block.is_chain():\n    raise ValueError",
    ("block", "is_chain"): "return self.parents == tuple(range(-1, len(self.tokens) - 1))",
    ("block", "children"): "return [j for j, parent in enumerate(self.parents) if parent == node]",
    ("block", "path"): "return () if node == ROOT else (*self.path(self.parents[node]), self.tokens[node])",
    ("block", "target_rows"): "return [target(prefix + block.path(node)) for node in range(-1, len(block.tokens))]",
    ("row", "argmax"): "return max(range(len(weights)), key=lambda x: (weights[x], -x))",
}
OTHERWISE = {"at": "here", "left": "rest", "out": "said"}  # names that mean something else in Gallina
COQ = {"rows": "seq (V -> R)", "block": "flat_block R V", "row": "V -> R", "token": "V", "node": "nat"}
COQ |= {"seq num": "seq R", "option": "option nat", "seq token": "seq V", "nat": "nat", "set": "V -> bool"}
COQ |= {"target": "seq V -> V -> R", "drafter": "seq V -> law R (flat_block R V)"}
COQ |= {"rule": "seq (V -> R) -> flat_block R V -> law R (outcome V)"}
TYPES = {
    "Sequence[Row]": "rows",
    "Block": "block",
    "Sequence[Fraction]": "row",
    "int": "token",
    "frozenset[int]": "set",
}
TYPES |= {"tuple[int, ...]": "seq token", "Target": "target", "Drafter": "drafter", "Rule": "rule"}
NAMED = {"at": "node", "max_new_tokens": "nat", "chance": "chance"}  # where the annotation does not tell
RETURNED = {"Round": "(outcome V)", "tuple[int, ...]": "(seq V)"}  # by a function that asks chance
HEADER = """(** The rules of refengine/exact, as they run.

    Written by proofs/translate from their text; do not edit. *)

From mathcomp Require Import all_ssreflect all_algebra.
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


def source(file: str) -> str:
    return (EXACT / f"{file}.py").read_text()


def definition(file: str, name: str) -> ast.FunctionDef:
    """A function, its variables named as in Gallina; raises Untranslated where one of its words is another's."""
    found = [n for n in ast.walk(ast.parse(source(file))) if isinstance(n, ast.FunctionDef) and n.name == name]
    if len(found) != 1:
        raise Untranslated(f"{file}.py defines {name} {len(found)} times")
    words.variables(found[0], OTHERWISE)
    for node in ast.walk(found[0]):
        if isinstance(node, ast.Name):
            node.id = OTHERWISE.get(node.id, node.id)
    return found[0]


def known_text(file: str, name: str) -> str:
    """The text of what Python.v defines by hand: without docstrings, and without what an error says."""
    match words.bound(source(file)).get(name, [None])[0]:
        case ast.ClassDef(decorator_list=marks, bases=[], body=body):
            fields = [n for n in body if isinstance(n, ast.AnnAssign)]
            does = ", ".join(n.name for n in body if isinstance(n, ast.FunctionDef))
            return "\n".join([*(f"@{ast.unparse(m)}" for m in marks), *map(ast.unparse, fields), does])
        case ast.Assign(value=value):
            return ast.unparse(value)
    return body_text(definition(file, name))


def body_text(function: ast.FunctionDef) -> str:
    """Without the docstring, and without what an error says."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    for node in (n for s in body for n in ast.walk(s)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
    return "\n".join(ast.unparse(s) for s in body)


def translated(file: str, name: str, helpers: set[str]) -> str:
    """The Gallina definition of one function."""
    function = definition(file, name)
    sites.check(function)
    arguments = {a.arg: ast.unparse(a.annotation) for a in function.args.args if a.annotation}
    types = {OTHERWISE.get(a, a): NAMED.get(a) or TYPES[annotation] for a, annotation in arguments.items()}
    binders = " ".join(f"({arg} : {COQ[type]})" for arg, type in types.items() if type != "chance")
    rule = "chance" in {a.arg for a in function.args.args}
    result = ast.unparse(function.returns) if function.returns else ""
    answer = "law R (seq V)" if result == "tuple[int, ...]" else "answer R V"
    k = "" if rule else f" (k : ({COQ[RESULTS.get(name, 'row')]}) -> {answer})"
    body = Function(helpers, dict(types)).block(function.body, lambda: "raised", None)
    start = f"let k := @ret R {RETURNED[result]} in\n" if rule else ""
    head = f"(** refengine/exact/{file}.py, {name} *)\nDefinition py_{name} {binders}{k} : {answer} :="
    return f"{head}\n{indented(start + body)}.\n"


def read(file: str, name: str) -> list[tuple[str, str]]:
    """Where the words of a function are defined, those of the language and what Python.v knows aside."""
    places = [words.home(file, word, source) for word in sorted(words.free(definition(file, name)))]
    return [place for place in places if place not in KNOWN and place[0] not in words.LANGUAGE]


def needed(file: str, name: str) -> list[tuple[str, str]]:
    """The function, after those of refengine.exact that it reads and Python.v does not know."""
    before = [deeper for place in read(file, name) for deeper in needed(*place)]
    return list(dict.fromkeys([*before, (file, name)]))


def indented(text: str) -> str:
    out, depth = [], 1
    for line in text.splitlines():
        out.append("  " * min(depth, 12) + line)
        depth += line.count("(") - line.count(")")
    return "\n".join(out)


def section(name: str, result: str, functions: Sequence[tuple[str, str]]) -> str:
    """Functions that end in one kind of result, helpers first."""
    parts, helpers = [], set()
    for file, function in dict.fromkeys(place for wanted in functions for place in needed(*wanted)):
        parts.append(translated(file, function, helpers))
        helpers.add(function)
    return "\n".join([SECTION.format(name=name, result=result), *parts, f"End {name}.\n"])


def written() -> str:
    """The whole of Translated.v; raises Untranslated."""
    for (file, name), text in KNOWN.items():
        if known_text(file, name) != text:
            raise Untranslated(f"{file}.py: {name} is not what Python.v says it is")
        if not text.startswith("@") and name.islower() and (others := read(file, name)):
            raise Untranslated(f"{file}.py: {name} reads {others}, of which Python.v says nothing")
    return "\n".join([HEADER, section("Rules", "(outcome V)", RULES), section("Loops", "(seq V)", LOOPS)])
