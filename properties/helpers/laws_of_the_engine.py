"""Laws that compare the engine with the definition: rules lane by lane and decision by decision, policies row by row.

They stand in `laws.py` beside the others.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import torch
from hypothesis import reject
from hypothesis import strategies as st

from properties.helpers.table_decoder import logits
from refengine import strategies
from refengine.bugs.checks.batches import Pair
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Recorded, accept_below, by_site
from refengine.exact.chance import Decision, runs
from refengine.strategies import AtTheEdge, Case, World, probability, shares


def ragged(pair: Pair) -> st.SearchStrategy[list[Case]]:
    """Lanes over one vocabulary, some of whose drafts, for a rule that weighs them, their rows cannot have drawn."""

    def over(vocabulary: int) -> st.SearchStrategy[list[Case]]:
        cases = strategies.judged(pair.shape, pair.drawn, vocabulary)
        impossible = strategies.judged(pair.shape, pair.drawn, vocabulary, possible=False)
        return strategies.lanes(cases if pair.drawn is None else cases | cases | impossible)

    return strategies.VOCABULARIES.flatmap(over)


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


def judged_alike(pair: Pair, lanes: list[Case], wanted: list[Any], decided: list[dict[Any, Any]]) -> None:
    """The engine says what is wanted, by decisions with the same odds. decided: each lane's (uniform, odds) by site."""
    nodes = max(len(case.block.tokens) for case in lanes) + 1
    table: dict[Any, Any] = {(kind, depth): 0.5 for kind in ("accept", "emit") for depth in range(nodes + 1)}
    table |= {(kind, d, j): 0.5 for kind in ("accept", "agree") for d in range(nodes) for j in range(nodes)}
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
    row = policy.engine(logits(weights), *history).tolist()
    assert [x > 0 for x in row] == [x > 0 for x in wanted]
    assert max(abs(x - float(y)) for x, y in zip(row, wanted, strict=True)) < 1e-12
