"""10^7 emitted tokens of every lossless rule, through the engine that ships, under the sequential evidence.

Dependence across positions, rounds and rows of a batch is inside what the evidence bets on.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

from refengine.audit.kernel.history import History, features
from refengine.engine.rules.block import block
from refengine.engine.rules.leviathan import leviathan
from refengine.evidence.e_process import CaseEvidence, Evidence
from refengine.evidence.power import ends_wealth
from refengine.selfcheck.rounds import LOSSLESS as EVERY
from refengine.selfcheck.rounds import chain, emitted, table
from statistical_tests.budget import ALPHA, SCALES, state

pytestmark = pytest.mark.stat

TOKENS = 10_000_000
LOSSLESS = {name.replace("_", " "): found for name, found in EVERY.items()}


def evidence_of(name: str, tokens: int, seed: int) -> tuple[Evidence, int]:
    """The evidence against a rule after so many tokens, half of them at V = 5, half at V = 16."""
    rule, draft, gamma = LOSSLESS[name]
    items = [table(seed + vocabulary, vocabulary, gamma) for vocabulary in (5, 16)]
    evidence, seen = Evidence(tuple(features(items[0])), ALPHA), 0
    evidence.cases = {item.name: CaseEvidence(item.p, item.q, features(item)) for item in items}
    for item in items:
        found, past, calls = evidence.cases[item.name], History(item, None), 0
        for out in emitted(draft, rule, item, tokens // 2, seed):
            draws = past.draws(out, calls)
            assert not found.impossible(draws).any(), "a token of probability zero was emitted"
            found.add(draws)
            calls += len(out)
            seen += len(draws.token)
            assert not evidence.rejects(), f"{name}: evidence 10^{evidence.log_evidence() / np.log(10):.1f}"
    return evidence, seen


def detectable(evidence: Evidence) -> float:
    """The TV at the busiest place that a learner sees with probability 0.99, one of at most 20,000 choices."""
    visits = min(float(case.counts[0].sum(1).max()) for case in evidence.cases.values())
    return ends_wealth(visits, ALPHA, 2e4)


@pytest.mark.parametrize("times", SCALES)
@pytest.mark.parametrize("name", LOSSLESS)
def test_emitted_tokens_follow_the_target(name: str, times: int) -> None:
    """Kills a wrong law that small exact cells do not reach, or coins that are tied to one another."""
    evidence, seen = evidence_of(name, times * TOKENS, seed=times)
    state(f"{name} is lossless", seen, detectable(evidence))


def test_acceptance_is_one_minus_tv_and_length_its_sum() -> None:
    """Kills a rule that is lossless because it refuses too much. Rows without context make lengths a product."""
    item = table(30, 8, 3, contexts=1, lanes=1)
    accept = np.minimum(item.p[0, :-1, 0], item.q[0, :, 0]).sum(-1)  # 1 - TV, position by position
    reach = np.cumprod(accept)
    rounds, longer = 0, np.zeros(item.gamma, dtype=int)
    for out in emitted(chain, leviathan, item, 3_000_000, seed=3):
        length = (out[:, 0] >= 0).sum(-1)
        longer += [(length > i + 1).sum() for i in range(item.gamma)]
        rounds += len(out)
    for i in range(item.gamma):
        assert binomtest(int(longer[i]), rounds, reach[i]).pvalue > ALPHA / item.gamma, f"{i + 1} drafts kept"
    state("P(k drafts kept) = prod (1 - TV)", rounds, 6.5 * np.sqrt(0.25 / rounds))


def test_block_verification_keeps_at_least_as_many() -> None:
    """Kills block verification that falls behind the ratio rule, which its theorem forbids."""
    item = table(31, 8, 3, contexts=1, lanes=1)
    kept = {}
    for name, rule in (("leviathan", leviathan), ("block", block)):
        lengths = np.concatenate([(out[:, 0] >= 0).sum(-1) for out in emitted(chain, rule, item, 3_000_000, seed=4)])
        kept[name] = (lengths.mean(), lengths.std() / np.sqrt(len(lengths)))
    gap = kept["block"][0] - kept["leviathan"][0]
    noise = float(np.hypot(kept["block"][1], kept["leviathan"][1]))
    assert gap > -6.0 * noise  # P(normal < -6) = 1e-9 < ALPHA
    missed = 2.4  # P(normal < -2.4) < 0.01
    state("block keeps at least as many drafts", 3_000_000, (6.0 + missed) * noise, what="a mean that is less by")
