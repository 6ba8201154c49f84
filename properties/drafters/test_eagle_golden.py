"""EAGLE-1, EAGLE-2's tree and the three layouts of EAGLE-3 against recordings of the official code."""

import json
from functools import cache
from typing import Any, TypeAlias

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.close import assert_close
from properties.helpers.coins import COINS, InOrder, Recorded
from refengine.decoder import Stop, load_drafter, load_target
from refengine.decoder.drafters.eagle_trees import Chain, DynamicTree
from refengine.decoder.loop import Rule, Session, generate, nodes
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.coins import Coins
from refengine.engine.policy import Policy, greedy, pipeline, temperature, top_p
from refengine.engine.rules.leviathan import leviathan
from refengine.engine.rules.point_mass import point_mass
from refengine.source_tree import GOLDEN

GREEDY = pipeline(greedy())
TREE = DynamicTree(total=19, depth=4, top_k=6)  # recorded as 20 verified nodes, root included
TREES = {"eagle1_A": "target_llama6A", "eagle3_A": "target_llama8A"}


@cache
def tensors(case: str) -> dict[str, Tensor]:
    return load_file(GOLDEN / case / "golden.safetensors")


@cache
def facts(case: str) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((GOLDEN / case / "golden.json").read_text())
    return held


@cache
def target(name: str) -> TransformersTarget:
    loaded = load_target(GOLDEN / name, torch.float32)
    assert isinstance(loaded, TransformersTarget)
    return loaded


def begun(
    judge: TransformersTarget, drafter: FeatureRecurrence, rule: Rule, policy: Policy, prompt: Tensor, coins: Coins
) -> Session:
    session = Session(judge, drafter, rule, policy, 10**6)
    session.begin(tuple(prompt.tolist()), coins)
    return session


def draft_of(session: Session) -> Draft:
    """The rows that the session's drafter is about to run for its next round."""
    d = session.drafter
    assert isinstance(d, FeatureRecurrence)
    return Draft(d.network, d.cache, d.length, (session.prompt + session.out)[-1], d.feature)


# --- SafeAILab: dynamic trees -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=sorted(TREES))
def tree(request: pytest.FixtureRequest) -> tuple[str, TransformersTarget, FeatureRecurrence]:
    judge = target(TREES[request.param])
    drafter: Any = load_drafter(GOLDEN / request.param / "drafter", judge, plan=TREE)
    return request.param, judge, drafter


@pytest.mark.peer("eagle1", case="eagle1_A")
@pytest.mark.peer("eagle3", case="eagle3_A")
def test_features_rows_and_the_recurrence(tree: tuple[str, TransformersTarget, FeatureRecurrence]) -> None:
    """Kills a tap off by one, unshifted tokens, a norm too many or too few, a residual of the wrong stream, fed-back
    normed features, logits of the wrong head."""
    case, judge, drafter = tree
    t = tensors(case)
    session = begun(judge, drafter, point_mass, GREEDY, t["prompt"], COINS)
    assert session.out == (int(t["prefill.next_token"]),)
    draft = draft_of(session)
    known = drafter.network.logits(draft.out)[0] > float("-inf")
    assert_close(draft.out[0], t["draft.fwd.hidden_out"][-1])
    for step, token in enumerate(t["draft.chain.tokens"].tolist()):
        logits = draft.first if step == 0 else draft.grow((t["draft.chain.tokens"][step - 1],), (step - 1,))[0]
        assert_close(logits[known], t["draft.chain.logits"][step])
        assert_close(draft.out[step], t["draft.chain.hidden"][step])
        assert int(logits.argmax()) == token
    # All prompt rows: an earlier one shows in a later one through attention alone.
    positions, ids = torch.arange(len(t["prompt"])), t["draft.fwd.input_ids"]
    causal = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
    features = drafter.network.fused(t["prefill.features"])
    out, _ = drafter.network.rows(ids, features, positions, drafter.network.empty(), causal)
    assert_close(out, t["draft.fwd.hidden_out"])
    assert_close(drafter.network.logits(out)[:, known], t["draft.fwd.logits"])


@pytest.mark.peer("eagle2", case="eagle1_A")
@pytest.mark.peer("eagle1", case="eagle1_A")
@pytest.mark.peer("eagle3", case="eagle3_A")
def test_every_tree_of_a_greedy_run(tree: tuple[str, TransformersTarget, FeatureRecurrence]) -> None:
    """Kills a beam of the wrong nodes, a re-ranking by the last token alone, wrong parents, stale rows of a draft."""
    case, judge, drafter = tree
    t = tensors(case)
    session = begun(judge, drafter, point_mass, GREEDY, t["prompt"], COINS)
    for i in range(int(t["greedy.rounds"])):
        golden = {k.split(".", 2)[2]: v for k, v in t.items() if k.startswith(f"greedy.r{i}.")}
        if "tree.level_logp" in golden:
            first = draft_of(session).first
            assert_close(first[first > float("-inf")].log_softmax(-1), golden["tree.level_logp"][0])
        session.play(COINS)
        played = session.rounds[-1]
        tokens, parents = nodes(played.block)
        assert list(tokens) == golden["tree.tokens"].tolist()[1:]
        assert [parent + 1 for parent in parents] == golden["tree.parents"].tolist()[1:]
        assert len(played.verdict.path) == int(golden["accept"])
        assert played.emitted[-1] == int(golden["next_token"])
    assert (session.prompt + session.out)[: len(t["greedy.output"])] == tuple(t["greedy.output"].tolist())


@pytest.mark.peer("eagle2", case="eagle1_A")
@pytest.mark.peer("eagle1", case="eagle1_A")
@pytest.mark.peer("eagle3", case="eagle3_A")
def test_the_wide_tree_of_the_release(tree: tuple[str, TransformersTarget, FeatureRecurrence]) -> None:
    """Kills a tree that is right for small numbers alone: 59 nodes, 10 children, 5 further levels."""
    case, judge, drafter = tree
    t = tensors(case)
    large = FeatureRecurrence(drafter.network, DynamicTree(total=59, depth=5, top_k=10))
    session = begun(judge, large, point_mass, GREEDY, t["prompt"], COINS)
    session.play(COINS)
    tokens, parents = nodes(session.rounds[0].block)
    assert list(tokens) == t["tree60.tokens"].tolist()[1:]
    assert [parent + 1 for parent in parents] == t["tree60.parents"].tolist()[1:]


@pytest.mark.peer("eagle1", case="eagle1_A")
@pytest.mark.peer("eagle3", case="eagle3_A")
@pytest.mark.parametrize(("run", "policy"), [
    ("T1", pipeline(temperature(1.0))), ("T07p", pipeline(temperature(0.7), top_p(0.9))),
])  # fmt: skip
def test_sampling_runs(tree: tuple[str, TransformersTarget, FeatureRecurrence], run: str, policy: Policy) -> None:
    """Kills siblings judged in another order, a tree that looks at the temperature, a residual that is not the
    official one."""
    case, judge, drafter = tree
    t = tensors(case)
    session = begun(judge, drafter, point_mass, policy, t["prompt"], InOrder([], int(t[f"{run}.first_token"])))
    rounds = sum(name.startswith(f"{run}.r") and name.endswith("tree_tokens") for name in t)
    for i in range(rounds):
        golden = {k.split(".", 2)[2]: v for k, v in t.items() if k.startswith(f"{run}.r{i}.")}
        coins = InOrder(golden["uniforms"].tolist(), int(golden["next_token"]))
        session.play(coins)
        played = session.rounds[-1]
        assert list(nodes(played.block)[0]) == golden["tree_tokens"].tolist()[1:]
        assert len(played.verdict.path) == int(golden["accept"])
        assert coins.uniforms == []
        assert coins.weights is not None
        assert float((coins.weights - golden["sample_p"]).abs().max()) <= 1e-5
    assert rounds >= 8


# --- DeepSpec: a drawn chain over the whole vocabulary ----------------------------------------------------------------

DEEPSPEC = {"eagle3_deepspec_qwen3_A": "target_q3A", "eagle3_deepspec_gemma4_A": "target_gemma4_deepspec"}
Case: TypeAlias = tuple[str, TransformersTarget, FeatureRecurrence]


@pytest.fixture(scope="module", params=sorted(DEEPSPEC))
def chain(request: pytest.FixtureRequest) -> Case:
    judge = target(DEEPSPEC[request.param])
    drafter = load_drafter(GOLDEN / request.param / "drafter", judge)
    assert isinstance(drafter, FeatureRecurrence)
    return request.param, judge, drafter


@pytest.mark.peer("eagle3_deepspec", case="eagle3_deepspec_qwen3_A")
@pytest.mark.peer("eagle3_gemma4", case="eagle3_deepspec_gemma4_A")
def test_deepspec_rounds_of_a_greedy_run(chain: Case) -> None:
    """Kills a tap of the neighbouring layer, a missing norm per head, a step at the wrong position."""
    case, *parts = chain
    t = tensors(case)
    session = begun(*parts, leviathan, GREEDY, t["prompt_ids"], COINS)
    for i in range(len(facts(case)["greedy"]["rounds"])):
        golden = {k.split(".", 2)[2]: v for k, v in t.items() if k.startswith(f"greedy.r{i:02d}.")}
        if "draft_logits" in golden:
            draft, tokens = draft_of(session), golden["draft_tokens"].tolist()
            assert_close(draft.first, golden["draft_logits"][0])
            rows = [draft.grow((token,), (place,))[0] for place, token in enumerate(tokens[:-1])]
            assert_close(torch.stack(rows), golden["draft_logits"][1:])
            assert_close(draft.out, golden["step_hidden"])
        session.play(COINS)
        assert nodes(session.rounds[-1].block)[0] == tuple(golden["draft_tokens"].tolist())
        assert session.rounds[-1].emitted == tuple(golden["committed_tokens"].tolist())


@pytest.mark.peer("eagle3_deepspec", case="eagle3_deepspec_qwen3_A")
@pytest.mark.peer("eagle3_gemma4", case="eagle3_deepspec_gemma4_A")
def test_deepspec_outputs(chain: Case) -> None:
    """Kills an output that runs past a stop token inside a block, past the limit, or off the plain greedy path."""
    case, *parts = chain
    held = facts(case)
    prompt = tuple(tensors(case)["prompt_ids"].tolist())
    runs = [(held["greedy"], prompt, 36, Stop()), (held["greedy_max_new_13"], prompt, 13, Stop())]
    runs += [(run, prompt, 36, Stop(frozenset(run["stop_token_ids"]))) for run in held["stop_runs"]]
    runs += [(run, tuple(run["prompt_ids"]), 36, Stop()) for run in held["other_prompts"]]
    for run, start, limit, stop in runs:
        assert list(generate(*parts, leviathan, GREEDY, start, limit, COINS, stop).tokens) == run["new_tokens"]


@pytest.mark.peer("eagle3_deepspec", case="eagle3_deepspec_qwen3_A")
@pytest.mark.peer("eagle3_gemma4", case="eagle3_deepspec_gemma4_A")
@pytest.mark.parametrize("heat", [1.0, 0.7])
def test_deepspec_sampling_run(chain: Case, heat: float) -> None:
    """Kills a q that is not the row the draft came from, a p at the wrong place, a different accept decision."""
    case, *parts = chain
    t, run = tensors(case), f"sample_T{heat}"
    first = next(x for x in facts(case)["sampling"] if x["temperature"] == heat)["new_tokens"][0]
    policy = pipeline(temperature(heat))
    session = begun(*parts, leviathan, policy, t["prompt_ids"], Recorded([], [], first))
    rounds = sum(name.startswith(f"{run}.r") and name.endswith(".q") for name in t)
    for i in range(rounds):
        golden = {k.removeprefix(f"{run}.r{i:02d}."): v for k, v in t.items() if k.startswith(f"{run}.r{i:02d}.")}
        tokens = golden["committed_tokens"].tolist()
        session.play(Recorded(golden["draft_tokens"].tolist(), golden["uniforms"].tolist(), tokens[-1]))
        played = session.rounds[-1]
        assert played.block.q is not None
        assert_close(played.block.q[0], golden["q"])
        assert_close(played.p, golden["p"])
        assert played.verdict.tokens == tuple(tokens)
    assert rounds >= 5


# --- speculators: switches, further layers ----------------------------------------------------------------------------

SPECULATORS = {"sp_eagle3_A": "target_sp_llama8", "sp_eagle3_C": "target_sp_qwen8"}


@pytest.mark.peer("eagle3_speculators")
@pytest.mark.parametrize("case", sorted(SPECULATORS))
def test_speculators_rows_and_drafts(case: str) -> None:
    """Kills a switch that is ignored (norm before fc, before the residual, of the output), a second layer without its
    cache, a draft vocabulary read as ids instead of offsets."""
    judge, t = target(SPECULATORS[case]), tensors(case)
    drafter = load_drafter(GOLDEN / case / "drafter", judge)
    assert isinstance(drafter, FeatureRecurrence)
    net = drafter.network
    ids, features = t["ids"][0], net.fused(t["aux"][0])
    assert_close(features[:-1], t["ttt.fc_out"][0])
    causal = torch.ones(len(ids) - 1, len(ids) - 1, dtype=torch.bool).tril()
    out, _ = net.rows(ids[1:], features[:-1], torch.arange(len(ids) - 1), net.empty(), causal)
    logits = net.logits(out)
    assert_close(logits[:, logits[0] > float("-inf")], t["ttt.0.logits"][0])
    for length in (5, 9, 14):
        session = begun(judge, drafter, leviathan, GREEDY, ids[: length - 1], Recorded([], [], int(ids[length - 1])))
        draft, tokens = draft_of(session), t[f"draft.{length}.tokens"].tolist()
        rows = [draft.first, *(draft.grow((token,), (place,))[0] for place, token in enumerate(tokens[:-1]))]
        known = draft.first > float("-inf")
        assert_close(torch.stack(rows)[:, known], t[f"draft.{length}.logits"])
        assert [int(row.argmax()) for row in rows] == tokens


@pytest.mark.peer("eagle3_speculators")
@pytest.mark.parametrize("case", sorted(SPECULATORS))
def test_speculators_traces(case: str) -> None:
    """Kills a chain of the wrong length, and features of rejected rows that stay."""
    judge, t = target(SPECULATORS[case]), tensors(case)
    drafter = load_drafter(GOLDEN / case / "drafter", judge)
    assert isinstance(drafter, FeatureRecurrence)
    assert drafter.plan == Chain(4)
    for trace in range(3):
        g = {k.removeprefix(f"trace.{trace}."): v for k, v in t.items() if k.startswith(f"trace.{trace}.")}
        ids = tuple(g["ids"][0].tolist())
        session = begun(judge, drafter, leviathan, GREEDY, g["prompt"][0], COINS)
        rounds = zip(*(g[name].tolist() for name in ("prefix_len", "drafts", "accepted")), strict=True)
        for length, drafts, accepted in rounds:
            assert session.prompt + session.out == ids[:length]
            session.play(COINS)
            wanted = [x for x in drafts if x >= 0]  # the recording drafts less where less is left to emit
            assert list(nodes(session.rounds[-1].block)[0])[: len(wanted)] == wanted
            if len(wanted) == 4:
                assert len(session.rounds[-1].verdict.path) == accepted
