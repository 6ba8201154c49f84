"""Large samples on a GPU, at the vocabulary of a real model: a thousand times what `test_wide.py` can afford."""

from collections.abc import Callable

import pytest
import torch

from refengine.engine.block import Block
from refengine.engine.coins import Philox
from refengine.evidence.bets.token_kinds import cells
from refengine.evidence.fit import g_test, pooled
from refengine.evidence.power import detectable_tv
from statistical_tests.budget import ALPHA, state
from statistical_tests.test_wide import RULES, V, zipf

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="not tested: this machine has no CUDA device"),
]
ROUNDS, LANES = 1_000_000, 1000


@pytest.mark.parametrize("name", RULES)
def test_a_million_full_rows(name: str, record_property: Callable[[str, object], None]) -> None:
    """Kills a rule, or a prefix sum, that is right on a CPU and not on a GPU."""
    rule, drawn = RULES[name]
    p, q = torch.stack([zipf(1.0, 1), zipf(1.2, 2)]), zipf(1.1, 1)
    cell = cells(p[0].double().numpy(), q.double().numpy())
    target = pooled((p[0].double() / p[0].double().sum()).numpy(), cell)
    p, q, cell_of = p.cuda(), q.cuda(), torch.as_tensor(cell).cuda()
    counts = torch.zeros(len(target), dtype=torch.long, device="cuda")
    for part in range(ROUNDS // LANES):
        coins = Philox(17, torch.arange(part * LANES, (part + 1) * LANES, device="cuda"))
        rows = q.expand(LANES, 1, V)
        tokens = coins.choose(rows[:, 0], ("draft", 0))[:, None]
        given = Block(tokens, torch.full_like(tokens, -1), rows if drawn else None)
        out = rule(p.expand(LANES, 2, V), given, coins).tokens[:, 0]
        counts += torch.bincount(cell_of[out], minlength=len(target))
    value = g_test(counts.cpu().numpy(), target).p_value
    record_property("rounds", ROUNDS)
    record_property("p value", value)
    record_property("detectable TV", detectable_tv(ROUNDS, len(target), ALPHA))
    assert value > ALPHA
    seen = detectable_tv(ROUNDS, len(target), ALPHA)
    state(f"{name} on full rows on a GPU, first token in {len(target)} cells", ROUNDS, seen)
