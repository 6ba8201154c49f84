"""The rules compiled for CUDA with Triton, a tile of a row at a time: what they have in common. `cuda` puts it to work.

`tile_chains` has the rules of chains, `tile_trees` those of trees. Neighbours are added two by two as `engine.sums`
says: a sum over an axis of two has one result, in whatever order a compiler adds, and that is why no larger axis is
ever summed unless all but one of its entries are zero. Products and differences are those of the plain text, and are
not fused. So the tokens are those of the plain text bit for bit.

A tile is 2^LEVELS tokens, a row 2^ABOVE tiles, of which the last ones may lie beyond the vocabulary. `sums`, float64
[2^ABOVE], are the masses of a row's tiles. `lane` is the program's lane; PLACES, a power of two, is above its drafts.
"""

import triton
import triton.language as tl

from refengine.engine.coins import KINDS, SCHEME
from refengine.exact.chance import ACCEPT_BITS, CHOOSE_BITS, DEPTHS

NOTHING, ROOT = tl.constexpr(-1), tl.constexpr(-1)
ALONE = tl.constexpr(-1)  # the candidate of a site that names none
ACCEPT, EMIT = tl.constexpr(SCHEME << 8 | KINDS["accept"]), tl.constexpr(SCHEME << 8 | KINDS["emit"])
DEPTH_UNIT = tl.constexpr(DEPTHS)
ACCEPT_DROPS, ACCEPT_UNIT = tl.constexpr(32 - ACCEPT_BITS), tl.constexpr(2.0**-ACCEPT_BITS)
CHOOSE_TAKES, CHOOSE_DROPS = tl.constexpr(CHOOSE_BITS - 32), tl.constexpr(64 - CHOOSE_BITS)
CHOOSE_UNIT = tl.constexpr(2.0**-CHOOSE_BITS)


# --------------------------------------------------------------------------------------------------------------- coins


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
def words(coins, lane, place, kind, node):
    """Two words of the coin of a kind of site, at a place of the text, for a node or ALONE."""
    zero = tl.cast(place, tl.int64) * 0
    request = tl.load(coins.requests + lane) + zero
    k0, k1 = tl.cast(coins.key[0], tl.int64), tl.cast(coins.key[1], tl.int64)
    return philox4x32(request, place + zero, kind + zero, node + 1 + zero, k0, k1)


@triton.jit
def accept_share(coins, lane, n, depth, node, there):
    """The uniform of ("accept", depth, node), or with node ALONE that of ("accept", depth); any where not `there`."""
    if coins.accept is not None:
        u = tl.load(coins.accept + lane * n + tl.where(node == ALONE, depth, node), mask=there, other=0.0)
    else:
        word, _ = words(coins, lane, tl.load(coins.starts + lane) * DEPTH_UNIT + depth, ACCEPT, node)
        u = (word >> ACCEPT_DROPS).to(tl.float64) * ACCEPT_UNIT
    return u


@triton.jit
def emit_share(coins, lane, n, depth):
    """The uniform of ("emit", depth)."""
    if coins.emit is not None:
        u = tl.load(coins.emit + lane * (n + 1) + depth)
    else:
        high, low = words(coins, lane, tl.load(coins.starts + lane) + depth, EMIT, ALONE)
        u = ((high << CHOOSE_TAKES) | (low >> CHOOSE_DROPS)).to(tl.float64) * CHOOSE_UNIT
    return u


# ---------------------------------------------------------------------------------------------------------------- rows


@triton.jit
def real(x):
    return x.to(tl.float32).to(tl.float64) if x.dtype != tl.float64 else x


@triton.jit
def ids(tile, LEVELS: tl.constexpr):
    """The tokens of a tile."""
    return (tile << LEVELS) + tl.arange(0, 1 << LEVELS)


@triton.jit
def stored(row, tile, end, LEVELS: tl.constexpr):
    """A tile of a row, float64; from the token `end` on nothing is read and all is 0."""
    x = ids(tile, LEVELS)
    return real(tl.load(row + x, mask=x < end, other=0.0))


@triton.jit
def beyond(a, p, b, q):
    """(a p - b q)+"""
    rest = a * p - b * q
    return tl.where(rest > 0, rest, 0.0)


@triton.jit
def weights(p, q, a, b, tile, V, LEVELS: tl.constexpr):
    """(a p - b q)+ of a tile of two rows; where b is 0, q is not read."""
    return beyond(a, stored(p, tile, V, LEVELS), b, stored(q, tile, tl.where(b > 0, V, 0), LEVELS))


@triton.jit
def power(mass):
    """2^-e where mass = m 2^e, 1/2 <= m < 1: the scale of `row.rescaled`; 1 where there is no mass."""
    biased = (mass.to(tl.int64, bitcast=True) >> 52) & 0x7FF
    scale = ((2045 - biased) << 52).to(tl.float64, bitcast=True)
    return tl.where(mass > 0, scale, 1.0)


# ---------------------------------------------------------------------------------------------------------------- sums


@triton.jit
def entry(values, i):
    """values[i]; 0 where there is none."""
    return tl.sum(tl.where(tl.arange(0, values.shape[0]) == i, values, 0), axis=0)


@triton.jit
def halved(x, TIMES: tl.constexpr):
    """Neighbours added two by two, so many times: [N] -> [N / 2^TIMES]."""
    for _ in tl.static_range(TIMES):
        x = tl.sum(tl.reshape(x, [x.shape[0] // 2, 2]), axis=1)
    return x


@triton.jit
def total(x, LEVELS: tl.constexpr):
    """The sum of [2^LEVELS]."""
    return tl.sum(halved(x, LEVELS), axis=0)


@triton.jit
def with_sum(sums, tile, w, LEVELS: tl.constexpr):
    """The masses of a row's tiles, that of one tile being the sum of w."""
    return tl.where(tl.arange(0, sums.shape[0]) == tile, total(w, LEVELS), sums)


@triton.jit
def row_sums(p, q, a, b, V, LEVELS: tl.constexpr, ABOVE: tl.constexpr):
    """The masses of the tiles of (a p - b q)+, in one pass over the rows."""
    sums, tile = tl.zeros([1 << ABOVE], tl.float64), 0
    while tile << LEVELS < V:
        sums = with_sum(sums, tile, weights(p, q, a, b, tile, V, LEVELS), LEVELS)
        tile += 1
    return sums


@triton.jit
def descend(x, LEVELS: tl.constexpr, bar, before):
    """`sums.first_above` in the tree over x, [2^LEVELS]: the leaf where a pick ends, and the mass before it."""
    at = 0
    for level in tl.static_range(LEVELS):
        nodes = halved(x, LEVELS - 1 - level)
        past_left = before + entry(nodes, 2 * at)
        goes_right = (bar >= past_left) & (entry(nodes, 2 * at + 1) > 0)
        before = tl.where(goes_right, past_left, before)
        at = 2 * at + goes_right.to(tl.int32)
    return at, before


@triton.jit
def pick_tile(sums, share, ABOVE: tl.constexpr):
    """The bar of a pick, the tile where it ends, and the mass before that."""
    bar = share * total(sums, ABOVE)
    tile, before = descend(sums, ABOVE, bar, 0.0)
    return bar, tile, before


@triton.jit
def pick_token(w, tile, bar, before, LEVELS: tl.constexpr):
    """The token where it ends, by the weights of that tile: there is one with weight unless the row has no mass."""
    leaf, before = descend(w, LEVELS, bar, before)
    return tl.where(tl.max(w, axis=0) > 0, (tile << LEVELS) + leaf, NOTHING)


@triton.jit
def pick(p, q, a, b, sums, share, V, LEVELS: tl.constexpr, ABOVE: tl.constexpr):
    """A token of (a p - b q)+, whose sums are known."""
    bar, tile, before = pick_tile(sums, share, ABOVE)
    return pick_token(weights(p, q, a, b, tile, V, LEVELS), tile, bar, before, LEVELS)


# --------------------------------------------------------------------------------------------------------------- check


@triton.jit
def sound(rows, tokens, parents, fine, n, V, BEFORE: tl.constexpr, TOLERANCE: tl.constexpr, LEVELS: tl.constexpr):
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
        mass, least, tile = tl.zeros([1 << LEVELS], tl.float64), tl.zeros([1 << LEVELS], tl.float64), 0
        while tile << LEVELS < V:
            w = stored(rows + (lane * (n + BEFORE) + place) * V, tile, V, LEVELS)
            mass += w
            least = tl.where(w < least, w, least)
            tile += 1
        good = (tl.abs(tl.sum(mass, axis=0) - 1) <= TOLERANCE) & (tl.min(least, axis=0) >= 0)
        if not (good & known & (above != NOTHING)):
            tl.store(fine, 0)
