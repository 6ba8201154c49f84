"""The claim that a sampled text ends at its stop: where it falls among drafts that were kept, as at temperature 0."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from refengine.audit.served.ask import Ask, Choice
from refengine.audit.served.belief import Faults
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.cells import SEED_APART
from refengine.audit.served.claims.options import TOKENS, Options
from refengine.audit.served.faults import contradicts, shown

CLAIM = "A sampled text ends at its stop."
MOST_CHOICES = 16  # of a request
BEGINNING = 4  # characters of a text in which no stop is looked for
SHORTEST, LENGTHS = 2, 4  # characters of a stop, and how many lengths come in turn
Piece = TypeVar("Piece", bound=Hashable)


@dataclass
class StopsSampled:
    """kinds: the options beside which a stop is asked for, in turn: none, and a grammar."""

    by_itself: ClassVar[bool] = False
    kinds: Sequence[Options]
    name: str = "stop/sampled"
    cost: int = 3
    wanted: int = 4
    beliefs: dict[str, Any] = field(default_factory=lambda: {CLAIM: Faults()})

    def unit(self, bench: Bench, k: int) -> None:
        ask = self.ask(bench, k)
        on, off = bench.apart(ask, ask)
        witness = {"request": ask.summary(), "on": shown(on), "off": shown(off)}
        self.beliefs[CLAIM].add(contradicts(ask, on), contradicts(ask, off), witness)

    def ask(self, bench: Bench, k: int) -> Ask:
        """With a stop that half of the choices without it had: in turn a string, and where ids are reported a token."""
        several = {"n": min(MOST_CHOICES, bench.choices)} if bench.choices > 1 else {}
        options = {**bench.ids, **several, **self.kinds[k % len(self.kinds)]}
        mine = Ask((bench.prompt(k),), 2 * TOKENS, 1.0, options, seed=k)
        choices = bench.without([mine])[0].choices
        ids = [{*(choice.ids or ())[1:]} for choice in choices]
        told = {"stop_token_ids": in_half(ids)} if k // 2 % 2 and all(ids) else {"stop": stops(choices, k)}
        return replace(mine, seed=SEED_APART + k, options={**options, **told})


def stops(choices: Iterable[Choice], k: int) -> list[str]:
    length = SHORTEST + k % LENGTHS
    texts = [choice.text for choice in choices]
    places = [range(BEGINNING, len(text) - length) for text in texts]
    pieces = [{text[i : i + length] for i in here} for text, here in zip(texts, places, strict=True)]
    return in_half([{piece for piece in inside if piece.strip()} for inside in pieces]) or ["."]


def in_half(held: Sequence[set[Piece]]) -> list[Piece]:
    """The piece that is in as nearly half of these as any, or none."""
    counts = Counter(piece for inside in held for piece in inside)
    return sorted(counts, key=lambda piece: (abs(2 * counts[piece] - len(held)), str(piece)))[:1]
