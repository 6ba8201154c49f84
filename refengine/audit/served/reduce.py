"""A violated claim made small: the shortest request that still shows it, and what it vanishes under.

Each step asks both sides again, with fewer tokens or the shorter prompts, and keeps what still shows the difference.
"""

from dataclasses import replace
from typing import Any

from refengine.audit.served.ask import Ask, Failed, Refused
from refengine.audit.served.bench import Bench
from refengine.audit.served.cells import Parity, difference, parted

TRIES = 24  # requests to either side that may go into making one witness small


def reduced(bench: Bench, cell: Parity) -> dict[str, Any] | None:
    """The smallest request that was found, with both answers; None where it does not show again."""
    found = next((ask for k in range(TRIES // 3) if (ask := cell.ask(bench, k)) and _shows(bench, ask)), None)
    if found is None:
        return None
    low, high = 0, found.tokens  # it shows with `high` tokens, and with none there is nothing to show
    while high - low > 1:
        middle = (low + high) // 2
        if _shows(bench, replace(found, tokens=middle)):
            high = middle
        else:
            low = middle
    small = replace(found, tokens=high)
    on, off = bench.both(small)
    vanishes = {
        "without the parameter": not _shows(bench, replace(small, options=dict(bench.logprobs), temperature=0.0)),
        "alone": not _shows(bench, small),
    }
    return difference(small, on, off) | {"it vanishes": [name for name, gone in vanishes.items() if gone]}


def _shows(bench: Bench, ask: Ask) -> bool:
    try:
        return parted(*bench.both(ask))
    except (Refused, Failed):
        return False
