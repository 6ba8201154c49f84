"""Two published loops taken for samplers, on the tiny networks: negative examples.

`simple_medusa_step` takes the target's argmax, then a Medusa head's argmax where the target's agrees: right for greedy
decoding, for which alone its document has it, and no sampler. `spec_decode_ar` samples, but its first token is the
target's argmax at any temperature. The law of both is enumerated, and the distance is what a line of arithmetic says it
must be.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from refengine.decoder.loop import Rule, Session
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Coins
from refengine.engine.rules.greedy import greedy
from refengine.engine.rules.leviathan import leviathan
from refengine.exact.law import tv
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe
from refengine.selfcheck.drafters.laws.cells import EXACT, Cell, completed, session, target_law
from refengine.selfcheck.drafters.laws.exact_law import Enumeration


@dataclass(frozen=True)
class Published:
    """A loop: where it stands, the cell that runs it, and its rule."""

    source: str
    claim: str
    cell: Cell
    rule: Rule


LOOPS = {
    "simple_medusa_step": Published(
        source="document 001, simple_medusa_step",
        claim="Taken for a sampler, a Medusa step that verifies argmax against argmax has the target's law.",
        cell=Cell("medusa", "temperature-1", "point_mass", prompt=(0, 3, 5, 3, 0, 4, 1, 1), length=4),
        rule=greedy,
    ),
    "spec_decode_ar": Published(
        source="document 003, section 3, spec_decode_ar",
        claim="Speculative decoding that starts from the target's argmax samples from the target.",
        cell=Cell("ar", "temperature-1", "leviathan", length=4),
        rule=leviathan,
    ),
}


class Argmax:
    """A stand-in for coins: whatever is asked, the likeliest."""

    def choose(self, weights: Tensor, site: Any) -> Tensor:
        return weights.argmax(-1)


class FromArgmax(Session):
    """The loop, with the target's argmax for a first token."""

    def begin(self, prompt: Tokens, coins: Coins) -> None:
        super().begin(prompt, Argmax())  # type: ignore[arg-type]


def seed_loop(name: str) -> list[Finding]:
    """The exact distance of one loop from the target's law, and what it must be.

    A loop that emits one sequence for certain is as far away as that sequence is unlikely; one whose first token alone
    is certain, as far as that token is.
    """
    loop = LOOPS[name]
    made = session(loop.cell)
    play = FromArgmax(made.target, made.drafter, loop.rule, made.policy, made.max_new_tokens, made.stop)
    found = Enumeration(play, loop.cell.prompt).rounds(loop.cell.rounds + 1)
    target, ours = target_law(loop.cell), completed(loop.cell, found)
    certain = max((out for out in ours), key=lambda out: ours[out])[: loop.cell.length if loop.rule is greedy else 1]
    predicted = 1 - sum(mass for out, mass in target.items() if out[: len(certain)] == certain)
    distance = tv(ours, target)
    return [
        Finding(
            id=f"decoder.published/{name}",
            subject=f"{name}, on the tiny networks",
            claim=loop.claim,
            source=loop.source,
            role="control",
            verdict="violated" if distance > EXACT and abs(distance - predicted) <= EXACT else "consistent",
            method=f"exact law of {loop.cell.length} tokens in float64, {found.runs} rounds enumerated",
            recipe=Recipe(function=f"{__name__}:seed_loop", arguments={"name": name}),
            numbers={
                "tv": Quantity(value=distance, tolerance=EXACT),
                f"1 - p{list(certain)}": Quantity(value=predicted, tolerance=EXACT),
            },
            magnitude=Magnitude(tv=Quantity(value=distance, tolerance=EXACT), exact=True),
            diagnosis="greedy at temperature: the target's argmax where a token of its law was due",
        )
    ]
