"""Calls, subscripts, slices and choices, of terms that are computed already."""

import ast

from proofs.translate.scope import Scope, Then
from proofs.translate.terms import Term, as_node, element, paren, refuse, truth

RESULTS = {"prefix_weights": "seq num", "longest_passing": "pair"}  # of helpers; of the others a row


def call(scope: Scope, node: ast.expr, name: str, ts: list[Term], then: Then) -> str:
    texts = [t.text for t in ts]
    match name, [t.type for t in ts]:
        case "Fraction", ["literal" | "flag"]:
            return then(Term(texts[0], "num"))
        case "int", ["bool"]:
            return then(Term(f"(if {texts[0]} then 1 else 0)", "flag"))
        case "len", [_]:
            return then(Term(f"(size {texts[0]})", "nat"))
        case "sum", ["row"] | ["row", "num" | "literal"] if texts[1:] in ([], ["0"]):
            return then(Term(f"(total {texts[0]})", "num"))
        case "max", ["num", "num"]:
            return then(Term(f"(Num.max {texts[0]} {texts[1]})", "num"))
        case "range", ["nat"]:
            return then(Term(f"(iota 0 {texts[0]})", "seq nat"))
        case "threshold", ["row", "float", "float", "float"]:
            return then(Term(f"(threshold {' '.join(map(paren, texts))})", "float"))
        case "ancestry", ["block", "nat"]:
            return then(Term(f"(ancestry block {paren(as_node(ts[1]).text)})", "seq nat"))
        case "reversed", [kind] if kind.startswith("seq"):
            return then(Term(f"(rev {texts[0]})", kind))
        case "tuple", [kind] if kind.startswith("seq"):
            return then(Term(texts[0], kind))
        case "enumerate", [kind] if kind.startswith("seq "):
            return then(Term(f"(enumerate {texts[0]})", f"seq nat*{kind.removeprefix('seq ')}"))
        case "Round", ["seq token", "seq nat"]:
            return then(Term(f"({texts[0]}, {texts[1]})", "pair"))
        case "row_after", ["rows", _]:
            return scope.effect(f"row_after raised {texts[0]} {paren(as_node(ts[1]).text)}", "row", then)
        case "drawn", ["block", "nat"]:
            return scope.effect(f"drawn raised {texts[0]} {texts[1]}", "row", then)
        case "argmax", ["row"]:
            return scope.effect(f"argmax_row raised {texts[0]}", "token", then)
        case "target_rows", ["target", "seq token", "block"]:
            return then(Term(f"(target_rows {' '.join(map(paren, texts))})", "rows"))
        case "Shifted", ["chance", "nat"]:
            return then(Term("", "chance"))
    match scope.types.get(name), [t.type for t in ts]:
        case "target", ["seq token"]:
            return then(Term(f"({name} {paren(texts[0])})", "row"))
        case "drafter", ["seq token", "chance"]:
            return scope.effect(f"run ({name} {paren(texts[0])})", "block", then)
        case "rule", ["rows", "block", "chance"]:
            return scope.effect(f"run ({name} {paren(texts[0])} {paren(texts[1])})", "pair", then)
    if name in scope.helpers:
        wanted, first_reading = scope.takes[name], scope.learned is None
        given = [w if first_reading and t.type == "?" else t.type for t, w in zip(ts, wanted, strict=False)]
        if given != wanted or len(ts) != len(wanted):
            raise refuse(node, f"{name} is given {[t.type for t in ts]}, and takes {scope.takes[name]}")
        return scope.effect(f"py_{name} {' '.join(map(paren, texts))}", RESULTS.get(name, "row"), then)
    raise refuse(node)


def subscript(scope: Scope, node: ast.expr, value: Term, index: Term, then: Then) -> str:
    if value.type == "row" and index.type == "token":
        return then(Term(f"({value.text} {index.text})", "num"))
    if value.type.startswith("dict ") and index.type in ("nat", "node"):
        type = value.type.removeprefix("dict ")
        return scope.effect(f"look_up raised {value.text} {paren(as_node(index).text)}", type, then)
    if index.type != "nat" or not (value.type == "rows" or value.type.startswith("seq ")):
        raise refuse(node, f"an index of type {index.type}")
    return scope.effect(f"item raised {value.text} {paren(index.text)}", element(value), then)


def zipped(scope: Scope, node: ast.expr, one: Term, two: Term, then: Then) -> str:
    if not (one.type.startswith("seq ") and two.type.startswith("seq ")):
        raise refuse(node)
    return scope.effect(f"zipped raised {one.text} {two.text}", f"seq {element(one)}*{element(two)}", then)


def beginning(node: ast.expr, value: Term, upper: Term) -> Term:
    if not value.type.startswith("seq ") or upper.type != "nat":
        raise refuse(node, f"the first {upper.type} of a {value.type}")
    return Term(f"(take {upper.text} {value.text})", value.type)


def chosen(node: ast.expr, asked: ast.expr, test: Term, yes: Term, no: Term) -> Term:
    if yes.type != no.type:
        raise refuse(node, f"one of {yes.type} and {no.type}")
    return Term(f"(if {truth(asked, test)} then {yes.text} else {no.text})", yes.type)
