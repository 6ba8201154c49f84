"""Lossy modes are held to the law that they do have: the exact one of the mutated target, with its exact TV."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from refengine.engine.block import Block
from refengine.engine.coins import Philox
from refengine.engine.rules import RULES as ENGINE
from refengine.evidence.fit import g_test
from refengine.evidence.power import detectable_tv
from refengine.exact.block import chain
from refengine.exact.chance import Chance
from refengine.exact.law import law
from refengine.exact.row import row
from refengine.exact.rules import RULES
from statistical_tests.budget import ALPHA, state

pytestmark = pytest.mark.stat

P = [row([16, 20, 28]), row([40, 14, 10]), row([1, 31, 32])]  # / 64, so float32 holds them exactly
Q = [row([8, 24, 32]), row([32, 16, 16])]
ROUNDS = 2_000_000


@pytest.mark.parametrize("name", [name for name, card in RULES.items() if not card.lossless])
def test_a_lossy_rule_has_its_own_law_and_no_other(name: str) -> None:
    """Kills a lossy mode that loses something else than it says."""

    def one_round(chance: Chance) -> tuple[int, ...]:
        tokens = [chance.choose(q, ("draft", i)) for i, q in enumerate(Q)]
        return RULES[name].rule(P, chain(tokens, Q, [None, None]), chance).tokens

    true = law(one_round)
    first = [sum((m for tokens, m in true.items() if tokens[0] == x), Fraction(0)) for x in range(3)]
    distance = float(sum(abs(a - b) for a, b in zip(first, P[0], strict=True)) / 2)
    index = {tokens: i for i, tokens in enumerate(true)}
    counts = np.zeros(len(index))
    size = ROUNDS // 20
    p, q = (torch.tensor([[float(v) for v in r] for r in rows]).expand(size, -1, -1) for rows in (P, Q))
    for part in range(20):
        coins = Philox(5, torch.arange(part * size, (part + 1) * size))
        tokens = torch.stack([coins.choose(q[:, i], ("draft", i)) for i in range(2)], 1)
        out = ENGINE[name](p, Block(tokens, torch.arange(-1, 1).expand(size, 2), q), coins).tokens
        seen, times = np.unique(out.numpy(), axis=0, return_counts=True)
        for tokens_seen, count in zip(seen.tolist(), times, strict=True):
            counts[index[tuple(t for t in tokens_seen if t >= 0)]] += count
    assert g_test(counts, np.array([float(m) for m in true.values()])).p_value > ALPHA
    assert distance > 0
    state(
        f"{name} has the law of its definition, which is lossy (first-token TV to the target {distance:.4f})",
        ROUNDS,
        detectable_tv(ROUNDS, len(true), ALPHA),
    )
