"""The rules compiled: the same tokens as the plain text, bit for bit, in one pass over the rows that a rule needs.

`compiled(rule)` is what to call, with coins `CompiledPhilox`, whose choices from rows are compiled too. It has the
plain rule's arguments, serves Philox coins with numba on a CPU and with Triton on CUDA where these are installed
(`pip install refengine[fast]`), and leaves everything else to the plain text: other coins, rules and dtypes that have
no kernel, and blocks that the plain text refuses by name.

    cpu   lane   numba: a lane at a time
    cuda  tile   Triton: a tile of a row at a time; tile_chains and tile_trees have the rules
"""

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from torch import Tensor

from refengine.engine.block import Block, Round
from refengine.engine.coins import KINDS, Coins, Philox, Shifted, Site, parts

Rule = Callable[[Tensor, Block, Coins], Round]
NEEDS = {"cpu": "numba", "cuda": "triton"}


@cache
def compiled(rule: Rule) -> Rule:
    """The rule `engine.rules.<name>.<name>` in its fastest form that gives the same tokens."""

    @wraps(rule)
    def fast(p: Tensor, block: Block, coins: Coins) -> Round:
        inner, start = (coins.inner, coins.offset) if isinstance(coins, Shifted) else (coins, 0)
        here = kernels(p.device.type)
        if here is None or not isinstance(inner, Philox) or not here.serves(rule.__name__, p, block.q):
            return rule(p, block, coins)
        out: Round | None = here.verify(rule.__name__, p, block, here.from_philox(inner, start))
        return rule(p, block, coins) if out is None else out

    return fast


class CompiledPhilox(Philox):
    """Philox coins whose choices are made in one pass over a row, on a CPU with numba; else as the plain text's are."""

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        here = kernels("cpu") if weights.device.type == "cpu" else None
        if here is None:
            return super().choose(weights, site)
        kind, place, candidate = parts(site)
        found: Tensor | None = here.choose(self, weights, KINDS[kind], place, -1 if candidate is None else candidate)
        return super().choose(weights, site) if found is None else found


@cache
def kernels(device: str) -> ModuleType | None:
    """The kernels of a device, None where what compiles them is not installed."""
    if device not in NEEDS or find_spec(NEEDS[device]) is None:
        return None
    return import_module(f"{__name__}.{device}")
