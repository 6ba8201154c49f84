"""`total` of `refengine/engine/sums.py` is the sum of a row, whatever its length: the text runs on a row of n tokens.

n and what stands at each place are unknown. One turn of the loop must make of a row, of odd or even length, the row of
its neighbours' sums, half as long; a row of one token must be its own sum. `EveryVocabulary.root_is_sum` then says that
the sum comes out, for every length, as long as a turn knows nothing of the turns before but the row that they left:
`carried` reads that in the text.
"""

import ast
from collections.abc import Callable
from typing import Any

import z3

from proofs.batched.terms import Paths
from refengine.source_edits.loader import source_path

SUMS = "refengine.engine.sums"


class Other(AssertionError):
    """The text does something else than to add up neighbours."""


class Length:
    """How many entries a level has: to be compared with 1, halved, or asked for its last bit."""

    def __init__(self, level: "Level") -> None:
        self.level = level

    def __gt__(self, other: Any) -> bool:
        if other != 1:
            raise Other(f"it depends on whether a row has more than {other} tokens")
        return self.level.run.goes_on(self.level)

    def __mod__(self, other: int) -> bool:
        return self.level.run.world.holds(self.level.length % other != 0)

    def __floordiv__(self, other: int) -> Any:
        return self.level.length / other  # z3's quotient of integers, rounded down

    def __index__(self) -> int:
        raise Other("it depends on how many tokens a row has")


class Level:
    """A row of unknown length: `at` says what stands at a place. With `pairs`, an entry is two neighbours of it."""

    def __init__(self, run: "Run", length: Any, at: Callable[[Any], Any], pairs: bool = False) -> None:
        self.run, self.length, self.at, self.pairs = run, length, at, pairs

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> "Level":
        level, widths, *more = (*args, *(kwargs or {}).values())
        if func.__name__ != "pad" or widths != (0, 1) or more not in ([], ["constant", None], ["constant", 0.0]):
            raise Other(f"torch.{func.__name__} is not known of a row of unknown length")
        return Level(level.run, level.length + 1, lambda i: z3.If(i < level.length, level.at(i), z3.RealVal(0)))

    @property
    def shape(self) -> tuple[Length]:
        return (Length(self),)

    def double(self) -> "Level":
        return self

    def reshape(self, *shape: Any) -> "Level":
        if len(shape) != 2 or shape[1] != 2 or not self.run.sure(2 * shape[0] == self.length):
            raise Other("a row is cut into others than its pairs of neighbours")
        return Level(self.run, shape[0], self.at, pairs=True)

    def __getitem__(self, index: Any) -> "Level":
        if index not in ((..., 0), (..., 1)) or (index[1] and not self.pairs):
            raise Other(f"{index} of a row of unknown length is looked up")
        if self.pairs:
            return Level(self.run, self.length, lambda i: self.at(2 * i + index[1]))
        return Level(self.run, z3.IntVal(1), lambda i, level=self: level.at(z3.IntVal(0)))  # its first token

    def __add__(self, other: "Level") -> "Level":
        return Level(self.run, self.length, lambda i: self.at(i) + other.at(i))


class Run:
    """One run of `total` on a row of n >= 1 tokens, up to the second time that it asks whether it is done."""

    def __init__(self, world: Paths) -> None:
        self.world, self.weight, self.n = world, z3.Function("weight", z3.IntSort(), z3.RealSort()), z3.Int("n")
        self.row, self.turns, self.rest = Level(self, self.n, self.weight), 0, Level(self, self.n, self.weight)

    def sure(self, goal: Any) -> bool:
        return self.world.sure(goal, *self.world.region)

    def goes_on(self, level: Level) -> bool:
        self.turns += 1
        if self.turns == 1 and level is self.row:
            return self.world.holds(level.length > 1)
        i, next_to = z3.Int("i"), 2 * z3.Int("i") + 1
        sums = self.weight(2 * i) + z3.If(next_to < self.n, self.weight(next_to), z3.RealVal(0))
        halved = z3.And(
            level.length == (self.n + 1) / 2, z3.Implies(z3.And(i >= 0, i < level.length), level.at(i) == sums)
        )
        if self.turns != 2 or level.pairs or not self.sure(halved):
            raise Other("a turn leaves other numbers than the sums of neighbours")
        self.rest = level
        return False  # that the sum of this shorter row comes out is what the induction says

    def judge(self, found: Any) -> None:
        """What is returned must be the first token of what was left when the loop had ended."""
        if not isinstance(found, Level) or found.pairs or self.turns == 0:
            raise Other("something else than a level of the tree is returned")
        first = z3.And(found.length == 1, found.at(z3.IntVal(0)) == self.rest.at(z3.IntVal(0)))
        one_left = self.turns == 2 or self.sure(self.n == 1)
        if not one_left or not self.sure(first):
            raise Other("something else than the root of the tree is returned")


def difference(text: str | None = None) -> str:
    """Where `total` is not the sum of a row of some length; "" where it always is. `text`: in place of the module's."""
    text = source_path(SUMS).read_text() if text is None else text
    names: dict[str, Any] = {}
    try:
        carried(text)
        exec(compile(text, SUMS, "exec"), names)
        world = Paths(assumed=[z3.Int("n") >= 1])

        def program() -> None:
            run = Run(world)
            run.judge(names["total"](run.row))

        world.leaves(program)
    except (Other, TypeError, AttributeError, ValueError, IndexError, RuntimeError) as error:
        return f"sums.total: {type(error).__name__}: {error}"
    return ""


def carried(text: str) -> None:
    """Raise Other where a turn of the loop of `pairs` may know more of the turns before than `level`.

    It may assign names, what it reads must be of this turn or of `level`, and of a list it may use what it put there.
    """
    (function,) = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == "pairs")
    (loop,) = (n for n in function.body if isinstance(n, ast.While))
    if any(
        isinstance(n, ast.While | ast.For | ast.NamedExpr | ast.AugAssign) and n is not loop for n in ast.walk(function)
    ):
        raise Other("`pairs` has another loop than the one over the levels")
    if {n.id for n in ast.walk(loop.test) if isinstance(n, ast.Name)} != {"level"}:
        raise Other("whether the loop goes on depends on more than the row that is left")
    lists, known = set[str](), {"level", "pad"}
    for part in loop.body:
        match part:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [value], [])):
                read, new = value, None
                lists.add(name)
            case ast.Assign([ast.Name(name)], value):
                read, new = value, name
            case _:
                raise Other(f"a turn does more than to assign: {ast.unparse(part)}")
        last = [n.value for n in ast.walk(read) if isinstance(n, ast.Subscript) and ast.unparse(n.slice) == "-1"]
        own = {id(n) for n in last if isinstance(n, ast.Name) and n.id in lists}
        called = [n.func for n in ast.walk(read) if isinstance(n, ast.Call)]
        foreign = [n.id for n in ast.walk(read) if isinstance(n, ast.Name) and n.id not in known and id(n) not in own]
        if foreign or any(not isinstance(f, ast.Name) and ast.unparse(f).split(".")[-1] != "reshape" for f in called):
            raise Other(f"a turn knows more of the turns before than the row that they left: {ast.unparse(part)}")
        known |= {new} if new else set()
