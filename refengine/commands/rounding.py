"""How far the float text of an engine may be from the target's, by a number that is proved.

`proofs/rocq/FloatsEndToEnd.v`, `FloatsGiven.v`, `FloatsDrawn.v` and `FloatsBlock.v` have the theorems and the formulas;
numbers that Coq has evaluated are held to these in `proofs/test_rounding.py`. A bound is on the total variation of one
emitted token, given what stands before it: n tokens cost n times as much, however long the drafted blocks and however
deep the trees are, since a token is judged once, by a coin for each of its candidates. Block verification judges the
block as a whole, and a round emits one token at least, so each token costs as much as all drafts of a block.

What it covers: float32 rows as they are, the draft's pick, the accept test, the correction and the bonus, in the
engine's own arithmetic on a CPU. What it does not: rows of other formats, which `check_rows` admits too; how far the
rows are from the model's (libm's exp, bfloat16 logits).
"""

from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from refengine.exact.chance import ACCEPT_BITS, CHOOSE_BITS

ADMITTED_MISS = 1e-4  # engine.check.SUM_TOLERANCE, of which importing it would cost torch; a test holds them equal
UNIT = Fraction(1, 1 << 53)  # a float64 operation is off by this share of its result


def levels(vocabulary: int) -> int:
    """The levels of the tree of sums over so many tokens."""
    return (vocabulary - 1).bit_length()


def admitted_miss(vocabulary: int) -> Fraction:
    """What a row misses 1 by at most once `check_rows` has let it through: its own sum is rounded V - 1 times."""
    return Fraction(ADMITTED_MISS) + 2 * vocabulary * UNIT


def pick_off(vocabulary: int, roundings: int = 0, bits: int = CHOOSE_BITS) -> Fraction:
    """A pick from weights that are `roundings` roundings off: `FloatMachine.pick_off_at`."""
    return vocabulary * (4 * (2 * levels(vocabulary) + roundings + 1) * UNIT + Fraction(1, 1 << bits))


def ratio_off(vocabulary: int, miss: Fraction, pick_bits: int = CHOOSE_BITS, coin_bits: int = ACCEPT_BITS) -> Fraction:
    """A token of the ratio rule, whose rows miss 1 by at most `miss`: `FloatsEndToEnd.ratio_off_at`.

    Draft, coin, correction, and the difference of the sums of the two rows.
    """
    grid = pick_off(vocabulary, 0, pick_bits) + Fraction(1, 1 << coin_bits) + pick_off(vocabulary, 1, pick_bits)
    return grid + 2 * miss / (1 + miss)


def coin_off(roundings: int, bits: int = ACCEPT_BITS) -> Fraction:
    """A coin between two numbers with so many roundings behind them: `FloatsGiven.coin_off_at`."""
    return 4 * (roundings + 1) * UNIT + Fraction(1, 1 << bits)


def point_off(vocabulary: int, siblings: int, pick_bits: int = CHOOSE_BITS, coin_bits: int = ACCEPT_BITS) -> Fraction:
    """A token of `point_mass`, where no node has more than so many children: `FloatsGiven.point_off_at`.

    A coin for each child, against a total that was added up, and the pick from what is left of the row.
    """
    return siblings * coin_off(levels(vocabulary), coin_bits) + pick_off(vocabulary, 0, pick_bits)


def candidates_off(
    vocabulary: int,
    siblings: int,
    miss: Fraction,
    spare: Fraction,
    pick_bits: int = CHOOSE_BITS,
    coin_bits: int = ACCEPT_BITS,
) -> Fraction:
    """A token of several drawn candidates, no node having more than so many: `FloatsDrawn.candidates_off_at`.

    For each of them a pick, a coin, `spare`, by which the sum that its row is taken to have may be off, and what is
    multiplied, subtracted and rescaled; for all of them `miss`, and the pick from what is left.
    """
    pick = pick_off(vocabulary, 0, pick_bits)
    each = pick + coin_off(0, coin_bits) + spare + (4 * levels(vocabulary) + 28) * UNIT
    return miss + siblings * each + pick


def iid_off(
    vocabulary: int, siblings: int, miss: Fraction, pick_bits: int = CHOOSE_BITS, coin_bits: int = ACCEPT_BITS
) -> Fraction:
    """A token of `iid_candidates`, which takes the sum of the draft's row for 1: `FloatsDrawn.iid_off_at`."""
    return candidates_off(vocabulary, siblings, miss, miss, pick_bits, coin_bits)


def without_off(
    vocabulary: int, siblings: int, miss: Fraction, pick_bits: int = CHOOSE_BITS, coin_bits: int = ACCEPT_BITS
) -> Fraction:
    """A token of `without_replacement`, which adds up what is left of the draft's row: `FloatsDrawn.without_off_at`."""
    return candidates_off(vocabulary, siblings, miss, 4 * levels(vocabulary) * UNIT, pick_bits, coin_bits)


def level_off(vocabulary: int, miss: Fraction, pick_bits: int = CHOOSE_BITS, coin_bits: int = ACCEPT_BITS) -> Fraction:
    """One draft of a block: `FloatBlock.level_off_at`.

    Its pick, its coin and what is emitted in its place, weighed by the mass that is left; the theorem is of rows that
    miss 1 by at most 1/8, and where a vocabulary is so large that `admitted_miss` is more, this is more than 1.
    """
    rounded = (40 * levels(vocabulary) + 123) * UNIT
    return 6 * pick_off(vocabulary, 0, pick_bits) + coin_off(0, coin_bits) + 5 * miss + rounded


def block_off(
    vocabulary: int, longest: int, miss: Fraction, pick_bits: int = CHOOSE_BITS, coin_bits: int = ACCEPT_BITS
) -> Fraction:
    """A round of `block` of at most `longest` drafts, and so each of its tokens: `FloatsBlock.block_off_at`.

    Its drafts, the coin of the whole block and the pick after it.
    """
    whole = coin_off(0, coin_bits) + pick_off(vocabulary, 0, pick_bits)
    return longest * level_off(vocabulary, miss, pick_bits, coin_bits) + whole


# A token of each rule that a theorem covers, of a vocabulary, from rows that miss 1 by at most so much, on trees whose
# nodes have at most so many children, or in blocks of at most so many drafts.
PROVED: dict[str, Callable[[int, Fraction, int, int], Fraction]] = {
    "leviathan": lambda vocabulary, miss, siblings, longest: ratio_off(vocabulary, miss),
    "agreement": lambda vocabulary, miss, siblings, longest: pick_off(vocabulary),
    "point_mass": lambda vocabulary, miss, siblings, longest: point_off(vocabulary, siblings),
    "iid_candidates": lambda vocabulary, miss, siblings, longest: iid_off(vocabulary, siblings, miss),
    "without_replacement": lambda vocabulary, miss, siblings, longest: without_off(vocabulary, siblings, miss),
    "block": lambda vocabulary, miss, siblings, longest: block_off(vocabulary, longest, miss),
    "greedy": lambda vocabulary, miss, siblings, longest: Fraction(0),  # against the text of the target's argmax
}


def tokens_off(
    rule: str, vocabulary: int, count: int, miss: Fraction, siblings: int = 1, longest: int = 1
) -> Fraction | None:
    """Total variation of `count` tokens from the normalised target's, at most; None for a rule without a theorem."""
    return min(Fraction(1), count * PROVED[rule](vocabulary, miss, siblings, longest)) if rule in PROVED else None


def in_floats(
    rule: str, vocabulary: int, count: int, siblings: int = 1, longest: int = 1
) -> dict[str, str | int] | None:
    """What `refengine law` says of an engine's text of `count` tokens; None where no theorem covers the rule."""
    if rule not in PROVED:
        return None
    rows = (
        ("float32 rows that check_rows admits", admitted_miss(vocabulary)),
        ("float32 rows that sum to 1", Fraction(0)),
    )
    bounds = {
        f"TV at most, {name}": str(tokens_off(rule, vocabulary, count, miss, siblings, longest)) for name, miss in rows
    }
    return {"vocabulary": vocabulary, "tokens": count, "siblings": siblings, "gamma": longest, **bounds}


def rounded_up(bound: str) -> str:
    """Three digits of a bound, none of which says less."""
    number = Fraction(bound)
    context = Context(prec=3, rounding=ROUND_CEILING)
    digits = f"{context.divide(Decimal(number.numerator), Decimal(number.denominator)):.2e}"
    return digits if number else "0"
