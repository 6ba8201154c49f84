"""The document on Gemma 4's assistant against transformers' own: loop, masks, embedder, config, run offline.

The assistant class cannot be built by every transformers 5.x, so the loop is driven with a recording stand-in, and the
parts that are under test are the library's own.
"""

import inspect
import json
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from safetensors import safe_open
from torch import nn

from refengine.decoder import load_drafter, load_target
from refengine.decoder.loop import Stop, begin, generate, plain
from refengine.decoder.protocols import Pass, Rows, Turn
from refengine.decoder.targets.toy import ToyDrafter, ToyTarget
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.leviathan import leviathan
from refengine.exact.block import chain
from refengine.exact.chance import Enumerate
from refengine.exact.row import point
from refengine.exact.rules.greedy import greedy
from refengine.source_tree import FIXTURES

gemma4 = pytest.importorskip("transformers.models.gemma4.modeling_gemma4", reason="not tested: needs transformers 5")
assistant = pytest.importorskip(
    "transformers.models.gemma4_assistant.modeling_gemma4_assistant", reason="not tested: needs transformers 5"
)
from transformers import Gemma4AssistantConfig as GemmaConfig  # noqa: E402
from transformers import GenerationConfig  # noqa: E402
from transformers.generation import utils as generation  # noqa: E402
from transformers.generation.candidate_generator import SinglePositionMultiTokenCandidateGenerator  # noqa: E402
from transformers.masking_utils import (  # noqa: E402
    causal_mask_function,
    create_bidirectional_sliding_window_mask,
    sliding_window_causal_mask_function,
)

V, BACKBONE, WINDOW, LENGTH, DRAFTS = 12, 6, 8, 9, 4


class Gemma4AssistantStandIn:
    """Answers with fixed logits and a numbered hidden state, and writes down what it was called with."""

    device = torch.device("cpu")
    generation_config = GenerationConfig(num_assistant_tokens=DRAFTS)

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __call__(self, **inputs: Any) -> Any:
        self.calls.append(inputs)
        logits = torch.arange(float(V)).roll(len(self.calls)).view(1, 1, V)
        return SimpleNamespace(logits=logits, last_hidden_state=torch.full((1, 1, BACKBONE), float(len(self.calls))))


@pytest.fixture
def drafted() -> tuple[list[dict[str, Any]], torch.Tensor, torch.Tensor, nn.Embedding]:
    """The calls of one drafting round, the candidate ids and logits, and the target's embedding."""
    embedding = nn.Embedding(V, BACKBONE)
    model = Gemma4AssistantStandIn()
    config = GenerationConfig(max_length=100, do_sample=True)
    generator = SinglePositionMultiTokenCandidateGenerator(model, embedding, config)
    keys = torch.randn(1, 1, LENGTH, 4)
    outputs = SimpleNamespace(
        hidden_states=(torch.full((1, LENGTH - 1, BACKBONE), -1.0),), shared_kv_states={"full_attention": (keys, keys)}
    )
    ids, logits = generator.get_candidates(torch.arange(LENGTH)[None], {}, outputs, False, 0)
    return model.calls, ids, logits, embedding


def test_drafting_is_a_loop_of_single_queries(drafted: Any) -> None:
    """One query per draft step. Kills "parallel single-pass, all draft tokens see each other"."""
    calls, ids, _, _ = drafted
    assert len(calls) == DRAFTS == ids.shape[1] - LENGTH
    assert {call["inputs_embeds"].shape for call in calls} == {(1, 1, 2 * BACKBONE)}


def test_position_is_constant(drafted: Any) -> None:
    """Position L - 1 at every step. Kills "pos=5, pos=6, pos=7" and the argument that RoPE tells the drafts apart."""
    calls, *_ = drafted
    assert [call["position_ids"].tolist() for call in calls] == [[[LENGTH - 1]]] * DRAFTS


def test_kv_is_frozen_during_drafting(drafted: Any) -> None:
    """The same keys at every step. Kills "each step samples one token, the backbone updates its K/V"."""
    calls, *_ = drafted
    assert all(call["shared_kv_states"] is calls[0]["shared_kv_states"] for call in calls)


def test_the_input_carries_all_earlier_drafts(drafted: Any) -> None:
    """Step k gets [embedding of draft k-1, state of step k-1]. Kills "only the embedding of the previous token"."""
    calls, ids, _, embedding = drafted
    for k, call in enumerate(calls):
        token, state = call["inputs_embeds"][0, 0].split(BACKBONE)
        assert torch.equal(token, embedding(ids[0, LENGTH - 1 + k]))
        assert torch.equal(state, torch.full((BACKBONE,), float(k) if k else -1.0))


def test_logits_are_the_assistants_own(drafted: Any) -> None:
    """Candidate logits come out of the assistant; post_projection's output is only the next step's state.

    Kills "last_hidden_state (after post_projection) is fed into the backbone's lm_head to compute reference logits".
    """
    calls, _, logits, _ = drafted
    assert torch.equal(logits[0], torch.stack([torch.arange(float(V)).roll(k + 1) for k in range(len(calls))]))


def test_drafts_are_argmax_even_when_sampling(drafted: Any) -> None:
    """do_sample=True, yet every draft is an argmax. Kills "each step samples one token", and is why q is not honest."""
    _, ids, logits, _ = drafted
    assert torch.equal(ids[0, LENGTH:], logits[0].argmax(-1))


def verified() -> tuple[torch.Tensor, torch.Tensor, int, torch.Tensor]:
    """What `generate` with do_sample=True, at temperature 1/2, hands to its verifier in its first round of drafts."""
    sizes = {"num_hidden_layers": 4, "num_kv_shared_layers": 2, "hidden_size": BACKBONE, "intermediate_size": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "global_head_dim": 4}
    alone = {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, "sliding_window": WINDOW}
    types = {"layer_types": ["sliding_attention", "full_attention"] * 2}
    ends = {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
    torch.manual_seed(0)
    target: Any = gemma4.Gemma4ForCausalLM(
        gemma4.Gemma4TextConfig(vocab_size=V, **sizes, **heads, **alone, **types, **ends)
    ).eval()
    stand_in: Any = Gemma4AssistantStandIn()
    stand_in.config = target.config
    asked: list[Any] = []
    verifier = generation._speculative_sampling

    def watched(*given: Any, **options: Any) -> Any:
        asked.append(given)
        return verifier(*given, **options)

    with patch.object(generation, "_speculative_sampling", watched):
        target.generate(
            torch.tensor([[1, 2, 3]]), assistant_model=stand_in, do_sample=True, temperature=0.5, max_new_tokens=9
        )
    found: tuple[torch.Tensor, torch.Tensor, int, torch.Tensor] = asked[0]
    return found


def test_argmax_drafts_are_judged_as_if_drawn_from_the_raw_row() -> None:
    """The library's own loop and verifier, its coins given: the first draft x is the likeliest of the stand-in's row q,
    and kept iff u <= p(x) / q(x), where a token that was not drawn may be kept with p(x) alone; a refusal draws from
    (p - q)+. So the first token is off by a TV above 0.1.

    Kills "the library takes q = 1 at a draft that it did not draw", and a q to which the temperature was applied.
    """
    ids, logits, gamma, rows = verified()
    drafts = ids[0, -gamma:]
    assert torch.equal(drafts, logits[0].argmax(-1))
    assert torch.equal(logits[0, 0], torch.arange(float(V)).roll(1))  # raw: no temperature
    p, q, x = rows[0, 0].softmax(-1), logits[0, 0].softmax(-1), int(drafts[0])
    kept = float(p[x] / q[x])
    assert float(p[x]) < 0.99 * kept < 0.99
    weights: list[torch.Tensor] = []

    def drawn(row: torch.Tensor, num_samples: int) -> torch.Tensor:
        weights.append(row)
        return torch.zeros(1, num_samples, dtype=torch.long)

    for u in (0.999 * kept, 1.001 * kept):
        coin = patch.object(torch, "rand_like", lambda ratio, u=u: torch.full_like(ratio, u))
        with coin, patch.object(torch, "multinomial", drawn):
            _, accepted = generation._speculative_sampling(ids, logits, gamma, rows)
        assert (int(accepted) > 0) == (u < kept)
    residual = (p - q).clamp(min=0)
    assert torch.allclose(weights[-1][0], residual / residual.sum())
    law = (1 - kept) * weights[-1][0] + kept * nn.functional.one_hot(torch.tensor(x), V)
    assert float((law - p).abs().sum()) / 2 > 0.1


@pytest.fixture
def config() -> Any:
    from transformers import Gemma4TextConfig

    made = Gemma4TextConfig(
        vocab_size=96,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        global_head_dim=32,
        sliding_window=WINDOW,
        layer_types=["sliding_attention"] * 3 + ["full_attention"],
        hidden_size_per_layer_input=0,
        vocab_size_per_layer_input=0,
        num_kv_shared_layers=0,
    )
    made._attn_implementation = "eager"
    return made


def test_attention_scale_is_one(config: Any) -> None:
    """Kills "softmax(Q K^T / sqrt d)": Gemma 4 normalises queries and keys and does not divide."""
    assert gemma4.Gemma4TextAttention(config, 0).scaling == 1.0


def test_gate_is_gelu(config: Any) -> None:
    """Kills "GatedMLP (SwiGLU)": the gate is tanh-approximated GELU."""
    x = torch.linspace(-3, 3, 7)
    assert torch.allclose(gemma4.Gemma4TextMLP(config, 0).act_fn(x), nn.functional.gelu(x, approximate="tanh"))


def test_sharing_of_all_layers_is_forced(config: Any) -> None:
    """Four layers: all share where the config says nothing, and another number is refused. Kills a layer of its own."""
    text = config.to_dict()
    assert GemmaConfig(text_config=text).text_config.num_kv_shared_layers == 4
    with pytest.raises(Exception, match="must be shared"):
        GemmaConfig(text_config={**text, "num_kv_shared_layers": 2})


def test_sliding_window_keeps_one_key_more(config: Any) -> None:
    """W = 8: the last nine keys. Kills "the mask after the flip reproduces exactly the window of the last token"."""
    me = SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: config))
    keys = torch.zeros(1, 2, 20, 16)
    masks = assistant.Gemma4AssistantForCausalLM.create_attention_masks(
        me, torch.zeros(1, 1, 32), torch.ones(1, 20), dict.fromkeys(config.layer_types, (keys, keys))
    )
    visible = masks["sliding_attention"][0, 0, 0] == 0
    assert visible.tolist() == [False] * (20 - WINDOW - 1) + [True] * (WINDOW + 1)


def test_the_windows_of_the_figure(config: Any) -> None:
    """Five keys, W = 3: before the flip, after it, of the target's last token, and of exact windows at 5, 6 and 7.

    Kills a flip that leaves the window at the front, "t4 in target SWA" called the same as "d0 after flip", and an
    exact window that would stay: (t3, t4), (t4) and none, as the figure has them.
    """
    config.sliding_window = 3
    keys, text = torch.zeros(1, 2, 5, 16), SimpleNamespace(get_text_config=lambda: config)
    given = (torch.zeros(1, 1, 32), torch.ones(1, 5))
    front = create_bidirectional_sliding_window_mask(config, *given, encoder_hidden_states=keys[:, 0])
    masks = assistant.Gemma4AssistantForCausalLM.create_attention_masks(
        SimpleNamespace(config=text), *given, dict.fromkeys(config.layer_types, (keys, keys))
    )
    before, after = ((mask[0, 0, 0] == 0).nonzero()[:, 0].tolist() for mask in (front, masks["sliding_attention"]))
    own = sliding_window_causal_mask_function(3)
    place = torch.arange(8)
    exact = {query: [key for key in range(5) if own(0, 0, place[query], place[key])] for query in (4, 5, 6, 7)}
    assert (before, after) == ([0, 1, 2, 3], [1, 2, 3, 4])
    assert exact == {4: [2, 3, 4], 5: [3, 4], 6: [4], 7: []}


def test_the_released_code_says_that_its_masks_are_bidirectional() -> None:
    """Kills a quotation of a text that the release does not have."""
    text = inspect.getsource(assistant.Gemma4AssistantForCausalLM.create_attention_masks)
    assert {"create_bidirectional_mask(", "create_bidirectional_sliding_window_mask("} <= set(text.split())
    said = "no difference for the edge case of q_len == 1 as it acts as full attention no matter what"
    assert said in " ".join(text.replace("`", "").split())
    assert text.count("swa_mask.flip(dims=(-1,))") == 1


def test_unselected_tokens_keep_mass() -> None:
    """The centroid head gives every unselected token the least selected logit minus one, not minus infinity.

    Kills "the assistant evaluates 4,096 tokens instead of the vocabulary" read as: the others have probability 0.
    """
    text = SimpleNamespace(hidden_size=4, vocab_size=12)
    head = assistant.Gemma4AssistantMaskedEmbedder(
        SimpleNamespace(get_text_config=lambda: text, centroid_intermediate_top_k=2, num_centroids=6)
    )
    head.token_ordering.copy_(torch.arange(12))
    generator = torch.Generator().manual_seed(0)
    logits = head(torch.randn(1, 1, 4, generator=generator), torch.randn(12, 4, generator=generator))[0, 0]
    least = logits.sort().values
    assert (logits == least[0]).sum() == 8  # 2 clusters of 2 tokens were scored
    assert torch.isclose(least[8] - least[0], torch.tensor(1.0))


def test_saved_computation() -> None:
    """Rows of the head: 1 - 4096/262144 = 98.4 %, as of 256,000; 32 of 2048 centroids are 1.6 %. But all of these are
    scored too: 97.7 % of the dot products. Kills 256,000 tokens in 2048 clusters of 128."""
    scored, vocabulary, centroids = 32 * 128, 262_144, 2048
    assert (scored, centroids * 128) == (4096, vocabulary)
    assert [round(100 * (1 - scored / size), 1) for size in (vocabulary, 256_000)] == [98.4, 98.4]
    assert round(100 * 32 / centroids, 1) == 1.6
    assert round(100 * (1 - (scored + centroids) / vocabulary), 1) == 97.7


def test_share_of_key_and_value_projections() -> None:
    """K and V are 2/3 of QKV with as many key heads as query heads, and less with fewer, as the config class has."""
    from transformers import Gemma4TextConfig

    default = Gemma4TextConfig()

    def share(heads: int, kv_heads: int) -> Fraction:
        return Fraction(2 * kv_heads, heads + 2 * kv_heads)

    assert {share(heads, heads) for heads in range(1, 65)} == {Fraction(2, 3)}
    assert share(default.num_attention_heads, default.num_key_value_heads) == share(8, 4) == Fraction(1, 2)
    assert share(4, 1) == Fraction(1, 3)


def test_three_accepted_are_four_emitted() -> None:
    """Five drafts, three agree: the round emits four tokens, the last one the target's own. Kills "a net 3x gain"."""
    rows = [point(x, 6) for x in (0, 1, 2, 5, 0, 0)]
    drafts = chain((0, 1, 2, 3, 4), (None,) * 5, (None,) * 5)
    assert greedy(rows, drafts, Enumerate()).tokens == (0, 1, 2, 5)


class Counting(ToyTarget):
    """A target that counts its passes."""

    passes = 0

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        self.passes += 1
        return super().run(rows, taps)


def test_plain_decoding_passes_once_per_token_and_a_round_once() -> None:
    """Seven tokens, seven passes, the prompt's among them; with drafts one for the prompt and one for each round.

    Kills a verification token by token, and a plain decoding that passes again for a token that it has.
    """
    coins, policy, end = Philox(3, torch.tensor([0])), pipeline(temperature(1.0)), lambda text: str(len(text))
    target = Counting(5)
    plain(target, policy, (0, 1), 99, coins, Stop(strings=("7",), decode=end))
    assert target.passes == 7
    target.passes = 0
    result = generate(target, ToyDrafter(target, 3), leviathan, policy, (0, 1), 40, coins)
    assert target.passes == 1 + len(result.rounds) < len(result.tokens)


def recorded(name: str) -> dict[str, tuple[int, ...]]:
    """The shapes of a recording's tensors."""
    with safe_open(FIXTURES / "golden" / name, "pt") as held:
        return {key: tuple(held.get_slice(key).get_shape()) for key in held.keys()}  # noqa: SIM118 (no mapping)


@pytest.mark.parametrize("case", ["hf_gemma4_ord_A", "hf_gemma4_plain_A"])
def test_projections_bridge_the_two_widths(case: str) -> None:
    """Two backbone widths in, one assistant's out, and back. Kills a concatenation in the assistant's width."""
    config = json.loads((FIXTURES / "golden" / case / "drafter" / "config.json").read_text())
    backbone, own = config["backbone_hidden_size"], config["text_config"]["hidden_size"]
    shapes = recorded(f"{case}/drafter/model.safetensors")
    assert backbone != own
    assert shapes["pre_projection.weight"] == (own, 2 * backbone)
    assert shapes["post_projection.weight"] == (backbone, own)


def test_shared_sliding_keys_are_not_w_rows() -> None:
    """W = 8: 20 rows after a prompt of 20, and 12 after a pass over five positions. Kills "[B, W, n_heads, d_head]"."""
    shapes = recorded("hf_gemma4_plain_A/golden.safetensors")
    rows = {key: shape[2] for key, shape in shapes.items() if key.endswith("sliding_attention.k")}
    assert rows["target.shared_kv.sliding_attention.k"] == shapes["target.shared_kv.full_attention.k"][2] == 20
    assert rows["trace.1.round3.kv.sliding_attention.k"] == (WINDOW - 1) + 5
    assert shapes["trace.1.round3.kv.full_attention.k"][2] == 20
    assert WINDOW not in rows.values()


def test_heads_of_parallel_drafters() -> None:
    """P-EAGLE and DART bring a head over fewer tokens, DFlash brings none. Kills "full LM head" for all, and "tied"."""
    for case, rows in {"sp_peagle_A": 48, "dart_A": 64}.items():
        shapes = recorded(f"{case}/drafter/model.safetensors")
        assert (shapes["lm_head.weight"][0], shapes["d2t"][0], shapes["t2d"][0]) == (rows, rows, 96)
    assert "lm_head.weight" not in recorded("dflash_zlab_A/drafter/model.safetensors")


@pytest.mark.parametrize("folder", ["dflash/speculators", "p_eagle/amazon"])
def test_slots_of_a_parallel_block_do_not_know_each_other(folder: str) -> None:
    """The rows of a block are the same whatever is drawn from them. Kills a slot that reads an earlier draft.

    Equal bits: the rows are computed before anything is drawn.
    """
    target, policy = load_target(FIXTURES / "tiny" / "target", torch.float64), pipeline(temperature(1.0))
    drafter, blocks = load_drafter(FIXTURES / folder, target), []
    for seed in range(8):
        drafter.start((4, 3, 4), begin(target, (4, 3, 4), drafter.taps))
        blocks.append(drafter.propose(Turn((4, 3, 4), (4, 3, 4, 2), policy, Philox(seed, torch.tensor([0])))))
        target.reset()
    rows = [block.q for block in blocks]
    assert len({tuple(block.tokens[0].tolist()) for block in blocks}) > 1
    assert all(row is not None and torch.equal(row, rows[0]) for row in rows)  # type: ignore[arg-type]
    assert rows[0] is not None
    assert rows[0].shape[1] > 1


@pytest.mark.parametrize("queries", [1, 3])
def test_queries_after_all_keys_see_all_of_them(config: Any, queries: int) -> None:
    """The released mask over five keys, and transformers' causal one for queries at 5, 6, 7. Kills a mask that hides a
    key from a query, and a causal mask that differs from it; among the keys it does."""
    keys = torch.zeros(1, 2, 5, 16)
    masks = assistant.Gemma4AssistantForCausalLM.create_attention_masks(
        SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: config)),
        torch.zeros(1, queries, 32), torch.ones(1, 5), dict.fromkeys(config.layer_types, (keys, keys)),
    )  # fmt: skip
    mask = masks["full_attention"]
    assert mask is None or (mask.shape[-2:] == (queries, 5) and (mask == 0).all())
    seen = [[bool(causal_mask_function(0, 0, q, key)) for key in range(5)] for q in range(5, 5 + queries)]
    assert seen == [[True] * 5] * queries
    assert not causal_mask_function(0, 0, 3, 4)


def test_the_last_own_layer_of_each_type_is_the_one_that_is_shared(config: Any) -> None:
    """Six layers, two of them shared. Kills a first shared layer off by one, and keys of the first layer of a type."""
    types = ["sliding_attention", "full_attention"] * 3
    same = {key: getattr(config, key) for key in ("vocab_size", "hidden_size", "intermediate_size", "sliding_window")}
    sizes = {"num_hidden_layers": 6, "num_kv_shared_layers": 2, "layer_types": types, "hidden_size_per_layer_input": 0}
    model = gemma4.Gemma4TextModel(type(config)(**same, **sizes, vocab_size_per_layer_input=0))
    assert model.first_kv_shared_layer_idx == 4
    attention = [layer.self_attn for layer in model.layers]
    assert [i for i, layer in enumerate(attention) if layer.is_kv_shared_layer] == [4, 5]
    assert [i for i, layer in enumerate(attention) if layer.store_full_length_kv] == [2, 3]
    assert [i for i, layer in enumerate(attention) if not hasattr(layer, "k_proj")] == [4, 5]


def test_the_backbone_scales_its_embeddings_and_has_one_for_every_layer(config: Any) -> None:
    """Rows of the table times the root of the width, and 4 numbers a token for each of 2 layers. Kills plain rows."""
    same = {key: getattr(config, key) for key in ("vocab_size", "hidden_size", "intermediate_size", "sliding_window")}
    sizes = {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}
    own = {"hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 96}
    model = gemma4.Gemma4TextModel(type(config)(**same, **sizes, **own))
    words = torch.arange(1, 6)  # row 0 is the padding's: zeros
    rows = (model.embed_tokens(words) / model.embed_tokens.weight[words]).detach()
    assert float((rows - config.hidden_size**0.5).abs().max()) < 1e-4
    assert tuple(model.embed_tokens_per_layer.weight.shape) == (96, 2 * 4)


def test_the_installed_transformers_cannot_build_an_assistant() -> None:
    """The recorded assistant's own config. Kills "no other changes required", for greedy decoding too."""
    folder = FIXTURES / "golden" / "hf_gemma4_plain_A" / "drafter"
    with pytest.raises(ValueError, match="layer types producing a cache"):
        assistant.Gemma4AssistantForCausalLM.from_pretrained(folder)
