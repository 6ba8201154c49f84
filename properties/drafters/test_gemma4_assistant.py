"""The Gemma 4 assistant on the tiny target: reported rows, empty blocks, trees, stale keys, heads, the oracle."""

import dataclasses
from typing import Any
from unittest.mock import patch

import pytest
import torch

from properties.helpers.checkpoints.gemma4_example import (
    CONFIG,
    FULL,
    GEMMA,
    PROMPT,
    SAMPLED,
    TARGET,
    WINDOW,
    assistant,
    gemma,
    outputs,
    shape_of,
)
from properties.helpers.coins import COINS
from refengine.commands import verify_checkpoint
from refengine.decoder.checkpoints.layouts.gemma4_assistant import table
from refengine.decoder.drafters.gemma4_assistant import SLIDING, Backbone, Gemma4Assistant
from refengine.decoder.loop import Session, begin, nodes
from refengine.decoder.protocols import Turn
from refengine.decoder.rows import chain_rows, tree_rows
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.block import Block
from refengine.engine.coins import Branching
from refengine.engine.policy import Policy, greedy, logit_bias, pipeline, presence_penalty, temperature, top_k
from refengine.engine.rules.leviathan import leviathan
from refengine.exact.chance import Chance, runs
from refengine.exact.law import tv

pytestmark = pytest.mark.on_record


@pytest.mark.parametrize("stale_keys", [False, True])
@pytest.mark.parametrize(
    "policy",
    [
        SAMPLED,
        pipeline(temperature(0.5), top_k(3)),
        pipeline(presence_penalty(0.7), temperature(1.4)),
        pipeline(greedy()),
    ],
)
def test_reported_rows_are_the_law_of_the_draws(policy: Policy, stale_keys: bool) -> None:
    """Kills a q with mass on tokens that the head never scored, and a q that is not what its token was drawn from."""
    drafter, total = assistant(), 0.0
    drafter.stale_keys = stale_keys
    drafter.start(PROMPT, begin(TARGET, PROMPT, drafter.taps))

    def propose(chance: Chance) -> tuple[Block, float]:
        block = drafter.propose(Turn((*PROMPT,), (*PROMPT, 3), policy, Branching(chance)))
        assert block.q is not None
        assert int((block.q[0] > 0).sum(-1).max()) <= 4  # two of four centroids, two tokens each
        return block, float(block.q[0].gather(1, block.tokens[0][:, None]).prod())

    for (block, reported), probability, _ in runs(propose):
        assert abs(reported - float(probability)) < 1e-14, nodes(block)
        total += float(probability)
    assert abs(total - 1) < 1e-14


def test_a_policy_that_bans_all_that_was_scored_ends_the_block() -> None:
    """Kills a row of zeros over zero, and a draft that falls back on what the head did not score."""
    drafter = assistant()
    session = Session(TARGET, drafter, leviathan, SAMPLED, 10**6)
    session.begin(PROMPT, COINS)
    step = drafter.step(
        torch.tensor(session.out), drafter.hidden, torch.tensor([len(PROMPT)]), drafter.keys(len(PROMPT) + 1)
    )
    scored = step.scored[0].nonzero()[:, 0].tolist()
    assert len(scored) == 4
    session.policy = pipeline(logit_bias(dict.fromkeys(scored, float("-inf"))))
    session.play(COINS)
    assert session.rounds[-1].block.tokens.shape[1] == 0
    assert len(session.rounds[-1].emitted) == 1


def test_trees_run_on_a_target_with_shared_keys_and_sliding_layers() -> None:
    """Kills a window that counts rows of other branches, and a rollback that loses rows the window still needs."""
    begin(TARGET, PROMPT, ())
    tokens, parents = (1, 2, 3, 4, 5), (-1, 0, -1, 2, 3)
    logits = TARGET.run(tree_rows(6, tokens, parents, len(PROMPT), TARGET.device)).logits
    TARGET.keep((0, 3, 4))  # the branch 6, 3, 4
    after = TARGET.run(chain_rows((0,), len(PROMPT) + 3, TARGET.device)).logits[-1]
    for node, path in ((1, (6, 1, 2)), (4, (6, 3, 4, 5))):
        alone = begin(gemma(), (*PROMPT, *path), ()).logits[-1]
        assert float((logits[node + 1] - alone).abs().max()) < 1e-12
    assert float((after - begin(gemma(), (*PROMPT, 6, 3, 4, 0), ()).logits[-1]).abs().max()) < 1e-12


def test_a_target_that_sees_the_future_is_refused() -> None:
    """Kills a loop that runs a bidirectional model as if it were causal."""
    model = gemma().model
    with (
        patch.object(model.config, "use_bidirectional_attention", "all"),
        pytest.raises(ValueError, match="use_bidirectional_attention"),
    ):
        TransformersTarget(model)


def test_checkpoint_verify_finds_it_sound() -> None:
    """Kills a battery that cannot run on this layout, or that accuses it."""
    found = verify_checkpoint.verify(str(GEMMA / "assistant"), str(GEMMA / "target"), "float32")
    by_id = {finding.id: finding for finding in found}
    assert {finding.verdict for finding in found} == {"consistent"}
    assert by_id["checkpoint/state"].numbers["states compared"] > 20
    assert by_id["checkpoint/acceptance"].numbers["judged"] > 100


def test_stale_keys_change_the_drafts_and_not_the_law() -> None:
    """Kills a released mode that reaches the tokens, or that sees no rejected row at all."""
    from refengine.selfcheck.drafters.laws import cells

    cell = dataclasses.replace(cells.CELLS["gemma4_assistant/leviathan/mixed/stop"], rounds=2)
    clean, session = cells.cell_law(cell), cells.session(cell)
    session.drafter.stale_keys = True  # type: ignore[attr-defined]
    stale = cells.Enumeration(session, cell.prompt).rounds(cell.rounds)
    assert not stale.mismatches
    assert tv(stale.law, clean.law) > 1e-3
    assert tv(cells.completed(cell, stale), cells.target_law(cell)) <= cells.EXACT


# --- the head --------------------------------------------------------------------------------------------------------


def test_all_centroids_together_are_the_full_head() -> None:
    """Kills a token that no centroid holds, one that two hold, and a row of the head under another token's number."""
    whole = outputs(assistant(num_centroids=0))
    assert float((outputs(assistant(centroid_intermediate_top_k=4)) - whole).abs().max()) < 1e-12
    assert float((outputs(assistant()) - whole).abs().max()) > 0.1


def test_the_released_fill_gives_mass_to_tokens_that_were_not_scored() -> None:
    """The number behind "the rest of the vocabulary is skipped": in the release it is not. Kills a fill of -inf."""
    drafter = assistant()
    drafter.start(PROMPT, begin(TARGET, PROMPT, drafter.taps))
    step = drafter.step(torch.tensor([3]), drafter.hidden, torch.tensor([len(PROMPT)]), drafter.keys(len(PROMPT) + 1))
    least = step.logits[step.scored].min()
    assert torch.equal(step.logits[~step.scored], (least - 1.0).expand(4))
    assert 1e-4 < float(step.logits[0].softmax(-1)[~step.scored[0]].sum()) < 0.2


# --- the self-draft oracle -------------------------------------------------------------------------------------------


def test_an_assistant_that_is_its_target_is_always_accepted() -> None:
    """Kills an embedding without its scale, a layer in another order, values of another layer, a missing scalar.

    An assistant cannot see its own row, so it equals a target whose values are the same in every row (a bias alone).
    """
    target, drafter = twins()
    session = Session(target, drafter, leviathan, SAMPLED, 40)
    session.begin((3, 1, 4), COINS)
    while not session.done:
        session.play(COINS)
    for played in session.rounds:
        assert played.block.q is not None
        assert float((played.p[: len(played.block.q[0])] - played.block.q[0]).abs().max()) < 1e-12
        assert len(played.emitted) == 4 or session.rounds[-1] is played


def twins() -> tuple[TransformersTarget, Gemma4Assistant]:
    """A target with constant values, and the assistant with the same layers whose drafts are the target's rows."""
    from transformers import Gemma4ForCausalLM, Gemma4TextConfig

    torch.manual_seed(5)
    text: dict[str, Any] = {
        **{name: CONFIG["text_config"][name] for name in ("vocab_size", "num_attention_heads", "num_key_value_heads")},
        "head_dim": 8, "global_head_dim": 16, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "layer_types": [SLIDING, FULL], "sliding_window": WINDOW, "attention_bias": True, "pad_token_id": None,
        "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0,
    }  # fmt: skip
    network: Any = Gemma4ForCausalLM(Gemma4TextConfig(**text)).double().eval()
    for name, x in [*network.named_parameters(), *network.named_buffers()]:
        if not name.endswith(("inv_freq", "embed_scale")):
            x.data = torch.randn_like(x) * (0.3 if x.ndim > 1 else 0.2) + float(
                name.endswith(("norm.weight", "scalar"))
            )
        if name.endswith("v_proj.weight"):
            x.data.zero_()
    tensors = {name: x for name, x in network.state_dict().items() if ".k_" not in name and ".v_" not in name}
    del tensors["lm_head.weight"]
    tensors["pre_projection.weight"] = torch.cat((torch.eye(16), torch.zeros(16, 16)), -1).double()
    tensors["post_projection.weight"] = torch.randn(16, 16).double()
    shape = dataclasses.replace(shape_of(), attention_bias=True, num_centroids=0)
    assert tensors.keys() == table(shape).keys()
    target = TransformersTarget(network.requires_grad_(False))
    stores = {SLIDING: 0, FULL: 1}
    return target, Gemma4Assistant(shape, tensors, Backbone(target, stores, network.get_input_embeddings()), gamma=3)
