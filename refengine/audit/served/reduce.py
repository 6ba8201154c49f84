"""A violated claim made small: the shortest request or schedule that still shows it, and what it vanishes under.

Both sides are asked again, with one thing less each time; what still shows the difference is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from refengine.audit.served.ask import Ask
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.cells import Cell, Parity, Plain
from refengine.audit.served.claims.compare import difference
from refengine.audit.served.claims.own import Own
from refengine.audit.served.claims.sampled import Sampled
from refengine.audit.served.claims.schedules.claims import COMPANIES
from refengine.audit.served.claims.ties import FRONT_END, parted
from refengine.audit.served.locate import located

TRIES = 40  # requests, to both sides together, that go into making a witness small, about
Steps: TypeAlias = list[list[Ask]]
Tried: TypeAlias = Callable[[Sequence[Sequence[Ask]]], bool]
WITHOUT_IT, WITHOUT_ANY = "without the parameter", "it shows without any parameter too"
PLACES = 4  # looks that showed it, which are made again


def reduced(bench: Bench, cell: Cell) -> dict[str, Any] | None:
    """The smallest witness that was found, of a law where it differs; None where nothing is to be made smaller. Raises
    Refused, Failed."""
    if isinstance(cell, Sampled):
        return located(bench, cell)
    if isinstance(cell, Own) and cell.shown_at:
        return _schedule(bench, cell)
    if isinstance(cell, Parity | Plain) and (asks := cell.shown(bench, PLACES)):
        return _request(bench, cell, asks)
    return None


def _request(bench: Bench, cell: Parity | Plain, asks: Sequence[Ask]) -> dict[str, Any] | None:
    """Fewer tokens first, then what may be left out. asks: those that showed it."""

    def shows(ask: Ask) -> bool:
        return cell.shows(bench, ask, *bench.both(ask))

    said = ((ask, bench.both(ask)) for ask in asks)
    found, first = next((told for told in said if cell.shows(bench, told[0], *told[1])), (None, None))
    if found is None or first is None:
        again = isinstance(cell, Plain) and (cell.turns is not None or cell.after_others)
        return {"it vanishes": ["when the same is asked again"]} if again else _beside_others(bench, cell, asks)
    if isinstance(cell, Plain) and cell.after_others:
        vanishes = {"it vanishes": ["when it is asked a second time"]} if not shows(found) else {}
        return difference(found, *first) | vanishes
    # It shows with `high` tokens; a defect that comes and goes may show with fewer. No limit is below a minimum.
    low, high = max(0, int(found.options.get("min_tokens", 0)) - 1), found.tokens
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(replace(found, tokens=middle)) else (middle, high)
    small = replace(found, tokens=high)
    tried = _left_out(bench, cell, found, small, shows)
    vanishes = {"it vanishes": [how for how, gone in tried.items() if gone]}
    return difference(small, *bench.both(small)) | vanishes


def _left_out(
    bench: Bench, cell: Parity | Plain, found: Ask, small: Ask, shows: Callable[[Ask], bool]
) -> dict[str, bool]:
    """Under what it vanishes. small: what was found, with fewer tokens."""
    bare = isinstance(cell, Parity) and not shows(replace(small, options={}, temperature=0.0))
    # Of this prompt, when nothing like it had been asked; as many tokens of it.
    first = bench.plain_answers.get((small.turns[0], found.tokens, small.chat, False))
    return {
        f"below {small.tokens} tokens": small.tokens > 1,
        WITHOUT_IT: bare,
        "when the prompt is new": isinstance(cell, Parity) and not bare and first is not None and not parted(*first),
        "when not streamed": small.stream and not shows(replace(small, stream=False)),
        "outside chat": small.chat and len(small.turns) == 1 and not shows(replace(small, chat=False)),
    }


def _beside_others(bench: Bench, cell: Parity | Plain, asks: Sequence[Ask]) -> dict[str, Any]:
    """Of what does not show when nothing else is under way: the fewest requests of the kind beside which it does."""
    alone = {"it vanishes": ["when nothing else is under way"]}
    if not bench.together or not asks:
        return alone
    for count in COMPANIES[1:]:
        others = [replace(asks[0], turns=(bench.prompt(i),), prompt_ids=()) for i in range(1, count)]
        on, off = bench.each([*others, asks[0]])
        if cell.shows(bench, asks[0], on[-1], off[-1]):
            shown = {"it shows": [f"in company, with {count} requests under way"]}
            return difference(asks[0], on[-1], off[-1]) | shown | alone
    return alone


def _schedule(bench: Bench, cell: Own) -> dict[str, Any]:
    """Without parameters, if it shows so too; then a request less each time; what is left is needed."""
    most = bench.sent + 2 * TRIES

    def shows(steps: Sequence[Sequence[Ask]]) -> bool:
        on, off, _ = cell.tried(bench, steps)
        return on and not off

    schedules = (cell.steps(bench, k) for k in cell.shown_at[:PLACES])
    found = next(([list(step) for step in steps] for steps in schedules if shows(steps)), None)
    if found is None:
        return {"it vanishes": ["when these prompts come again"]}
    bare = [[without_parameters(ask) for ask in step] for step in found]
    unneeded = bare != found and shows(bare)
    kept = _fewer_requests(bare if unneeded else found, lambda steps: bench.sent < most and shows(steps))
    kept, needed = _fewer_options(kept, shows, lambda: bench.sent < most)
    _, _, witness = cell.tried(bench, kept)
    vanishes = ["without the other requests"] if sum(map(len, kept)) > 2 else []
    shown = {"it shows": [WITHOUT_ANY]} if unneeded else {}
    return witness | shown | {"it vanishes": [*vanishes, *needed]}


def _fewer_requests(steps: Steps, shows: Tried) -> Steps:
    """Never without the first or the last."""
    kept = steps
    for i in reversed(range(len(kept))):
        for j in reversed(range(len(kept[i]))):
            ends = (i, j) in ((0, 0), (len(kept) - 1, len(kept[-1]) - 1))
            less = [[ask for b, ask in enumerate(step) if (a, b) != (i, j)] for a, step in enumerate(kept)]
            if not ends and shows([step for step in less if step]):
                kept = less
    return [step for step in kept if step]


def _fewer_options(steps: Steps, shows: Tried, may_ask: Callable[[], bool]) -> tuple[Steps, list[str]]:
    """And which of the others' options are needed."""
    kept, needed = steps, list[str]()
    for i, j in [(i, j) for i, step in enumerate(kept) for j in range(len(step))][1:-1]:
        for name in sorted(kept[i][j].options.keys() - FRONT_END):
            if not may_ask():
                return kept, needed
            less = [list(step) for step in kept]
            less[i][j] = replace(kept[i][j], options={k: v for k, v in kept[i][j].options.items() if k != name})
            if shows(less):
                kept = less
            elif (said := f"without the {name} of another") not in needed:
                needed.append(said)
    return kept, needed


def without_parameters(ask: Ask) -> Ask:
    return replace(ask, options={name: value for name, value in ask.options.items() if name in FRONT_END})
