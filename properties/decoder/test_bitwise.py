"""The bits of a row are a function of its text: alone, verified, in a tree, after any rollback, in any batch."""

import itertools
import random
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from properties.helpers.histories import CODE, DEFECTS, VOCABULARY, Split, World, drawn_round, model, wander
from refengine.decoder import generate, plain
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.protocols import Rows
from refengine.decoder.rows import chain_rows
from refengine.decoder.targets import bitwise
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.engine.rules import RULES
from refengine.engine.rules.agreement import agreement
from refengine.errors import BadInput
from refengine.selfcheck.drafters.bits import Alone, Heard, Listened
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.loader import edited_module
from refengine.source_tree import FIXTURES

pytestmark = pytest.mark.on_record

DTYPES = [torch.float32, torch.bfloat16]


class Machine(RuleBasedStateMachine):
    """Prefill, propose, verify, reject, roll back, branch, batch mates come and go."""

    dtype = torch.float32

    def __init__(self) -> None:
        super().__init__()
        self.world = World(model("dense", self.dtype))

    @rule()
    def join(self) -> None:
        if len(self.world.requests) < 5:
            self.world.join()

    @precondition(lambda self: self.world.requests)
    @rule(seed=st.integers(0, 2**32 - 1), data=st.data())
    def verify(self, seed: int, data: st.DataObject) -> None:
        """Some of the requests, each with a tree of its own."""
        there = [i for i, one in enumerate(self.world.requests) if len(one.kept) < 30]
        chosen = data.draw(st.sets(st.sampled_from(there), min_size=1)) if there else set()
        source = random.Random(seed)
        if chosen:
            self.world.step([drawn_round(source, which) for which in sorted(chosen)])

    @precondition(lambda self: self.world.requests)
    @rule(data=st.data())
    def branch(self, data: st.DataObject) -> None:
        self.world.branch(data.draw(st.integers(0, len(self.world.requests) - 1)))

    @precondition(lambda self: self.world.requests)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.world.leave(data.draw(st.integers(0, len(self.world.requests) - 1)))

    @invariant()
    def every_row_has_the_bits_of_its_text(self) -> None:
        assert self.world.heard.differing == []


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_history_leaves_every_row_its_bits(dtype: torch.dtype) -> None:
    """Kills a pass of another shape, a key at another slot, and a row that feels its lane or its neighbours."""
    machine = type("Machine", (Machine,), {"dtype": dtype})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=12, stateful_step_count=10, deadline=None, derandomize=True)
    )


@pytest.mark.parametrize("kind", ["dense", "experts"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_long_history_too(kind: str, dtype: torch.dtype) -> None:
    """Kills experts that are run on as many rows as chose them, whose number depends on the batch."""
    world = World(model(kind, dtype))
    wander(world, random.Random(1), 25)
    assert world.lanes == bitwise.LANES
    assert world.heard.compared > 200
    assert world.heard.differing == []


# Half precision swallows the second at this size. For the first a CPU may have one kernel for every number of rows:
# sums of 32 to 6144 had the same bits in all of them.
SWALLOWED = {(torch.bfloat16, "kernel shape"), (torch.bfloat16, "keys in another order")}


def found_in(code: ModuleType, dtype: torch.dtype) -> int:
    world = World(model("dense", dtype), code, bitwise.LANES)
    wander(world, random.Random(2), 12)
    return len(world.heard.differing)


@pytest.mark.parametrize(("dtype", "name"), sorted({(d, n) for d in DTYPES for n in DEFECTS} - SWALLOWED, key=str))
def test_a_planted_defect_is_found(dtype: torch.dtype, name: str) -> None:
    """Kills a comparison that cannot fail."""
    assert found_in(edited_module(CODE, [DEFECTS[name]]), dtype) > 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_split_reduction_is_found(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison within a tolerance: one sum of 200 in two halves, in passes with company, is right to 1e-6."""
    code: Any = edited_module(CODE, [])
    called = code.called

    def halved(model: Any, tokens: Any, *rest: Any) -> Any:
        with Split(200) if int((tokens != 0).sum()) > 3 else torch.no_grad():
            return called(model, tokens, *rest)

    monkeypatch.setattr(code, "called", halved)
    assert found_in(code, dtype) > 0


def test_a_model_whose_lanes_differ_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills an independence of lanes that is assumed: a model that looks at the whole pass."""
    called = bitwise.called

    def looks(model: Any, tokens: Any, *rest: Any) -> Any:
        out = called(model, tokens, *rest)
        out.logits = out.logits + out.logits[0] * 2.0**-20
        return out

    monkeypatch.setattr(bitwise, "called", looks)
    assert bitwise.BitwiseTarget(model("dense", torch.float32), 16).lanes == 1


@pytest.mark.parametrize("which", range(3))
def test_a_lane_that_few_rows_feel_is_found(which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a guard that asks one row: bits that are other in the last lane alone, of one token in three."""
    called = bitwise.called

    def feels(model: Any, tokens: Any, *rest: Any) -> Any:
        out = called(model, tokens, *rest)
        off = torch.where(torch.arange(len(tokens)) == len(tokens) - 1, tokens[:, 0] % 3 == which, False)
        out.logits = out.logits * (1 + 2.0**-20 * off[:, None, None])
        return out

    monkeypatch.setattr(bitwise, "called", feels)
    assert bitwise.BitwiseTarget(model("dense", torch.float32), 16).lanes == 1


def test_rows_that_do_not_fill_vectors_have_one_lane() -> None:
    """Bug: five rows of 24 numbers, the last of which ends in the middle of a vector. Its sigmoid is other code there,
    and one row in forty has other bits; the rows that were asked had not."""
    target: Any = load_target(FIXTURES / "deepseek" / "mtp2", torch.float32, slots=32)
    assert target.lanes == bitwise.LANES
    assert [bitwise.lanes_that_hold(target, lanes) for lanes in (5, 8, 12, 16)] == [1, 8, 1, 16]


@pytest.mark.parametrize("name", ["dspark", "eagle2", "lookahead", "gemma4_assistant", "qwen_mtp", "deepseek_mtp"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_speculative_output_is_plain_output(name: str, dtype: torch.dtype) -> None:
    """Kills a tie that excuses: greedily, and sampled under `agreement` with the same coins. Drafted rows are compared
    as well."""
    tiny, coins = ROWS[name], Philox(5, torch.tensor([0]))
    target: Any = load_target(FIXTURES / tiny.target, dtype, slots=64)
    other = type(target)(target.model, slots=64)
    heard = Heard(Alone(other))
    judge = Listened(target, heard)
    drafter = tiny.load(judge)
    for law, policy in (
        (RULES[tiny.rules[0]], pipeline(greedy())),
        (agreement, pipeline(temperature(0.9))),
    ):
        ours = generate(judge, drafter, law, policy, tiny.prompt, 16, coins).tokens
        assert ours == plain(other, policy, tiny.prompt, 16, coins)
    assert heard.compared > 30
    assert heard.differing == []


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_draft_model_is_bitwise_too(dtype: torch.dtype) -> None:
    """Kills a mode that ends at the target: drafts, and with them acceptance, would hang on the shape of a pass."""
    target: Any = load_target(FIXTURES / "tiny" / "target", dtype, slots=32)
    drafter: Any = ROWS["ar"].load(target)
    heard = Heard(Alone(type(target)(drafter.model.model, slots=32)))
    drafter.model = Listened(drafter.model, heard)
    generate(
        target, drafter, RULES["leviathan"], pipeline(temperature(0.9)), (2, 0, 3), 20, Philox(5, torch.tensor([0]))
    )
    assert heard.compared > 10
    assert heard.differing == []


def test_bits_differ_without_the_mode() -> None:
    """Kills a mode that does nothing here: in the ordinary mode the last bits do depend on the pass."""
    target = TransformersTarget(model("dense", torch.float32))
    tokens = tuple(random.Random(3).randrange(VOCABULARY) for _ in range(24))
    whole = target.run(chain_rows(tokens, 0, target.device)).logits
    alone = Alone(TransformersTarget(target.model))
    assert not all(torch.equal(alone(tokens[: i + 1]), row) for i, row in enumerate(whole))


def test_no_two_rows_of_a_path_stand_at_one_position() -> None:
    """Kills a row that takes the slot of a kept one, or of one before it in its pass, without a word."""
    target = bitwise.BitwiseTarget(model("dense", torch.float32), 8, 2)
    target.run(chain_rows((1, 2, 3), 0, target.device))
    target.keep(range(3))
    for first, second in itertools.product(range(8), repeat=2):
        rows = Rows(torch.tensor([4, 5]), torch.tensor([first, second]))
        if min(first, second) >= 3 and first != second:
            assert target.paths(rows)[1, [first, second]].tolist() == [3, 4]
        else:
            with pytest.raises(ValueError, match="two rows of one path stand at one position"):
                target.paths(rows)


def test_a_text_longer_than_its_buffer_is_one_line() -> None:
    """Kills a slot that wraps around."""
    target = bitwise.BitwiseTarget(model("dense", torch.float32), 8, 2)
    with pytest.raises(BadInput, match="position 8 is outside the 8 slots"):
        target.run(chain_rows(range(9), 0, target.device))


VARYING = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
STEADY = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
@pytest.mark.parametrize("said", ["flat", "one kind of layer", "the older names"])
def test_angles_that_depend_on_the_longest_row_are_refused(kind: str, said: str) -> None:
    """Kills a rotary embedding whose bits are those of its company, wherever a config says which it is."""
    varying, steady = {**VARYING, "rope_type": kind}, STEADY
    layers = {"sliding_attention": steady, "full_attention": varying}
    older = {"type": kind, "factor": 2.0}
    field, value = {
        "flat": ("rope_parameters", varying),
        "one kind of layer": ("rope_parameters", layers),
        "the older names": ("rope_scaling", older),
    }[said]
    with pytest.raises(BadInput, match=f"rope type '{kind}' depend on other rows"):
        bitwise.refuse_varying(SimpleNamespace(model_type="any", **{field: value}))
    steady_ones = {"rope_parameters": steady}, {"rope_parameters": {"full_attention": steady}}, {"rope_scaling": None}
    for fields in steady_ones:
        bitwise.refuse_varying(SimpleNamespace(model_type="any", **fields))


def test_a_target_whose_angles_vary_is_refused_when_it_is_made() -> None:
    """Kills a guard that nobody calls: Gemma 3's full layers, past their context, see the longest row of a pass."""
    config = Gemma3TextConfig(vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=2, head_dim=8)
    config.rope_parameters["full_attention"] = dict(VARYING)
    network = Gemma3ForCausalLM(config)
    with pytest.raises(BadInput, match="not bitwise"):
        bitwise.BitwiseTarget(network, 8, 2)
