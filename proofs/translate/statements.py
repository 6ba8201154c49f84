"""The statements of one function of Python, each as a term that is told what comes next.

`return` forgets what comes next, `break` goes to what comes after the loop.
"""

import ast
from collections.abc import Callable

from proofs.translate.expressions import expression, expressions
from proofs.translate.scope import Scope
from proofs.translate.terms import Term, as_node, assigned, leaves, names, paren, pattern, refuse, truth, used


def statements(
    scope: Scope, body: list[ast.stmt], end: Callable[[], str], loop: tuple[Callable[[], str], Callable[[], str]] | None
) -> str:
    """The statements of a body; `end` is what comes after the last, `loop` what `continue` and `break` go to."""
    if not body:
        return end()
    first, rest = body[0], body[1:]
    go = lambda: statements(scope, rest, end, loop)  # noqa: E731
    match first:
        case ast.Expr(ast.Constant()):
            return go()
        case ast.Return(value) if value is not None:
            return expression(scope, value, lambda t: f"k {paren(t.text)}")
        case ast.Raise():
            return "raised"
        case ast.Continue() if loop:
            return loop[0]()
        case ast.Break() if loop:
            return loop[1]()
        case ast.Expr(ast.Call(ast.Name("check_chain"), [block])):
            return expression(scope, block, lambda t: f"check_chain raised {t.text} (fun _ =>\n{go()})")
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [value])):
            return expression(scope, value, lambda t: appended(scope, first, name, t) + go())
        case ast.Assign([ast.Subscript(ast.Name(name), key)], value) if scope.types[name].startswith("dict "):
            return expressions(scope, [value, key], lambda ts: put(scope, first, name, *ts) + go())
        case ast.AugAssign(ast.Name(name), ast.Add(), ast.Constant(1)) if scope.types[name] == "nat":
            return f"let {name} := {name}.+1 in\n{go()}"
        case ast.Assign([target], value):
            return assign(scope, target, value, go)
        case ast.AnnAssign(target, _, value) if value is not None:
            return assign(scope, target, value, go)
        case ast.If(ast.Compare(ast.Name(name), [ast.Is()], [ast.Constant(None)]), yes, []):
            types, scope.types[name] = dict(scope.types), "nat"
            found = go()
            scope.back_to(types)
            return f"if {name} is Some {name} then\n{found}\nelse\n{statements(scope, yes, go, loop)}"
        case ast.If(test, yes, no):
            if rest and not leaves(yes):
                raise refuse(first, "what follows would be written twice")
            types = dict(scope.types)

            def branches(t: Term) -> str:
                taken = statements(scope, yes, go, loop)
                scope.back_to(types)
                return f"if {truth(test, t)} then\n{taken}\nelse\n{statements(scope, [*no, *rest], end, loop)}"

            return expression(scope, test, branches)
        case ast.For(target, iterable, inner, []):
            return for_loop(scope, target, iterable, inner, rest, go)
        case ast.While(ast.Constant(True), inner, []):
            state = changed(scope, inner)
            again = lambda: f"next {pattern(state)}"  # noqa: E731
            body_text = statements(scope, inner, again, (again, lambda: "raised"))
            start = pattern(state)
            return f"forever raised (size (block_tokens block)).+1 {start} (fun '{start} next =>\n{body_text})"
        case ast.While(ast.Compare(_, [ast.Lt()], [ast.Name(limit)]) as test, inner, []):
            start, types = pattern(changed(scope, inner)), dict(scope.types)
            more = expression(scope, test, lambda t: truth(test, t))
            turn = statements(
                scope, inner, lambda: f"next {start}", (lambda: f"next {start}", lambda: f"leave {start}")
            )
            scope.back_to(types)
            return (
                f"while_do raised {limit}.+1 {start} (fun '{start} => {more})\n"
                f"(fun '{start} next leave =>\n{turn})\n(fun '{start} =>\n{go()})"
            )
    raise refuse(first)


def appended(scope: Scope, node: ast.stmt, name: str, t: Term) -> str:
    """Places are no nodes: these count from the root."""
    scope.holds(node, name, "seq", t)
    return f"let {name} := rcons {name} {paren(t.text)} in\n"


def put(scope: Scope, node: ast.stmt, name: str, value: Term, key: Term) -> str:
    scope.holds(node, name, "dict", value)
    return f"let {name} := put {name} {paren(as_node(key).text)} {paren(value.text)} in\n"


def for_loop(
    scope: Scope,
    target: ast.expr,
    iterable: ast.expr,
    inner: list[ast.stmt],
    rest: list[ast.stmt],
    go: Callable[[], str],
) -> str:
    state = changed(scope, inner)
    kept = [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and n.id in used(rest)]
    if kept and not isinstance(target, ast.Name):
        raise refuse(target, "only a single loop variable may be used after its loop")

    def write(t: Term) -> str:
        types = dict(scope.types)
        name = scope.bind_target(target, t)
        here = pattern([*state, *([f"Some {kept[0]}"] if kept else [])])
        before = pattern([*state, *(["None"] if kept else [])])
        opened = pattern([*state, *(["_"] if kept else [])])
        again, out = (lambda: f"next {here}"), (lambda: f"out {here}")
        text = statements(scope, inner, again, (again, out))
        scope.back_to(types | {one: scope.types[one] for one in kept})  # what is of the loop ends with it
        closed = pattern([*state, *kept])
        tail = f"bound raised {kept[0]} (fun {kept[0]} =>\n{go()})" if kept else go()
        turn = f"(fun {name} '{opened} next out =>\n{text})"
        return f"for_in {paren(t.text)} {before} {turn}\n(fun '{closed} =>\n{tail})"

    return expression(scope, iterable, write)


def changed(scope: Scope, inner: list[ast.stmt]) -> list[str]:
    """The variables that a loop changes, of those that there are before it."""
    return sorted(assigned(inner) & set(scope.types))


def assign(scope: Scope, target: ast.expr, value: ast.expr, go: Callable[[], str]) -> str:
    if isinstance(target, ast.Name):
        targets, values = [target], [value]
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        targets, values = [t for t in target.elts if isinstance(t, ast.Name)], list(value.elts)
        if len(targets) != len(values):
            raise refuse(target, "parts of a part are assigned to")
    else:
        raise refuse(target)
    for at, name in enumerate(targets):
        if any(name.id in names(later) for later in values[at + 1 :]):
            raise refuse(value, f"{name.id} is used while it is assigned")

    def chain(at: int) -> str:
        if at == len(targets):
            return go()
        name = targets[at].id

        def write(t: Term) -> str:
            if t.type == "chance":  # the coins of another place, independent of all others
                scope.types[name] = "chance"
                return chain(at + 1)
            shifted = as_node(t) if scope.types.get(name) == "node" else t
            if name in scope.counters and t.type == "literal":
                shifted = Term(f"{t.text}%N", "nat")
            scope.gets(values[at], name, shifted.type)
            return f"let {name} := {shifted.text} in\n{chain(at + 1)}"

        return expression(scope, values[at], write)

    return chain(0)
