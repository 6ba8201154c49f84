"""`head` of `refengine/engine/policy.py` keeps what the exact text's `top_p` keeps, of a row of any length.

The row is looked at in one order, heavier first and ties to the lowest id: sorting it so means the same in both texts.
How many tokens there are, their weights in that order and p are unknown; of the sums up to a place this much is known:
each is the one before and the weight there, none is above the last. The batched text runs as it is. Of the exact text
the part before its loop and one turn of it run, at any place: a turn adds one token and its weight, and is the last one
where the sum reaches p of the whole. So a token is kept where the sum before it does not, and the first always.
"""

import ast
import inspect
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import z3

from proofs.batched.terms import Paths
from proofs.smt.real import Atom, Real, Term
from refengine.exact import policy as exact
from refengine.source_edits.loader import source_path

POLICY = "refengine.engine.policy"


class Other(AssertionError):
    """A text does something else than to keep the head of a row."""


class Row:
    """A row of n weights: it can be put in order, and looked at in that order."""

    def __init__(self, order: "Order") -> None:
        self.order = order

    def sort(self, *, descending: bool = False, stable: bool = False, dim: int = -1) -> Any:
        if not (descending is True and stable is True and dim == -1):
            raise Other("a row is put in another order than heavier first, ties to the lowest id")
        return SimpleNamespace(indices=self.order)

    def gather(self, dim: int, index: Any) -> "Sorted":
        self.order.expect(dim, index)
        return Sorted(self.order, self.order.n, self.order.weight)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> "Kept":
        filled = {"zeros_like": False, "ones_like": True}
        if func.__name__ not in filled or kwargs != {"dtype": torch.bool}:
            raise Other(f"torch.{func.__name__} is not known of a row of unknown length")
        return Kept(args[0].order, lambda rank: z3.BoolVal(filled[func.__name__]))


class Order:
    """The order of a row, and what is known of it. weight(i): of the token at place i; upto(i): of all up to it."""

    def __init__(self, world: Paths) -> None:
        self.world, self.n, self.rank = world, z3.Int("n"), z3.Int("rank")
        self.weight, self.upto = (z3.Function(name, z3.IntSort(), z3.RealSort()) for name in ("weight", "upto"))

    def facts(self) -> list[Atom]:
        """Of every sum of weights that are not negative, at the place that is looked at."""
        at, last = self.rank, self.n - 1
        return [
            z3.And(at >= 0, at < self.n, self.weight(at) >= 0, self.upto(at) <= self.upto(last), self.upto(last) > 0),
            z3.If(at == 0, self.upto(at) == self.weight(at), self.upto(at) == self.upto(at - 1) + self.weight(at)),
            z3.Implies(at > 0, self.upto(at - 1) >= 0),
        ]

    def expect(self, dim: int, index: Any) -> None:
        if dim != -1 or index is not self:
            raise Other("a row is looked at in another order than its own")


class Sorted:
    """Numbers or conditions by place in the order: `length` of them, and what stands at each."""

    def __init__(self, order: Order, length: Any, at: Callable[[Any], Term], sums: bool = False) -> None:
        self.order, self.length, self.at, self.sums = order, length, at, sums

    def cumsum(self, dim: int) -> "Sorted":
        if dim != -1 or self.at is not self.order.weight:
            raise Other("something else than the weights in their order is added up")
        return Sorted(self.order, self.length, self.order.upto, sums=True)

    def __getitem__(self, index: Any) -> "Sorted":
        match index:
            case (e, slice(start=None, stop=-1, step=None)) if e is ...:
                return Sorted(self.order, self.length - 1, self.at)
            case (e, slice(start=-1, stop=None, step=None)) if e is ...:
                return Sorted(self.order, z3.IntVal(1), lambda i: self.at(self.length - 1))
        raise Other(f"{index} of what stands in the order is looked up")

    def __rmul__(self, factor: Real) -> "Sorted":
        return Sorted(self.order, self.length, lambda i: factor.term * self.at(i))

    __mul__ = __rmul__

    def compared(self, other: "Sorted", word: Callable[[Any, Any], Atom]) -> "Sorted":
        if not z3.is_int_value(other.length) and not self.order.world.sure(self.length == other.length):
            raise Other("what is compared does not stand at the same places")
        return Sorted(self.order, self.length, lambda i: word(self.at(i), other.at(i)))

    def __lt__(self, other: "Sorted") -> "Sorted":
        return self.compared(other, lambda a, b: a < b)

    def __le__(self, other: "Sorted") -> "Sorted":
        return self.compared(other, lambda a, b: a <= b)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> "Sorted":
        tensor, widths, *more = (*args, *(kwargs or {}).values())
        if func.__name__ != "pad" or widths != (1, 0) or more not in ([], ["constant", None]):
            raise Other(f"torch.{func.__name__} is not known of what stands in the order")
        return Sorted(tensor.order, tensor.length + 1, lambda i: z3.If(i < 1, z3.RealVal(0), tensor.at(i - 1)))


class Share(Real):
    """p, which is also multiplied with all that stands in the order."""

    def __mul__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Sorted) else super().__mul__(other)


class Kept:
    """Which tokens of a row are kept, by their place in the order."""

    def __init__(self, order: Order, at: Callable[[Any], Atom]) -> None:
        self.order, self.at = order, at

    def scatter(self, dim: int, index: Any, value: Sorted) -> "Kept":
        self.order.expect(dim, index)
        if not self.order.world.sure(value.length == self.order.n):
            raise Other("not every token is told whether it is kept")
        return Kept(self.order, value.at)


def in_head(order: Order, p: Real) -> Atom:
    """What both texts have to keep at the place that is looked at."""
    return z3.Or(order.rank == 0, order.upto(order.rank - 1) < p.term * order.upto(order.n - 1))


def difference(text: str | None = None) -> str:
    """Where `head` keeps another weight than `top_p` does; "" if nowhere. `text`: in place of the engine's module."""
    text = source_path(POLICY).read_text() if text is None else text
    world = Paths()
    order, p = Order(world), Share(z3.Real("p"), world)
    world.assumed = [z3.And(p.term > 0, p.term <= 1), *order.facts()]

    def batched() -> None:
        module = ModuleType(POLICY)
        exec(compile(text, POLICY, "exec"), module.__dict__)
        found = module.head(Row(order), p)
        here = z3.And(found.at(order.rank), order.weight(order.rank) > 0)  # a weight of 0 is 0, kept or not
        if not world.sure(here == z3.And(in_head(order, p), order.weight(order.rank) > 0), *world.region):
            raise Other("other tokens are kept than those before which the sum is below p of the whole")

    try:
        world.leaves(batched)
        world.leaves(lambda: turn(order, p))
    except (Other, TypeError, AttributeError, ValueError, NameError) as error:
        return f"policy.head: {type(error).__name__}: {error}"
    return ""


class Weights:
    """The row in the exact text: the weight of the token that a turn looks at."""

    def __init__(self, order: Order, token: object) -> None:
        self.order, self.token = order, token

    def __getitem__(self, token: object) -> Real:
        if token is not self.token:
            raise Other("a turn looks at the weight of another token")
        return Real(self.order.weight(self.order.rank), self.order.world)


def turn(order: Order, p: Real) -> None:
    """One turn of the loop of `exact.policy.top_p`, at any place, as its text has it."""
    (policy,) = (
        n
        for n in ast.walk(ast.parse(inspect.getsource(exact.top_p)))
        if isinstance(n, ast.FunctionDef) and n.name == "policy"
    )
    before, loop, after = [n for n in policy.body if not isinstance(n, ast.Expr)]
    assert isinstance(loop, ast.For)
    assert [ast.unparse(n) for n in (loop.target, loop.iter, after)] == [
        "x",
        "_heaviest_first(weights)",
        "return _keep(weights, kept)",
    ]
    token, earlier, world = object(), object(), order.world
    names: dict[str, Any] = {"weights": Weights(order, token), "p": p, "Fraction": int}
    names["sum"] = lambda weights: Real(order.upto(order.n - 1), world)
    exec(compile(ast.Module([before], []), "top_p", "exec"), names)
    if names["mass"] != 0 or names["kept"] != []:
        raise Other("top_p begins with something kept")
    sum_before = z3.If(order.rank == 0, z3.RealVal(0), order.upto(order.rank - 1))
    names |= {
        "mass": Real(sum_before, world),
        "kept": [earlier],
        "_heaviest_first": lambda weights: [token],
        "on": False,
    }
    loop.orelse = ast.parse("on = True").body
    exec(compile(ast.fix_missing_locations(ast.Module([loop], [])), "top_p", "exec"), names)
    goes_on = order.upto(order.rank) < p.term * order.upto(order.n - 1)
    added = world.sure(names["mass"].term == order.upto(order.rank), *world.region)
    if names["kept"] != [earlier, token] or not added or not world.sure(goes_on == names["on"], *world.region):
        raise Other("a turn of top_p does something else than to keep a token and to add its weight")
