"""Expressions: what may fail or asks chance is computed before the statement that it stands in, in Python's order."""

import ast
from collections.abc import Callable

from proofs.translate.calls import beginning, call, chosen, subscript, zipped
from proofs.translate.scope import Scope, Then
from proofs.translate.terms import (
    Substituted,
    Term,
    as_node,
    combined,
    comparison,
    element,
    names,
    paren,
    refuse,
    truth,
)

NUMBERS = {"INSIDE_LOG": "inside_log"}  # of which nothing is known
BINDERS = (ast.ListComp, ast.GeneratorExp, ast.Lambda)
HOLDS = "(fun holds : bool =>"
LESS = {"num": "(@less R)", "nat": "fewer", "node": "fewer"}


def expressions(
    scope: Scope, nodes: list[ast.expr], then: Callable[[list[Term]], str], done: tuple[Term, ...] = ()
) -> str:
    if not nodes:
        return then(list(done))
    return expression(scope, nodes[0], lambda t: expressions(scope, nodes[1:], then, (*done, t)))


def expression(scope: Scope, node: ast.expr, then: Then) -> str:
    match node:
        case ast.Name("ROOT"):
            return then(Term("0%N", "node"))
        case ast.Name(name) if name in NUMBERS:
            return then(Term(NUMBERS[name], "float"))
        case ast.Name(name):
            return then(Term(name, scope.types[name]))
        case ast.Constant(int() as value) if not isinstance(value, bool):
            return then(Term(str(value), "literal"))
        case ast.Constant(float() as value) if value == 0:
            return then(Term("0", "float"))
        case ast.Attribute(ast.Name("block"), "tokens" | "parents" as part):
            return then(Term(f"(block_{part} block)", f"seq {'token' if part == 'tokens' else 'node'}"))
        case ast.UnaryOp(ast.Not(), operand):
            return expression(scope, operand, lambda t: then(Term(f"(~~ {truth(operand, t)})", "bool")))
        case ast.BinOp(left, op, right):
            return expressions(scope, [left, right], lambda ts: then(combined(node, op, *ts)))
        case ast.Compare(left, [ast.In()], [ast.Name(group)]) if scope.types[group] == "set":
            return expression(scope, left, lambda t: then(Term(f"({group} {t.text})", "bool")))
        case ast.Compare(left, [ast.In()], [ast.Name(group)]) if scope.types[group].startswith("dict "):
            return expression(scope, left, lambda t: then(Term(f"(has_key {group} {paren(as_node(t).text)})", "bool")))
        case ast.Attribute(ast.Call() as round, "tokens"):
            return expression(scope, round, lambda t: then(Term(f"{t.text}.1", "seq token")))
        case ast.Compare(left, [op], [right]):
            return expressions(scope, [left, right], lambda ts: then(comparison(node, op, *ts)))
        case ast.BoolOp(op, [first, second]):
            return connected(scope, op, first, second, then)
        case ast.IfExp(test, yes, no) if asks(yes) or asks(no):
            return one_of(scope, node, test, yes, no, then)
        case ast.IfExp(test, yes, no):
            return expressions(scope, [test, yes, no], lambda ts: then(chosen(node, test, *ts)))
        case ast.Subscript(value, ast.UnaryOp(ast.USub(), ast.Constant(1))):
            return expression(scope, value, lambda s: scope.effect(f"last_item raised {s.text}", element(s), then))
        case ast.Subscript(value, ast.Slice(None, upper, None)) if upper is not None:
            return expressions(scope, [value, upper], lambda ts: then(beginning(node, *ts)))
        case ast.Subscript(value, index):
            return expressions(scope, [value, index], lambda ts: subscript(scope, node, *ts, then))
        case ast.Tuple(elements) | ast.List(elements):
            return sequence(scope, elements, then)
        case ast.Dict([ast.expr() as key], [value]):
            return expressions(
                scope,
                [key, value],
                lambda ts: then(Term(f"[:: ({as_node(ts[0]).text}, {ts[1].text})]", f"dict {ts[1].type}")),
            )
        case ast.GeneratorExp(body, [generator]):  # whose items are all wanted: `sequence`
            return listed(scope, body, generator, then)
        case ast.ListComp(body, [generator]) if lists(generator, scope.types):
            return listed(scope, body, generator, then)
        case ast.ListComp(body, [generator]) | ast.Call(ast.Name("tuple"), [ast.GeneratorExp(body, [generator])]):
            return pointwise(scope, body, generator, then)
        case ast.Call(ast.Name("zip"), [one, two], [_]):
            return expressions(scope, [one, two], lambda ts: zipped(scope, node, *ts, then))
        case ast.Call(ast.Name("max"), [ast.Name(name)], [ast.keyword("key", ast.Lambda() as key)]):
            return greatest(scope, node, name, key, then)
        case ast.Call(ast.Call(ast.Name("keep_top_p"), [level], []), [row, ast.Tuple([]), ast.Tuple([])], []):
            return expressions(
                scope,
                [level, row],
                lambda ts: scope.effect(f"keep_top_p raised {exact(node, ts[:1])} {paren(ts[1].text)}", "row", then),
            )
        case ast.Call(ast.Attribute(ast.Name("block"), "path"), [at], []):
            return expression(scope, at, lambda t: then(Term(f"(path_of block {paren(as_node(t).text)})", "seq token")))
        case ast.Call(ast.Name("next"), [ast.GeneratorExp() as found, ast.Constant(None)]):
            return first_found(scope, found, then)
        case ast.Call(ast.Attribute(ast.Name("block"), "children"), [at]):
            return expression(
                scope, at, lambda t: then(Term(f"(children_of block {paren(as_node(t).text)})", "seq nat"))
            )
        case ast.Call(ast.Attribute(ast.Name("chance")), [*_, ast.Tuple([_, *counts])]) if any(
            no_number(scope, count) for count in counts
        ):
            raise refuse(node, "a site is counted by numbers")
        case ast.Call(ast.Attribute(ast.Name("chance"), "accept"), [num, den, _]):
            return expressions(
                scope,
                [num, den],
                lambda ts: scope.effect(f"ask_accept raised {exact(node, ts)}", "bool", then),
            )
        case ast.Call(ast.Attribute(ast.Name("chance"), "choose"), [weights, _]):
            return expression(
                scope, weights, lambda t: scope.effect(f"ask_choose raised {paren(t.text)}", "token", then)
            )
        case ast.Call(ast.Name(name), arguments, []):
            return expressions(scope, arguments, lambda ts: call(scope, node, name, ts, then))
    raise refuse(node)


def exact(node: ast.expr, ts: list[Term]) -> str:
    """Numbers that are not rounded, as arguments."""
    if not {t.type for t in ts} <= {"num", "literal"}:
        raise refuse(node, "a number is wanted that is not rounded")
    return " ".join(paren(t.text) for t in ts)


def no_number(scope: Scope, count: ast.expr) -> bool:
    """Whether a part of a site, which stands in no term, would be an error in Python, or no place."""
    match count:
        case ast.Name(name):
            return scope.types.get(name) not in ("nat", "node")
        case ast.Call(_, [ast.Name(name)]):
            return not scope.types.get(name, "").startswith(("seq ", "rows"))
        case ast.BinOp(left, _, right):
            return no_number(scope, left) or no_number(scope, right)
    return False


def connected(scope: Scope, op: ast.boolop, first: ast.expr, second: ast.expr, then: Then) -> str:
    """`a or b`, `a and b`: b is not computed where a decides; what comes next is written once."""
    scope.fresh += 1
    name, mine = f"{'either' if isinstance(op, ast.Or) else 'both'}{scope.fresh}", f"holds{scope.fresh}"
    types = dict(scope.types)
    rest = then(Term(mine, "bool"))
    scope.back_to(types)
    if mine in rest.partition(HOLDS)[2]:
        raise refuse(first, "what it gives stands behind another `or` or `and`, which has its name")
    rest = rest.replace(mine, "holds")

    def condition(node: ast.expr, t: Term) -> str:
        if t.type != "bool":  # Python gives the one or the other, and no condition
            raise refuse(node, f"an `and` or `or` of a {t.type}")
        return t.text

    def decided(a: Term) -> str:
        asked = expression(scope, second, lambda b: f"{name} {condition(second, b)}")
        if isinstance(op, ast.Or):
            return f"if {condition(first, a)} then {name} true else\n{asked}"
        return f"if {condition(first, a)} then\n{asked}\nelse {name} false"

    return f"let {name} := {HOLDS}\n{rest}) in\n{expression(scope, first, decided)}"


def one_of(scope: Scope, node: ast.expr, test: ast.expr, yes: ast.expr, no: ast.expr, then: Then) -> str:
    """`a if test else b`, of which only one is computed; what comes next is written once."""
    scope.fresh += 1
    name, value = f"either{scope.fresh}", f"v{scope.fresh}"
    found = list[str]()

    def branch(side: ast.expr, kind: str) -> str:
        def write(t: Term) -> str:
            found.append(t.type)
            return f"{name} {paren((as_node(t) if kind == 'node' and t.type == 'nat' else t).text)}"

        return expression(scope, side, write)

    def branches(t: Term) -> str:
        before = scope.fresh
        branch(yes, ""), branch(no, "")  # what they are, and then as one of them is
        kind = found[0] if len({*found}) == 1 else "node" if {*found} == {"nat", "node"} else ""
        if kind not in ("node", "token"):
            raise refuse(node, f"one of {found[0]} and {found[1]}")
        scope.fresh = before
        taken = f"if {truth(test, t)} then\n{branch(yes, kind)}\nelse\n{branch(no, kind)}"
        types = dict(scope.types)
        rest = then(Term(value, kind))
        scope.types = {**types, **scope.types}
        return f"let {name} := (fun {value} =>\n{rest}) in\n{taken}"

    return expression(scope, test, branches)


def sequence(scope: Scope, elements: list[ast.expr], then: Then) -> str:
    inner = [e.value if isinstance(e, ast.Starred) else e for e in elements]
    starred = [isinstance(e, ast.Starred) for e in elements]

    if any(isinstance(e, ast.GeneratorExp) for e in inner[1:]) or (
        inner and isinstance(inner[0], ast.GeneratorExp) and not starred[0]
    ):
        raise refuse(elements[0])

    def write(ts: list[Term]) -> str:
        parts = [t.text if star else f"[:: {t.text}]" for t, star in zip(ts, starred, strict=True)]
        kinds = {element(t) if star else t.type for t, star in zip(ts, starred, strict=True) if t.type != "seq ?"}
        if len(kinds) > 1 or "?" in kinds:
            raise refuse(elements[0], f"a sequence of {' and '.join(sorted(kinds))}")
        return then(Term(f"({' ++ '.join(parts)})" if parts else "[::]", f"seq {[*kinds, '?'][0]}"))

    return expressions(scope, inner, write)


def listed(scope: Scope, body: ast.expr, generator: ast.comprehension, then: Then) -> str:
    """A list made item by item: a loop of its own, whose variables end with it."""
    types = dict(scope.types)
    scope.fresh += 1
    made = f"v{scope.fresh}"
    found = list[str]()

    def keep(t: Term) -> str:
        found.append(t.type)
        return f"next (rcons {made} {paren(t.text)})"

    def turn(conditions: list[ast.expr]) -> str:
        if not conditions:
            return expression(scope, body, keep)
        kept = lambda t: f"if {truth(conditions[0], t)} then\n{turn(conditions[1:])}\nelse\nnext {made}"  # noqa: E731
        return expression(scope, conditions[0], kept)

    def write(t: Term) -> str:
        name = scope.bind_target(generator.target, t)
        text = turn(generator.ifs)
        scope.types = types
        after = then(Term(made, "rows" if found[0] == "row" else f"seq {found[0]}"))
        return f"for_in {paren(t.text)} [::] (fun {name} {made} next out =>\n{text})\n(fun {made} =>\n{after})"

    return expression(scope, generator.iter, write)


def pointwise(scope: Scope, body: ast.expr, generator: ast.comprehension, then: Then) -> str:
    """A row made from rows, token by token. What does not depend on the token is computed first."""
    match generator:
        case ast.comprehension(
            ast.Tuple([ast.Name(token), ast.Name(a)]), ast.Call(ast.Name("enumerate"), [row], []), []
        ):
            bound, rows = [a], [row]
        case ast.comprehension(ast.Tuple([ast.Name(a), ast.Name(b)]), ast.Call(ast.Name("zip"), [one, two], [_]), []):
            token, bound, rows = "z", [a, b], [one, two]
        case ast.comprehension(ast.Name(a), row, []):
            token, bound, rows = "z", [a], [row]
        case _:
            raise refuse(generator)
    if {token, *bound} & scope.types.keys() or any(isinstance(n, BINDERS) for n in ast.walk(body)):
        raise refuse(generator, "a variable of it may be taken for another one")  # here what is read stands inside

    def write(ts: list[Term]) -> str:
        if any(t.type != "row" for t in ts):
            raise refuse(generator, "only rows are read token by token")
        values = {name: f"({t.text} {token})" for name, t in zip(bound, ts, strict=True)}
        outside = [n for n in ast.walk(body) if isinstance(n, ast.Subscript)]
        if any(names(n) & {token, *bound} for n in outside):
            raise refuse(generator, "what depends on the token is not computed before")

        def made(done: list[Term]) -> str:
            types = dict(scope.types)
            scope.types |= {token: "token"} | dict.fromkeys(bound, "num")
            row = Term(f"(fun {token} : V => {inside(scope, body, values, outside, done)})", "row")
            scope.types = types
            return then(row)

        return expressions(scope, list(outside), made)

    return expressions(scope, rows, write)


def first_found(scope: Scope, found: ast.GeneratorExp, then: Then) -> str:
    """`next((j for j in block.children(at) if block.tokens[j] == x), None)`: these are nodes, so none fails."""
    match found:
        case ast.GeneratorExp(
            ast.Name(a),
            [
                ast.comprehension(
                    ast.Name(b),
                    ast.Call(ast.Attribute(ast.Name("block"), "children"), [ast.Name()]) as nodes,
                    [
                        ast.Compare(
                            ast.Subscript(ast.Attribute(ast.Name("block"), "tokens"), ast.Name(c)),
                            [ast.Eq()],
                            [ast.Name(wanted) as x],
                        )
                    ],
                )
            ],
        ) if a == b == c != wanted:
            return expressions(
                scope,
                [nodes, x],
                lambda ts: then(
                    Term(f"(ohead [seq {a} <- {ts[0].text} | is_token block {paren(ts[1].text)} {a}])", "option")
                ),
            )
    raise refuse(found)


def greatest(scope: Scope, node: ast.expr, name: str, key: ast.Lambda, then: Then) -> str:
    """`max(dict, key=lambda j: (..., ...))`: the keys of the dict, each beside what it is ranked by."""
    match key.args:
        case ast.arguments([], [ast.arg(item)], None, [], [], None, []) if scope.types[name].startswith("dict "):
            types = dict(scope.types)
        case _:
            raise refuse(node)
    scope.types[item] = "node"
    scope.fresh += 1
    made = f"v{scope.fresh}"
    orders = list[str]()

    def keep(ts: list[Term]) -> str:
        if not {t.type for t in ts} <= {*LESS}:
            raise refuse(node, "these have no order")
        less = LESS[ts[0].type]
        for t in ts[1:]:
            less = f"(by_both {less} {LESS[t.type]})"
        orders.append(less)
        return f"next (rcons {made} ({item}, ({', '.join(t.text for t in ts)})))"

    if not isinstance(key.body, ast.Tuple):
        raise refuse(node)
    text = expressions(scope, key.body.elts, keep)
    scope.types = types
    after = scope.effect(f"greatest raised {orders[0]} {made}", "node", then)
    return f"for_in (keys {name}) [::] (fun {item} {made} next out =>\n{text})\n(fun {made} =>\n{after})"


def asks(node: ast.expr) -> bool:
    """Whether something in it may fail or asks chance, so that it is computed only where it is wanted."""
    calls = [ast.unparse(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)]
    return not {*calls} <= {"Fraction", "int", "len"} or any(isinstance(n, ast.Subscript) for n in ast.walk(node))


def lists(generator: ast.comprehension, types: dict[str, str]) -> bool:
    """Whether a comprehension makes a list item by item, and not a row token by token."""
    match generator.iter:
        case ast.Name(name):
            return types.get(name, "row") != "row"
        case ast.Call(ast.Name("zip"), parts):
            return any(isinstance(part, ast.Attribute) for part in parts)
        case ast.Call(ast.Name("range")):
            return True
    return False


def inside(scope: Scope, body: ast.expr, values: dict[str, str], outside: list[ast.expr], done: list[Term]) -> str:
    """The body of a comprehension, its variables replaced by what they are at the token."""

    class Put(ast.NodeTransformer):
        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            term = done[outside.index(node)]
            scope.types[term.text] = term.type
            return ast.Name(term.text)

    def number(t: Term) -> str:
        if t.type != "num":  # a quotient of whole numbers is rounded in Python
            raise refuse(body, f"a row of a {t.type} at every token")
        return t.text

    return Substituted(values).text(expression(scope, Put().visit(body), number))
