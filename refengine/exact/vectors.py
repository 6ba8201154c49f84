"""Conformance vectors: rows, drafts and uniforms in, tokens out, for implementations in any language.

Every vector is one run of a rule of `refengine.exact` on dyadic rows (integers over 2^8), with the uniform of every
decision at an edge of what makes it come out that way: the smallest or the largest point of a 24-bit grid. On such
rows and uniforms float64 computes every sum, residual and comparison exactly, so there is one right answer. An
implementation with `<` and one with `<=` differ on them, and so do two that disagree by one grid point anywhere in a
cumulative sum. Decisions that the run does not reach have a uniform of 1/2.

A vector is plain JSON: `rule`, `scale` (256), `p` (rows root first, integers), `q` (one row per node), `tokens`,
`parents`, `uniforms` ({"accept 0": [numerator, bits], "emit 1": ...}) and what must come out, `emitted` and `path`.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from refengine.exact.block import Block, Round, Rule
from refengine.exact.card import Card
from refengine.exact.chance import Decision, Site, Uniforms, runs
from refengine.exact.row import Row
from refengine.exact.rules import RULES

SCALE, VOCABULARY, SEED = 256, 3, 1
BITS = 24
PARENTS = {"chain": (-1, 0), "tree": (-1, -1, 0)}
TABLES_PER_RULE = 6
# What is lossy by design compares floats, or draws for every leaf: neither has one right answer in few decisions.
LOSSLESS = {name: card for name, card in RULES.items() if card.lossless}


def vectors() -> Iterator[dict[str, Any]]:
    """Every vector, in a fixed order."""
    for name, card in LOSSLESS.items():
        rng, parents = random.Random(f"{name}/{SEED}"), PARENTS[card.shape]
        for table in range(TABLES_PER_RULE):
            p = [dyadic_row(rng, zeros=table % 2) for _ in range(len(parents) + 1)]
            q = [dyadic_row(rng, zeros=table // 2 % 2) for _ in parents]
            for node, parent in enumerate(parents):  # siblings share the row they are drawn from
                q[node] = q[parents.index(parent)]
            drafted = Block(draw_tokens(card, q, parents, rng), parents, tuple(q), (None,) * len(parents))
            yield from edges(name, table, card.rule, p, drafted)


def dyadic_row(rng: random.Random, zeros: int) -> Row:
    """Integers over 256, every token at least 1 unless `zeros` tokens are to have none."""
    cuts = sorted(rng.sample(range(1, SCALE), VOCABULARY - 1))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, SCALE], strict=True)]
    if zeros:
        gone = rng.randrange(VOCABULARY)
        parts[gone - 1] += parts[gone]
        parts[gone] = 0
    return tuple(Fraction(part, SCALE) for part in parts)


def draw_tokens(card: Card, q: Sequence[Row], parents: Sequence[int], rng: random.Random) -> tuple[int, ...]:
    """Tokens that q can have drawn; different siblings where the rule is about drawing without replacement."""
    tokens: list[int] = []
    for node, parent in enumerate(parents):
        taken = {tokens[j] for j in range(node) if parents[j] == parent} if card.drawn == "distinct" else set()
        supported = [x for x, qx in enumerate(q[node]) if qx > 0 and x not in taken]
        tokens.append(rng.choice(supported))
    return tuple(tokens)


def edges(name: str, table: int, rule: Rule, p: list[Row], drafted: Block) -> Iterator[dict[str, Any]]:
    """Two vectors for every run: all uniforms at their low edge, all at their high edge."""
    program: Callable[[Any], Round] = lambda chance: rule(p, drafted, chance)  # noqa: E731
    unreached = dict.fromkeys(all_sites(drafted), (1 << BITS - 1, BITS))
    for run, (result, _, trace) in enumerate(runs(program)):
        for side in ("low", "high"):
            uniforms = {decision.site: edge(decision, side) for decision in trace}
            assert rule(p, drafted, Uniforms({s: Fraction(n, 1 << b) for s, (n, b) in uniforms.items()})) == result
            yield {
                "id": f"{name}/{table}/{run}/{side}",
                "rule": name,
                "scale": SCALE,
                "p": [[int(px * SCALE) for px in row] for row in p],
                "q": [[int(qx * SCALE) for qx in row] for row in drafted.q if row is not None],
                "tokens": list(drafted.tokens),
                "parents": list(drafted.parents),
                "uniforms": {" ".join(map(str, site)): list(u) for site, u in (unreached | uniforms).items()},
                "emitted": list(result.tokens),
                "path": list(result.path),
            }


def all_sites(drafted: Block) -> list[Site]:
    """Every site that a rule could ask for on this block, whatever it accepts."""
    depth = [len(drafted.path(j)) - 1 for j in range(len(drafted.tokens))]
    accepts: list[Site] = [("accept", d) if drafted.is_chain() else ("accept", d, j) for j, d in enumerate(depth)]
    return [*accepts, *(("emit", d) for d in range(max(depth) + 2))]


def edge(decision: Decision, side: str) -> tuple[int, int]:
    """The lowest or highest grid point at which the decision comes out as recorded: (numerator, bits).

    There is one: the odds of these rows differ by far more than a step of the grid.
    """
    if isinstance(decision.outcome, bool):
        num, den = decision.odds
        share = Fraction(num) / den if den else Fraction(int(num > 0))
        low, high = (Fraction(0), min(share, Fraction(1))) if decision.outcome else (share, Fraction(1))
    else:
        total = sum(decision.odds)
        low = Fraction(sum(decision.odds[: decision.outcome])) / total
        high = low + Fraction(decision.odds[decision.outcome]) / total
    first = -(-(low * 2**BITS) // 1)
    last = -(-(high * 2**BITS) // 1) - 1
    return int(first if side == "low" else last), BITS
