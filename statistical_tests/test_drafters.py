"""10^6 emitted tokens of every drafter under every rule that fits it, from the tables of its real network."""

from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from scipy.stats import binomtest

from refengine.engine.rules import RULES as ENGINE
from refengine.evidence.fit import g_test, pool, pooled
from refengine.evidence.power import detectable_tv
from refengine.exact.law import law
from refengine.exact.rules import RULES
from refengine.selfcheck.drafters.table import ROWS
from statistical_tests.budget import ALPHA, SCALES, state
from statistical_tests.counts import p_of
from statistical_tests.real_tables import PREFIXES, Drawn, path_tokens, rounds, tables
from statistical_tests.table import TABLES, Mean, line

pytestmark = pytest.mark.stat

TOKENS = 1_000_000
PAIRS = [(drafter, rule) for drafter, row in ROWS.items() for rule in row.rules]
Rounds = Mapping[tuple[int, ...], float]  # block and emitted tokens -> how often, or how probable
PARTS = ALPHA / 5  # of one sample: its tokens, place by place and together, the round, its length, its first draft


def declared(found: list[Drawn], rule: str) -> dict[tuple[int, ...], float]:
    """The exact joint law of (block, emitted tokens) that the rule declares; the block comes first."""
    joint = {}
    for index, drawn in enumerate(found):
        p, candidates = drawn.exact()
        for tokens, mass in law(lambda chance, p=p, b=candidates: RULES[rule].rule(p, b, chance).tokens).items():
            joint[index, *tokens] = drawn.mass / PREFIXES * float(mass)
    return joint


def sample(found: list[Drawn], rule: str, tokens: int) -> tuple[dict[tuple[int, ...], int], dict[object, np.ndarray]]:
    """Counts of (block, emitted tokens), and per place (prefix, tokens kept so far) of the token that follows."""
    joint: dict[tuple[int, ...], int] = defaultdict(int)
    places: dict[object, np.ndarray] = defaultdict(lambda: np.zeros(found[0].p.shape[-1]))
    for part in rounds(found, ENGINE[rule], tokens, seed=9):
        drawn = found[part.drawn]
        both, times = np.unique(np.concatenate([part.tokens, part.path], axis=1), axis=0, return_counts=True)
        for row, count in zip(both, times, strict=True):
            emitted = tuple(int(t) for t in row[: part.tokens.shape[1]] if t >= 0)
            joint[part.drawn, *emitted] += count
            assert emitted[:-1] == path_tokens(drawn.block, row[part.tokens.shape[1] :])
            for i, token in enumerate(emitted):
                places[drawn.prefix, emitted[:i]][token] += count
    return joint, places


def target_rows(found: list[Drawn]) -> dict[object, np.ndarray]:
    """The target's row at every place; blocks that share one must have been given the same."""
    rows: dict[object, np.ndarray] = {}
    for drawn in found:
        parents = drawn.block.parents[0].tolist()
        paths = {-1: ()}
        for node, parent in enumerate(parents):
            paths[node] = (*paths[parent], int(drawn.block.tokens[0, node]))
        for node, path in paths.items():
            row = drawn.p[node + 1].double().numpy()
            assert np.abs(rows.setdefault((drawn.prefix, path), row) - row).max() < 1e-12
    return rows


@pytest.mark.parametrize("times", SCALES)
@pytest.mark.parametrize(("drafter", "rule"), PAIRS, ids=["/".join(pair) for pair in PAIRS])
def test_a_drafter_emits_its_target(drafter: str, rule: str, times: int) -> None:
    """Kills rows of a real network that the rule judges by another law, drafts not drawn from their q, a coin that the
    drafter and the rule share, a length that no law of the rule has."""
    found = tables(drafter, rule)
    joint, places = sample(found, rule, times * TOKENS)
    rows, law_of_rounds = target_rows(found), declared(found, rule)
    seen = _follow_the_target(places, rows)
    n, cells = _follow_the_rule(joint, law_of_rounds)
    _have_its_lengths(joint, law_of_rounds, n)
    kept, length = (
        mean(joint, law_of_rounds, n, score) for score in (lambda key: len(key) > 2, lambda key: len(key) - 1)
    )
    found_line = line(drafter, rule, TABLES, places, rows, times * TOKENS, PARTS, kept, length)
    assert p_of(found_line.chi_squares["tokens"]) > PARTS
    if rule == "leviathan":
        _keep_one_minus_tv(joint, found, n)
    state(f"{drafter}/{rule}: tokens of the busiest place", seen, detectable_tv(seen, 3, PARTS), PARTS)
    state(
        f"{drafter}/{rule}: drafted blocks, lengths of rounds and their tokens are those of the rule",
        n,
        detectable_tv(n, cells, PARTS),
        PARTS,
    )


def mean(joint: Rounds, declared: Rounds, n: int, score: Callable[[tuple[int, ...]], float]) -> Mean:
    """The mean score of n rounds, as it was and as it should be, and its standard error."""
    seen = sum(score(key) * count for key, count in joint.items()) / n
    due, square = (sum(score(key) ** power * mass for key, mass in declared.items()) for power in (1, 2))
    return seen, due, float(np.sqrt(max(square - due**2, 0.0) / n))


def _follow_the_target(places: dict[object, np.ndarray], rows: dict[object, np.ndarray]) -> int:
    """Each place's tokens are draws from its row, whatever the draft and the length. Returns the most draws of one."""
    for place, counts in places.items():
        if counts.sum() >= 100:  # the chi-square law of G needs some; the rarer places are in the joint test
            live = np.maximum(rows[place], 0.0)
            cell = pool(live, 1.0 / np.maximum(live, 1e-300), int(counts.sum()))
            assert counts[cell < 0].sum() == 0, f"a token of probability zero at {place}"
            assert g_test(pooled(counts, cell), pooled(live, cell)).p_value > PARTS / len(places), place
    return int(max(counts.sum() for counts in places.values()))


def _follow_the_rule(joint: dict[tuple[int, ...], int], expected: dict[tuple[int, ...], float]) -> tuple[int, int]:
    """Block, length and tokens together have the law that the rule declares. Returns (rounds, cells)."""
    assert set(joint) <= set(expected), "a round that the rule cannot play"
    mass = np.array(list(expected.values()))
    counts = np.array([joint.get(key, 0) for key in expected])
    length = np.array([float(len(key)) for key in expected])
    cell = pool(mass, mass * length, int(counts.sum()), cells=64)
    test = g_test(pooled(counts, cell), pooled(mass, cell))
    assert test.p_value > PARTS
    return int(counts.sum()), test.freedom + 1


def _have_its_lengths(joint: dict[tuple[int, ...], int], expected: dict[tuple[int, ...], float], n: int) -> None:
    """P(more than k tokens), for every k, is that of the declared law: the expected length is their sum."""
    longest = max(len(key) for key in expected) - 1
    for k in range(1, longest):
        share = sum(mass for key, mass in expected.items() if len(key) - 1 > k)
        longer = sum(count for key, count in joint.items() if len(key) - 1 > k)
        assert binomtest(longer, n, min(share, 1.0)).pvalue > PARTS / longest, f"more than {k} tokens"


def _keep_one_minus_tv(joint: dict[tuple[int, ...], int], found: list[Drawn], n: int) -> None:
    """The first draft is kept with probability 1 - TV(p, q) of the rows at the root."""
    overlap = {d.prefix: float(np.minimum(d.p[0].double(), d.block.q[0, 0].double()).sum()) for d in found}
    kept = sum(count for key, count in joint.items() if len(key) > 2)
    assert binomtest(kept, n, sum(overlap.values()) / PREFIXES).pvalue > PARTS
