"""How far two answers to one request are apart: in text, in tokens, in reported log probabilities."""

from math import inf
from typing import Any

from refengine.audit.served.ask import Answer, Ask, Choice, Row
from refengine.audit.served.faults import shown


def difference(ask: Ask, on: Answer, off: Answer) -> dict[str, Any]:
    """The request, both answers, and the first character in which they differ."""
    pairs = enumerate(zip(on.text, off.text, strict=False))
    first = next((i for i, (x, y) in pairs if x != y), min(len(on.text), len(off.text)))
    said = {"request": ask.summary(), "on": shown(on), "off": shown(off), "first difference at character": first}
    mine, theirs = on.choices[0].tokens, off.choices[0].tokens
    if mine is None or theirs is None or mine == theirs:
        return said
    steps = enumerate(zip(mine, theirs, strict=False))
    return said | {"first difference at token": next((i for i, (x, y) in steps if x != y), min(len(mine), len(theirs)))}


def logprobs_apart(on: Choice, off: Choice) -> float | None:
    """The largest distance of the log probabilities of the tokens that both emitted alike, and of those listed beside
    them, in nats."""
    if not on.tokens or not off.tokens or not on.logprobs or not off.logprobs:
        return None
    rows = zip(on.tokens, off.tokens, on.logprobs, off.logprobs, strict=False)
    apart, alike = 0.0, 0
    for mine, theirs, a, b in rows:
        if mine != theirs:
            break
        alike += 1
        if a is not None and b is not None:  # the first token of an echoed prompt has none
            apart = max(apart, abs(max(a, -50.0) - max(b, -50.0)))
    listed = zip(on.tokens[:alike], on.top or (), off.top or (), strict=False)
    return max([apart, *(rows_apart(token, mine, theirs) for token, mine, theirs in listed)])


def rows_apart(token: str, mine: Row, theirs: Row) -> float:
    """Of two rows of that token: what one of them does not list is less likely than all that it lists beside it. Where
    it does not have the token by that name, the last of its entries may be the token by another one."""
    apart = [abs(max(mine[name], -50.0) - max(theirs[name], -50.0)) for name in mine.keys() & theirs.keys()]
    for row, other in ((mine, theirs), (theirs, mine)):
        beside = sorted(chance for name, chance in other.items() if name != token)[token not in other :]
        least = min(beside, default=inf)
        apart += [chance - least for name, chance in row.items() if name not in other]
    return max(apart, default=0.0)
