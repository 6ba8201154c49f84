"""One function of Python, statement by statement, as a term that is told what comes next.

`return` forgets what comes next, `break` goes to what comes after the loop. An expression that may fail or asks chance
is computed before the statement that it stands in, in Python's order. Of types only what Gallina needs is known:
numbers against lengths, and nodes, which count from -1 in Python and from 0 here.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from proofs.translate.terms import (
    Substituted,
    Term,
    as_node,
    assigned,
    combined,
    comparison,
    element,
    leaves,
    names,
    number,
    paren,
    pattern,
    refuse,
    truth,
    used,
)

RESULTS = {"prefix_weights": "seq num", "longest_passing": "pair"}  # of helpers; of the others a row
NUMBERS = {"INSIDE_LOG": "inside_log"}  # of which nothing is known
LESS = {"num": "(@less R)", "nat": "fewer", "node": "fewer"}

Then = Callable[[Term], str]


@dataclass
class Function:
    """One function on its way: its helpers, the types of its variables so far, and those of them that count."""

    helpers: set[str]
    types: dict[str, str] = field(default_factory=dict)
    counters: set[str] = field(default_factory=set)
    fresh: int = 0
    after_loop: list[str] = field(default_factory=list)

    # ---- statements: each takes the text of what comes next ------------------------------------------------------

    def block(
        self, body: list[ast.stmt], end: Callable[[], str], loop: tuple[Callable[[], str], Callable[[], str]] | None
    ) -> str:
        """The statements of a body; `end` is what comes after the last, `loop` what `continue` and `break` go to."""
        if not body:
            return end()
        first, rest = body[0], body[1:]
        go = lambda: self.block(rest, end, loop)  # noqa: E731
        match first:
            case ast.Expr(ast.Constant()):
                return go()
            case ast.Return(value) if value is not None:
                return self.expression(value, lambda t: f"k {paren(t.text)}")
            case ast.Raise():
                return "raised"
            case ast.Continue() if loop:
                return loop[0]()
            case ast.Break() if loop:
                return loop[1]()
            case ast.Expr(ast.Call(ast.Name("check_chain"), [block])):
                return self.expression(block, lambda t: f"check_chain raised {t.text} (fun _ =>\n{go()})")
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [value])):
                return self.expression(value, lambda t: self.appended(first, name, t) + go())
            case ast.Assign([ast.Subscript(ast.Name(name), key)], value) if self.types[name].startswith("dict "):
                return self.expressions(
                    [value, key],
                    lambda ts: f"let {name} := put {name} {paren(as_node(ts[1]).text)} {paren(ts[0].text)} in\n{go()}",
                )
            case ast.AugAssign(ast.Name(name), ast.Add(), ast.Constant(1)) if self.types[name] == "nat":
                return f"let {name} := {name}.+1 in\n{go()}"
            case ast.Assign([target], value):
                return self.assign(target, value, go)
            case ast.AnnAssign(target, _, value) if value is not None:
                return self.assign(target, value, go)
            case ast.If(ast.Compare(ast.Name(name), [ast.Is()], [ast.Constant(None)]), yes, []):
                self.types[name] = "nat"
                return f"if {name} is Some {name} then\n{go()}\nelse\n{self.block(yes, go, loop)}"
            case ast.If(test, yes, no):
                if rest and not leaves(yes):
                    raise refuse(first, "what follows would be written twice")
                types = dict(self.types)

                def branches(t: Term) -> str:
                    taken = self.block(yes, go, loop)
                    learned = {
                        n: kind for n, kind in self.types.items() if types.get(n) == "seq ?"
                    }  # of what was empty
                    self.types = {**types, **learned}
                    return f"if {truth(test, t)} then\n{taken}\nelse\n{self.block([*no, *rest], end, loop)}"

                return self.expression(test, branches)
            case ast.For(target, iterable, inner, []):
                return self.loop(target, iterable, inner, rest, go)
            case ast.While(ast.Constant(True), inner, []):
                state = self.state(inner)
                again = lambda: f"next {pattern(state)}"  # noqa: E731
                body_text = self.block(inner, again, (again, lambda: "raised"))
                start = pattern(state)
                return f"forever raised (size (block_tokens block)).+1 {start} (fun '{start} next =>\n{body_text})"
            case ast.While(ast.Compare(_, [ast.Lt()], [ast.Name(limit)]) as test, inner, []):
                start = pattern(self.state(inner))
                more = self.expression(test, lambda t: truth(test, t))
                turn = self.block(inner, lambda: f"next {start}", (lambda: f"next {start}", lambda: f"leave {start}"))
                return (
                    f"while_do raised {limit}.+1 {start} (fun '{start} => {more})\n"
                    f"(fun '{start} next leave =>\n{turn})\n(fun '{start} =>\n{go()})"
                )
        raise refuse(first)

    def appended(self, node: ast.stmt, name: str, t: Term) -> str:
        """Places are no nodes: these count from the root."""
        if t.type == "?" or self.types[name] not in ("seq ?", f"seq {t.type}"):
            raise refuse(node, f"a {t.type} behind {self.types[name]}")
        self.types[name] = f"seq {t.type}"
        return f"let {name} := rcons {name} {paren(t.text)} in\n"

    def loop(
        self, target: ast.expr, iterable: ast.expr, inner: list[ast.stmt], rest: list[ast.stmt], go: Callable[[], str]
    ) -> str:
        state = self.state(inner)
        kept = [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and n.id in used(rest)]
        if kept and not isinstance(target, ast.Name):
            raise refuse(target, "only a single loop variable may be used after its loop")

        def write(t: Term) -> str:
            name = self.bind_target(target, t)
            here = pattern([*state, *([f"Some {kept[0]}"] if kept else [])])
            before = pattern([*state, *(["None"] if kept else [])])
            opened = pattern([*state, *(["_"] if kept else [])])
            again, out = (lambda: f"next {here}"), (lambda: f"out {here}")
            text = self.block(inner, again, (again, out))
            closed = pattern([*state, *kept])
            tail = f"bound raised {kept[0]} (fun {kept[0]} =>\n{go()})" if kept else go()
            turn = f"(fun {name} '{opened} next out =>\n{text})"
            return f"for_in {paren(t.text)} {before} {turn}\n(fun '{closed} =>\n{tail})"

        return self.expression(iterable, write)

    def bind_target(self, target: ast.expr, items: Term) -> str:
        name = self.bind_item(target, element(items))
        return f"'{name}" if isinstance(target, ast.Tuple) else name

    def bind_item(self, target: ast.expr, kind: str) -> str:
        match target:
            case ast.Name(name):
                self.types[name] = kind
                return name
            case ast.Tuple([one, two]) if "*" in kind:
                left, _, right = kind.partition("*")
                return f"({self.bind_item(one, left)}, {self.bind_item(two, right)})"
        raise refuse(target)

    def state(self, inner: list[ast.stmt]) -> list[str]:
        """The variables that a loop changes, of those that there are before it."""
        return sorted(assigned(inner) & set(self.types))

    def assign(self, target: ast.expr, value: ast.expr, go: Callable[[], str]) -> str:
        if isinstance(target, ast.Name):
            targets, values = [target], [value]
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            targets, values = [t for t in target.elts if isinstance(t, ast.Name)], list(value.elts)
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
                    self.types[name] = "chance"
                    return chain(at + 1)
                shifted = as_node(t) if self.types.get(name) == "node" else t
                if name in self.counters and t.type == "literal":
                    shifted = Term(f"{t.text}%N", "nat")
                self.types[name] = shifted.type
                return f"let {name} := {shifted.text} in\n{chain(at + 1)}"

            return self.expression(values[at], write)

        return chain(0)

    # ---- expressions: what may fail or asks chance is done before what comes next -----------------------------

    def expressions(self, nodes: list[ast.expr], then: Callable[[list[Term]], str], done: tuple[Term, ...] = ()) -> str:
        if not nodes:
            return then(list(done))
        return self.expression(nodes[0], lambda t: self.expressions(nodes[1:], then, (*done, t)))

    def effect(self, call: str, type: str, then: Then) -> str:
        """A call that is told what comes next."""
        self.fresh += 1
        name = f"v{self.fresh}"
        return f"{call} (fun {name} =>\n{then(Term(name, type))})"

    def expression(self, node: ast.expr, then: Then) -> str:
        match node:
            case ast.Name("ROOT"):
                return then(Term("0%N", "node"))
            case ast.Name(name) if name in NUMBERS:
                return then(Term(NUMBERS[name], "num"))
            case ast.Name(name):
                return then(Term(name, self.types[name]))
            case ast.Constant(int() as value) if not isinstance(value, bool):
                return then(Term(str(value), "literal"))
            case ast.Constant(float() as value) if value == 0:
                return then(Term("0", "num"))
            case ast.Attribute(ast.Name("block"), "tokens" | "parents" as part):
                return then(Term(f"(block_{part} block)", f"seq {'token' if part == 'tokens' else 'node'}"))
            case ast.UnaryOp(ast.Not(), operand):
                return self.expression(operand, lambda t: then(Term(f"(~~ {truth(operand, t)})", "bool")))
            case ast.BinOp(left, op, right):
                return self.expressions([left, right], lambda ts: then(combined(node, op, *ts)))
            case ast.Compare(left, [ast.In()], [ast.Name(group)]) if self.types[group] == "set":
                return self.expression(left, lambda t: then(Term(f"({group} {t.text})", "bool")))
            case ast.Compare(left, [ast.In()], [ast.Name(group)]) if self.types[group].startswith("dict "):
                return self.expression(
                    left, lambda t: then(Term(f"(has_key {group} {paren(as_node(t).text)})", "bool"))
                )
            case ast.Attribute(ast.Call() as round, "tokens"):
                return self.expression(round, lambda t: then(Term(f"{t.text}.1", "seq token")))
            case ast.Compare(left, [op], [right]):
                return self.expressions([left, right], lambda ts: then(comparison(node, op, *ts)))
            case ast.BoolOp(op, [first, second]):
                return self.connected(op, first, second, then)
            case ast.IfExp(test, yes, no) if asks(yes) or asks(no):
                return self.one_of(node, test, yes, no, then)
            case ast.IfExp(test, yes, no):
                return self.expressions(
                    [test, yes, no],
                    lambda ts: then(
                        Term(f"(if {truth(test, ts[0])} then {number(ts[1])} else {number(ts[2])})", ts[1].type)
                    ),
                )
            case ast.Subscript(value, ast.UnaryOp(ast.USub(), ast.Constant(1))):
                return self.expression(value, lambda s: self.effect(f"last_item raised {s.text}", element(s), then))
            case ast.Subscript(value, ast.Slice(None, upper, None)) if upper is not None:
                return self.expressions(
                    [value, upper], lambda ts: then(Term(f"(take {ts[1].text} {ts[0].text})", ts[0].type))
                )
            case ast.Subscript(value, index):
                return self.expressions([value, index], lambda ts: self.subscript(node, *ts, then))
            case ast.Tuple(elements) | ast.List(elements):
                return self.sequence(elements, then)
            case ast.Dict([ast.expr() as key], [value]):
                return self.expressions(
                    [key, value],
                    lambda ts: then(Term(f"[:: ({as_node(ts[0]).text}, {ts[1].text})]", f"dict {ts[1].type}")),
                )
            case ast.GeneratorExp(body, [generator]):  # whose items are all wanted: `sequence`
                return self.listed(body, generator, then)
            case ast.ListComp(body, [generator]) if lists(generator, self.types):
                return self.listed(body, generator, then)
            case ast.ListComp(body, [generator]) | ast.Call(ast.Name("tuple"), [ast.GeneratorExp(body, [generator])]):
                return self.pointwise(body, generator, then)
            case ast.Call(ast.Name("zip"), [one, two], [_]):
                return self.expressions([one, two], lambda ts: self.zipped(node, *ts, then))
            case ast.Call(ast.Name("max"), [ast.Name(name)], [ast.keyword("key", ast.Lambda() as key)]):
                return self.greatest(node, name, key, then)
            case ast.Call(ast.Call(ast.Name("keep_top_p"), [level], []), [row, ast.Tuple([]), ast.Tuple([])], []):
                return self.expressions(
                    [level, row],
                    lambda ts: self.effect(f"keep_top_p raised {' '.join(paren(t.text) for t in ts)}", "row", then),
                )
            case ast.Call(ast.Attribute(ast.Name("block"), "path"), [at], []):
                return self.expression(
                    at, lambda t: then(Term(f"(path_of block {paren(as_node(t).text)})", "seq token"))
                )
            case ast.Call(ast.Name("next"), [ast.GeneratorExp() as found, ast.Constant(None)]):
                return self.first(found, then)
            case ast.Call(ast.Attribute(ast.Name("block"), "children"), [at]):
                return self.expression(
                    at, lambda t: then(Term(f"(children_of block {paren(as_node(t).text)})", "seq nat"))
                )
            case ast.Call(ast.Attribute(ast.Name("chance"), "accept"), [num, den, _]):
                return self.expressions(
                    [num, den],
                    lambda ts: self.effect(
                        f"ask_accept raised {paren(number(ts[0]))} {paren(number(ts[1]))}", "bool", then
                    ),
                )
            case ast.Call(ast.Attribute(ast.Name("chance"), "choose"), [weights, _]):
                return self.expression(
                    weights, lambda t: self.effect(f"ask_choose raised {paren(t.text)}", "token", then)
                )
            case ast.Call(ast.Name(name), arguments, []):
                return self.expressions(arguments, lambda ts: self.call(node, name, ts, then))
        raise refuse(node)

    def subscript(self, node: ast.expr, value: Term, index: Term, then: Then) -> str:
        if value.type == "row":
            return then(Term(f"({value.text} {index.text})", "num"))
        if value.type.startswith("dict ") and index.type in ("nat", "node"):
            type = value.type.removeprefix("dict ")
            return self.effect(f"look_up raised {value.text} {paren(as_node(index).text)}", type, then)
        if index.type not in ("nat", "?") or not (value.type == "rows" or value.type.startswith("seq ")):
            raise refuse(node, f"an index of type {index.type}")
        return self.effect(f"item raised {value.text} {paren(index.text)}", element(value), then)

    def connected(self, op: ast.boolop, first: ast.expr, second: ast.expr, then: Then) -> str:
        """`a or b`, `a and b`: b is not computed where a decides; what comes next is written once."""
        self.fresh += 1
        name = f"{'either' if isinstance(op, ast.Or) else 'both'}{self.fresh}"
        types = dict(self.types)
        rest = then(Term("holds", "bool"))
        self.types = types

        def decided(a: Term) -> str:
            asked = self.expression(second, lambda b: f"{name} {truth(second, b)}")
            if isinstance(op, ast.Or):
                return f"if {truth(first, a)} then {name} true else\n{asked}"
            return f"if {truth(first, a)} then\n{asked}\nelse {name} false"

        return f"let {name} := (fun holds : bool =>\n{rest}) in\n{self.expression(first, decided)}"

    def one_of(self, node: ast.expr, test: ast.expr, yes: ast.expr, no: ast.expr, then: Then) -> str:
        """`a if test else b`, of which only one is computed; what comes next is written once."""
        self.fresh += 1
        name, value = f"either{self.fresh}", f"v{self.fresh}"
        found = list[str]()

        def branch(side: ast.expr, kind: str) -> str:
            def write(t: Term) -> str:
                found.append(t.type)
                return f"{name} {paren((as_node(t) if kind == 'node' and t.type == 'nat' else t).text)}"

            return self.expression(side, write)

        def branches(t: Term) -> str:
            before = self.fresh
            branch(yes, ""), branch(no, "")  # what they are, and then as one of them is
            kind = found[0] if len({*found}) == 1 else "node" if {*found} == {"nat", "node"} else ""
            if kind not in ("node", "token"):
                raise refuse(node, f"one of {found[0]} and {found[1]}")
            self.fresh = before
            taken = f"if {truth(test, t)} then\n{branch(yes, kind)}\nelse\n{branch(no, kind)}"
            types = dict(self.types)
            rest = then(Term(value, kind))
            self.types = {**types, **self.types}
            return f"let {name} := (fun {value} =>\n{rest}) in\n{taken}"

        return self.expression(test, branches)

    def listed(self, body: ast.expr, generator: ast.comprehension, then: Then) -> str:
        """A list made item by item: a loop of its own, whose variables end with it."""
        types = dict(self.types)
        self.fresh += 1
        made = f"v{self.fresh}"
        found = list[str]()

        def keep(t: Term) -> str:
            found.append(t.type)
            return f"next (rcons {made} {paren(t.text)})"

        def turn(conditions: list[ast.expr]) -> str:
            if not conditions:
                return self.expression(body, keep)
            kept = lambda t: f"if {truth(conditions[0], t)} then\n{turn(conditions[1:])}\nelse\nnext {made}"  # noqa: E731
            return self.expression(conditions[0], kept)

        def write(t: Term) -> str:
            name = self.bind_target(generator.target, t)
            text = turn(generator.ifs)
            self.types = types
            after = then(Term(made, "rows" if found[0] == "row" else f"seq {found[0]}"))
            return f"for_in {paren(t.text)} [::] (fun {name} {made} next out =>\n{text})\n(fun {made} =>\n{after})"

        return self.expression(generator.iter, write)

    def zipped(self, node: ast.expr, one: Term, two: Term, then: Then) -> str:
        if not (one.type.startswith("seq ") and two.type.startswith("seq ")):
            raise refuse(node)
        return self.effect(f"zipped raised {one.text} {two.text}", f"seq {element(one)}*{element(two)}", then)

    def greatest(self, node: ast.expr, name: str, key: ast.Lambda, then: Then) -> str:
        """`max(dict, key=lambda j: (..., ...))`: the keys of the dict, each beside what it is ranked by."""
        match key.args:
            case ast.arguments([], [ast.arg(item)], None, [], [], None, []) if self.types[name].startswith("dict "):
                types = dict(self.types)
            case _:
                raise refuse(node)
        self.types[item] = "node"
        self.fresh += 1
        made = f"v{self.fresh}"
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
        text = self.expressions(key.body.elts, keep)
        self.types = types
        after = self.effect(f"greatest raised {orders[0]} {made}", "node", then)
        return f"for_in (keys {name}) [::] (fun {item} {made} next out =>\n{text})\n(fun {made} =>\n{after})"

    def sequence(self, elements: list[ast.expr], then: Then) -> str:
        inner = [e.value if isinstance(e, ast.Starred) else e for e in elements]
        starred = [isinstance(e, ast.Starred) for e in elements]

        if any(isinstance(e, ast.GeneratorExp) for e in inner[1:]) or (
            inner and isinstance(inner[0], ast.GeneratorExp) and not starred[0]
        ):
            raise refuse(elements[0])

        def write(ts: list[Term]) -> str:
            parts = [t.text if star else f"[:: {number(t)}]" for t, star in zip(ts, starred, strict=True)]
            kinds = {element(t) if star else t.type for t, star in zip(ts, starred, strict=True)}
            return then(
                Term(f"({' ++ '.join(parts)})" if parts else "[::]", f"seq {kinds.pop() if len(kinds) == 1 else '?'}")
            )

        return self.expressions(inner, write)

    def pointwise(self, body: ast.expr, generator: ast.comprehension, then: Then) -> str:
        """A row made from rows, token by token. What does not depend on the token is computed first."""
        match generator:
            case ast.comprehension(
                ast.Tuple([ast.Name(token), ast.Name(a)]), ast.Call(ast.Name("enumerate"), [row], []), []
            ):
                bound, rows = [a], [row]
            case ast.comprehension(ast.Tuple([ast.Name(a), ast.Name(b)]), ast.Call(ast.Name("zip"), [one, two]), []):
                token, bound, rows = "z", [a, b], [one, two]
            case ast.comprehension(ast.Name(a), row, []):
                token, bound, rows = "z", [a], [row]
            case _:
                raise refuse(generator)

        def write(ts: list[Term]) -> str:
            if any(t.type != "row" for t in ts):
                raise refuse(generator, "only rows are read token by token")
            self.types |= {token: "token"} | dict.fromkeys(bound, "num")
            values = {name: f"({t.text} {token})" for name, t in zip(bound, ts, strict=True)}
            outside = [n for n in ast.walk(body) if isinstance(n, ast.Subscript)]
            return self.expressions(
                list(outside),
                lambda done: then(Term(f"(fun {token} : V => {inside(self, body, values, outside, done)})", "row")),
            )

        return self.expressions(rows, write)

    def first(self, found: ast.GeneratorExp, then: Then) -> str:
        """`next((j for j in nodes if block.tokens[j] == x), None)`: the nodes are nodes of the block, so none fails."""
        match found:
            case ast.GeneratorExp(
                ast.Name(a),
                [
                    ast.comprehension(
                        ast.Name(b),
                        nodes,
                        [
                            ast.Compare(
                                ast.Subscript(ast.Attribute(ast.Name("block"), "tokens"), ast.Name(c)), [ast.Eq()], [x]
                            )
                        ],
                    )
                ],
            ) if a == b == c:
                return self.expressions(
                    [nodes, x],
                    lambda ts: then(
                        Term(f"(ohead [seq {a} <- {ts[0].text} | is_token block {paren(ts[1].text)} {a}])", "option")
                    ),
                )
        raise refuse(found)

    def call(self, node: ast.expr, name: str, ts: list[Term], then: Then) -> str:
        texts = [t.text for t in ts]
        match name, [t.type for t in ts]:
            case "Fraction", ["literal"]:
                return then(Term(f"{texts[0]}", "num"))
            case "Fraction", ["flag"]:
                return then(Term(texts[0], "num"))
            case "int", ["bool"]:
                return then(Term(f"(if {texts[0]} then 1 else 0)", "flag"))
            case "len", [_]:
                return then(Term(f"(size {texts[0]})", "nat"))
            case "sum", ["row", *start] if not start or texts[1] == "0":
                return then(Term(f"(total {texts[0]})", "num"))
            case "max", ["num", "num"]:
                return then(Term(f"(Num.max {texts[0]} {texts[1]})", "num"))
            case "range", ["nat"]:
                return then(Term(f"(iota 0 {texts[0]})", "seq nat"))
            case "threshold", ["row", "num", "num", "num"]:
                return then(Term(f"(threshold {' '.join(map(paren, texts))})", "num"))
            case "ancestry", ["block", "nat"]:
                return then(Term(f"(ancestry block {paren(as_node(ts[1]).text)})", "seq nat"))
            case "reversed", [kind] if kind.startswith("seq"):
                return then(Term(f"(rev {texts[0]})", kind))
            case "tuple", [kind] if kind.startswith("seq"):
                return then(Term(texts[0], kind))
            case "enumerate", [kind] if kind.startswith("seq "):
                return then(Term(f"(enumerate {texts[0]})", f"seq nat*{kind.removeprefix('seq ')}"))
            case "Round", ["seq token", "seq nat" | "seq ?"]:
                return then(Term(f"({texts[0]}, {texts[1]})", "pair"))
            case "row_after", ["rows", _]:
                return self.effect(f"row_after raised {texts[0]} {paren(as_node(ts[1]).text)}", "row", then)
            case "drawn", ["block", "nat"]:
                return self.effect(f"drawn raised {texts[0]} {texts[1]}", "row", then)
            case "argmax", ["row"]:
                return self.effect(f"argmax_row raised {texts[0]}", "token", then)
            case "target_rows", ["target", "seq token", "block"]:
                return then(Term(f"(target_rows {' '.join(map(paren, texts))})", "rows"))
            case "Shifted", ["chance", "nat"]:
                return then(Term("", "chance"))
        match self.types.get(name), [t.type for t in ts]:
            case "target", ["seq token"]:
                return then(Term(f"({name} {paren(texts[0])})", "row"))
            case "drafter", ["seq token", "chance"]:
                return self.effect(f"run ({name} {paren(texts[0])})", "block", then)
            case "rule", ["rows", "block", "chance"]:
                return self.effect(f"run ({name} {paren(texts[0])} {paren(texts[1])})", "pair", then)
        if name in self.helpers:
            return self.effect(f"py_{name} {' '.join(map(paren, texts))}", RESULTS.get(name, "row"), then)
        raise refuse(node)


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


def inside(
    function: Function, body: ast.expr, values: dict[str, str], outside: list[ast.expr], done: list[Term]
) -> str:
    """The body of a comprehension, its variables replaced by what they are at the token."""

    class Put(ast.NodeTransformer):
        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            term = done[outside.index(node)]
            function.types[term.text] = term.type
            return ast.Name(term.text)

    text = function.expression(Put().visit(body), lambda t: number(t))
    return Substituted(values).text(text)
