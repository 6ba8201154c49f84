"""The vocabulary of a real model: V = 151,936, where a 24-bit uniform could not reach every token."""

import numpy as np
import pytest
import torch
from torch import Tensor

from refengine.engine.block import Block
from refengine.engine.coins import CHOOSE_BITS, Philox, choose_below
from refengine.engine.rules import RULES as ENGINE
from refengine.evidence.bets.token_kinds import cells
from refengine.evidence.fit import chi_square, g_test, pool, pooled
from refengine.evidence.power import detectable_tv
from refengine.exact.rules import RULES as CARDS
from statistical_tests.budget import ALPHA, SCALES, state

pytestmark = pytest.mark.stat

V = 151_936
PICKS = 10_000_000
ROUNDS = 5_000
# By name: the rule, and whether it looks at the rows that drafts are drawn from.
RULES = {
    card.name.replace("_", " "): (ENGINE[card.name], card.drawn is not None)
    for card in CARDS.values()
    if card.law == "target"
}


def zipf(exponent: float, seed: int) -> Tensor:
    """A row with a heavy head in random order, float32."""
    order = torch.randperm(V, generator=torch.Generator().manual_seed(seed))
    weights = torch.arange(1, V + 1, dtype=torch.float64) ** -exponent
    return (weights / weights.sum())[order].float()


@pytest.mark.parametrize("times", SCALES)
def test_every_token_is_picked_as_often_as_it_should(times: int) -> None:
    """Kills inverse CDF on a coarse grid, float32 cumulative sums, an off-by-one at the end of the row.

    The picks go through one precomputed sum; that this is what `choose` does is checked on the first of them.
    """
    row = zipf(1.0, 0)
    cdf = row.double().cumsum(0)
    counts, picks = np.zeros(V, dtype=np.int64), times * PICKS
    size = 1_000_000
    for part in range(picks // size):
        coins = Philox(6, torch.arange(part * size, (part + 1) * size))
        high, low, _, _ = coins._words(("emit", 0))
        u = ((high << CHOOSE_BITS - 32) | (low >> 64 - CHOOSE_BITS)).double() * 2.0**-CHOOSE_BITS
        token = torch.searchsorted(cdf, u * cdf[-1], right=True)
        if part == 0:
            few = Philox(6, torch.arange(64))
            assert torch.equal(token[:64], few.choose(row.expand(64, V), ("emit", 0)))
            assert torch.equal(token[64:128], choose_below(u[64:128], row.expand(64, V)))
        counts += np.bincount(token.numpy(), minlength=V)
    p = (row.double() / row.double().sum()).numpy()
    even = np.where(np.arange(V) % 2, 1.5, 0.5) * p  # pooled against a bias that alternates, and by the size of p
    for against in (even, p**2):
        cell = pool(p, against, picks, cells=4096)
        assert chi_square(pooled(counts, cell), pooled(p, cell)).p_value > ALPHA / 2
    state("picks follow the row", picks, detectable_tv(picks, 4096, ALPHA / 2))


@pytest.mark.parametrize("times", SCALES)
@pytest.mark.parametrize("name", RULES)
def test_full_rows_through_every_rule(name: str, times: int) -> None:
    """Kills a rule that is right at V = 16 and not where sums have 10^5 terms."""
    rule, drawn = RULES[name]
    p, q = torch.stack([zipf(1.0, 1), zipf(1.2, 2)]), zipf(1.1, 1)
    cell = cells(p[0].double().numpy(), q.double().numpy())
    target = pooled((p[0].double() / p[0].double().sum()).numpy(), cell)
    counts = np.zeros(len(target))
    size, n = 25, times * ROUNDS
    for part in range(n // size):
        coins = Philox(7, torch.arange(part * size, (part + 1) * size))
        rows = q.expand(size, 1, V)
        tokens = coins.choose(rows[:, 0], ("draft", 0))[:, None]
        given = Block(tokens, torch.full((size, 1), -1), rows if drawn else None)
        out = rule(p.expand(size, 2, V), given, coins).tokens[:, 0].numpy()
        counts += np.bincount(cell[out], minlength=len(target))
    assert g_test(counts, target).p_value > ALPHA
    state(f"{name} on full rows, first token in {len(target)} cells", n, detectable_tv(n, len(target), ALPHA))
