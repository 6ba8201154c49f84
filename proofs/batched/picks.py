"""`first_above` of `refengine/engine/sums.py` is `choose_below` of `refengine/exact/chance.py`: the token of a uniform.

The text runs on two lanes: a row without mass, of which the answer is -1, and a row of any nonnegative real numbers
that are not all 0 beside any uniform of [0, 1). Rows of one to `LONGEST` tokens are asked about, so trees of up to four
levels, full and not: a turn of the loop is the same at every level. Nothing is rounded here: that a float64 pick ends
at a token with weight, for which the condition `right > 0` is there, is `FloatDescent.v`.

And `accept_below` of `refengine/engine/coins.py` is that of the exact text: the comparison that `FloatAccept.v` is
about.
"""

from functools import partial
from typing import Any

import torch
import z3

from proofs.batched.tensor import Terms, entries
from proofs.batched.terms import Paths
from proofs.smt.real import Real
from refengine.exact.chance import accept_below, choose_below
from refengine.source_edits.loader import source_path

SUMS, COINS = "refengine.engine.sums", "refengine.engine.coins"
LONGEST = 9
NONE = -2  # where it is not one token on all of a path


def difference(text: str | None = None, longest: int = LONGEST) -> str:
    """Where a pick is another token than the exact text's; "" where it never is. `text`: in place of the module's."""
    names: dict[str, Any] = {}
    exec(compile(source_path(SUMS).read_text() if text is None else text, SUMS, "exec"), names)
    for tokens in range(1, longest + 1):
        row, u = [z3.Real(f"w{i}") for i in range(tokens)], z3.Real("u")
        world = Paths(assumed=[*(w >= 0 for w in row), z3.Sum(row) > 0, u >= 0, u < 1])
        try:
            leaves = world.leaves(partial(pick, names["first_above"], row, u, world))
        except Exception as error:  # whatever it is: the text does not run as it should
            return f"first_above of {tokens} tokens: {type(error).__name__}: {error}"
        if wrong := sorted({leaf.result for leaf in leaves if leaf.result[0] != leaf.result[1]}):
            return f"first_above of {tokens} tokens: {wrong[0][0]} instead of {wrong[0][1]}"
    return ""


def pick(first_above: Any, row: list[Any], u: Any, world: Paths) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """On one path: the tokens that the batched text gives both lanes, and those of the exact text."""
    lanes = [[z3.RealVal(0)] * len(row), row]
    weights = Terms(entries((2, len(row)), lambda at: lanes[at[0]][at[1]]), torch.float64, world)
    share = Terms(entries((2,), lambda at: (z3.RealVal(0), u)[at[0]]), torch.float64, world)
    ours = first_above(share, weights).array
    exact = choose_below(Real(u, world), [Real(w, world) for w in row])
    return tuple(token(answer, len(row), world) for answer in ours), (-1, exact)


def acceptance(text: str | None = None) -> str:
    """Where a draft is accepted that the exact text refuses, or the other way round; "" where it never is."""
    names: dict[str, Any] = {"__name__": COINS}
    exec(compile(source_path(COINS).read_text() if text is None else text, COINS, "exec"), names)
    numbers, world = z3.Reals("u num den"), Paths()

    def accepted() -> tuple[bool, bool]:
        u, num, den = (
            Terms(entries((1,), lambda at, x=x: x), dtype, world)
            for x, dtype in zip(numbers, (torch.float64, torch.float32, torch.float32), strict=True)
        )
        return bool(names["accept_below"](u, num, den)), accept_below(*(Real(x, world) for x in numbers))

    try:
        leaves = world.leaves(accepted)
    except Exception as error:  # whatever it is: the text does not run as it should
        return f"accept_below: {type(error).__name__}: {error}"
    return "" if all(ours == exact for leaf in leaves for ours, exact in [leaf.result]) else "accept_below: other odds"


def token(answer: Any, tokens: int, world: Paths) -> int:
    """The token that it is on all of a path."""
    if not z3.is_expr(answer):
        return int(answer)
    return next((t for t in range(-1, tokens) if world.sure(answer == t, *world.region)), NONE)
