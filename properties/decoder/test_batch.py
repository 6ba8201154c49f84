"""A batch: what a request says does not depend on its company, and has the target's law in any."""

import itertools
import random
from typing import Any

import pytest
import torch

from refengine.decoder import batch
from refengine.decoder.batch import Batch, PerLane, beside
from refengine.decoder.loop import Session, fits
from refengine.decoder.protocols import Tokens
from refengine.decoder.rows import chain_block
from refengine.decoder.targets import together
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.block import Block
from refengine.engine.coins import Branching, Philox
from refengine.engine.rules import RULES
from refengine.engine.rules.leviathan import leviathan
from refengine.engine.rules.without_replacement import without_replacement
from refengine.exact.chance import runs
from refengine.exact.law import tv
from refengine.selfcheck.drafters.company import SEATS, Company, drawn
from refengine.selfcheck.drafters.laws.cells import CELLS, EXACT, POLICIES, completed, target_law
from refengine.selfcheck.drafters.laws.exact_law import LoopLaw, Outcome
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.edit import Edit
from refengine.source_edits.loader import edited_module
from refengine.source_tree import FIXTURES

pytestmark = pytest.mark.on_record

REQUESTS = range(12)
MIXED = ["dspark", "eagle2", "ar", "gemma4_assistant", "lookahead", "qwen_mtp"]


@pytest.mark.parametrize("drafter", MIXED)
def test_what_a_request_says_does_not_depend_on_its_company(drafter: str) -> None:
    """Kills a mask that shows padding, positions or coins of a neighbour, and a lane that keeps what its last request
    left. In float64, where rounding does not decide a draw."""
    company, source = Company(ROWS[drafter], torch.float64), random.Random(4)
    assert [wrong for _ in range(2) for wrong in company.play(drawn(source, REQUESTS))] == []
    assert len({len(tokens) for tokens in company.said.values()}) > 3


def law_in_company(drafter: str, lane: int, rounds: int, code: Any = batch) -> float:
    """TV between the law of one request of three, the others having prompts, lengths and coins of their own, and the
    target's; every decision of that lane is enumerated, and every round of it judged beside other rows."""
    cell = CELLS[f"{drafter}/{ROWS[drafter].rules[0]}/mixed"]
    cell = type(cell)(cell.drafter, cell.policy, cell.rule, prompt=cell.prompt, length=3, rounds=rounds)
    company = Company(ROWS[drafter], torch.float64)
    prompts = [(2, 0, 3, 1, 5), (4, 4), cell.prompt]
    prompts = [*prompts[:lane], cell.prompt, *prompts[lane:2]]
    found = LoopLaw()

    def once(chance: Any) -> Tokens:
        joined = code.Batch()
        for i, session in enumerate(company.sessions[:3]):
            session.policy, session.max_new_tokens = POLICIES[cell.policy], (cell.length, 5, 4)[(i - lane) % 3]
            coins = Branching(chance) if i == lane else Philox(1, torch.tensor([i]))
            joined.join(session, prompts[i], coins)
        for _ in range(1 + cell.rounds):
            joined.step()
        out: Tokens = company.sessions[lane].out
        return out

    for out, weight, _ in runs(once):
        key = Outcome(out, (), False)
        found.law[key] = found.law.get(key, 0.0) + float(weight)
    return tv(completed(cell, found), target_law(cell))


@pytest.mark.parametrize(("drafter", "lane", "rounds"), [("dspark", 0, 1), ("dspark", 2, 1), ("eagle2", 1, 2)])
def test_the_law_of_a_request_in_company_is_the_targets(drafter: str, lane: int, rounds: int) -> None:
    """Kills a lane that is judged by the rows, the drafts or the coins of another one."""
    assert law_in_company(drafter, lane, rounds) <= EXACT


def test_a_neighbours_rows_move_the_law() -> None:
    """Kills a law that every lane shares: rows that are handed to the wrong lane are seen."""
    edited = edited_module(batch.__name__, [Edit(batch.__name__, "for x in rows]", "for x in (*rows[1:], rows[0])]")])
    assert law_in_company("dspark", 0, 1, edited) > 1e-3


OWN = "positions = torch.stack([_longer(rows.positions, new)"
DEFECTS = {
    "padding is seen": ("sees = sees | (", "sees = torch.ones_like(sees) | ("),
    "one position for all": (OWN, OWN.replace("rows.positions", "asks[0][1].positions[:1].expand(len(rows.tokens))")),
    "the cache of the padding": ("slice(old, old + count)", "slice(count)"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_the_padded_pass_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that cannot fail."""
    edited: Any = edited_module(together.__name__, [Edit(together.__name__, *DEFECTS[name])])
    monkeypatch.setattr(batch, "run_together", edited.run_together)
    company, source = Company(ROWS["dspark"], torch.float64), random.Random(4)
    assert [wrong for _ in range(2) for wrong in company.play(drawn(source, REQUESTS))]


def test_coins_of_a_lane_are_its_own() -> None:
    """Kills a lane that takes the coin, the depth or the odds of another."""
    weights = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]], dtype=torch.float64)
    depth, lanes = torch.tensor([3, 0, 7]), [Philox(8, torch.tensor([i])) for i in (5, 1, 3)]
    together = Philox(8, torch.tensor([5, 1, 3]))
    for child in (torch.tensor([0, 2, 1]), 4):
        for site in (("emit", depth), ("accept", depth, child), ("agree", 2, child)):
            assert PerLane(lanes).choose(weights, site).tolist() == together.choose(weights, site).tolist()
            for num in torch.linspace(0, 1, 9, dtype=torch.float64):
                odds = num * torch.tensor([1.0, 0.5, 0.25], dtype=torch.float64), torch.ones(3, dtype=torch.float64)
                assert PerLane(lanes).accept(*odds, site).tolist() == together.accept(*odds, site).tolist()


def test_the_rule_that_fits_a_batch_is_that_of_its_lanes() -> None:
    """Kills padding that is taken for a branch: requests beside a longer chain would be judged as a tree."""
    like = torch.ones(3, dtype=torch.float64) / 3
    chains = [
        chain_block((1,) * length, [like] * length, [("draft", d) for d in range(length)], like) for length in range(4)
    ]
    for lanes in itertools.product(chains, repeat=2):
        assert fits(beside(lanes, max(x.tokens.shape[1] for x in lanes))) is leviathan
    tree = Block(torch.tensor([[1, 2]]), torch.tensor([[-1, -1]]), torch.stack([like, like])[None])
    for chain in chains:
        for lanes in ((chain, tree), (tree, chain)):
            assert fits(beside(lanes, max(x.tokens.shape[1] for x in lanes))) is without_replacement


def test_targets_that_share_no_model_run_by_themselves() -> None:
    """Kills a pass in which one model answers for another's request."""
    from refengine.decoder.checkpoints.load import load_target

    first, second = (load_target(FIXTURES / "tiny" / name, torch.float64) for name in ("target", "ar"))
    assert isinstance(first, TransformersTarget)
    asks: list[Any] = []
    for target in (first, second):
        session = Session(target, ROWS["ngram"].load(target), RULES["point_mass"], POLICIES["mixed"], 3)
        asks.append((target, session.open((1, 2, 3))))
    passes = together.run_together(asks)
    assert not torch.allclose(passes[0].logits, passes[1].logits)
    assert SEATS > 2
    assert Batch().step() is None
