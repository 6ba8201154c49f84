"""The ratio rule for CUDA, with Triton: a tile of a row at a time. `cuda` puts it to work.

Three launches: `judge` throws the coins of a lane's drafts, `masses` sums the tiles of the one row that the lane emits
from, `emit` picks a tile and then a token of it. Neighbours are added two by two as `engine.sums` says: a sum over an
axis of two has one result, in whatever order a compiler adds, and that is why no larger axis is ever summed unless all
but one of its entries are zero. So the tokens are those of the plain text bit for bit.
"""

import triton
import triton.language as tl

from refengine.engine.coins import KINDS, SCHEME
from refengine.exact.chance import ACCEPT_BITS, CHOOSE_BITS, DEPTHS

NOTHING = tl.constexpr(-1)
ACCEPT, EMIT = tl.constexpr(SCHEME << 8 | KINDS["accept"]), tl.constexpr(SCHEME << 8 | KINDS["emit"])
DEPTH_UNIT = tl.constexpr(DEPTHS)
ACCEPT_DROPS, ACCEPT_UNIT = tl.constexpr(32 - ACCEPT_BITS), tl.constexpr(2.0**-ACCEPT_BITS)
CHOOSE_TAKES, CHOOSE_DROPS = tl.constexpr(CHOOSE_BITS - 32), tl.constexpr(64 - CHOOSE_BITS)
CHOOSE_UNIT = tl.constexpr(2.0**-CHOOSE_BITS)


@triton.jit
def philox4x32(c0, c1, c2, c3, k0, k1):
    """`coins.philox4x32`, of which the first two words: words are int64 with 32 unsigned bits."""
    for _ in tl.static_range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1 = ((b >> 32) & 0xFFFFFFFF) ^ c1 ^ k0, b & 0xFFFFFFFF
        c2, c3 = ((a >> 32) & 0xFFFFFFFF) ^ c3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1


@triton.jit
def real(x):
    return x.to(tl.float32).to(tl.float64) if x.dtype != tl.float64 else x


@triton.jit
def halved(x, TIMES: tl.constexpr):
    """Neighbours added two by two, so many times: [N] -> [N / 2^TIMES]."""
    for _ in tl.static_range(TIMES):
        x = tl.sum(tl.reshape(x, [x.shape[0] // 2, 2]), axis=1)
    return x


@triton.jit
def descend(x, LEVELS: tl.constexpr, bar, before):
    """The leaf of the tree over x, [2^LEVELS], where a pick ends, and the mass before it."""
    leaf = tl.arange(0, x.shape[0])
    at = 0
    for level in tl.static_range(LEVELS):
        half = 1 << (LEVELS - 1 - level)
        left = tl.where((leaf >= at) & (leaf < at + half), x, 0.0)
        right = tl.where((leaf >= at + half) & (leaf < at + 2 * half), x, 0.0)
        # What is left and right has zeros around it, which change no sum: the tree of the whole is that of the part.
        past_left = before + tl.sum(halved(left, LEVELS), axis=0)
        goes_right = (bar >= past_left) & (tl.max(right, axis=0) > 0)
        before = tl.where(goes_right, past_left, before)
        at = tl.where(goes_right, at + half, at)
    return at, before


@triton.jit
def weights(p, q, refused, start, V, TILE: tl.constexpr):
    """(p - q)+ of a tile of the row, p where nothing was refused; zeros beyond the vocabulary."""
    x = start + tl.arange(0, TILE)
    there = x < V
    supplied = real(tl.load(q + x, mask=there & refused, other=0.0))
    rest = real(tl.load(p + x, mask=there, other=0.0)) - supplied
    return tl.where(rest > 0, rest, 0.0)


@triton.jit(do_not_specialize=["k0", "k1"])
def judge(
    p, q, tokens, parents, k0, k1, requests, starts, given_accept, given_emit,
    out, path, length, refused_at, shares, n, V, GIVEN: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    """One lane: how many drafts it keeps, whether one was refused, the uniform of its emission. Length 0: a fault."""
    lane = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, PLACES)
    inside = i < n
    x = tl.load(tokens + lane * n + i, mask=inside, other=NOTHING)
    there = inside & (x != NOTHING)
    known = there & (x >= 0) & (x < V)
    px = real(tl.load(p + (lane * (n + 1) + i) * V + x, mask=known, other=0.0))
    qx = real(tl.load(q + (lane * n + i) * V + x, mask=known, other=0.0))
    k0, k1 = tl.cast(k0, tl.int64), tl.cast(k1, tl.int64)
    if GIVEN:
        u = tl.load(given_accept + lane * n + i, mask=inside, other=0.0)
    else:
        request, start = tl.load(requests + lane), tl.load(starts + lane)
        zeros = tl.zeros_like(x)
        word, _ = philox4x32(request + zeros, start * DEPTH_UNIT + i, ACCEPT + zeros, zeros, k0, k1)
        u = (word >> ACCEPT_DROPS).to(tl.float64) * ACCEPT_UNIT
    drafted = tl.sum(there.to(tl.int32), axis=0)
    kept = tl.min(tl.where(there & (u * qx < px), PLACES, i), axis=0)
    kept = tl.minimum(kept, n)  # where every place of the tile is filled and kept
    if GIVEN:
        share = tl.load(given_emit + lane * (n + 1) + kept)
    else:
        high, low = philox4x32(request, start + kept, EMIT + request * 0, request * 0, k0, k1)
        share = ((high << CHOOSE_TAKES) | (low >> CHOOSE_DROPS)).to(tl.float64) * CHOOSE_UNIT
    parent = tl.load(parents + lane * n + i, mask=inside, other=0)
    wrong = (there & ((parent != i - 1) | ~known)) | (there != (i < drafted))
    fault = tl.max(wrong.to(tl.int32), axis=0)
    tl.store(out + lane * (n + 1) + i, tl.where(i < kept, x, NOTHING), mask=inside)
    tl.store(out + lane * (n + 1) + n, NOTHING)
    tl.store(path + lane * n + i, tl.where(i < kept, i, NOTHING), mask=inside)
    tl.store(length + lane, tl.where(fault > 0, 0, kept + 1))
    tl.store(refused_at + lane, kept < drafted)
    tl.store(shares + lane, share)


@triton.jit
def masses(p, q, length, refused_at, sums, n, V, TILE: tl.constexpr, LEVELS: tl.constexpr):
    """The sum of one tile of the row that a lane emits from."""
    lane, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = tl.load(length + lane) - 1
    if at >= 0:
        refused = tl.load(refused_at + lane) != 0
        w = weights(p + (lane * (n + 1) + at) * V, q + (lane * n + at) * V, refused, tile * TILE, V, TILE)
        tl.store(sums + lane * tl.num_programs(1) + tile, tl.sum(halved(w, LEVELS), axis=0))


@triton.jit
def emit(
    p, q, length, refused_at, shares, sums, out, n, V,
    TILE: tl.constexpr, LEVELS: tl.constexpr, TILES: tl.constexpr, ABOVE: tl.constexpr,
):  # fmt: skip
    """The token of one lane: first its tile, then one of 2^(LEVELS - LEVELS / 2) parts of the tile, then the token."""
    lane = tl.program_id(0).to(tl.int64)
    at = tl.load(length + lane) - 1
    if at >= 0:
        refused = tl.load(refused_at + lane) != 0
        p += (lane * (n + 1) + at) * V
        q += (lane * n + at) * V
        which = tl.arange(0, TILES)
        tiles = tl.load(sums + lane * TILES + which)
        whole = tl.sum(halved(tiles, ABOVE), axis=0)
        if refused & (whole <= 0):  # rounding refused a draft that no token wants more of: row.correction
            refused = refused & (whole > 0)
            for tile in range(TILES):
                w = weights(p, q, refused, tile * TILE, V, TILE)
                tiles = tl.where(which == tile, tl.sum(halved(w, LEVELS), axis=0), tiles)
            whole = tl.sum(halved(tiles, ABOVE), axis=0)
        bar = tl.load(shares + lane) * whole
        tile, before = descend(tiles, ABOVE, bar, 0.0)
        w = weights(p, q, refused, tile * TILE, V, TILE)
        LOW: tl.constexpr = LEVELS // 2
        part, before = descend(halved(w, LOW), LEVELS - LOW, bar, before)
        rows = tl.reshape(w, [1 << (LEVELS - LOW), 1 << LOW])
        chosen = tl.arange(0, 1 << (LEVELS - LOW))[:, None] == part
        leaf, before = descend(tl.sum(tl.where(chosen, rows, 0.0), axis=0), LOW, bar, before)
        token = tile * TILE + (part << LOW) + leaf
        tl.store(out + lane * (n + 1) + at, tl.where(whole > 0, token, NOTHING))


@triton.jit
def sound(
    rows, tokens, parents, fine, n, BEFORE: tl.constexpr, TOLERANCE: tl.constexpr, V: tl.constexpr, TILE: tl.constexpr
):
    """fine becomes 0 where a draft is no token behind one that comes before it, or its row is no distribution.

    rows [B, n + BEFORE, V]: p with the row that follows no draft before the others, or q, which has none
    """
    lane, place = tl.program_id(0).to(tl.int64), tl.program_id(1)
    node = place - BEFORE
    drafted = node >= 0
    x = tl.load(tokens + lane * n + node, mask=drafted, other=0)
    if x != NOTHING:
        parent = tl.load(parents + lane * n + node, mask=drafted, other=-1)
        known = (x >= 0) & (x < V) & (parent >= -1) & (parent <= tl.where(drafted, node - 1, -1))
        above = tl.load(tokens + lane * n + parent, mask=known & (parent >= 0), other=0)
        at = tl.arange(0, TILE)
        mass, least = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
        for start in range(0, V, TILE):
            w = real(tl.load(rows + (lane * (n + BEFORE) + place) * V + start + at, mask=start + at < V, other=0.0))
            mass += w
            least = tl.where(w < least, w, least)
        good = (tl.abs(tl.sum(mass, axis=0) - 1) <= TOLERANCE) & (tl.min(least, axis=0) >= 0)
        if not (good & known & (above != NOTHING)):
            tl.store(fine, 0)
