"""What two sides are asked, one with speculation and one without, and the claims that their answers are held to."""

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
class Asked:
    """What both sides are asked. tokens: length of a sampled completion. alpha: false alarms of the sampling claim."""

    prompts: Sequence[str] = PROMPTS
    tokens: int = 4
    temperature: float = 1.0
    pairs: int = 4000
    seed: int = 0
    alpha: float = ALPHA
    seconds: float = 50.0

    def __post_init__(self) -> None:
        if min(self.tokens, self.pairs, len(self.prompts)) < 1 or not 0 < self.temperature < inf:
            raise BadInput("what is asked for is at least one token of one prompt, sampled at a positive temperature")


@dataclass(frozen=True)
class Request:
    """A request with the names of who is asked. recipe: how the findings are made again."""

    kind: str  # endpoint | generate
    on: str
    off: str
    asked: Asked
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
        """Both findings, where there was nobody to ask."""
        claims = (("greedy", GREEDY), ("sampling", SAMPLING))
        return [self.finding(*claim, "none", "not tested", reason=reason) for claim in claims]
