"""The rules of chains for CUDA: `leviathan`, whose one pass is shared among programs, and `block`, a lane a program."""

import triton
import triton.language as tl

from refengine.engine.kernels.tile import (
    ALONE,
    NOTHING,
    accept_share,
    emit_share,
    entry,
    pick,
    power,
    real,
    row_sums,
    total,
    weights,
)


@triton.jit
def chain(p, q, tokens, parents, lane, n, V, PLACES: tl.constexpr):
    """The length of a lane's chain, p and q at its drafts, [PLACES], and whether it is a fault: no chain, a gap, an id
    outside the vocabulary."""
    i = tl.arange(0, PLACES)
    x = tl.load(tokens + lane * n + i, mask=i < n, other=NOTHING)
    parent = tl.load(parents + lane * n + i, mask=i < n, other=NOTHING)
    there = x != NOTHING
    known = there & (x >= 0) & (x < V)
    px = real(tl.load(p + (lane * (n + 1) + i) * V + x, mask=known, other=0.0))
    qx = real(tl.load(q + (lane * n + i) * V + x, mask=known, other=0.0))
    drafted = tl.sum(there.to(tl.int32), axis=0)
    wrong = (there & ((parent != i - 1) | ~known)) | (there != (i < drafted))
    return drafted, px, qx, tl.max(wrong.to(tl.int32), axis=0) > 0


@triton.jit
def note(tokens, text, path, length, lane, kept, fault, n, PLACES: tl.constexpr):
    """Write down the drafts that a lane keeps, and its length, which is 0 at a fault."""
    i = tl.arange(0, PLACES)
    x = tl.load(tokens + lane * n + i, mask=i < kept, other=NOTHING)
    tl.store(text + lane * (n + 1) + i, x, mask=i < kept)
    tl.store(path + lane * n + i, i, mask=i < kept)
    tl.store(length + lane, tl.where(fault, 0, kept + 1))


# ----------------------------------------------------------------------------------------------------------- leviathan
# `judge` throws the coins of a lane's drafts, `masses` sums the tiles of the one row that it emits from, `emit` picks a
# tile and then a token of it.


@triton.jit(do_not_specialize=["coins", "n"])
def judge(
    p, q, tokens, parents, coins, text, path, length, refused_at, shares, n, V, PLACES: tl.constexpr
):  # fmt: skip
    """One lane: how many drafts it keeps, whether one was refused, the uniform of its emission. Length 0: a fault."""
    lane = tl.program_id(0).to(tl.int64)
    drafted, px, qx, fault = chain(p, q, tokens, parents, lane, n, V, PLACES)
    i = tl.arange(0, PLACES)
    accepted = accept_share(coins, lane, n, i, ALONE, i < n) * qx < px
    kept = tl.min(tl.where((i < drafted) & accepted, PLACES, i), axis=0)
    note(tokens, text, path, length, lane, kept, fault, n, PLACES)
    tl.store(refused_at + lane, kept < drafted)
    tl.store(shares + lane, emit_share(coins, lane, n, kept))


@triton.jit
def masses(p, q, length, refused_at, sums, n, V, LEVELS: tl.constexpr, ABOVE: tl.constexpr):
    """The sum of one tile of the row that a lane emits from."""
    lane, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = tl.load(length + lane) - 1
    if at >= 0:
        refused = tl.load(refused_at + lane).to(tl.float64)
        w = weights(p + (lane * (n + 1) + at) * V, q + (lane * n + at) * V, 1.0, refused, tile, V, LEVELS)
        tl.store(sums + (lane << ABOVE) + tile, total(w, LEVELS))


@triton.jit
def emit(p, q, length, refused_at, shares, sums_of, text, n, V, LEVELS: tl.constexpr, ABOVE: tl.constexpr):
    """The token of one lane."""
    lane = tl.program_id(0).to(tl.int64)
    at = tl.load(length + lane) - 1
    if at >= 0:
        refused = tl.load(refused_at + lane).to(tl.float64)
        p += (lane * (n + 1) + at) * V
        q += (lane * n + at) * V
        sums = tl.load(sums_of + (lane << ABOVE) + tl.arange(0, 1 << ABOVE))
        if (refused > 0) & ~(total(sums, ABOVE) > 0):  # no token wants more of a draft that was refused: row.correction
            refused = refused * 0
            sums = row_sums(p, q, 1.0, refused, V, LEVELS, ABOVE)
        token = pick(p, q, 1.0, refused, sums, tl.load(shares + lane), V, LEVELS, ABOVE)
        tl.store(text + lane * (n + 1) + at, token)


# --------------------------------------------------------------------------------------------------------------- block


@triton.jit
def prefix_weights(px, qx, drafted, PLACES: tl.constexpr):
    """`block.prefix_weights` of one lane: numerators and denominators, [PLACES]."""
    i = tl.arange(0, PLACES)
    nums, dens, d = tl.full([PLACES], 1.0, tl.float64), tl.full([PLACES], 1.0, tl.float64), 0
    while d < drafted:
        num, den = entry(nums, d) * entry(px, d), entry(dens, d) * entry(qx, d)
        below = num < den
        nums = tl.where(i == d + 1, tl.where(below, num * power(den), (num > 0).to(tl.float64)), nums)
        dens = tl.where(i == d + 1, tl.where(below, den * power(den), 1.0), dens)
        d += 1
    return nums, dens


@triton.jit(do_not_specialize=["coins", "first", "n"])
def block(
    p, q, tokens, parents, coins, text, path, length, left, first, n, V,
    PLACES: tl.constexpr, LEVELS: tl.constexpr, ABOVE: tl.constexpr,
):  # fmt: skip
    """From the far end: the whole block, then shorter prefixes, each in one pass over the rows after it."""
    lane = (tl.program_id(0) + first).to(tl.int64)
    drafted, px, qx, fault = chain(p, q, tokens, parents, lane, n, V, PLACES)
    kept = tl.where(fault, 0, drafted)
    nums, dens = prefix_weights(px, qx, kept, PLACES)
    p += lane * (n + 1) * V
    q += lane * n * V
    a, b = entry(nums, kept), entry(dens, kept)
    u = accept_share(coins, lane, n, kept - 1, ALONE, kept > 0)
    going = (kept > 0) & ~(u * b < a)
    a, b = a * 0 + 1, b * 0
    sums = tl.zeros([1 << ABOVE], tl.float64)
    while going:
        kept -= 1
        a, b = entry(nums, kept), entry(dens, kept)
        sums = row_sums(p + kept * V, q + kept * V, a, b, V, LEVELS, ABOVE)
        mass = total(sums, ABOVE)
        u = accept_share(coins, lane, n, kept - 1, ALONE, kept > 0)
        going = (kept > 0) & ~(u * (mass + b - a) < mass)
    if not total(sums, ABOVE) > 0:  # the whole block is kept, or no token wants more of a draft that was refused
        a, b = a * 0 + 1, b * 0
        sums = row_sums(p + kept * V, q + kept * V, a, b, V, LEVELS, ABOVE)
    token = pick(p + kept * V, q + kept * V, a, b, sums, emit_share(coins, lane, n, kept), V, LEVELS, ABOVE)
    note(tokens, text, path, length, lane, kept, fault, n, PLACES)
    tl.store(text + lane * (n + 1) + kept, token)
