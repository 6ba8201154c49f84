"""Following uniforms through a torch program, down to the places where something is decided by them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

from refengine.audit.interception.gumbel_race import race_weights
from refengine.audit.interception.quantised_race import coarse_weights
from refengine.audit.interception.uniforms import (
    BITS,
    NOBODY,
    Derived,
    Grid,
    Piece,
    Unmodelled,
    merge_owners,
    source,
    split,
)

# Monotone in each argument on [0, 1), so that compositions are monotone and bisection finds every breakpoint.
ELEMENTWISE = frozenset(
    {"add", "sub", "rsub", "mul", "div", "reciprocal", "neg", "log", "log1p", "log2", "exp", "expm1", "sqrt"}
    | {"sigmoid", "tanh", "clamp", "clamp_min", "clamp_max", "minimum", "maximum", "where", "masked_fill", "_to_copy"}
    | {"floor", "ceil", "round", "trunc", "lt", "le", "gt", "ge", "searchsorted", "bucketize"}
)
STRUCTURAL = frozenset(
    {"view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "select", "slice", "expand", "permute", "transpose"}
    | {"t", "clone", "detach", "alias", "index", "gather", "index_select", "repeat", "split", "unbind", "flip"}
    | {"cat", "stack"}
)
SHAPE_ONLY = frozenset(
    {"zeros_like", "ones_like", "empty_like", "full_like", "new_zeros", "new_ones", "new_empty", "new_full"}
)


class Followed:
    """The uniforms of one run and every live tensor that was computed from them.

    decide(kind, element, pieces)  asks chance which piece of an element's uniform is the one
    race(row, weights)             asks chance which entry of an argmax race wins
    """

    def __init__(self, decide: Callable[[int, list[Piece]], Piece], race: Callable[[int, list[float]], int]) -> None:
        self.decide, self.race = decide, race
        self.grids: list[Grid] = []
        self.derived: Any = WeakTensorKeyDictionary()

    def knows(self, leaf: Any) -> bool:
        return isinstance(leaf, Tensor) and leaf in self.derived

    def concerns(self, args: Any, kwargs: Any) -> bool:
        return len(self.derived) > 0 and any(self.knows(leaf) for leaf in tree_leaves((args, kwargs)))

    def uniforms(self, out: Tensor, transform: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Make each element of `out` a fresh uniform, or `transform` of one (computed in float64, then rounded).

        The values that stand in `out` afterwards are placeholders: only what is in `derived` counts.
        """
        if out.dtype not in BITS:
            raise Unmodelled(f"uniforms of {out.dtype} are not modelled")
        if out._is_view():
            raise Unmodelled("random numbers are filled into a view of another tensor")
        owner = torch.arange(len(self.grids), len(self.grids) + out.numel()).reshape(out.shape)
        self.grids += [Grid(BITS[out.dtype], 0, 1 << BITS[out.dtype]) for _ in range(out.numel())]
        out.fill_(0.5)
        self.derived[out] = source(owner, out.dtype, transform)
        return out

    def follow(self, func: Any, args: Any, kwargs: Any) -> Any:
        """One operation with at least one known tensor among its arguments. NotImplemented where it is not followed."""
        name = func.overloadpacket.__name__
        if name in SHAPE_ONLY:
            return func(*args, **kwargs)
        if name in ("eq", "ne"):
            return self._equal(func, args, kwargs)
        if name in ("argmax", "argmin"):
            return self._race(func, args, kwargs)
        if name in STRUCTURAL:
            return self._restructure(func, args, kwargs)
        if name in ELEMENTWISE:
            return self._compute(func, args, kwargs)
        if name.endswith("_") and name[:-1] in ELEMENTWISE:
            return self._in_place(func, args, kwargs)
        return NotImplemented

    def _replay(self, func: Any, args: Any, kwargs: Any) -> Callable[[Tensor], Tensor]:
        """`func` as a function of the uniforms. Plain tensors are copied now: the program may overwrite them later."""
        known = {id(leaf): self.derived[leaf] for leaf in tree_leaves((args, kwargs)) if self.knows(leaf)}
        keep = tree_map(lambda a: known.get(id(a), a.clone()) if isinstance(a, Tensor) else a, (args, kwargs))

        def replay(table: Tensor) -> Tensor:
            again = tree_map(lambda a: a.replay(table) if isinstance(a, Derived) else a, keep)
            result: Tensor = func(*again[0], **again[1])
            return result

        return replay

    def _restructure(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The same change of shape for owners and values."""
        joins = func.overloadpacket.__name__ in ("cat", "stack")

        def owner_of(a: Any) -> Any:
            if self.knows(a):
                return self.derived[a].owner
            return torch.full(a.shape, NOBODY) if joins and isinstance(a, Tensor) else a

        owner_args, owner_kwargs = tree_map(owner_of, (args, kwargs))
        result, owners = func(*args, **kwargs), func(*owner_args, **owner_kwargs)
        replay = self._replay(func, args, kwargs)
        if isinstance(result, Tensor):
            self.derived[result] = Derived(owners.clone(), replay)
        else:
            for i, (part, owner) in enumerate(zip(result, owners, strict=True)):
                self.derived[part] = Derived(owner.clone(), lambda table, i=i: replay(table)[i])  # type: ignore[misc]
        return result

    def _compute(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        name = func.overloadpacket.__name__
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if name in ("searchsorted", "bucketize"):
            leaves = [leaf for leaf in leaves if self.knows(leaf)]  # one result per searched value, whatever the bins
        owner = merge_owners([self._owner(leaf) for leaf in leaves])
        if owner is None:
            raise Unmodelled(f"{func} combines two random numbers, or one with itself")
        result: Tensor = func(*args, **kwargs)
        derived = Derived(owner.expand(result.shape), self._replay(func, args, kwargs))
        divisor = args[1] if name == "div" else args[0] if name == "reciprocal" else None
        if self.knows(divisor):
            self._refuse_sign_change(self.derived[divisor])
        if result.dtype.is_floating_point:
            self.derived[result] = derived
            return result
        return self._decide(derived, result)

    def _owner(self, a: Tensor) -> Tensor:
        owner: Tensor = self.derived[a].owner if self.knows(a) else torch.full(a.shape, NOBODY)
        return owner

    def _refuse_sign_change(self, divisor: Derived) -> None:
        """1 / x is monotone on either side of zero only."""
        low, high = (torch.full((len(self.grids) + 1,), u, dtype=torch.float64) for u in (2.0**-53, 1 - 2.0**-53))
        if bool((divisor.replay(low) * divisor.replay(high) < 0).any()):
            raise Unmodelled("a random divisor may have either sign")

    def _in_place(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        target: Tensor = args[0]
        if target._is_view():
            raise Unmodelled(f"{func} writes random numbers into a view of another tensor")
        functional = getattr(getattr(torch.ops.aten, func.overloadpacket.__name__[:-1]), func._overloadname)
        result = self._compute(functional, args, kwargs)
        if result.shape != target.shape or result.dtype != target.dtype:
            raise Unmodelled(f"{func} changes the shape or the dtype of a random tensor")
        self.derived[target] = self.derived[result]
        return target

    def _equal(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        """u == x is not monotone in u, but it is made of two comparisons that are."""
        at_least = self._compute(getattr(torch.ops.aten.ge, func._overloadname), args, kwargs)
        more = self._compute(getattr(torch.ops.aten.gt, func._overloadname), args, kwargs)
        equal = at_least & ~more
        return equal if func.overloadpacket.__name__ == "eq" else ~equal

    def _decide(self, derived: Derived, result: Tensor) -> Tensor:
        """Fill a boolean or integer result element by element; what one element settles narrows its uniform."""
        out = derived.replay(torch.zeros(len(self.grids) + 1, dtype=torch.float64)).clone()
        for element, owner in enumerate(derived.owner.reshape(-1).tolist()):
            if owner == NOBODY:
                continue
            found = split(derived, self.grids, element)
            lo, hi, value = found[0] if len(found) == 1 else self.decide(element, found)
            self.grids[owner] = Grid(self.grids[owner].bits, lo, hi)
            out.view(-1)[element] = value
        return out

    def _race(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        """argmax over one axis of tensors like w_i / E_i with fresh uniforms everywhere."""
        derived = self.derived[args[0]]
        result: Tensor = func(*args, **kwargs)
        sign = 1 if func.overloadpacket.__name__ == "argmax" else -1
        dim = args[1] if len(args) > 1 else kwargs.get("dim")

        def lanes(x: Tensor) -> Tensor:
            return x.reshape(1, -1) if dim is None else x.movedim(dim, -1).reshape(-1, x.shape[dim])

        for r, owners in enumerate(lanes(derived.owner).tolist()):
            fresh = [o for o in owners if o != NOBODY]
            if len(set(fresh)) != len(owners) or not all(self.grids[o].untouched for o in fresh):
                raise Unmodelled("an argmax over random numbers that are used elsewhere too")

            def entries(table: Tensor, r: int = r) -> Tensor:
                return sign * lanes(derived.replay(table))[r]

            try:
                weights = race_weights(entries, owners, len(self.grids))
            except Unmodelled:
                weights = coarse_weights(entries, owners, self.grids)
            result.view(-1)[r] = self.race(r, weights)
            for o in owners:  # who lost is not known any more: using these numbers again is refused above
                self.grids[o] = Grid(self.grids[o].bits, 0, 1)
        return result
