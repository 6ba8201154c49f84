"""How a diagnosis is worded: "CLASS: what was observed", where CLASS is one of `refengine bugs`.

Every law that evidence bets on is named so (`defect_laws.py`), and so is every other diagnosis of an audit, or it says
that no known class fits. Classes that the data cannot tell apart are joined.
"""

from collections.abc import Iterable

OR = "; or "
NO_CLASS = "no known class fits; it shows "
ONE_COIN = "positions share coins: one coin decides the whole block"
COIN_FOR_ALL = "positions share coins: one coin decides and draws for the whole block"
LAST_COIN = "positions share coins: the last deciding coin draws what follows"
COIN_BEFORE = "positions share coins: the coin of the draft before draws what follows"
FIRST_COIN = "positions share coins: the first deciding coin draws what follows"
AGREEING_COIN = "positions share coins: one coin draws every token"
BROKEN_CONTRACT = "contract broken: the answer is no list of emitted tokens"
ZERO_MASS = "zero mass: a token of probability zero is emitted"
BOUNDARY = "zero at zero: a coin at the end of its range emits a token of probability zero"
DEPENDENT_ROWS = "requests share coins: the rows of a batch depend on one another"
DEPENDENT_ROUNDS = "rounds share coins: a round depends on the one before"
DISTANT_ROUNDS = "rounds share coins: a round depends on one further back"
COUNTED_CALLS = "state between calls: what is emitted depends on the number of the call"
SELDOM = ", seldom"  # after the name of a defect that strikes at a few calls only


def unexplained(where: str) -> str:
    """The diagnosis where no class fits: `where` is "at position 2 of a block", "in tokens with p<q"."""
    return NO_CLASS + where


def joined(diagnoses: Iterable[str]) -> str:
    """One diagnosis of several that the data cannot tell apart; each once."""
    return OR.join(dict.fromkeys(diagnoses))


def parts(diagnosis: str) -> list[str]:
    """What `joined` has joined."""
    return diagnosis.split(OR) if diagnosis else []
