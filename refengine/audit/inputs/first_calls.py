"""The inputs of the first calls: rows under which one call of a wrong rule says as much as a call can.

Almost all mass of a row lies on its favourite, and the token of a right rule is next to certain: the draft where it is
kept, the target's favourite where it is refused. Any other token has probability zero, which ends the audit, or
RARE, which is worth log(1/RARE) nats. Favourites differ from site to site, so that a row, a draft or an id that is
one off is another token; blocks are long where they are kept, and refused at their beginning, middle and end. Rows
in which all tokens are likely are wide instead: there, a rule that always picks alike shows by log V nats a token, and
one that adds a little to every token, or clamps a divisor, by RARE.

Every position is a pair of rows (p, q) over V tokens; the p of the last one is the row of the bonus.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from refengine.evidence.rows import Rows

V, LANES = 8, 4
RARE = 1e-5  # ten times the ball of the null: rarer tokens are worth no more nats (fixed_bets.py)
FIRST, LAST = 0, V - 1
WIDE = 2**17
Position = tuple[Rows, Rows]


def _on(*tokens: int) -> Rows:
    """Even on some tokens."""
    return np.asarray(np.isin(np.arange(V), tokens) / len(tokens))


def keep(favourite: int, rare: int) -> Position:
    """Kept but for RARE; whatever refuses it emits the rare token."""
    return _on(favourite) + RARE * _on(rare), _on(favourite)


def spread(first: int, rare: int) -> Position:
    """The same on four tokens: to accept with p, or with p / (p + q), refuses most."""
    four = _on(*((first + step) % V for step in (0, 2, 4, 6)))
    return four + RARE * _on(rare), four


def refuse(favourite: int, drafted: int, rare: int, left: float = 0.0) -> Position:
    """The draft has no mass, or next to none, and the correction is the favourite."""
    return _on(favourite) + RARE * _on(rare) + left * _on(drafted), _on(drafted)


def mostly(favourite: int, other: int, rare: int) -> Position:
    """One draft in five has no mass. A rule that keeps some drafts unseen meets one in half of its blocks."""
    return _on(favourite) + RARE * _on(rare), 0.8 * _on(favourite) + 0.2 * _on(other)


def odds(favourite: int, drafted: int, chance: float) -> Position:
    """A sure draft with a chance: to keep a block of them is against the odds."""
    return (1 - chance) * _on(favourite) + chance * _on(drafted), _on(drafted)


# The first calls, one of each. Where several positions have one purpose they are drawn from a short list of ids.
BLOCKS: dict[str, list[Position]] = {
    "kept": [keep(1, 4), keep(5, 7), keep(2, 6), keep(7, 3), keep(4, 1), keep(6, 5), keep(3, 0), keep(FIRST, 4)],
    # the correction is the draft after the refused one, and in another block the draft before it
    "refused at 0": [refuse(FIRST, 6, 3), keep(FIRST, 2), keep(5, 2)],
    "spread, then refused": [
        spread(0, 1),
        keep(LAST, 2),
        refuse(LAST, 3, 5, 1e-9),
        keep(1, 6),
        keep(4, 2),
    ],
    "mostly kept": [mostly(i * 3 % V, (i * 3 + 4) % V, (i * 3 + 1) % V) for i in range(8)] + [keep(LAST, 2)],
    "even odds": [odds(i * 5 % V, (i * 5 + 2) % V, 0.51) for i in range(16)] + [keep(FIRST, 2)],
    "odds of 1 to 9": [odds(i * 3 % V, (i * 3 + 1) % V, 0.1) for i in range(8)] + [keep(LAST, 2)],
    "kept, and again": [keep(3, 5), keep(LAST, 1), keep(2, 4), keep(2, 6)],
    "refused at 1": [keep(FIRST, 3), refuse(FIRST, 4, 6), keep(4, 2), keep(LAST, 2)],
    "kept, refused": [mostly(i * 5 % V, (i * 5 + 1) % V, (i * 5 + 3) % V) for i in range(4)]
    + [refuse(LAST, 1, 4), keep(2, 5)],
}


def blocks() -> Iterator[tuple[str, Rows, Rows]]:
    """(name, p [lanes, gamma + 1, 1, V], q [lanes, gamma, 1, V]); a lane has every id three higher than the last."""
    for name, positions in BLOCKS.items():
        lanes = [[[np.roll(side, 3 * lane) for side in pair] for pair in positions] for lane in range(LANES)]
        rows = np.array(lanes)[:, :, :, None]
        yield name, rows[:, :, 0], rows[:, :-1, 1]


# Cells of wide rows: the first id; 49 more; of the others that have mass a sixteenth, and two halves of the rest; two
# single ids; the dead ones.
HEAVIEST, HEAVY, LOW, MIDDLE, HIGH, ONE, OTHER, DEAD = range(8)
LEVELS = (1.0, 2.0**-18, 2.0**-18, 2.0**-21, 1.0)  # the most that an id of a tail has: below 1e-5 and 1e-6


def _cells(live: int) -> NDArray[np.int64]:
    """The cell of every id, the first `live` having mass."""
    ids = np.arange(WIDE)
    cell = np.where(ids < live // 16, LOW, np.where(ids < live // 2, MIDDLE, np.where(ids < live, HIGH, DEAD)))
    cell[0], cell[70_001], cell[90_001] = HEAVIEST, ONE, OTHER
    cell[97 : 97 + 49 * 601 : 601] = HEAVY  # with the first one the 50 heaviest, where the rest is flat
    return np.asarray(cell)


def _tailed(flat: Rows, sizes: NDArray[np.int64], level: float) -> Rows:
    """Nearly all ids have `level` each at most; the rest share what is left as in the flat row."""
    tail = np.where(np.isin(np.arange(len(flat)), (MIDDLE, HIGH)), np.minimum(flat, level), 0.0)
    rest = np.where(tail > 0, 0.0, flat)
    return np.asarray(tail + rest * (1.0 - (tail * sizes).sum()) / (rest * sizes).sum())


def wide() -> Iterator[tuple[str, Rows, Rows, NDArray[np.int64]]]:
    """Rows over a vocabulary of a real size, by cells: p and q say what one id of each cell has.

    Kept: drafts from the target's own rows but for RARE, flat ones and ones with a long tail, whose ids have less than
    a constant that is added to a divisor or clamps it; one id is kept for the bonus. Refused: a flat target and a
    useless draft, most of it spread over ids without mass.
    """
    flat = np.array([1.2, 1.1, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    cell = _cells(WIDE - 128)
    flat /= (flat * np.bincount(cell)).sum()
    kept = np.array([_tailed(flat, np.bincount(cell), level) for level in LEVELS])[None, :, None]
    last = (flat + RARE * (np.arange(8) == OTHER))[None, None, None]
    yield "wide, kept", np.concatenate([kept + RARE * (np.arange(8) == ONE), last], axis=1), kept, cell
    drafted = np.zeros(8)
    drafted[OTHER], drafted[DEAD] = 0.25, 1.0 / WIDE
    yield "wide, refused", np.array([[[flat], [flat]]]), np.array([[[drafted]]]), _cells(WIDE // 4)


def far() -> tuple[str, Rows, Rows]:
    """Rows for a few of many ids, the last of which has no mass. An id that is cut short, or judged by its size, is
    shown by one call: kept and emitted where it should not be, or the other way round."""
    live = V - 1
    positions = [mostly(i * 3 % live, (i * 3 + 2) % live, (i * 3 + 1) % live) for i in range(4)] + [keep(live - 1, 2)]
    refused = [refuse(i - 3, i, i - 2) for i in range(live - 1, live - 5, -1)] + [keep(1, 2)]
    rows = np.array([positions, refused, refused[1:] + refused[:1]])[:, :, :, None]
    return "far ids", rows[:, :, 0], rows[:, :-1, 1]
