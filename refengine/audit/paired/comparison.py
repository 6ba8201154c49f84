"""What two sides are compared on, one with speculation and one without, and the two claims about their completions."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

from refengine.audit.common import SOURCE
from refengine.audit.paired.completion import Side
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.report.finding import Finding, Recipe, Verdict

PROMPTS = (
    "The capital of France is",
    "Once upon a time there was a",
    "def add(a, b):\n    return",
    "1, 2, 3, 4, 5, 6,",
    "yes no yes no yes no",
)
GREEDY = "At temperature 0 it completes as it does with speculation off."
SAMPLING = "Nothing tells a sampled completion from one that was made with speculation off."
Sides: TypeAlias = tuple[Side, Side]  # with speculation on, and off


@dataclass(frozen=True)
class Settings:
    """What is requested of both sides. tokens: length of a sampled completion. alpha: of the sampling claim."""

    prompts: Sequence[str] = PROMPTS
    tokens: int = 4
    temperature: float = 1.0
    pairs: int = 4000
    seed: int = 0
    alpha: float = ALPHA
    seconds: float = 50.0

    def __post_init__(self) -> None:
        if min(self.tokens, self.pairs, len(self.prompts)) < 1 or not 0 < self.temperature < inf:
            raise BadInput(
                "a comparison needs at least one token of one prompt and one pair, at a positive temperature"
            )


@dataclass(frozen=True)
class Comparison:
    """Two named sides and the settings. recipe: how the findings are made again."""

    kind: str  # endpoint | generate
    on: str
    off: str
    settings: Settings
    recipe: Recipe

    def finding(self, name: str, claim: str, method: str, verdict: Verdict, **more: Any) -> Finding:
        return Finding(
            id=f"audit.{self.kind}/{name}",
            subject=f"{self.on} beside {self.off}",
            claim=claim,
            source=SOURCE,
            role="subject",
            verdict=verdict,
            method=method,
            recipe=self.recipe,
            replay="statistical",
            **more,
        )

    def untested(self, reason: str) -> list[Finding]:
        """Both findings, where a side did not answer at all."""
        claims = (("greedy", GREEDY), ("sampling", SAMPLING))
        return [self.finding(*claim, "none", "not tested", reason=reason) for claim in claims]
