"""State: trees, rollback, and incremental = from scratch under any accept pattern, on toys and on tiny networks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3NextConfig, Qwen3NextForCausalLM

from properties.helpers.coins import COINS
from refengine.decoder import generate, load_drafter, load_target
from refengine.decoder.drafters.ar import AR
from refengine.decoder.loop import Session, begin, nodes, plain
from refengine.decoder.protocols import Drafter, Target, Tokens, Turn
from refengine.decoder.rows import chain_rows, tree_rows
from refengine.decoder.targets.bitwise import BitwiseTarget
from refengine.decoder.targets.recurrent import RecurrentTarget
from refengine.decoder.targets.toy import ToyDrafter, ToyTarget
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.block import Block
from refengine.engine.coins import Branching, Philox
from refengine.engine.policy import greedy, pipeline, temperature, top_k
from refengine.engine.rules.greedy import greedy as greedy_rule
from refengine.engine.rules.leviathan import leviathan
from refengine.exact.chance import Chance, runs
from refengine.selfcheck.drafters.checks import along
from refengine.selfcheck.drafters.laws.cells import greedy_parts
from refengine.selfcheck.drafters.laws.exact_law import difference, off_scratch
from refengine.source_tree import FIXTURES

pytestmark = pytest.mark.on_record

TINY = FIXTURES / "tiny"
SAMPLED = pipeline(temperature(0.8))
GREEDY = pipeline(greedy())


def toy() -> tuple[ToyTarget, ToyDrafter]:
    target = ToyTarget(5)
    return target, ToyDrafter(target, 3)


def windowed() -> TransformersTarget:
    """A tiny network whose layers alternate between full and sliding attention over 4 tokens."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=4, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, sliding_window=4, use_sliding_window=True, initializer_range=0.5,
        layer_types=["full_attention", "sliding_attention"] * 2, attn_implementation="eager",
    )  # fmt: skip
    return TransformersTarget(Qwen3ForCausalLM(config).double().eval())


# --- incremental = from scratch ------------------------------------------------------------------------------------


def parts(name: str) -> tuple[Target, Drafter]:
    if name == "toy":
        return toy()
    target = load_target(TINY / "target", torch.float64)
    options = {"gamma": 3} if name == "ar" else {}
    return target, load_drafter(TINY / name, target, **options)


PARTS = {name: parts(name) for name in ("toy", "ar", "dspark")}


@pytest.mark.parametrize("name", sorted(PARTS))
def test_drafts_have_the_law_that_q_says(name: str) -> None:
    """Kills the q-contract's enemies: a token drawn from another row, temperature or conditioning than is reported."""
    session = Session(*PARTS[name], leviathan, pipeline(temperature(0.7), top_k(2)), 10**6)
    session.begin((1, 2, 3), COINS)
    prefix, state, total = session.prompt + session.out, session.drafter.state(), 0.0

    def propose(chance: Chance) -> tuple[Block, float]:
        session.drafter.restore(state)
        block = session.drafter.propose(Turn(session.prompt, prefix, session.policy, Branching(chance)))
        assert block.q is not None
        return block, float(block.q[0].gather(1, block.tokens[0][:, None]).prod())

    for (block, reported), probability, _ in runs(propose):
        assert abs(reported - probability) < 1e-14, nodes(block)
        total += float(probability)
    assert abs(total - 1) < 1e-14


def test_a_target_that_drafts_for_itself_is_always_right() -> None:
    """Kills a p or q row of the wrong place, and a policy that serves draft and target differently."""
    target = load_target(TINY / "target", torch.float64)
    drafter = AR(load_target(TINY / "target", torch.float64), 3)
    for seed in range(3):
        result = generate(target, drafter, leviathan, SAMPLED, (4, 3), 24, Philox(seed, torch.tensor([0])))
        assert all(len(played.verdict.path) == 3 for played in result.rounds)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    prompt=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    pattern=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=5),
)
def test_state_after_any_pattern_is_that_of_a_recompute(prompt: list[int], pattern: list[tuple[int, int]]) -> None:
    """Kills a cache that keeps a rejected row, misses an accepted one, or holds it at the wrong position."""
    session = Session(*toy(), leviathan, SAMPLED, 10**6)
    session.begin(tuple(prompt), COINS)
    for kept, token in pattern:
        session.rule = along((token,) * kept, token)
        session.play(COINS)
        assert off_scratch(session) == ""


@pytest.mark.parametrize("target", [ToyTarget(5), windowed()], ids=["toy", "windowed"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_node_of_a_tree_sees_its_path_and_nothing_else(target: Target, data: st.DataObject) -> None:
    """Kills a tree mask that shows a sibling, a position counted by row, a window counted in rows, a wrong gather."""
    prompt = tuple(data.draw(st.lists(st.integers(0, 4), min_size=2, max_size=9)))
    tokens = tuple(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=6)))
    parents = tuple(data.draw(st.integers(-1, j - 1)) for j in range(len(tokens)))
    node = data.draw(st.integers(0, len(tokens) - 1))
    begin(target, prompt[:-1], ())
    passed = target.run(tree_rows(prompt[-1], tokens, parents, len(prompt) - 1, target.device))
    path = ancestors(parents, node)
    target.keep((0, *(j + 1 for j in path)))
    state = target.state()
    whole = begin(target, prompt + tuple(tokens[j] for j in path), ())
    assert float((passed.logits[node + 1] - whole.logits[-1]).abs().max()) < 1e-10
    assert difference(state, target.state()) == ""


def ancestors(parents: Tokens, node: int) -> Tokens:
    return () if node < 0 else (*ancestors(parents, parents[node]), node)


@pytest.mark.parametrize(("kept", "tentative", "new"), [(1, 0, 3), (3, 0, 4), (3, 2, 2), (1, 2, 5)])
def test_the_mask_of_a_chain_hides_what_its_rows_do_not_see(kept: int, tentative: int, new: int) -> None:
    """Kills a chain's mask, which is made without asking what each row sees, that hides a row more or fewer."""
    target = load_target(TINY / "target", torch.float32)
    target.run(chain_rows((1,) * (kept + tentative), 0, target.device))
    target.keep(range(kept))
    target.run(chain_rows((1,) * tentative, kept, target.device)) if tentative else None
    rows = chain_rows((1,) * new, kept + tentative, target.device)
    visible = torch.ones(new, tentative + new, dtype=torch.bool).tril(tentative)
    assert torch.equal(target.masks(rows), target.masks(replace(rows, visible=visible)))


def test_a_tree_may_be_grown_in_several_passes() -> None:
    """Kills tentative rows of an earlier pass that a later one cannot see, or sees although it must not."""
    target = windowed()
    begin(target, (1, 2, 3), ())
    target.run(chain_rows((4,), 3, target.device))
    first = tree_rows(4, (5, 6), (-1, -1), 3, target.device)
    assert first.visible is not None
    branch = type(first)(first.tokens[1:], first.positions[1:], first.visible[1:])  # sees the anchor and itself
    passed = target.run(branch)
    target.keep((0, 2))
    whole = begin(target, (1, 2, 3, 4, 6), ())
    assert float((passed.logits[1] - whole.logits[-1]).abs().max()) < 1e-10


def recurrent() -> RecurrentTarget:
    """A tiny network with two recurrent layers and one attention layer."""
    torch.manual_seed(0)
    config = Qwen3NextConfig(
        vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8,
        linear_value_head_dim=8, layer_types=["linear_attention", "full_attention", "linear_attention"],
        mlp_only_layers=[0, 1, 2], initializer_range=0.3, attn_implementation="eager",
    )  # fmt: skip
    return RecurrentTarget(Qwen3NextForCausalLM(config).double().eval())


KEPT: dict[str, Callable[[], Target]] = {
    "toy": lambda: ToyTarget(5),
    "windowed": windowed,
    "recurrent": recurrent,
    "bitwise": lambda: BitwiseTarget(windowed().model, 16, 4),
}


@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    prompt=st.lists(st.integers(0, 7), min_size=1, max_size=5),
    pattern=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7)), min_size=1, max_size=4),
)
def test_recurrent_state_is_rolled_back_too(prompt: list[int], pattern: list[tuple[int, int]]) -> None:
    """Kills a recurrent or convolution state that has seen a rejected token, or changes under a snapshot."""
    session = Session(RECURRENT, AR(DRAFT, 2), leviathan, SAMPLED, 10**6)
    session.begin(tuple(prompt), COINS)
    for kept, token in pattern:
        session.rule = along((token,) * kept, token)
        session.play(COINS)
        assert off_scratch(session) == ""


@pytest.mark.parametrize("kind", KEPT)
def test_any_number_of_rows_may_be_kept(kind: str) -> None:
    """Kills a rollback that is right for short blocks alone, and a snapshot that brings tentative rows back, or leaves
    them: every number of rows of a chain of eight, kept after another chain was taken back."""
    target, prompt, chain = KEPT[kind](), (1, 2, 3), (4, 0, 2, 2, 1, 3, 0, 4)
    begin(target, prompt, ())
    state = target.state()
    for kept in range(len(chain) + 1):
        target.run(chain_rows((3, 3), len(prompt), target.device))
        target.restore(state)
        passed = target.run(chain_rows(chain, len(prompt), target.device))
        target.keep(range(kept))
        after = target.state()
        whole = begin(target, prompt + chain[:kept], ())
        assert difference(after, target.state()) == ""
        if kept:
            assert float((passed.logits[kept - 1] - whole.logits[-1]).abs().max()) < 1e-10
        target.restore(state)


def test_a_recurrent_target_refuses_a_tree() -> None:
    """Kills a tree whose second branch continues from the state of the first."""
    begin(RECURRENT, (1, 2), ())
    with pytest.raises(ValueError, match="runs chains only"):
        RECURRENT.run(tree_rows(3, (4, 5), (-1, -1), 2, RECURRENT.device))


def test_the_layers_decide_how_rows_are_rolled_back(tmp_path: Path) -> None:
    """Kills a loader that indexes into recurrent states, or runs attention layers row by row."""
    RECURRENT.model.save_pretrained(tmp_path)
    assert isinstance(load_target(tmp_path), RecurrentTarget)
    assert isinstance(load_target(TINY / "target"), TransformersTarget)
    with pytest.raises(ValueError, match="linear_attention cannot be rolled back"):
        TransformersTarget(RECURRENT.model)


RECURRENT, DRAFT = recurrent(), recurrent()


def test_greedy_equals_plain_on_every_prompt() -> None:
    """Kills any disagreement of the float32 loop with plain decoding that is not a tie."""
    from refengine.selfcheck.drafters.battery import greedy_equality

    for drafter in ("ar", "dspark"):
        (finding,) = greedy_equality(drafter)
        assert finding.verdict == "consistent", finding.notes


@pytest.mark.parametrize("name", ["ar", "medusa"])
def test_the_greedy_rule_in_the_loop_is_plain_greedy_decoding(name: str) -> None:
    """Kills a greedy rule, on chains and on trees, that emits anything but the argmax or reports another path."""
    target, drafter, _ = greedy_parts(name)
    accepted = 0
    for prompt in ((0, 3, 5), (1, 1, 4, 2), (5,)):
        decoded = generate(target, drafter, greedy_rule, GREEDY, prompt, 24, COINS)
        assert decoded.tokens == plain(target, GREEDY, prompt, 24, COINS)
        accepted += sum(len(played.verdict.path) for played in decoded.rounds)
    assert accepted > 0
