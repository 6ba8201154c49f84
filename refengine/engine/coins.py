"""Coins: where every random decision of the batched engine comes from. The tensor twin of `refengine.exact.chance`.

    accept(num, den, site)  -> bool  [B]   lane b is True iff u_b * den_b < num_b
    choose(weights, site)   -> int64 [B]   lane b is the first i with u_b * total_b < weights_b[0] + ... + weights_b[i]

Both comparisons are strict, division-free and made in float64. A site is `(kind, depth)` or `(kind, depth, candidate)`;
depth and candidate are one int for all lanes or an int64 tensor [B] with one value per lane.

Accept takes a 24-bit u: for float32 odds u * den is then exact, so the comparison is the one between real numbers, and
the probability of True is off by less than 2^-24. Choose takes a 53-bit u, because on a 24-bit grid a third of a 152k
vocabulary could never be drawn.

A rule asks once for all lanes, also where some of them have nothing to decide. An idle lane may hold anything, NaN
included: its answer is unspecified, nothing raises, and no other lane notices. Rows are checked in `check.check_rows`.

* `Philox`     counter-based uniforms: what ships
* `Recorded`   uniforms handed over by site: boundaries, grids, conformance vectors
* `Branching`  one lane, decided by a `refengine.exact.chance.Chance`: exact laws of engine code
* `Shifted`    the same coins seen from a later round
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from refengine.engine.sums import first_above
from refengine.exact.chance import ACCEPT_BITS, CHOOSE_BITS, Chance, place
from refengine.exact.chance import Site as OneSite

Site: TypeAlias = tuple[str | int | Tensor, ...]
Words: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]


class Coins(Protocol):
    """The source of every decision of B lanes."""

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        """bool [B]: True with probability min(1, num / den), False where num is 0. num, den: float [B]."""
        ...

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        """int64 [B]: i with probability weights[i] / total, never an i of weight 0. weights: float [B, V]."""
        ...


def accept_below(u: Tensor, num: Tensor, den: Tensor) -> Tensor:
    """The definition of accept at uniforms u, float64 [B]."""
    return u * den.double() < num.double()


def choose_below(u: Tensor, weights: Tensor) -> Tensor:
    """The definition of choose at uniforms u, float64 [B]; `sums` has the order of addition. Without mass: -1."""
    return first_above(u, weights)


# ---------------------------------------------------------------------------------------------------------------------

SCHEME = 1  # raised whenever a counter comes to mean something else: recorded runs name the scheme they were made with
KINDS = {"draft": 0, "accept": 1, "emit": 2, "agree": 3}
MASK = 0xFFFFFFFF


def philox4x32(counter: Words, key: tuple[int, int]) -> Words:
    """Philox4x32-10 (Salmon et al. 2011). Words are int64 tensors that hold 32 unsigned bits."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        # The product of two 32-bit words wraps in int64, which leaves all of its 64 bits in place.
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1 = (b >> 32).bitwise_and_(MASK).bitwise_xor_(c1).bitwise_xor_(k0), b.bitwise_and_(MASK)
        c2, c3 = (a >> 32).bitwise_and_(MASK).bitwise_xor_(c3).bitwise_xor_(k1), a.bitwise_and_(MASK)
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


@dataclass(frozen=True)
class Philox:
    """Uniforms from counters (request, place, site kind, candidate): scheme 1, `exact.chance.place`.

    seed      0 <= seed < 2^64, the key
    requests  int64 [B], the request of each lane, 0 <= request < 2^32

    A uniform depends on its own counter and on nothing else: not on the batch that a request shares, on other lanes, or
    on how many draws came before. So a request is decoded alike alone and in any company, and can be replayed.
    """

    seed: int
    requests: Tensor

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"a Philox seed lies in [0, 2^64), got {self.seed}")
        if self.requests.dtype != torch.int64 or self.requests.dim() != 1:
            raise ValueError(f"requests must be int64 [B], got {self.requests.dtype} {list(self.requests.shape)}")
        if bool(((self.requests < 0) | (self.requests > MASK)).any()):
            raise ValueError("requests must lie in [0, 2^32)")

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        word = self._words(site)[0]
        return accept_below((word >> 32 - ACCEPT_BITS).double() * 2.0**-ACCEPT_BITS, num, den)

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        high, low, _, _ = self._words(site)
        bits = (high << CHOOSE_BITS - 32) | (low >> 64 - CHOOSE_BITS)
        return choose_below(bits.double() * 2.0**-CHOOSE_BITS, weights)

    def _words(self, site: Site) -> Words:
        kind, position, candidate = parts(site)
        # 0 stands for "no candidate", so that ("accept", 2) and ("accept", 2, 0) are two coins.
        counter = (position, SCHEME << 8 | KINDS[kind], 0 if candidate is None else candidate + 1)
        words = [torch.as_tensor(word, device=self.requests.device).expand_as(self.requests) for word in counter]
        return philox4x32((self.requests, words[0], words[1], words[2]), (self.seed & MASK, self.seed >> 32))


def parts(site: Site) -> tuple[str, int | Tensor, int | Tensor | None]:
    """(kind, depth, candidate or None) of a site; raises ValueError on anything else."""
    kind, *where = site
    if not isinstance(kind, str) or kind not in KINDS or len(where) not in (1, 2) or isinstance(where[0], str):
        raise ValueError(f"{site} is no site: (one of {', '.join(KINDS)}; depth; candidate where there are several)")
    candidate = where[1] if len(where) == 2 else None
    if isinstance(candidate, str):
        raise ValueError(f"{site} is no site: a candidate is a number")
    return kind, where[0], candidate


# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Recorded:
    """Uniforms handed over by site: `table[("accept", 2)]` is one number for all lanes or a float64 tensor [B].

    A site without an entry is an error, and so is a site that one lane uses twice; `finish` refuses entries that no
    lane has used. A lane that is idle counts as using the site that it is asked about.
    """

    table: Mapping[OneSite, Fraction | float | Tensor]
    used: dict[OneSite, Tensor] = field(default_factory=dict)  # by which lanes, bool [B]

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        return accept_below(self._take(site, num), num, den)

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        return choose_below(self._take(site, weights), weights)

    def finish(self) -> None:
        """Raise ValueError on entries that were never asked for."""
        unused = self.table.keys() - self.used.keys()
        if unused:
            raise ValueError(f"uniforms were given for {sorted(unused, key=str)} and never used")

    def _take(self, site: Site, like: Tensor) -> Tensor:
        out = torch.zeros(like.shape[0], dtype=torch.float64, device=like.device)
        for one, lanes in by_site(site, out):
            if one not in self.table:
                raise ValueError(f"no uniform was given for {one}")
            before = self.used.get(one, torch.zeros_like(lanes))
            if bool((before & lanes).any()):
                raise ValueError(f"the uniform of {one} is used twice")
            self.used[one] = before | lanes
            given = self.table[one]
            value = given if isinstance(given, Tensor) else torch.full_like(out, float(given))
            out = torch.where(lanes, value.to(out), out)
        return out


def by_site(site: Site, like: Tensor) -> list[tuple[OneSite, Tensor]]:
    """The sites that the lanes are asked about, as plain ints, each with its lanes: bool [B]. `like` has shape [B]."""
    kind, depth, candidate = parts(site)
    numbers = [depth] if candidate is None else [depth, candidate]
    places = torch.stack([torch.as_tensor(n, device=like.device).expand(len(like)) for n in numbers], 1)
    distinct = dict.fromkeys(map(tuple, places.tolist()))
    return [((kind, *place), (places == torch.tensor(place, device=like.device)).all(1)) for place in distinct]


@dataclass
class Branching:
    """One lane, every decision of which is handed to a Chance: with `Enumerate` the exact law of engine code comes out.

    Odds are passed on as Python floats; with `rational=True` as the Fractions that those floats are, which keeps laws
    exact on dyadic rows. A site that is used twice is an error.
    """

    chance: Chance
    rational: bool = False
    used: set[OneSite] = field(default_factory=set)

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        above, below = self._numbers(torch.stack((num, den), 1))
        return torch.tensor([self.chance.accept(above, below, self._once(site))], device=num.device)

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        return torch.tensor([self.chance.choose(self._numbers(weights), self._once(site))], device=weights.device)

    def _numbers(self, odds: Tensor) -> list[Fraction] | list[float]:
        if odds.shape[0] != 1:
            raise ValueError(f"Branching decides for one lane, and was asked for {odds.shape[0]}")
        values: list[float]
        (values,) = odds.tolist()
        return [Fraction(v) for v in values] if self.rational else values

    def _once(self, site: Site) -> OneSite:
        ((one, _),) = by_site(site, torch.zeros(1))
        if one in self.used:
            raise ValueError(f"{one} is decided twice: one coin for two uses")
        self.used.add(one)
        return one


@dataclass(frozen=True)
class Shifted:
    """The same coins seen from the round that starts after `offset` tokens; `exact.chance.place` says where they stand.

    offset  int, or int64 [B]: the number of tokens committed in each lane
    """

    inner: Coins
    offset: int | Tensor

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        return self.inner.accept(num, den, self._absolute(site))

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        return self.inner.choose(weights, self._absolute(site))

    def _absolute(self, site: Site) -> Site:
        kind, depth, candidate = parts(site)
        shifted = (kind, place(kind, depth, self.offset))
        return shifted if candidate is None else (*shifted, candidate)
