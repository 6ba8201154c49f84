"""The rules of trees for CUDA: a lane is one program, which goes from node to node and reads the rows that it needs.

Nothing is written in a row but what siblings leave of p, where they are weighed against q: two rows of float64 a lane,
one that is read while the other is written. A token and its parent stand for a lane's nodes in [PLACES]; behind the
last node stand places that are nobody's child.
"""

import triton
import triton.language as tl

from refengine.engine.kernels.tile import (
    NOTHING,
    ROOT,
    accept_share,
    beyond,
    emit_share,
    entry,
    pick,
    pick_tile,
    pick_token,
    power,
    real,
    row_sums,
    stored,
    total,
    with_sum,
)

NOBODY = tl.constexpr(-2)  # the parent of a place beyond the block


@triton.jit
def tree(tokens, parents, lane, n, PLACES: tl.constexpr):
    """The tokens and parents of a lane, int64 [PLACES]."""
    i = tl.arange(0, PLACES)
    x = tl.load(tokens + lane * n + i, mask=i < n, other=NOTHING)
    return x, tl.load(parents + lane * n + i, mask=i < n, other=NOBODY)


@triton.jit
def known(x, V):
    """Whether a lane is no fault, and its tokens; none where one of them is outside the vocabulary."""
    fine = tl.max(((x != NOTHING) & ((x < 0) | (x >= V))).to(tl.int32), axis=0) == 0
    return fine, tl.where(fine, x, NOTHING)


@triton.jit
def next_where(right, after):
    """The first place after a node that is a right one; PLACES where there is none."""
    i = tl.arange(0, right.shape[0]).to(tl.int64)
    return tl.min(tl.where(right & (i > after), i, right.shape[0]), axis=0)


@triton.jit
def sibling(x, parents, at, after):
    """The next candidate after node `after` whose parent is node `at`."""
    return next_where((parents == at) & (x != NOTHING), after)


# ------------------------------------------------------------------------------------------------ greedy and agreement


@triton.jit
def argmax(row, V, TILE: tl.constexpr):
    """The first of the largest."""
    best, found = tl.full([TILE], float("-inf"), tl.float64), tl.zeros([TILE], tl.int32)
    start = 0
    while start < V:
        x = start + tl.arange(0, TILE)
        w = tl.where(x < V, stored(row, start, V, TILE), float("-inf"))
        found = tl.where(w > best, x, found)
        best = tl.where(w > best, w, best)
        start += TILE
    return tl.min(tl.where(best == tl.max(best, axis=0), found, V), axis=0)


@triton.jit(do_not_specialize=["coins", "first"])
def greedy(
    p, q, tokens, parents, coins, text, path, length, left, first, n, V, PLACES: tl.constexpr,
    TILE: tl.constexpr, LEVELS: tl.constexpr, TILES: tl.constexpr, ABOVE: tl.constexpr,
):  # fmt: skip
    lane = (tl.program_id(0) + first).to(tl.int64)
    x, up = tree(tokens, parents, lane, n, PLACES)
    at, emitted = tl.full([], ROOT, tl.int64), 0
    while at < PLACES:
        best = argmax(p + (lane * (n + 1) + at + 1) * V, V, TILE)
        tl.store(text + lane * (n + 1) + emitted, best)
        at = next_where((up == at) & (x == best), at)
        tl.store(path + lane * n + emitted, at, mask=at < PLACES)
        emitted += 1
    tl.store(length + lane, emitted)


@triton.jit(do_not_specialize=["coins", "first"])
def agreement(
    p, q, tokens, parents, coins, text, path, length, left, first, n, V, PLACES: tl.constexpr,
    TILE: tl.constexpr, LEVELS: tl.constexpr, TILES: tl.constexpr, ABOVE: tl.constexpr,
):  # fmt: skip
    lane = (tl.program_id(0) + first).to(tl.int64)
    x, up = tree(tokens, parents, lane, n, PLACES)
    at, emitted = tl.full([], ROOT, tl.int64), 0
    while at < PLACES:
        row = p + (lane * (n + 1) + at + 1) * V
        sums = row_sums(row, row, 1.0, 0.0, V, TILE, LEVELS, TILES)
        y = pick(row, row, 1.0, 0.0, sums, emit_share(coins, lane, n, emitted), V, LEVELS, ABOVE)
        tl.store(text + lane * (n + 1) + emitted, y)
        at = next_where((up == at) & (x == y), at)
        tl.store(path + lane * n + emitted, at, mask=at < PLACES)
        emitted += 1
    tl.store(length + lane, emitted)


# ---------------------------------------------------------------------------------------------------------- point_mass


@triton.jit
def without(w, ids, x, parents, at, end):
    """Weights of the tokens `ids`, of which the siblings after node `at` and before node `end` are taken out."""
    node = sibling(x, parents, at, at)
    while node < end:
        w = tl.where(ids == entry(x, node), 0.0, w)
        node = sibling(x, parents, at, node)
    return w


@triton.jit
def tile_without(row, tile, x, parents, at, end, V, TILE: tl.constexpr):
    """A tile of a row without these siblings."""
    return without(stored(row, tile * TILE, V, TILE), tile * TILE + tl.arange(0, TILE), x, parents, at, end)


@triton.jit(do_not_specialize=["coins", "first"])
def point_mass(
    p, q, tokens, parents, coins, text, path, length, left, first, n, V, PLACES: tl.constexpr,
    TILE: tl.constexpr, LEVELS: tl.constexpr, TILES: tl.constexpr, ABOVE: tl.constexpr,
):  # fmt: skip
    """One pass over the row of a node, and one tile again for each sibling that is refused."""
    lane = (tl.program_id(0) + first).to(tl.int64)
    x, up = tree(tokens, parents, lane, n, PLACES)
    fine, x = known(x, V)
    at, kept = tl.full([], ROOT, tl.int64), 0
    row = p + lane * (n + 1) * V
    sums = row_sums(row, row, 1.0, 0.0, V, TILE, LEVELS, TILES)
    j = sibling(x, up, at, at)
    while j < PLACES:
        token = entry(x, j)
        wanted = without(real(tl.load(row + token)), token, x, up, at, j)
        if accept_share(coins, lane, n, kept, j, True) * total(sums, ABOVE) < wanted:
            tl.store(text + lane * (n + 1) + kept, token)
            tl.store(path + lane * n + kept, j)
            at, kept = j, kept + 1
            row = p + (lane * (n + 1) + at + 1) * V
            sums = row_sums(row, row, 1.0, 0.0, V, TILE, LEVELS, TILES)
        else:
            sums = with_sum(
                sums, token // TILE, tile_without(row, token // TILE, x, up, at, j + 1, V, TILE), LEVELS
            )
        j = sibling(x, up, at, j)
    bar, tile, before = pick_tile(sums, emit_share(coins, lane, n, kept), ABOVE)
    w = tile_without(row, tile, x, up, at, PLACES, V, TILE)
    tl.store(text + lane * (n + 1) + kept, pick_token(w, tile, bar, before, LEVELS))
    tl.store(length + lane, tl.where(fine, kept + 1, 0))


# ------------------------------------------------------------------------------ iid_candidates and without_replacement


@triton.jit
def remaining(row, left, fresh, start, V, TILE: tl.constexpr):
    """A tile of what siblings have left of a row: of the row itself while it is fresh."""
    return stored(row, start, tl.where(fresh, V, 0), TILE) + stored(left, start, tl.where(fresh, 0, V), TILE)


@triton.jit
def pool(q, tile, x, parents, at, j, end, TILE: tl.constexpr, DISTINCT: tl.constexpr):
    """A tile of the row that node j was drawn from: with DISTINCT without the siblings before it."""
    w = stored(q, tile * TILE, end, TILE)
    if DISTINCT:
        w = without(w, tile * TILE + tl.arange(0, TILE), x, parents, at, j)
    return w


@triton.jit
def refuse(
    row, left, new, fresh, a, q, b, x, parents, at, j, V,
    TILE: tl.constexpr, LEVELS: tl.constexpr, TILES: tl.constexpr, DISTINCT: tl.constexpr,
):  # fmt: skip
    """`new` becomes (a r - b q)+, r being what remains of the row: the masses of its tiles. Where b is 0: a r."""
    sums, tile, end = tl.zeros([TILES], tl.float64), 0, tl.where(b > 0, V, 0)
    while tile * TILE < V:
        supplied = pool(q, tile, x, parents, at, j, end, TILE, DISTINCT)
        w = beyond(a, remaining(row, left, fresh, tile * TILE, V, TILE), b, supplied)
        ids = tile * TILE + tl.arange(0, TILE)
        tl.store(new + ids, w, mask=ids < V)
        sums = with_sum(sums, tile, w, LEVELS)
        tile += 1
    tl.debug_barrier()  # what one thread has written, another reads
    return sums


@triton.jit
def supply_of(
    q, x, parents, at, j, V, TILE: tl.constexpr, LEVELS: tl.constexpr, TILES: tl.constexpr, ABOVE: tl.constexpr
):
    """The mass of q without the siblings before node j."""
    sums, tile = tl.zeros([TILES], tl.float64), 0
    while tile * TILE < V:
        sums = with_sum(sums, tile, pool(q, tile, x, parents, at, j, V, TILE, True), LEVELS)
        tile += 1
    return total(sums, ABOVE)


@triton.jit(do_not_specialize=["coins", "first"])
def siblings(
    p, q, tokens, parents, coins, text, path, length, left, first, n, V, PLACES: tl.constexpr,
    TILE: tl.constexpr, LEVELS: tl.constexpr, TILES: tl.constexpr, ABOVE: tl.constexpr, DISTINCT: tl.constexpr,
):  # fmt: skip
    """`iid_candidates`, and with DISTINCT `without_replacement`. left float64 [programs, 2, V]

    One pass over what remains and q for a sibling that is refused; with DISTINCT one over q before its coin. What
    remains of a row is `scale` times what is stored.
    """
    lane = (tl.program_id(0) + first).to(tl.int64)
    x, up = tree(tokens, parents, lane, n, PLACES)
    fine, x = known(x, V)
    at, kept, side, fresh = tl.full([], ROOT, tl.int64), 0, 0, True
    one = tl.full([], 1.0, tl.float64)
    scale, mass, sums = one, one, tl.zeros([TILES], tl.float64)
    left += tl.program_id(0).to(tl.int64) * 2 * V
    j = sibling(x, up, at, at)
    while j < PLACES:
        token, row, old = entry(x, j), p + (lane * (n + 1) + at + 1) * V, left + side * V
        drawn_from = q + (lane * n + j) * V
        there = real(tl.load(row + token, mask=fresh, other=0.0)) + tl.load(old + token, mask=fresh == 0, other=0.0)
        wanted, supplied, supply = scale * there, real(tl.load(drawn_from + token)), one
        if DISTINCT:
            supply = supply_of(drawn_from, x, up, at, j, V, TILE, LEVELS, TILES, ABOVE)
            wanted, supplied = wanted * supply, without(supplied, token, x, up, at, j)
        if accept_share(coins, lane, n, kept, j, True) * (supplied * mass) < wanted:
            tl.store(text + lane * (n + 1) + kept, token)
            tl.store(path + lane * n + kept, j)
            at, kept, fresh, scale, mass = j, kept + 1, True, one, one
        else:
            new, a = left + (1 - side) * V, scale * supply
            sums = refuse(
                row, old, new, fresh, a, drawn_from, mass, x, up, at, j, V, TILE, LEVELS, TILES, DISTINCT
            )
            if not total(sums, ABOVE) > 0:  # no token wants more of a draft that was refused: row.correction
                sums = refuse(
                    row, old, new, fresh, a, drawn_from, mass * 0, x, up, at, j, V, TILE, LEVELS, TILES, DISTINCT
                )
            whole = total(sums, ABOVE)
            side, fresh, scale, mass = 1 - side, False, power(whole), whole * power(whole)
        j = sibling(x, up, at, j)
    row, old = p + (lane * (n + 1) + at + 1) * V, left + side * V
    if fresh:
        sums = row_sums(row, row, 1.0, 0.0, V, TILE, LEVELS, TILES)
    bar, tile, before = pick_tile(sums, emit_share(coins, lane, n, kept), ABOVE)
    w = remaining(row, old, fresh, tile * TILE, V, TILE)
    tl.store(text + lane * (n + 1) + kept, pick_token(w, tile, bar, before, LEVELS))
    tl.store(length + lane, tl.where(fine, kept + 1, 0))
