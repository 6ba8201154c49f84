"""The rules of trees for CUDA: a lane is one program, which goes from node to node and reads the rows that it needs.

Nothing is written of a row but what siblings leave of it, where they are weighed against q: two rows of float64 a
program, one that is read while the other is written. The tokens and parents of a lane stand in [PLACES].
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
    ids,
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
def known_tree(tokens, parents, lane, n, V, PLACES: tl.constexpr):
    """The same, and whether it is no fault; without tokens where one of them is outside the vocabulary."""
    x, parents = tree(tokens, parents, lane, n, PLACES)
    fine = tl.max(((x != NOTHING) & ((x < 0) | (x >= V))).to(tl.int32), axis=0) == 0
    return tl.where(fine, x, NOTHING), parents, fine


@triton.jit
def next_of(nodes, after):
    """The first of these nodes that comes after one of them; the number of places where none does."""
    i = tl.arange(0, nodes.shape[0]).to(tl.int64)
    return tl.min(tl.where(nodes & (i > after), i, nodes.shape[0]), axis=0)


# ------------------------------------------------------------------------------------------------ greedy and agreement


@triton.jit
def argmax(row, V, LEVELS: tl.constexpr):
    """The first of the largest."""
    best, found = tl.full([1 << LEVELS], float("-inf"), tl.float64), tl.zeros([1 << LEVELS], tl.int32)
    tile = 0
    while tile << LEVELS < V:
        x = ids(tile, LEVELS)
        w = tl.where(x < V, stored(row, tile, V, LEVELS), float("-inf"))
        found = tl.where(w > best, x, found)
        best = tl.where(w > best, w, best)
        tile += 1
    return tl.min(tl.where(best == tl.max(best, axis=0), found, V), axis=0)


@triton.jit
def follow(text, path, lane, n, x, up, at, emitted, y):
    """Emit y after a node: the child that has it, which is kept; the number of places where none has."""
    tl.store(text + lane * (n + 1) + emitted, y)
    at = next_of((up == at) & (x == y), at)
    tl.store(path + lane * n + emitted, at, mask=at < x.shape[0])
    return at


@triton.jit(do_not_specialize=["coins", "first", "n"])
def greedy(
    p, q, tokens, parents, coins, text, path, length, left, first, n, V,
    PLACES: tl.constexpr, LEVELS: tl.constexpr, ABOVE: tl.constexpr,
):  # fmt: skip
    """One pass over the row of a node."""
    lane = (tl.program_id(0) + first).to(tl.int64)
    x, up = tree(tokens, parents, lane, n, PLACES)
    at, emitted = tl.full([], ROOT, tl.int64), 0
    while at < PLACES:
        y = argmax(p + (lane * (n + 1) + at + 1) * V, V, LEVELS)
        at = follow(text, path, lane, n, x, up, at, emitted, y)
        emitted += 1
    tl.store(length + lane, emitted)


@triton.jit(do_not_specialize=["coins", "first", "n"])
def agreement(
    p, q, tokens, parents, coins, text, path, length, left, first, n, V,
    PLACES: tl.constexpr, LEVELS: tl.constexpr, ABOVE: tl.constexpr,
):  # fmt: skip
    """One pass over the row of a node, and the tile where its pick ends once more."""
    lane = (tl.program_id(0) + first).to(tl.int64)
    x, up = tree(tokens, parents, lane, n, PLACES)
    at, emitted = tl.full([], ROOT, tl.int64), 0
    while at < PLACES:
        row = p + (lane * (n + 1) + at + 1) * V
        sums = row_sums(row, row, 1.0, 0.0, V, LEVELS, ABOVE)
        y = pick(row, row, 1.0, 0.0, sums, emit_share(coins, lane, n, emitted), V, LEVELS, ABOVE)
        at = follow(text, path, lane, n, x, up, at, emitted, y)
        emitted += 1
    tl.store(length + lane, emitted)


# ---------------------------------------------------------------------------------------------------------- point_mass


@triton.jit
def without(w, tokens, x, refused):
    """The weights of these tokens, without those of the refused nodes; x and refused [PLACES]."""
    node = next_of(refused, -1)
    while node < x.shape[0]:
        w = tl.where(tokens == entry(x, node), 0.0, w)
        node = next_of(refused, node)
    return w


@triton.jit
def pool(row, tile, end, x, refused, LEVELS: tl.constexpr):
    """A tile of a row without the refused nodes."""
    return without(stored(row, tile, end, LEVELS), ids(tile, LEVELS), x, refused)


@triton.jit(do_not_specialize=["coins", "first", "n"])
def point_mass(
    p, q, tokens, parents, coins, text, path, length, left, first, n, V,
    PLACES: tl.constexpr, LEVELS: tl.constexpr, ABOVE: tl.constexpr,
):  # fmt: skip
    """One pass over the row of a node, and one tile of it again for each sibling that is refused."""
    lane, i = (tl.program_id(0) + first).to(tl.int64), tl.arange(0, PLACES)
    x, up, fine = known_tree(tokens, parents, lane, n, V, PLACES)
    at, kept, refused = tl.full([], ROOT, tl.int64), 0, i < 0
    row = p + lane * (n + 1) * V
    sums = row_sums(row, row, 1.0, 0.0, V, LEVELS, ABOVE)
    j = next_of((up == at) & (x != NOTHING), at)
    while j < PLACES:
        token = entry(x, j)
        wanted = without(real(tl.load(row + token)), token, x, refused)
        if accept_share(coins, lane, n, kept, j, True) * total(sums, ABOVE) < wanted:
            tl.store(text + lane * (n + 1) + kept, token)
            tl.store(path + lane * n + kept, j)
            at, kept, refused = j, kept + 1, i < 0
            row = p + (lane * (n + 1) + at + 1) * V
            sums = row_sums(row, row, 1.0, 0.0, V, LEVELS, ABOVE)
        else:
            refused, tile = refused | (i == j), token >> LEVELS
            sums = with_sum(sums, tile, pool(row, tile, V, x, refused, LEVELS), LEVELS)
        j = next_of((up == at) & (x != NOTHING), j)
    bar, tile, before = pick_tile(sums, emit_share(coins, lane, n, kept), ABOVE)
    token = pick_token(pool(row, tile, V, x, refused, LEVELS), tile, bar, before, LEVELS)
    tl.store(text + lane * (n + 1) + kept, token)
    tl.store(length + lane, tl.where(fine, kept + 1, 0))


# ------------------------------------------------------------------------------ iid_candidates and without_replacement


@triton.jit
def remaining(row, left, fresh, tile, V, LEVELS: tl.constexpr):
    """A tile of what siblings have left of a row: of the row itself while it is fresh."""
    return stored(row, tile, tl.where(fresh, V, 0), LEVELS) + stored(left, tile, tl.where(fresh, 0, V), LEVELS)


@triton.jit
def refuse(row, left, new, fresh, a, q, b, x, refused, V, LEVELS: tl.constexpr, ABOVE: tl.constexpr):
    """`new` becomes (a r - b q)+, r what remains of the row, q without the refused: its masses. Where b is 0: a r."""
    sums, tile = tl.zeros([1 << ABOVE], tl.float64), 0
    while tile << LEVELS < V:
        supplied = pool(q, tile, tl.where(b > 0, V, 0), x, refused, LEVELS)
        w = beyond(a, remaining(row, left, fresh, tile, V, LEVELS), b, supplied)
        tl.store(new + ids(tile, LEVELS), w, mask=ids(tile, LEVELS) < V)
        sums = with_sum(sums, tile, w, LEVELS)
        tile += 1
    tl.debug_barrier()  # what one thread has written, another reads
    return sums


@triton.jit
def supply_of(q, x, refused, V, LEVELS: tl.constexpr, ABOVE: tl.constexpr):
    """The mass of q without the refused."""
    sums, tile = tl.zeros([1 << ABOVE], tl.float64), 0
    while tile << LEVELS < V:
        sums = with_sum(sums, tile, pool(q, tile, V, x, refused, LEVELS), LEVELS)
        tile += 1
    return total(sums, ABOVE)


@triton.jit(do_not_specialize=["coins", "first", "n"])
def siblings(
    p, q, tokens, parents, coins, text, path, length, left, first, n, V,
    PLACES: tl.constexpr, LEVELS: tl.constexpr, ABOVE: tl.constexpr, DISTINCT: tl.constexpr,
):  # fmt: skip
    """`iid_candidates`, and with DISTINCT `without_replacement`. left float64 [programs, 2, V]

    One pass over what remains and q for a sibling that is refused; with DISTINCT one over q before its coin. What
    remains of a row is `scale` times what is stored, and has the mass `mass`.
    """
    lane, i = (tl.program_id(0) + first).to(tl.int64), tl.arange(0, PLACES)
    x, up, fine = known_tree(tokens, parents, lane, n, V, PLACES)
    at, kept, refused, fresh, side = tl.full([], ROOT, tl.int64), 0, i < 0, True, 0
    one = tl.full([], 1.0, tl.float64)
    scale, mass, sums = one, one, tl.zeros([1 << ABOVE], tl.float64)
    left += tl.program_id(0).to(tl.int64) * 2 * V
    j = next_of((up == at) & (x != NOTHING), at)
    while j < PLACES:
        token, drawn_from = entry(x, j), q + (lane * n + j) * V
        row, old = p + (lane * (n + 1) + at + 1) * V, left + side * V
        stands = real(tl.load(row + token, mask=fresh, other=0.0)) + tl.load(old + token, mask=fresh == 0, other=0.0)
        wanted, supplied, supply = scale * stands, real(tl.load(drawn_from + token)), one
        if DISTINCT:
            supply = supply_of(drawn_from, x, refused, V, LEVELS, ABOVE)
            wanted, supplied = wanted * supply, without(supplied, token, x, refused)
        if accept_share(coins, lane, n, kept, j, True) * (supplied * mass) < wanted:
            tl.store(text + lane * (n + 1) + kept, token)
            tl.store(path + lane * n + kept, j)
            at, kept, refused, fresh, scale, mass = j, kept + 1, i < 0, True, one, one
        else:
            new, a = left + (1 - side) * V, scale * supply
            sums = refuse(row, old, new, fresh, a, drawn_from, mass, x, refused, V, LEVELS, ABOVE)
            if not total(sums, ABOVE) > 0:  # no token wants more of a draft that was refused: row.correction
                sums = refuse(row, old, new, fresh, a, drawn_from, mass * 0, x, refused, V, LEVELS, ABOVE)
            whole = total(sums, ABOVE)
            side, fresh, scale, mass = 1 - side, False, power(whole), whole * power(whole)
            if DISTINCT:
                refused = refused | (i == j)
        j = next_of((up == at) & (x != NOTHING), j)
    row, old = p + (lane * (n + 1) + at + 1) * V, left + side * V
    if fresh:
        sums = row_sums(row, row, 1.0, 0.0, V, LEVELS, ABOVE)
    bar, tile, before = pick_tile(sums, emit_share(coins, lane, n, kept), ABOVE)
    token = pick_token(remaining(row, old, fresh, tile, V, LEVELS), tile, bar, before, LEVELS)
    tl.store(text + lane * (n + 1) + kept, token)
    tl.store(length + lane, tl.where(fine, kept + 1, 0))
