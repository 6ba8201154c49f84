"""The two texts of each rule held together: the batched engine against the exact definition, as findings.

For every rule the engine's own code is enumerated through Branching coins and its law compared, as Fractions, with the
law of the exact rule on the same dyadic rows; and every conformance vector, each with its uniforms on the edge of every
decision, is decided by the engine through Recorded coins and compared token by token.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import torch

from refengine.engine.block import NOTHING
from refengine.engine.block import Block as LaneBlock
from refengine.engine.coins import Branching, Coins, Recorded
from refengine.engine.rules import RULES
from refengine.exact.block import Block
from refengine.exact.chance import Chance, Site
from refengine.exact.law import law
from refengine.exact.row import Row
from refengine.exact.vectors import LOSSLESS, vectors
from refengine.report.finding import Finding, Recipe


def audit_twins() -> Iterator[Finding]:
    """One finding per rule that has conformance vectors."""
    by_rule: dict[str, list[dict[str, Any]]] = {name: [] for name in LOSSLESS}
    for vector in vectors():
        by_rule[vector["rule"]].append(vector)
    for name, chosen in by_rule.items():
        yield twin_finding(name, chosen)


def twin_finding(name: str, chosen: list[dict[str, Any]]) -> Finding:
    """Laws and vectors of one rule; the first difference is the witness."""
    blocks = {(str(v["p"]), str(v["q"]), str(v["tokens"])): v for v in chosen}.values()
    wrong_laws = [v for v in blocks if engine_law(name, v) != exact_law(name, v)]
    wrong_vectors = [v for v in chosen if engine_tokens(name, v) != v["emitted"]]
    witness = next(iter([*wrong_laws, *wrong_vectors]), None)
    return Finding(
        id=f"twins/{name}",
        subject=f"refengine.engine.rules.{name}",
        claim=f"The batched {name} is the exact {name}: the same law, and the same token at every edge.",
        source="refengine.exact.rules",
        verdict="violated" if witness else "consistent",
        method=f"{len(blocks)} laws enumerated through Branching coins, {len(chosen)} vectors through Recorded coins",
        numbers={"laws that differ": len(wrong_laws), "vectors that differ": len(wrong_vectors)},
        witness=witness,
        recipe=Recipe(function=f"{__name__}:rerun", arguments={}),
    )


def rerun() -> list[Finding]:
    return list(audit_twins())


def exact_law(name: str, vector: dict[str, Any]) -> dict[tuple[int, ...], Fraction]:
    p, q = rows(vector, "p"), rows(vector, "q")
    drafted = Block(tuple(vector["tokens"]), tuple(vector["parents"]), tuple(q), (None,) * len(q))
    return law(lambda chance: LOSSLESS[name].rule(p, drafted, chance).tokens)


def engine_law(name: str, vector: dict[str, Any]) -> dict[tuple[int, ...], Fraction]:
    def program(chance: Chance) -> tuple[int, ...]:
        return tuple(decide(name, vector, Branching(chance, rational=True)))

    return law(program)


def engine_tokens(name: str, vector: dict[str, Any]) -> list[int]:
    table = {site(text): Fraction(n, 1 << bits) for text, (n, bits) in vector["uniforms"].items()}
    return decide(name, vector, Recorded(table))


def decide(name: str, vector: dict[str, Any], coins: Coins) -> list[int]:
    """The tokens that the engine emits, one lane."""
    p, q = (torch.tensor([vector[key]], dtype=torch.float64) / vector["scale"] for key in ("p", "q"))
    block = LaneBlock(torch.tensor([vector["tokens"]]), torch.tensor([vector["parents"]]), q)
    return [token for token in RULES[name](p, block, coins).tokens[0].tolist() if token != NOTHING]


def rows(vector: dict[str, Any], key: str) -> list[Row]:
    return [tuple(Fraction(x, vector["scale"]) for x in row) for row in vector[key]]


def site(text: str) -> Site:
    """ "accept 0 2" -> ("accept", 0, 2)."""
    kind, *place = text.split()
    return (kind, *map(int, place))
