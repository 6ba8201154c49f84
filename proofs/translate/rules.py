"""Which functions of refengine/exact are translated, and the file that they are written to."""

import ast

from proofs.translate.function import RESULTS, Function
from proofs.translate.terms import Untranslated
from refengine.source_tree import PROOFS, ROOT

EXACT = ROOT / "refengine" / "exact"
FILE = PROOFS / "rocq" / "Translated.v"
# (file, function): helpers first.
WANTED = (
    *(("row", "residual"), ("row", "without"), ("row", "normalised")),
    *(("rules/leviathan", "leviathan"), ("rules/block", "prefix_weights"), ("rules/block", "block")),
    *(("rules/point_mass", "point_mass"), ("rules/iid_candidates", "iid_candidates")),
    *(
        ("rules/without_replacement", "without_replacement"),
        ("rules/agreement", "agreement"),
        ("rules/greedy", "greedy"),
    ),
)
# What Python.v defines by hand, by the body that it had then: another body is refused.
KNOWN = {
    ("block", "row_after"): "return p[node + 1]",
    ("block", "drawn"): "q = block.q[node]\nif q is None:\n    raise ValueError\nreturn q",
    ("block", "check_chain"): "if not block.is_chain():\n    raise ValueError",
    ("block", "is_chain"): "return self.parents == tuple(range(-1, len(self.tokens) - 1))",
    ("block", "children"): "return [j for j, parent in enumerate(self.parents) if parent == node]",
    ("row", "argmax"): "return max(range(len(weights)), key=lambda x: (weights[x], -x))",
}
OTHERWISE = {"at": "here", "left": "rest"}  # names that mean something else in Gallina
COQ = {"rows": "seq (V -> R)", "block": "flat_block R V", "row": "V -> R", "token": "V", "node": "nat"}
COQ |= {"seq num": "seq R", "option": "option nat"}
TYPES = {"Sequence[Row]": "rows", "Block": "block", "Sequence[Fraction]": "row", "int": "token"}
HEADER = """(** The rules of refengine/exact, as they run.

    Written by proofs/translate from their text; do not edit. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Proofs Require Import Prob Python.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Translated.
Variables (R : realFieldType) (V : vocab).
Variable raised : answer R V.
"""


def source(file: str) -> str:
    return (EXACT / f"{file}.py").read_text()


def definition(file: str, name: str) -> ast.FunctionDef:
    tree = ast.parse(source(file))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = OTHERWISE.get(node.id, node.id)
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    if len(found) != 1:
        raise Untranslated(f"{file}.py defines {name} {len(found)} times")
    return found[0]


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
    arguments = {a.arg: ast.unparse(a.annotation) for a in function.args.args if a.annotation and a.arg != "chance"}
    types = {OTHERWISE.get(a, a): "node" if a == "at" else TYPES[annotation] for a, annotation in arguments.items()}
    binders = " ".join(f"({arg} : {COQ[type]})" for arg, type in types.items())
    rule = "chance" in {a.arg for a in function.args.args}
    k = "" if rule else f" (k : ({COQ[RESULTS.get(name, 'row')]}) -> answer R V)"
    body = Function(helpers, dict(types)).block(function.body, lambda: "raised", None)
    start = "let k := @ret R (outcome V) in\n" if rule else ""
    head = f"(** refengine/exact/{file}.py, {name} *)\nDefinition py_{name} {binders}{k} : answer R V :="
    return f"{head}\n{indented(start + body)}.\n"


def indented(text: str) -> str:
    out, depth = [], 1
    for line in text.splitlines():
        out.append("  " * min(depth, 12) + line)
        depth += line.count("(") - line.count(")")
    return "\n".join(out)


def written() -> str:
    """The whole of Translated.v; raises Untranslated."""
    for (file, name), text in KNOWN.items():
        if body_text(definition(file, name)) != text:
            raise Untranslated(f"{file}.py: {name} is not what Python.v says it is")
    helpers: set[str] = set()
    parts = []
    for file, name in WANTED:
        parts.append(translated(file, name, helpers))
        helpers.add(name)
    return f"{HEADER}\n" + "\n".join(parts) + "\nEnd Translated.\n"
