"""That no two decisions of a run share a coin, read from the sites in the text of a rule.

Python.v gives every decision a coin of its own and knows no sites, so this is what makes it right. A site is refused
where two turns of a loop, or two decisions of one run, might stand at it; and where an "emit" is not the place of the
token in its round, so that the next round could come to stand there too (`place` in refengine/exact/chance.py).
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proofs.translate.terms import assigned, names, refuse

HANDED = {"drafter", "rule"}  # parameters that are handed chance, each of which has sites of its own
LABELS = {"accept": {"accept"}, "choose": {"emit", "agree"}}


@dataclass(frozen=True)
class Decision:
    """A call that asks chance: its label, what counts it, the loops around it, and its statement and what follows."""

    node: ast.Call
    label: str
    counts: tuple[ast.expr, ...]
    loops: tuple[ast.For | ast.While, ...]
    after: Sequence[ast.stmt]

    def ends(self) -> bool:
        """Whether the run is over with it: it is returned, or given to a variable right before."""
        first, *rest = self.after
        simple = isinstance(first, ast.Assign | ast.AnnAssign | ast.Expr)
        return isinstance(first, ast.Return) or (simple and bool(rest) and isinstance(rest[0], ast.Return))


def check(function: ast.FunctionDef) -> None:
    """Raises Untranslated where a coin might be used twice."""
    rounds = _rounds(function)
    for argument in function.args.args:
        kind = ast.unparse(argument.annotation).lower() if argument.annotation else ""
        if kind in HANDED and argument.arg != kind:
            raise refuse(argument, f"only one {kind} is handed chance, under that name")
    _refuse_other_uses(function, {*rounds})
    found = list(_decisions(function.body, (), rounds))
    labels = {here.label for here in found}
    if labels & HANDED and labels - HANDED:
        raise refuse(function, "it asks chance itself, and hands it to others, who may ask at the same site")
    for at, here in enumerate(found):
        for loop in here.loops:
            if not any(_counted(count, loop, function) for count in here.counts):
                raise refuse(here.node, "two turns of a loop may stand at this site")
        if here.label == "emit" and not _in_place(here):
            raise refuse(here.node, "the site of a token is not its place in the round")
        for other in found[:at]:
            same = other.label == here.label and len(other.counts) == len(here.counts)
            follows = here.after[0] in other.after or other.after[0] in here.after
            apart = here.ends() and other.ends() and not follows
            if same and not apart and not _below(here, other, function):
                raise refuse(here.node, f"the site may be that of line {other.node.lineno}")


def _rounds(function: ast.FunctionDef) -> dict[str, tuple[ast.expr, ...]]:
    """The names of chance, and what counts their coins beyond the site: the start of a round."""
    names: dict[str, tuple[ast.expr, ...]] = {"chance": ()}
    loops = [node for node in ast.walk(function) if isinstance(node, ast.While)]
    for node in ast.walk(function):
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("Shifted"), [ast.Name("chance"), start])):
                if not any(node in loop.body[1:2] and _at_place(loop.body[0], start) for loop in loops):
                    raise refuse(node, "coins of tokens are not at their places in the text")
                names[name] = (start,)
            case ast.Assign([ast.Name(name)], ast.Name("chance")):
                names[name] = ()
    for node in ast.walk(function):
        several = isinstance(node, ast.ListComp | ast.GeneratorExp | ast.Lambda)
        if several and any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(node)):
            raise refuse(node, "several turns may ask chance at this site")
    stored = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and _stored(node)]
    for name in (*names, "prefix", "prompt"):
        if stored.count(name) > (name not in ("chance", "prompt")):
            raise refuse(function, f"{name} is not the same in all of the text")
    return names


def _at_place(before: ast.stmt, start: ast.expr) -> bool:
    """Whether a round starts behind the prompt and what followed it."""
    match before:
        case ast.Assign([ast.Name("prefix")], ast.BinOp(ast.Name("prompt"), ast.Add(), ast.Name(out))):
            return out != "prompt" and ast.unparse(start) == "len(prefix)"
    return False


def _refuse_other_uses(function: ast.FunctionDef, names: set[str]) -> None:
    """Chance is asked, handed on as it is, or shifted once by a statement of `_rounds`; a round is returned as it is
    made. Whatever else the text does with either, no reader here would see."""
    known = set[ast.AST]()
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    for node in nodes:
        match node:
            case ast.Assign([ast.Name() as name], ast.Call(ast.Name("Shifted") as shifted, [ast.Name() as whole, _])):
                known |= {name, shifted, whole}
            case ast.Assign([ast.Name() as name], ast.Name("chance") as whole):
                known |= {name, whole}
            case ast.Call(ast.Attribute(ast.Name() as name, "accept" | "choose")):
                known.add(name)
            case ast.Return(ast.Call(ast.Name("Round") as made)):
                known.add(made)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != "Shifted":
            known |= {argument for argument in node.args if isinstance(argument, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in {*names, "Shifted", "Round"} and node not in known:
            raise refuse(node, "this is no known use of chance, or of a round")


def _decisions(
    body: Sequence[ast.stmt], loops: tuple[ast.For | ast.While, ...], rounds: dict[str, tuple[ast.expr, ...]]
) -> Iterator[Decision]:
    for at, statement in enumerate(body):
        for part in ast.iter_child_nodes(statement):
            if isinstance(part, ast.expr):
                for node in ast.walk(part):
                    if isinstance(node, ast.Call) and (asked := _asked(node, rounds)):
                        yield Decision(node, *asked, loops, body[at:])
        inner = (*loops, statement) if isinstance(statement, ast.For | ast.While) else loops
        yield from _decisions([s for s in ast.iter_child_nodes(statement) if isinstance(s, ast.stmt)], inner, rounds)


def _asked(node: ast.Call, rounds: dict[str, tuple[ast.expr, ...]]) -> tuple[str, tuple[ast.expr, ...]] | None:
    """The label of a call's site and what counts it; None where it asks nothing of chance."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(name), verb), [*_, site]) if name in rounds:
            match site:
                case ast.Tuple([ast.Constant(str() as label), first, *more]) if label in LABELS.get(verb, set()):
                    return label, (first, *more, *rounds[name])
            raise refuse(node, "this is no site of such a decision")
        case ast.Call(ast.Name(callee), arguments) if callee != "Shifted":
            for argument in arguments:
                if isinstance(argument, ast.Name) and argument.id in rounds:
                    if callee not in HANDED:
                        raise refuse(node, f"chance is handed to what is none of {', '.join(sorted(HANDED))}")
                    return callee, rounds[argument.id]
    return None


def _counted(count: ast.expr, loop: ast.For | ast.While, function: ast.FunctionDef) -> bool:
    """Whether this has another value in every turn."""
    match loop, count:
        case ast.For(target=target, iter=ast.Call(ast.Name("enumerate" | "range" | "reversed"))), (
            ast.Name(name) | ast.BinOp(ast.Name(name), ast.Sub(), ast.Constant(1))
        ):
            if not _once_each(loop.iter, function):
                return False
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            return isinstance(first, ast.Name) and first.id == name and name not in assigned(loop.body)
        case ast.While(body=body), _:
            if any(isinstance(node, ast.Continue) for statement in body for node in ast.walk(statement)):
                return False
            lengths = _lengths(count, body)
            return any(_grows(name, body) for name in lengths) and all(
                not _given_in(name, body) and (_grows(name, body) or name not in assigned(body)) for name in lengths
            )
    return False


def _once_each(items: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether a list that is gone through backwards has no item twice: places, or some of them."""
    match items:
        case ast.Call(ast.Name("reversed"), [ast.Name(name)]):
            given = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and _stored(n)]
            made = [n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and n.targets[0] in given]
            match made:
                case [
                    ast.ListComp(ast.Name(one), [ast.comprehension(ast.Name(two), ast.Call(ast.Name("range"), [_]))])
                ]:
                    return one == two and len(given) == 1
            return False
        case ast.Call(ast.Name("reversed"), [inner]):
            return isinstance(inner, ast.Call) and ast.unparse(inner.func) == "range"
    return True


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _lengths(count: ast.expr, body: Sequence[ast.stmt]) -> list[str]:
    """Of which sequences it is the length, one after the other: [] where it is none."""
    match count:
        case ast.Call(ast.Name("len"), [ast.Name(name)]):
            for statement in body:
                match statement:
                    case ast.Assign([ast.Name(whole)], ast.BinOp(ast.Name(one), ast.Add(), ast.Name(two))):
                        if whole == name:
                            return [one, two]
            return [name]
        case ast.BinOp(left, ast.Add(), right):
            before, behind = _lengths(left, body), _lengths(right, body)
            return [*before, *behind] if before and behind else []
    return []


def _grows(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether every turn that goes on makes it longer. A round has a token at least: the loop's theorems assume it."""
    for statement in body:
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(list_), "append"), [_])) if list_ == name:
                return True
            case ast.Assign([ast.Name(tuple_)], ast.Tuple([ast.Starred(ast.Name(old)), _])) if tuple_ == old == name:
                return True
            case ast.For(iter=ast.Attribute(ast.Call(), "tokens"), body=inner) if _grows(name, inner):
                return not any(isinstance(n, ast.Break | ast.Continue) for part in inner for n in ast.walk(part))
    return False


def _given_in(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether it is given a value there, other than itself and one more."""
    longer = set[int]()
    for node in (inner for statement in body for inner in ast.walk(statement)):
        match node:
            case ast.Assign([ast.Name(one) as target], ast.Tuple([ast.Starred(ast.Name(two)), _])) if one == two:
                longer.add(id(target))
    stored = (n for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and _stored(n) and n.id == name)
    return any(id(node) not in longer for node in stored)


def _below(here: Decision, other: Decision, function: ast.FunctionDef) -> bool:
    """Whether one of them is counted by what runs below the count of the other: `kept - 1` for kept below gamma, and
    `gamma - 1`."""
    for one, bound in ((here, other), (other, here)):
        low, high = ([ast.unparse(count) for count in decision.counts] for decision in (one, bound))
        for loop in one.loops:
            match loop:
                case ast.For(
                    ast.Name(name), ast.Call(ast.Name("reversed"), [ast.Call(ast.Name("range"), [ast.Name(limit)])])
                ) if loop not in bound.loops and len(_stores(limit, function)) <= 1:
                    if (low[0], high[0]) in ((name, limit), (f"{name} - 1", f"{limit} - 1")) and low[1:] == high[1:]:
                        return name not in assigned(loop.body)
    return False


def _stores(name: str, function: ast.FunctionDef) -> list[ast.Name]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name and _stored(node)]


def _in_place(here: Decision) -> bool:
    """Whether the path of the round that is returned next is as long as the site says."""
    returned = [(at, n) for at, s in enumerate(here.after) for n in ast.walk(s) if isinstance(n, ast.Return)]
    if not returned:  # decoding without speculation: every token is a round of its own, at its place in the text
        match here.counts[0]:
            case ast.BinOp(
                ast.Call(ast.Name("len"), [ast.Name("prompt")]), ast.Add(), ast.Call(ast.Name("len"), [out])
            ):
                return ast.unparse(out) != "prompt"
        return False
    count = here.counts[0]
    return all(
        _as_long(n.value, ast.unparse(count)) and not _moved(here.after, at) & names(count) for at, n in returned
    )


def _moved(after: Sequence[ast.stmt], at: int) -> set[str]:
    """What is assigned before that statement, or in it, where it may be returned; lists that grow in it grow later."""
    stored = {n.id for n in ast.walk(after[at]) if isinstance(n, ast.Name) and _stored(n)}
    return assigned(after[:at]) | stored


def _as_long(returned: ast.expr | None, count: str) -> bool:
    """Whether it is a round whose path is as long as that says."""
    match returned:
        case ast.Call(ast.Name("Round"), [_, ast.Call(ast.Name("tuple"), [ast.Call(ast.Name("range"), [length])])]):
            return count == ast.unparse(length)
        case ast.Call(ast.Name("Round"), [_, ast.Call(ast.Name("tuple"), [ast.Name(path)]) | ast.Name(path)]):
            return count == f"len({path})"
    return False
