"""Interception: the exact law of in-process torch code that was never written for it.

    run = intercepted(program)                 # program() -> hashable, drawing from torch as it likes
    exact.law.law(run)                         # its exact law
    run(exact.chance.Replay(trace))            # one of its runs again, decision by decision

Every random operation below the torch API asks `chance` instead of the generator, whichever spelling, library call or
generator argument it came through:

* `multinomial` chooses between the weights that it was given, at site `("draw", n, row, j)`; `bernoulli` accepts
  (`("flip", n, i)`); `randint` chooses (`("integer", n, i)`);
* `rand`, `rand_like`, `uniform_` and `random.random` return uniforms that are followed through arithmetic, changes of
  shape and `.item()`, and are decided only where the program compares them: `("compare", n, i)`, odds in grid points;
* `exponential_`, or -log of a uniform, may run in an argmax race (Gumbel-max): `("race", n, row)`.

What comes out is the law of the program with torch's generator replaced by an ideal source on the same grid; what is
left of error is the program's own float rounding (multinomial is taken to draw exactly by its weights, a race by
weights known to 1e-6). Randomness that cannot be followed raises `Unmodelled`, and so does a draw from numpy's global
generator or from Python's in another way than `random.random`: such a subject is sampled, never guessed.
"""

import random
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from refengine.audit.interception.tracing import Followed
from refengine.audit.interception.uniforms import Piece, Unmodelled
from refengine.exact.chance import Chance

__all__ = ["Intercept", "Raised", "Unmodelled", "intercepted"]

T = TypeVar("T", bound=Hashable)
MAX_TOKEN_RANGE = 4096  # a randint over more values than this draws a seed, not a token
READS = ("numpy", "__array__", "data_ptr", "untyped_storage", "__dlpack__")  # ways to memory, which has no numbers yet
MOST_DECISIONS = 2000  # of one run: a loop that draws until something is accepted never ends on the branch that refuses


class Raised(NamedTuple):
    """The outcome of a run in which the program raised: a result of its own, never counted as tokens."""

    error: str


def intercepted(program: Callable[[], T]) -> Callable[[Chance], T | Raised]:
    """`program` as a function of chance. An exception of the program becomes its outcome; one of ours goes through."""

    def run(chance: Chance) -> T | Raised:
        mode = Intercept(chance)
        result: T | Raised
        try:
            with _python_side(mode), mode:
                result = program()
        except Exception as error:
            first_line = str(error).partition("\n")[0]
            result = Raised(f"{type(error).__name__}: {first_line}")
        if mode.failure is not None:  # also where the program swallowed it
            raise mode.failure
        return result

    return run


class Intercept(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The dispatch mode in which torch asks `chance`. `failure` is the first error of ours, caught or not."""

    def __init__(self, chance: Chance) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.chance = chance
        self.failure: Exception | None = None
        self.followed = Followed(self._decide, self._race)
        self._counts: dict[str, int] = {}
        self._asked = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        draws = torch.Tag.nondeterministic_seeded in func.tags and not _idle_dropout(func, args, kwargs)
        concerned = self.followed.concerns(args, kwargs)
        if not draws and not concerned:
            return func(*args, **kwargs)
        try:
            if "out" in kwargs:
                raise Unmodelled(f"{func} writes random numbers into a given tensor")
            result = self._draw(func, args, kwargs) if draws else self.followed.follow(func, args, kwargs)
            if result is NotImplemented:
                with self:
                    result = func.decompose(*args, **kwargs)
            if result is NotImplemented:
                raise Unmodelled(f"{func} of random numbers is not followed")
            return result
        except Unmodelled as unmodelled:
            self.failure = self.failure or unmodelled
            raise

    def _draw(self, func: Any, args: Any, kwargs: Any) -> Any:
        kind = func.overloadpacket.__name__
        given = _arguments(func, args, kwargs)
        if kind in ("rand", "rand_like"):
            return self.followed.uniforms(func(*args, **kwargs))
        if kind == "uniform_":
            low, high = given["from"], given["to"]
            return self.followed.uniforms(args[0], lambda u: low + (high - low) * u)
        if kind == "exponential_":
            return self.followed.uniforms(args[0], lambda u: -torch.log(u) / given["lambd"])
        if kind == "multinomial" and not self.followed.knows(given["self"]):
            return self._multinomial(func, given["self"], given["num_samples"], given["replacement"])
        if kind in ("bernoulli", "bernoulli_") and not self.followed.concerns(args, kwargs):
            return self._bernoulli(func, args, kwargs, given.get("p", args[0]))
        if kind == "randint":
            return self._integers(func(*args, **kwargs), given.get("low", 0), given["high"])
        return NotImplemented

    def _multinomial(self, func: Any, weights: Tensor, samples: int, replacement: bool) -> Tensor:
        drawn: Tensor = func(weights, samples, replacement)  # torch's own refusals (NaN, negative, no mass) come first
        n = self._count("draw")
        rows, columns = weights.reshape(-1, weights.shape[-1]), drawn.view(-1, samples)
        for r, row in enumerate(rows.tolist()):
            left = [Fraction(w) for w in row]
            for j in range(samples):
                columns[r, j] = choice = self._ask(self.chance.choose, left, ("draw", n, r, j))
                left = left if replacement else [*left[:choice], Fraction(0), *left[choice + 1 :]]
        return drawn

    def _bernoulli(self, func: Any, args: Any, kwargs: Any, p: Any) -> Tensor:
        odds = torch.as_tensor(p, dtype=torch.float64).clone()  # bernoulli_ may overwrite its own odds
        out: Tensor = func(*args, **kwargs)
        n = self._count("flip")
        for i, yes in enumerate(odds.expand(out.shape).reshape(-1).tolist()):
            out.view(-1)[i] = self._ask(self.chance.accept, Fraction(yes), 1, ("flip", n, i))
        return out

    def _integers(self, out: Tensor, low: int, high: int) -> Tensor:
        if high - low > MAX_TOKEN_RANGE:
            raise Unmodelled(f"randint draws one of {high - low} values: a seed, by the look of it")
        n = self._count("integer")
        for i in range(out.numel()):
            out.view(-1)[i] = low + self._ask(self.chance.choose, [1] * (high - low), ("integer", n, i))
        return out

    def _decide(self, element: int, pieces: list[Piece]) -> Piece:
        """Which piece of a uniform: an accept where the answer is yes or no, a choice between intervals otherwise."""
        site = ("compare", self._count("compare"), element)
        sizes = [hi - lo for lo, hi, _ in pieces]
        if len(pieces) == 2 and {pieces[0][2], pieces[1][2]} == {0, 1}:
            yes = pieces[0][2] == 0
            accepted = self._ask(self.chance.accept, sizes[int(yes)], sum(sizes), site)
            return pieces[int(yes) if accepted else 1 - int(yes)]
        return pieces[int(self._ask(self.chance.choose, sizes, site))]

    def _race(self, row: int, weights: list[float]) -> int:
        return int(self._ask(self.chance.choose, [Fraction(w) for w in weights], ("race", self._count("race"), row)))

    def _count(self, kind: str) -> int:
        self._counts[kind] = self._counts.get(kind, -1) + 1
        return self._counts[kind]

    def _ask(self, question: Callable[..., Any], *odds_and_site: Any) -> Any:
        """Ask chance; its complaints (a replay that does not fit, say) are ours, not the program's."""
        self._asked += 1
        try:
            if self._asked > MOST_DECISIONS:
                raise Unmodelled(f"one run takes more than {MOST_DECISIONS} random decisions")
            return question(*odds_and_site)
        except Exception as error:
            self.failure = self.failure or error
            raise


@contextmanager
def _python_side(mode: Intercept) -> Iterator[None]:
    """What torch's dispatcher cannot see: `random.random`, `Tensor.item`, reads of memory, draws nobody intercepts."""
    original_item, original_random = Tensor.item, random.random
    original_list, read = Tensor.tolist, {name: getattr(Tensor, name) for name in READS}

    def item(tensor: Tensor) -> Any:
        return tensor.double().reshape(()) if mode.followed.knows(tensor) else original_item(tensor)

    def tolist(tensor: Tensor) -> Any:
        if not mode.followed.knows(tensor):
            return original_list(tensor)
        return [tolist(element) for element in tensor.unbind()] if tensor.ndim else item(tensor)

    def memory(original: Callable[..., Any]) -> Callable[..., Any]:
        def reading(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if mode.followed.knows(tensor):
                mode.failure = mode.failure or Unmodelled(
                    "random numbers were read from memory, as by numpy or a kernel"
                )
            return original(tensor, *args, **kwargs)

        return reading

    def uniform() -> Tensor:
        return mode.followed.uniforms(torch.empty((), dtype=torch.float64))

    before = _outside()
    Tensor.item, random.random = item, uniform  # type: ignore[method-assign, assignment]
    Tensor.tolist = tolist  # type: ignore[method-assign, assignment]
    for name, original in read.items():
        setattr(Tensor, name, memory(original))
    try:
        yield
    finally:
        Tensor.item, random.random = original_item, original_random  # type: ignore[method-assign]
        Tensor.tolist = original_list  # type: ignore[method-assign]
        for name, original in read.items():
            setattr(Tensor, name, original)
    if _outside() != before:
        mode.failure = mode.failure or Unmodelled("the program drew from numpy or from Python's random module")


def _outside() -> tuple[Any, ...]:
    """The state of the generators that are not followed."""
    legacy: Any = numpy.random.get_state(legacy=True)
    return random.getstate(), legacy[1].tobytes(), legacy[2]


def _arguments(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments of an operation by name, defaults included."""
    names = [a.name for a in func._schema.arguments]
    defaults = {a.name: a.default_value for a in func._schema.arguments if a.has_default_value()}
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def _idle_dropout(func: Any, args: Any, kwargs: Any) -> bool:
    """Attention kernels are marked random because they could drop out; with a rate of zero they draw nothing."""
    return _arguments(func, args, kwargs).get("dropout_p") == 0.0
