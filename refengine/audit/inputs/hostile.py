"""Hostile inputs, fixed before any defect was written down, and the order in which calls are spent on them."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refengine.audit.inputs.case import Case, by_cells, case, rolled, same
from refengine.audit.inputs.first_calls import blocks, far, wide
from refengine.evidence.rows import Rows


def cases() -> list[Case]:
    """Every input family, those for the crudest defects first: the first ones are tried at once, and once only."""
    return [*_opening(), *_places(), *_crude(), *_small(), *_near(), *_history(), *_wide()]


def _opening() -> Iterator[Case]:
    """The rows of first_calls.py, a wide one after every second of the first blocks."""
    narrow, flat = [case(*rows) for rows in blocks()], [by_cells(*rows) for rows in wide()]
    yield from (*narrow[:2], flat[0], *narrow[2:4], flat[1], *narrow[4:], _few_of_many(*far()))


def _places() -> Iterator[Case]:
    """Rows that identify their site, drawn anew for every lane, position and side. Few tokens have nearly all of
    the mass; the others have none ("sparse"), or next to none ("settled": a wrong draw within the support shows too).
    Where the draft is the target's own row the block is always kept, so that its end is always visited."""
    generator = np.random.default_rng(20261120)
    sparse = []
    for vocabulary, gamma, concentration in ((8, 8, 0.2), (7, 4, 0.1)):
        rows = generator.dirichlet(np.full(vocabulary, concentration), size=(4, 2 * gamma + 1, 1))
        rows[rows < 1e-4] = 0.0
        sparse.append(case(f"sparse, V = {vocabulary}", rows[:, : gamma + 1], rows[:, gamma + 1 :]))
        sparse.append(case(f"sparse and kept, V = {vocabulary}", rows[:, : gamma + 1], rows[:, :gamma]))
        sparse.append(_settled(generator, 2 if vocabulary == 8 else 3))
    yield from sparse
    graded = 10.0 ** -generator.uniform(0.0, 3.0, size=(4, 5, 1, 32))
    graded[graded == graded.max(-1, keepdims=True)] = 10.0  # a tail that a temperature of the bonus makes much of
    yield case("graded and kept", graded, graded[:, :4])


def _settled(generator: np.random.Generator, vocabulary: int, lanes: int = 4, gamma: int = 4) -> Case:
    """A favourite per row, the same for draft and target every other time; the rest between 1e-2 and 1e-5."""
    favourites = generator.integers(vocabulary, size=(2, lanes, gamma + 1))
    favourites[1] = np.where(generator.random(favourites[1].shape) < 0.5, favourites[0], favourites[1])
    rows = 10.0 ** -generator.uniform(2.0, 5.0, size=(2, lanes, gamma + 1, 1, vocabulary))
    np.put_along_axis(rows, favourites[:, :, :, None, None], 1.0, axis=-1)
    return case(f"settled {favourites[0, 0].tolist()}", rows[0], rows[1, :, :gamma])


def _crude() -> Iterator[Case]:
    """Hard zeros, one-hot rows and rows that identify their site: most gross defects emit an impossible token."""
    favourite = np.full(16, 0.0)
    favourite[[0, 5]] = 0.97, 0.03
    yield case("a favourite per place", rolled(favourite, 8, 5, 3, 1), rolled(np.roll(favourite, 5), 8, 4, 3, 1))
    low, high = [0.4, 0.3, 0.2, 0.1, 0, 0, 0, 0], [0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4]
    yield case("disjoint", same(low, 4, 3), same(high, 4, 2))
    yield case("reversed", rolled([0.05, 0.15, 0.3, 0.5], 4, 4, 1, 1), rolled([0.5, 0.3, 0.15, 0.05], 4, 3, 1, 1))
    p, q = [0.5, 0.3, 0.2, 0, 0, 0], [0, 0.3, 0.2, 0.2, 0.3, 0]
    yield case("different masks", rolled(p, 5, 4, 1, 2), rolled(q, 5, 3, 1, 2), "race")
    yield case("one-hot target", rolled([0, 0, 1, 0], 2, 3, 1, 1), rolled([0.25, 0.25, 0.25, 0.25], 2, 2, 1, 1))
    yield case("one-hot draft", rolled([0.1, 0.2, 0.3, 0.4], 3, 4, 1, 1), rolled([0, 1, 0, 0], 3, 3, 1, 1))
    first = np.array([1.0, 1e-3, 1e-4, 1e-3, 1e-5])
    ends = np.array([[[first, first[::-1]][(lane + i) % 2] for i in range(4)] for lane in range(2)])[:, :, None]
    yield case("first and last id", ends, 0.5 * ends[:, :3] + 0.5 * np.array([0.0, 0.4, 0.3, 0.3, 0.0]))


def _small() -> Iterator[Case]:
    """Few tokens, so that one conditional collects many draws. Batches are of odd sizes too."""
    yield case("coin", same([0.5, 0.5], 9, 4), same([0.9, 0.1], 9, 3))
    yield case("equal", rolled([0.1, 0.2, 0.3, 0.4], 4, 5, 1, 1), rolled([0.1, 0.2, 0.3, 0.4], 4, 4, 1, 1))
    yield case("uniform target", same([0.25] * 4, 4, 3), same([0.7, 0.1, 0.1, 0.1], 4, 2))
    yield case("peaked target", same([0.9, 0.05, 0.05], 4, 3), same([0.4, 0.3, 0.3], 4, 2), "race")
    yield case("one draft", same([0.3, 0.25, 0.2, 0.15, 0.1], 2, 2), same([0.4, 0.3, 0.15, 0.1, 0.05], 2, 1), "race")
    yield case("confident draft", same([0.3, 0.4, 0.3], 4, 4), same([0.02, 0.96, 0.02], 4, 3))
    sure = np.concatenate([np.linspace(0.99, 0.9, 10), np.linspace(0.85, 0.6, 6), [0.5]])  # the draft is surer still
    p = np.stack([sure, 1.0 - sure], axis=-1)[None, :, None]
    yield case("surer drafts", p, same([1.0, 0.0], 1, 16))
    yield case("long block", rolled([0.55, 0.45], 2, 9, 1, 1), rolled([0.45, 0.55], 2, 8, 1, 1))


def _near() -> Iterator[Case]:
    """q = p (1 +- 10^-k) beside rare tokens: nearly every draft is kept, and the corrections are concentrated
    where the target has little, so that an error of the residual is large against the token that it falls on. Fine
    print has another kind of precision at every position, since nearly every call gets to the end of the block."""
    for k in (1, 2):
        p, q = _close(10.0**-k)
        yield case(f"near to 1e-{k}", same(p, 2, 6), same(q, 2, 5))
    kinds = [_half_ulp(11), _half_ulp(8), _astride(8), _astride(11), _surplus(1e-5), _close(1e-3)]
    p, q = (np.array([[kind[side] for kind in kinds]])[:, :, None] for side in (0, 1))
    yield case("fine print", np.concatenate([p, p[:, :1]], axis=1), q)
    rare = np.array([0.5, 0.4988889, 1e-3, 1e-4, 1e-5, 1e-6])
    yield case("rare", same(rare, 2, 4), same([0.49, 0.49, 5e-3, 5e-3, 5e-3, 5e-3], 2, 3))
    yield case("rare in the draft", same([0.3, 0.3, 0.2, 0.2], 2, 4), same([0.6, 0.4, 1e-4, 1e-6], 2, 3))


def _close(small: float) -> tuple[Rows, Rows]:
    p = np.array([0.3, 0.3, 0.2, 0.2, small / 20, small / 40])
    return p, p * [1 - small, 1 + small, 1 + small, 1 - small, 0.0, 0.0]


def _surplus(rare: float) -> tuple[Rows, Rows]:
    """Where the target has more than the draft it is rare: whatever refuses too much falls there."""
    q = np.array([0.3, 0.3, 0.2, 0.2, 0.0, 0.0])
    return q * (1 - 1.5 * rare) + [0, 0, 0, 0, rare, rare / 2], q


def _half_ulp(bits: int) -> tuple[Rows, Rows]:
    """q is held by `bits`-bit significands and p is not: in less precision p - q vanishes there, and the whole residual
    falls on the rare tokens, which have next to none of it."""
    ulp = 2.0 ** (-1 - bits)  # the spacing of values in [1/4, 1/2) with `bits` significant bits is 2^(-1 - bits)
    rare = ulp / 32
    p = np.array([0.25 + 0.45 * ulp, 0.3125 + 0.45 * ulp, 0.25 - 0.6 * ulp, 0.0, rare, rare / 2])
    q = np.array([0.25, 0.3125, 0.25, 0.0, 0.0, 0.0])
    p[3], q[3] = 1.0 - p.sum(), 1.0 - q.sum()
    return p, q


def _astride(bits: int) -> tuple[Rows, Rows]:
    """p and q lie just below and just above the middle of two `bits`-bit significands: in less precision p / q is
    smaller by a whole spacing, and what is then refused falls on the rare tokens."""
    ulp, rare = 2.0 ** (-1 - bits), 1e-5
    q = np.array(
        [0.25 + 0.5 * ulp + rare / 2, 0.3125 + 0.5 * ulp + rare / 2, 0.25 + 0.5 * ulp + rare / 2, 0.0, 0.0, 0.0]
    )
    q[3] = 1.0 - q.sum()
    p = q + np.array([-rare, -rare, -rare, 0.0, 2 * rare, rare])
    return p, q


def _history() -> Iterator[Case]:
    """Rows that depend on the prefix, and equal rows in which only a shared coin ties one outcome to another."""
    generator = np.random.default_rng(20261121)
    for contexts, vocabulary, gamma in ((3, 3, 5), (2, 2, 3), (4, 6, 4)):
        rows = generator.dirichlet(np.full(vocabulary, 0.7), size=(3, 2 * gamma + 1, contexts))
        yield case(f"{contexts} contexts", rows[:, : gamma + 1], rows[:, gamma + 1 :])
    # A draft that is kept against the odds tells its coin: whatever uses that coin again, in part or whole, shows.
    yield case("against the odds", same([0.5, 0.44, 0.06], 8, 4), same([0.03, 0.03, 0.94], 8, 3))
    yield case("twins", same([0.5, 0.3, 0.2], 4, 3), same([0.2, 0.2, 0.6], 4, 2))
    yield case("disjoint twins", same([0.5, 0.5, 0, 0], 2, 2), same([0, 0, 0.5, 0.5], 2, 1), "race")


def _wide() -> Iterator[Case]:
    """Vocabularies at which ids overflow a byte, top-k defaults bite and rare tokens carry most of the mass."""
    generator = np.random.default_rng(20261122)
    for vocabulary, lanes, gamma, concentration in ((12, 16, 1, 0.5), (64, 4, 4, 0.3), (600, 2, 2, 0.2)):
        rows = generator.dirichlet(np.full(vocabulary, concentration), size=(lanes, 2 * gamma + 1, 1))
        yield case(f"random, V = {vocabulary}", rows[:, : gamma + 1], rows[:, gamma + 1 :])
    graded = 10.0 ** -generator.uniform(0.0, 3.0, size=(1, 5, 1, 4096))  # thresholds of 1e-3 .. 1e-6 cut some of it
    yield case("graded, V = 4096", graded[:, :3], graded[:, 3:])
    flat = np.ones(4096)
    draft = np.where(np.arange(4096) % 2, 1.6, 0.4)
    yield case("flat, V = 4096", same(flat, 2, 3), same(draft, 2, 2))
    yield _chunks()
    rows = generator.dirichlet(np.full(len(LIVE), 2.0), size=(2, 5, 1)) * (np.arange(len(LIVE)) < len(LIVE) - 1)
    yield _few_of_many("few of many", rows[:, :3], rows[:, 3:])


def _chunks(vocabulary: int = 50_257) -> Case:
    """Nearly all mass on the ids at which a kernel that takes the vocabulary in chunks is wrong first: where a chunk of
    1024 ends and where it begins, the same for 32, the ragged rests after the last whole chunk of each, and of 2, 4, 8
    and 16, which is one id. Each has a lane in which it is the correction and one in which it is the bonus."""
    ids = np.arange(vocabulary)
    rests = [ids >= vocabulary // size * size for size in (16, 32, 1024)]
    ends = [ids % 1024 == 1023, ids % 1024 == 0, ids % 32 == 31, ids % 32 == 0]
    special = len(rests) + len(ends)
    cell = np.asarray(np.select([*rests, *ends], range(special), special))
    likely = (0.9 * np.eye(special + 1) + 0.1 / (special + 1)) / np.bincount(cell)
    other = np.repeat(likely[special:], special, axis=0)
    refused = np.stack([likely[:special]] * 2, 1), other[:, None]
    kept = np.stack([other, likely[:special]], 1), other[:, None]
    p, q = (np.concatenate(sides)[:, :, None] for sides in zip(refused, kept, strict=True))
    return by_cells("chunks", p, q, cell)


# Ids that one or two bytes do not hold, nor significands of 8 or 11 bits; the last stands for all that have no mass.
LIVE = (0, 127, 300, 2_049, 32_770, 65_535, 69_998, 69_999)


def _few_of_many(name: str, p: Rows, q: Rows) -> Case:
    cell = np.full(LIVE[-1] + 1, len(LIVE) - 1)
    cell[list(LIVE)] = np.arange(len(LIVE))
    return replace(case(name, p, q), cell=cell)


# ---------------------------------------------------------------------------------------------------------------------

OPENING_INPUTS = 12  # tried once each before effort moves to where it pays


def block_size(item: Case, spent: int) -> int:
    """Calls at a time once effort moves: a twelfth of what was spent, so that mistakes are cheap while little is
    known; fewer where the vocabulary is large and a call costs more."""
    most = 8 if item.cell is not None else 1024 if item.vocabulary <= 64 else 256
    return min(most, max(1, spent // 12))
