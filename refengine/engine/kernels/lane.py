"""The rules compiled for a CPU with numba: one lane at a time, in scalars, so that a text reads like `exact.rules`.

A lane reads the two numbers that a coin compares, and one pass over the rows that a residual or a total needs; nothing
behind the first refusal is touched. Beside the rows there is one tile of `TILE` sums, the masses of a row's tiles and,
for the rules that judge siblings, one row of float64. Odds, products and sums are those of the plain text in its order
(`engine.sums`: a tile is a subtree), and LLVM neither fuses nor reorders them, so the tokens are the same bit for bit.

All is in this one file because numba's cache of compiled code does not see changes in another. `cpu` puts it to work.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload

from refengine.engine.block import NOTHING, ROOT
from refengine.engine.coins import KINDS, MASK, SCHEME
from refengine.exact.chance import ACCEPT_BITS, CHOOSE_BITS, DEPTHS

TILE = 1024  # tokens whose sums are made in the first cache; any power of two gives the same tokens
ALONE = -1  # the candidate of a site that names none
FAULT = -1  # the number of accepted nodes where a lane is not for this rule: the plain text says why
ACCEPT, EMIT = KINDS["accept"], KINDS["emit"]
ACCEPT_UNIT, CHOOSE_UNIT = 2.0**-ACCEPT_BITS, 2.0**-CHOOSE_BITS


class Uniforms(NamedTuple):
    """What coins are made of: Philox's key and counters, or with `given` the uniforms themselves.

    accept float64 [B, n] by node, emit float64 [B, n + 1] by depth; starts int64 [B]: tokens before the round
    """

    given: bool
    key: tuple[int, int]
    requests: np.ndarray
    starts: np.ndarray
    accept: np.ndarray
    emit: np.ndarray


class Scratch(NamedTuple):
    """float64: leaves and sums of one tile, the masses of a row's tiles above which their own tree stands, a row."""

    tile: np.ndarray
    sums: np.ndarray
    tiles: np.ndarray
    left: np.ndarray
    pool: np.ndarray


@njit
def scratch(vocabulary, rows):
    """Of one thread's lanes; `rows` where the rule works on a row of its own."""
    tiles = 1
    while tiles * TILE < vocabulary:
        tiles *= 2
    size = vocabulary if rows else 0
    return Scratch(np.zeros(2 * TILE), np.zeros(TILE // 2), np.zeros(2 * tiles), np.empty(size), np.empty(size))


# --------------------------------------------------------------------------------------------------------------- coins


@njit
def philox4x32(c0, c1, c2, c3, k0, k1):
    """`coins.philox4x32` on one counter: the product of two words wraps in int64, and all of its bits are in place."""
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1 = (b >> 32) & MASK ^ c1 ^ k0, b & MASK
        c2, c3 = (a >> 32) & MASK ^ c3 ^ k1, a & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1


@njit
def accept(coins, lane, num, den, depth, node):
    """The coin of ("accept", depth, node), or with node ALONE that of ("accept", depth)."""
    if coins.given:
        u = coins.accept[lane, depth if node == ALONE else node]
    else:
        place = coins.starts[lane] * DEPTHS + depth
        word, _ = philox4x32(coins.requests[lane], place, SCHEME << 8 | ACCEPT, node + 1, coins.key[0], coins.key[1])
        u = (word >> 32 - ACCEPT_BITS) * ACCEPT_UNIT
    return u * den < num


@njit
def share(request, place, kind, node, key):
    """The uniform of a choice: of a kind of site, at a place of the text, for a node or ALONE."""
    high, low = philox4x32(request, place, SCHEME << 8 | kind, node + 1, key[0], key[1])
    return (high << CHOOSE_BITS - 32 | low >> 64 - CHOOSE_BITS) * CHOOSE_UNIT


@njit
def emit_share(coins, lane, depth):
    """The uniform of ("emit", depth)."""
    if coins.given:
        return coins.emit[lane, depth]
    return share(coins.requests[lane], coins.starts[lane] + depth, EMIT, ALONE, coins.key)


# ---------------------------------------------------------------------------------------------------------------- rows


def real(x):
    """A stored number as float64; the bits of a bfloat16 come as uint16."""
    return np.float64(np.uint32(np.uint32(x) << np.uint32(16)).view(np.float32) if x.dtype == np.uint16 else x)


@overload(real)
def _real(x):
    if x == types.uint16:
        return lambda x: np.float64(np.uint32(np.uint32(x) << np.uint32(16)).view(np.float32))
    return lambda x: np.float64(x)


@njit
def wanted(p, q, a, b, x):
    """(a p - b q)+ at a token; without a q, a p."""
    if len(q) == 0:
        return a * real(p[x])
    rest = a * real(p[x]) - b * real(q[x])
    return rest if rest > 0 else 0.0


@njit
def halve(source, target, size):
    for i in range(size):
        target[i] = source[2 * i] + source[2 * i + 1]


@njit
def tile_mass(p, q, a, b, work):
    """The sum of one tile, at most TILE tokens of (a p - b q)+.

    With and without q are loops of their own, and indices are seen not to be negative: LLVM then makes vectors of them.
    """
    sums, spare, half = work.sums, work.tile, len(p) // 2
    if len(q) == 0:
        for i in range(half):
            sums[i] = a * real(p[2 * i]) + a * real(p[2 * i + 1])
    else:
        for i in range(half):
            even, odd = a * real(p[2 * i]) - b * real(q[2 * i]), a * real(p[2 * i + 1]) - b * real(q[2 * i + 1])
            sums[i] = (even if even > 0 else 0.0) + (odd if odd > 0 else 0.0)
    sums[half:] = 0.0
    if len(p) % 2:
        sums[half] = wanted(p, q, a, b, len(p) - 1)
    width = TILE // 4
    while width > 1:
        halve(sums, spare, width)
        halve(spare, sums, width // 2)
        width //= 4
    return sums[0] + sums[1] if width == 1 else sums[0]


@njit
def total(p, q, a, b, work):
    """The mass of the row (a p - b q)+; `work.tiles` keeps those of its tiles, as a tree with its root at 1."""
    tiles, half = work.tiles, len(work.tiles) // 2
    for t in range(half):
        here = slice(t * TILE, (t + 1) * TILE)
        tiles[half + t] = tile_mass(p[here], q[here], a, b, work)
    for node in range(half - 1, 0, -1):
        tiles[node] = tiles[2 * node] + tiles[2 * node + 1]
    return tiles[1]


@njit
def descend(tree, bar, before):
    """The leaf of a tree with its root at 1 where a pick ends, and the mass before it."""
    node, leaves = 1, len(tree) // 2
    while node < leaves:
        past_left = before + tree[2 * node]
        if bar >= past_left and tree[2 * node + 1] > 0:
            node, before = 2 * node + 1, past_left
        else:
            node = 2 * node
    return node - leaves, before


@njit
def pick(p, q, a, b, share, work):
    """`sums.first_above` of the row whose `total` has just been taken."""
    bar = share * work.tiles[1]
    if not work.tiles[1] > 0:
        return NOTHING
    which, before = descend(work.tiles, bar, 0.0)
    here, tree = slice(which * TILE, (which + 1) * TILE), work.tile
    p, q = p[here], q[here]
    for i in range(TILE):
        tree[TILE + i] = wanted(p, q, a, b, i) if i < len(p) else 0.0
    for node in range(TILE - 1, 0, -1):
        tree[node] = tree[2 * node] + tree[2 * node + 1]
    leaf, before = descend(tree, bar, before)
    return which * TILE + leaf


@njit
def choose(p, q, a, b, share, work):
    """A token of (a p - b q)+, or of p where rounding has left nothing over: `row.correction`."""
    if not total(p, q, a, b, work) > 0:
        a, q = 1.0, q[:0]
        total(p, q, a, b, work)
    return pick(p, q, a, b, share, work)


# --------------------------------------------------------------------------------------------------------------- rules
# rule(lane, p [n + 1, V], q [n, V], tokens [n], parents [n], coins, work, path [n]) -> (accepted nodes, last token)


@njit
def chain_length(tokens, parents, vocabulary):
    """How many drafts a chain has; FAULT where it is no chain, has a gap or an id outside the vocabulary."""
    length = 0
    for j in range(len(tokens)):
        if tokens[j] == NOTHING:
            continue
        if length < j or parents[j] != j - 1 or not 0 <= tokens[j] < vocabulary:
            return FAULT
        length = j + 1
    return length


@njit
def leviathan(lane, p, q, tokens, parents, coins, work, path):
    drafted = chain_length(tokens, parents, p.shape[1])
    for i in range(drafted):
        x = tokens[i]
        path[i] = i
        if not accept(coins, lane, real(p[i, x]), real(q[i, x]), i, ALONE):
            path[i] = NOTHING
            return i, choose(p[i], q[i], 1.0, 1.0, emit_share(coins, lane, i), work)
    if drafted == FAULT:
        return FAULT, NOTHING
    bonus = p[drafted]
    return drafted, choose(bonus, bonus[:0], 1.0, 1.0, emit_share(coins, lane, drafted), work)


@njit
def block(lane, p, q, tokens, parents, coins, work, path):
    drafted = chain_length(tokens, parents, p.shape[1])
    if drafted == FAULT:
        return FAULT, NOTHING
    # The prefix weights as numerators and denominators: rules.block.prefix_weights.
    nums, dens = np.ones(drafted + 1), np.ones(drafted + 1)
    for i in range(drafted):
        num, den = nums[i] * real(p[i, tokens[i]]), dens[i] * real(q[i, tokens[i]])
        if num < den:
            scale = math.ldexp(1.0, -math.frexp(den)[1])
            nums[i + 1], dens[i + 1] = num * scale, den * scale
        else:
            nums[i + 1], dens[i + 1] = (1.0 if num > 0 else 0.0), 1.0
    last = p[drafted]
    if drafted == 0 or accept(coins, lane, nums[drafted], dens[drafted], drafted - 1, ALONE):
        path[:drafted] = np.arange(drafted)
        return drafted, choose(last, last[:0], 1.0, 1.0, emit_share(coins, lane, drafted), work)
    kept, num, den = drafted, 1.0, 1.0
    while kept > 0:
        kept -= 1
        num, den = nums[kept], dens[kept]
        if kept > 0:
            mass = total(p[kept], q[kept], num, den, work)
            if accept(coins, lane, mass, mass + den - num, kept - 1, ALONE):
                break
    path[:kept] = np.arange(kept)
    return kept, choose(p[kept], q[kept], num, den, emit_share(coins, lane, kept), work)


@njit
def tree_length(tokens, parents, vocabulary):
    """The number of places of a tree; FAULT where an id is outside the vocabulary."""
    for j in range(len(tokens)):
        if tokens[j] != NOTHING and not 0 <= tokens[j] < vocabulary:
            return FAULT
    return len(tokens)


@njit
def child(tokens, parents, at, x):
    """The first candidate after node `at` that is token x, else NOTHING."""
    for j in range(at + 1, len(tokens)):
        if parents[j] == at and tokens[j] == x:
            return j
    return NOTHING


@njit
def argmax(row):
    """The first of the largest: the largest of the tile whose maximum is the first to reach it."""
    best, found, top = real(row[0]), 0, np.empty(TILE // 8)
    for start in range(0, len(row), TILE):
        tile = row[start : start + TILE]
        width = min(len(top), len(tile))
        for i in range(width):
            top[i] = real(tile[i])
        for first in range(width, len(tile), width):
            strip = tile[first : first + width]
            for i in range(len(strip)):
                x = real(strip[i])
                top[i] = x if x > top[i] else top[i]
        for i in range(width):
            if top[i] > best:
                best, found = top[i], start
    for x in range(found, len(row)):
        if real(row[x]) == best:
            return x
    return found


@njit
def greedy(lane, p, q, tokens, parents, coins, work, path):
    at, accepted = ROOT, 0
    while True:
        best = argmax(p[at + 1])
        hit = child(tokens, parents, at, best)
        if hit == NOTHING:
            return accepted, best
        path[accepted] = at = hit
        accepted += 1


@njit
def agreement(lane, p, q, tokens, parents, coins, work, path):
    at, accepted = ROOT, 0
    while True:
        row = p[at + 1]
        total(row, row[:0], 1.0, 1.0, work)
        y = pick(row, row[:0], 1.0, 1.0, emit_share(coins, lane, accepted), work)
        hit = child(tokens, parents, at, y)
        if hit == NOTHING:
            return accepted, y
        path[accepted] = at = hit
        accepted += 1


@njit
def take_out(left, x, work):
    """Set a token to 0 in a row whose `total` has been taken; the new total."""
    left[x] = 0.0
    which, tiles, none = x // TILE, work.tiles, left[:0]
    node = len(tiles) // 2 + which
    tiles[node] = tile_mass(left[which * TILE : (which + 1) * TILE], none, 1.0, 1.0, work)
    while node > 1:
        node //= 2
        tiles[node] = tiles[2 * node] + tiles[2 * node + 1]
    return tiles[1]


@njit
def copy(row, left):
    for x in range(len(row)):
        left[x] = real(row[x])


@njit
def point_mass(lane, p, q, tokens, parents, coins, work, path):
    if tree_length(tokens, parents, p.shape[1]) == FAULT:
        return FAULT, NOTHING
    at, accepted, left, none = ROOT, 0, work.left, work.left[:0]
    copy(p[0], left)
    mass = total(left, none, 1.0, 1.0, work)
    for j in range(len(tokens)):
        x = tokens[j]
        if parents[j] != at or x == NOTHING:
            continue
        if accept(coins, lane, left[x], mass, accepted, j):
            path[accepted] = at = j
            accepted += 1
            copy(p[j + 1], left)
            mass = total(left, none, 1.0, 1.0, work)
        else:
            mass = take_out(left, x, work)
    return accepted, pick(left, none, 1.0, 1.0, emit_share(coins, lane, accepted), work)


@njit
def refuse(left, q, a, b, work):
    """left becomes (a left - b q)+, or a left where nothing is left over; the power of two to scale it by, its mass."""
    mass = total(left, q, a, b, work)
    if mass > 0:
        for x in range(len(left)):
            rest = a * left[x] - b * real(q[x])
            left[x] = rest if rest > 0 else 0.0
    else:
        for x in range(len(left)):
            left[x] = a * left[x]
        mass = total(left, left[:0], 1.0, 1.0, work)
    scale = math.ldexp(1.0, -math.frexp(mass)[1])
    return scale, mass * scale


@njit
def iid_candidates(lane, p, q, tokens, parents, coins, work, path):
    if tree_length(tokens, parents, p.shape[1]) == FAULT:
        return FAULT, NOTHING
    at, accepted, left = ROOT, 0, work.left
    copy(p[0], left)
    scale = mass = 1.0
    for j in range(len(tokens)):
        x = tokens[j]
        if parents[j] != at or x == NOTHING:
            continue
        if accept(coins, lane, scale * left[x], real(q[j, x]) * mass, accepted, j):
            path[accepted] = at = j
            accepted += 1
            copy(p[j + 1], left)
            scale = mass = 1.0
        else:
            scale, mass = refuse(left, q[j], scale, mass, work)
    return accepted, choose(left, left[:0], scale, 1.0, emit_share(coins, lane, accepted), work)


@njit
def without_replacement(lane, p, q, tokens, parents, coins, work, path):
    if tree_length(tokens, parents, p.shape[1]) == FAULT:
        return FAULT, NOTHING
    at, accepted, left, pool = ROOT, 0, work.left, work.pool
    copy(p[0], left)
    scale = mass = 1.0
    first = 0  # the siblings from here on that are judged have been refused
    for j in range(len(tokens)):
        x = tokens[j]
        if parents[j] != at or x == NOTHING:
            continue
        copy(q[j], pool)
        for i in range(first, j):
            if parents[i] == at and tokens[i] != NOTHING:
                pool[tokens[i]] = 0.0
        supply = total(pool, pool[:0], 1.0, 1.0, work)
        if accept(coins, lane, scale * left[x] * supply, pool[x] * mass, accepted, j):
            path[accepted] = at = first = j
            accepted += 1
            copy(p[j + 1], left)
            scale = mass = 1.0
        else:
            scale, mass = refuse(left, pool, scale * supply, mass, work)
    return accepted, choose(left, left[:0], scale, 1.0, emit_share(coins, lane, accepted), work)


# ------------------------------------------------------------------------------------------------------------ all lanes


@njit
def note(lane, kept, tokens, out, path, length):
    """Write down what one lane keeps and emits: tokens [B, n + 1], path [B, n], length [B], which is 0 at a fault."""
    accepted, last = kept
    length[lane] = accepted + 1
    for i in range(accepted):
        out[lane, i] = tokens[lane, path[lane, i]]
    if accepted != FAULT:
        out[lane, accepted] = last


# One loop a rule, over the lanes from `first` to before `end`: numba does not cache a function that is handed another.


@njit(nogil=True, cache=True)
def leviathan_lanes(first, end, p, q, tokens, parents, coins, out, path, length):
    work = scratch(p.shape[2], False)
    for b in range(first, end):
        kept = leviathan(b, p[b], q[b], tokens[b], parents[b], coins, work, path[b])
        note(b, kept, tokens, out, path, length)


@njit(nogil=True, cache=True)
def block_lanes(first, end, p, q, tokens, parents, coins, out, path, length):
    work = scratch(p.shape[2], False)
    for b in range(first, end):
        kept = block(b, p[b], q[b], tokens[b], parents[b], coins, work, path[b])
        note(b, kept, tokens, out, path, length)


@njit(nogil=True, cache=True)
def greedy_lanes(first, end, p, q, tokens, parents, coins, out, path, length):
    work = scratch(p.shape[2], False)
    for b in range(first, end):
        kept = greedy(b, p[b], q[b], tokens[b], parents[b], coins, work, path[b])
        note(b, kept, tokens, out, path, length)


@njit(nogil=True, cache=True)
def agreement_lanes(first, end, p, q, tokens, parents, coins, out, path, length):
    work = scratch(p.shape[2], False)
    for b in range(first, end):
        kept = agreement(b, p[b], q[b], tokens[b], parents[b], coins, work, path[b])
        note(b, kept, tokens, out, path, length)


@njit(nogil=True, cache=True)
def point_mass_lanes(first, end, p, q, tokens, parents, coins, out, path, length):
    work = scratch(p.shape[2], True)
    for b in range(first, end):
        kept = point_mass(b, p[b], q[b], tokens[b], parents[b], coins, work, path[b])
        note(b, kept, tokens, out, path, length)


@njit(nogil=True, cache=True)
def iid_candidates_lanes(first, end, p, q, tokens, parents, coins, out, path, length):
    work = scratch(p.shape[2], True)
    for b in range(first, end):
        kept = iid_candidates(b, p[b], q[b], tokens[b], parents[b], coins, work, path[b])
        note(b, kept, tokens, out, path, length)


@njit(nogil=True, cache=True)
def without_replacement_lanes(first, end, p, q, tokens, parents, coins, out, path, length):
    work = scratch(p.shape[2], True)
    for b in range(first, end):
        kept = without_replacement(b, p[b], q[b], tokens[b], parents[b], coins, work, path[b])
        note(b, kept, tokens, out, path, length)


RULES = {
    "leviathan": leviathan_lanes,
    "block": block_lanes,
    "greedy": greedy_lanes,
    "agreement": agreement_lanes,
    "point_mass": point_mass_lanes,
    "iid_candidates": iid_candidates_lanes,
    "without_replacement": without_replacement_lanes,
}
WEIGHING = ("leviathan", "block", "iid_candidates", "without_replacement")  # those that read q


@njit(nogil=True, cache=True)
def picks(first, end, rows, kind, requests, places, nodes, key, out):
    """out [B]: a token of each row [B, V], with the coin of its site."""
    work = scratch(rows.shape[1], False)
    for lane in range(first, end):
        row = rows[lane]
        total(row, row[:0], 1.0, 1.0, work)
        out[lane] = pick(row, row[:0], 1.0, 1.0, share(requests[lane], places[lane], kind, nodes[lane], key), work)


@njit
def distribution(row, tolerance, spare):
    """Whether a row has no NaN and no negative mass, and sums to 1."""
    mass, least = spare[0], spare[1]
    mass[:], least[:] = 0.0, 0.0
    for start in range(0, len(row), TILE):
        tile = row[start : start + TILE]
        for x in range(len(tile)):
            weight = real(tile[x])
            mass[x] += weight
            least[x] = weight if weight < least[x] else least[x]
    return abs(mass.sum() - 1) <= tolerance and least.min() >= 0


@njit
def drafts_are_sound(p, q, tokens, parents, tolerance, spare):
    for j in range(len(tokens)):
        if tokens[j] == NOTHING:
            continue
        if not (0 <= tokens[j] < p.shape[1] and ROOT <= parents[j] < j):
            return False
        if parents[j] != ROOT and tokens[parents[j]] == NOTHING:
            return False
        if not distribution(p[j + 1], tolerance, spare) or (len(q) and not distribution(q[j], tolerance, spare)):
            return False
    return True


@njit(nogil=True, cache=True)
def sound(first, end, p, q, tokens, parents, tolerance, fine):
    """fine [B] is True where every draft is a token behind one that comes before it, and its rows are distributions."""
    spare = np.empty((2, TILE))
    for lane in range(first, end):
        fine[lane] = distribution(p[lane, 0], tolerance, spare) and drafts_are_sound(
            p[lane], q[lane], tokens[lane], parents[lane], tolerance, spare
        )
