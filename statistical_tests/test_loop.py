"""Every drafter in the running loop: caches, rollback, policy, stop token and limit, request after request.

A round of real networks takes milliseconds where one of their tables takes microseconds, so samples are small here:
5,000 tokens of a drafter, 100,000 in the long version. What they show is that the loop plays the rounds whose law the
tables have at length.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch

from refengine.decoder.loop import Stop, nodes
from refengine.engine.coins import Philox, Site, Words, parts
from refengine.evidence.power import detectable_tv
from refengine.exact.block import Block
from refengine.exact.law import law
from refengine.exact.rules import RULES
from refengine.selfcheck.drafters.laws.cells import CELLS, plain_row, session, target_of
from refengine.selfcheck.drafters.laws.memo import content
from refengine.selfcheck.drafters.table import ROWS
from statistical_tests.budget import ALPHA, state
from statistical_tests.table import line

pytestmark = pytest.mark.stat

TOKENS, LENGTH = 5_000, 6
LONGER = [pytest.param(1, id="once"), pytest.param(20, id="at length", marks=pytest.mark.long)]


@dataclass
class Ahead:
    """The words of many requests, made site by site for all at once: one at a time they are a third of a round."""

    coins: Philox
    known: dict[Site, Words] = field(default_factory=dict)

    def words(self, site: Site) -> Words:
        kind, *where = parts(site)
        one: Site = (kind, *(int(x) for x in where if x is not None))
        if one not in self.known:
            self.known[one] = self.coins._words(one)
        return self.known[one]


@dataclass(frozen=True)
class OfOne(Philox):
    """Philox's coins of one request, the `lane`th of those that were made ahead."""

    ahead: Ahead = field(kw_only=True)
    lane: int = field(kw_only=True)

    def _words(self, site: Site) -> Words:
        high, low, third, last = self.ahead.words(site)
        here = slice(self.lane, self.lane + 1)
        return high[here], low[here], third[here], last[here]


def coins_ahead(seed: int, at_once: int = 1024) -> Iterator[Philox]:
    """The coins of request 0, 1, 2, ... in turn."""
    for first in count(0, at_once):
        requests = torch.arange(first, first + at_once)
        ahead = Ahead(Philox(seed, requests))
        yield from (OfOne(seed, requests[i : i + 1], ahead=ahead, lane=i) for i in range(at_once))


def test_coins_made_ahead_are_those_of_the_request() -> None:
    """Kills a lane that is off by one, and a site that is taken for another."""
    for request, coins in zip(range(7), coins_ahead(10, 3), strict=False):
        alone = Philox(10, torch.tensor([request]))
        for site in (("emit", 4), ("draft", 4), ("draft", 4, 0), ("accept", torch.tensor([5]), 2), ("emit", 4)):
            assert all(torch.equal(x, y) for x, y in zip(coins._words(site), alone._words(site), strict=True))


@pytest.mark.parametrize("times", LONGER)
@pytest.mark.parametrize("drafter", ROWS)
@torch.inference_mode()
def test_the_running_loop_emits_its_target(drafter: str, times: int) -> None:
    """Kills a state that goes wrong only some requests later, a stop or a limit that leaves something behind, a coin
    that two rounds share: nothing is put back between rounds, and one drafter serves all requests."""
    rule = ROWS[drafter].rules[0]
    cell = CELLS[f"{drafter}/{rule}/temperature-1"]
    play, known = session(cell), {}
    play.max_new_tokens, play.stop = LENGTH, Stop(frozenset({3}))
    seen: dict[object, Any] = defaultdict(lambda: np.zeros(8))
    kept, lengths, wanted = list[float](), list[float](), list[tuple[float, float]]()
    for coins in coins_ahead(10):
        if sum(counts.sum() for counts in seen.values()) >= times * TOKENS:
            break
        play.begin(cell.prompt, coins)
        while not play.done:
            play.play(coins)
        for place, token in enumerate(play.out):
            seen[play.out[:place]][token] += 1
        for played in play.rounds:
            key = content((played.p, played.block.tokens, played.block.parents, played.block.q))
            if key not in known:
                known[key] = expected(rule, played)
            kept.append(float(len(played.verdict.path) > 0))
            lengths.append(float(len(played.verdict.tokens)))
            wanted.append(known[key])
    rows = {out: np.array(plain_row(target_of(drafter), cell.policy, cell.prompt, out)) for out in seen}
    should = np.mean(wanted, axis=0)
    found = line(
        drafter, rule, "running loop", seen, rows,
        (float(np.mean(kept)), float(should[0])), (float(np.mean(lengths)), float(should[1])),
    )  # fmt: skip
    assert found.p > ALPHA / 3
    for had, mean, most in ((kept, should[0], 1.0), (lengths, should[1], max(lengths))):
        # What was had less what the very block promised is a martingale with steps of range `most` (Azuma, Hoeffding).
        assert abs(np.mean(had) - mean) <= float(most) * np.sqrt(np.log(6 / ALPHA) / (2 * len(had)))
    first = int(seen[()].sum())
    state(f"{drafter} in the running loop: the first token of a request", first, detectable_tv(first, 3, ALPHA), ALPHA)


def expected(rule: str, played: Any) -> tuple[float, float]:
    """The probability that a draft of this block is kept, and the expected tokens of its round, by the definition."""
    tokens, parents = nodes(played.block)
    q = [None] * len(tokens) if played.block.q is None else [exactly(row) for row in played.block.q[0]]
    block = Block(tokens, parents, tuple(q), (None,) * len(tokens))
    p = [exactly(row) for row in played.p]
    lengths = law(lambda chance: len(RULES[rule].rule(p, block, chance).tokens))
    return float(1 - lengths.get(1, 0)), float(sum(length * mass for length, mass in lengths.items()))


def exactly(row: torch.Tensor) -> tuple[Fraction, ...]:
    weights = [Fraction(x) for x in row.tolist()]
    return tuple(w / sum(weights) for w in weights)
