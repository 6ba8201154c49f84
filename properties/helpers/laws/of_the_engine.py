"""Laws that compare the engine with the definition: rules lane by lane and decision by decision, policies row by row.

They stand in `every.py` beside the others.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import torch
from hypothesis import reject
from hypothesis import strategies as st

from properties.helpers.table_decoder import logits
from refengine import strategies
from refengine.bugs.checks.batches import Pair
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Recorded, accept_below, by_site
from refengine.engine.policy import or_zeros, rows
from refengine.exact.block import ROOT
from refengine.exact.chance import Decision, runs
from refengine.strategies import AtTheEdge, Case, World, probability, shares


def ragged(pair: Pair) -> st.SearchStrategy[list[Case]]:
    """Lanes over one vocabulary, some of whose drafts, for a rule that weighs them, their rows cannot have drawn."""

    def over(vocabulary: int) -> st.SearchStrategy[list[Case]]:
        cases = strategies.judged(pair.shape, pair.drawn, vocabulary)
        impossible = strategies.judged(pair.shape, pair.drawn, vocabulary, possible=False)
        return strategies.lanes(cases if pair.drawn is None else cases | cases | impossible)

    return strategies.VOCABULARIES.flatmap(cache(over))


@dataclass
class Weighed(Recorded):
    """Uniforms by site, and what each lane was asked about there."""

    asked: dict[tuple[int, Any], list[float]] = field(default_factory=dict)

    def _take(self, site: Any, like: torch.Tensor) -> torch.Tensor:
        for one, lanes in by_site(site, like[:, 0]):
            self.asked |= {(lane, one): like[lane].tolist() for lane in lanes.nonzero()[:, 0].tolist()}
        return super()._take(site, like)

    def accept(self, num: torch.Tensor, den: torch.Tensor, site: Any) -> torch.Tensor:
        return accept_below(self._take(site, torch.stack((num.double(), den.double()), 1)), num, den)


def the_engine_is_the_definition(pair: Pair, lanes: list[Case], data: st.DataObject) -> None:
    """Lane by lane of a ragged batch the same tokens and the same path, with uniforms beside the edges of decisions."""
    wanted, decided = [], []
    for case in lanes:
        chance = AtTheEdge(data.draw)
        try:
            wanted.append(pair.define(case, chance))
        except ValueError:  # nothing may be left to emit from behind a draft that its row cannot have drawn
            if case.possible:
                raise
            reject()
        decided.append({site: (u, chance.odds[site]) for site, u in chance.table.items()})
    judged_alike(pair, lanes, wanted, decided)


def the_engine_is_the_definition_in_every_round(pair: Pair, world: World, prompt: Tokens) -> None:
    """Whatever is drafted and whatever is decided about it: all ways of one round are the lanes of one batch."""

    def one_round(chance: Any) -> tuple[Case, Any]:
        block = world.draft(prompt, chance)
        case = Case(tuple(world.target(prompt + block.path(node)) for node in range(-1, len(block.tokens))), block)
        return case, pair.define(case, chance)

    lanes, wanted, decided = [], [], []
    for (case, verdict), _, trace in runs(one_round):
        lanes.append(case)
        wanted.append(verdict)
        decided.append({step.site: amidst(step) for step in trace if step.site[0] != "draft"})
    judged_alike(pair, lanes, wanted, decided)


def amidst(step: Decision) -> tuple[Fraction, tuple[Fraction, ...]]:
    """A uniform in the middle of those that decide so, and the odds."""
    if isinstance(step.outcome, bool):
        kept = probability(*step.odds)
        return (kept if step.outcome else kept + 1) / 2, (kept,)
    odds = shares(step.odds)
    return sum(odds[: step.outcome], Fraction(0)) + odds[step.outcome] / 2, odds


def everywhere(lanes: list[Case], accept: float, choose: float) -> dict[Any, Any]:
    """One uniform for every accept and one for every choice that a rule may ask for."""
    nodes = max(len(case.block.tokens) for case in lanes) + 1
    us = {"accept": accept, "agree": choose}
    table: dict[Any, Any] = {("emit", depth): choose for depth in range(nodes + 1)}
    table |= {("accept", depth): accept for depth in range(nodes + 1)}
    return table | {(kind, d, j): u for kind, u in us.items() for d in range(nodes) for j in range(nodes)}


def judged_alike(pair: Pair, lanes: list[Case], wanted: list[Any], decided: list[dict[Any, Any]]) -> None:
    """The engine says what is wanted, by decisions with the same odds. decided: each lane's (uniform, odds) by site."""
    table = everywhere(lanes, 0.5, 0.5)
    for site in dict.fromkeys(site for lane in decided for site in lane):
        us = [float(lane[site][0]) if site in lane else 0.5 for lane in decided]
        table[site] = torch.tensor(us, dtype=torch.float64)
    coins = Weighed(table)
    found = pair.run(lanes, coins)
    for lane, (case, says, sites) in enumerate(zip(lanes, wanted, decided, strict=True)):
        assert found[lane] == says, f"{found[lane]}, not {says}, of {case.block}"
        for site, (_, odds) in sites.items():
            of = coins.asked[lane, site]
            weighed = (probability(*of),) if site[0] == "accept" else shares(of)
            assert weighed == odds, f"odds {weighed}, not {odds}, at {site} in {case.block}"


def the_policy_is_the_definition(
    asked: tuple[strategies.Policy, tuple[Tokens, Tokens]], weights: list[Fraction]
) -> None:
    """The same support, and the same probabilities up to a few roundings of logarithms, exponentials and a sum."""
    policy, history = asked
    try:
        wanted = policy.exact(weights, *history)
    except ValueError:
        try:
            policy.engine(logits(weights), *history)
        except ValueError:
            return
        raise AssertionError("the definition bans every token, the engine does not") from None
    before = logits(weights)
    row = policy.engine(before, *history).tolist()
    assert [x > 0 for x in row] == [x > 0 for x in wanted]
    assert max(abs(x - float(y)) for x, y in zip(row, wanted, strict=True)) < 1e-12
    greedily = policy.engine.token(before, *history)
    assert (greedily is not None) == policy.text.endswith("greedy())")
    assert greedily is None or row[greedily] == 1
    assert policy.engine(before.float(), *history).dtype is torch.float32
    if policy.engine.textless:  # any number of rows at once
        other = before.roll(1)
        both = policy.engine(torch.stack((before, other)), *history)
        alone = torch.stack((policy.engine(before, *history), policy.engine(other, *history)))
        assert torch.equal(both > 0, alone > 0)
        assert float((both - alone).abs().max()) < 1e-12


def rows_of_a_block_are_the_policys_along_its_paths(
    case: Case, asked: tuple[strategies.Policy, tuple[Tokens, Tokens]]
) -> None:
    """Every node's row is that of plain decoding after its own path, bit for bit, whatever stands beside it."""
    policy, (prompt, prefix) = asked
    block, given = case.block, torch.stack([logits(row) for row in case.p])
    made = rows(policy.engine, given, prompt, prefix, block.tokens, block.parents)
    alone = or_zeros(policy.engine)
    paths = [block.path(node) for node in range(ROOT, len(block.tokens))]
    assert made.tolist() == [alone(row, prompt, prefix + path).tolist() for row, path in zip(given, paths, strict=True)]
