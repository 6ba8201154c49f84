"""DeepSeek-V3's prediction modules: transformers over many configs, recursion, a checkpoint that is verified."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM
from transformers.cache_utils import MtpCache
from transformers.modeling_layers import MtpModel

from properties.helpers.coins import COINS
from refengine.commands import verify_checkpoint
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.deepseek_mtp import Module, ModuleChain, Recycled
from refengine.decoder.loop import begin
from refengine.decoder.networks.experts import Routing, route
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.networks.layers import Weights
from refengine.decoder.protocols import Drafter, Turn
from refengine.source_tree import FIXTURES

TINY, GOLDEN = FIXTURES / "deepseek", FIXTURES / "golden"
TARGET = load_target(TINY / "mtp", torch.float64)
TEXT = (4, 3, 2, 0, 3, 2, 4, 3, 1, 6, 5, 5, 0, 2, 6, 1)

# --- a live peer: what transformers makes of the same file ------------------------------------------------------------

BASE: dict[str, Any] = {
    "vocab_size": 17, "hidden_size": 16, "intermediate_size": 24, "moe_intermediate_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "n_shared_experts": 1, "n_routed_experts": 6, "n_group": 3,
    "topk_group": 2, "num_experts_per_tok": 3, "first_k_dense_replace": 1, "q_lora_rank": 6, "kv_lora_rank": 5,
    "qk_nope_head_dim": 3, "qk_rope_head_dim": 4, "v_head_dim": 5, "max_position_embeddings": 64, "num_mtp_layers": 1,
    "initializer_range": 0.4, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
YARN = {
    "rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 8,
    "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 0.7,
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "as released": {},
    "three modules": {"num_mtp_layers": 3},
    "queries in one step": {"q_lora_rank": None},
    "halves": {"rope_interleave": False},
    "biases": {"attention_bias": True},
    "tied": {"tie_word_embeddings": True},
    "all dense, two shared experts": {"first_k_dense_replace": 3, "n_shared_experts": 2},
    "one group, weights as they are": {"n_group": 1, "topk_group": 1, "norm_topk_prob": False},
    "another epsilon": {"rms_norm_eps": 1e-2},
    "stretched": {"rope_parameters": YARN},
    "stretched, one magnitude": {"rope_parameters": {**YARN, "mscale": None}, "rope_interleave": False},
    "stretched, scores as they are": {"rope_parameters": {**YARN, "mscale_all_dim": 0.0}, "q_lora_rank": None},
}


def noisy(config: DeepseekV3Config) -> Any:
    """A random model whose norms are away from 1 and whose biases are away from 0."""
    config._attn_implementation = "eager"
    model = DeepseekV3ForCausalLM(config)
    for tensor in model.state_dict().values():
        if tensor.ndim == 1:
            tensor += 0.2 * torch.randn_like(tensor)
    return model.eval()


def written(folder: Path, options: dict[str, Any]) -> tuple[int, int]:
    """A checkpoint in the released layout, made by the official classes; returns its layers and its modules."""
    torch.manual_seed(0)
    config = DeepseekV3Config(**(BASE | options))
    layers, modules, wide = config.num_hidden_layers, config.num_mtp_layers, config.hidden_size
    noisy(config).save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    # The modules' decoder layers are those of a model that has experts everywhere.
    noisy(
        DeepseekV3Config(**(BASE | options | {"num_hidden_layers": modules, "first_k_dense_replace": 0}))
    ).save_pretrained(folder / "modules")
    for name, tensor in load_file(folder / "modules" / "model.safetensors").items():
        if name.startswith("model.layers."):
            depth, rest = name.removeprefix("model.layers.").split(".", 1)
            tensors[f"model.layers.{layers + int(depth)}.{rest}"] = tensor
    shutil.rmtree(folder / "modules")
    for depth in range(modules):
        prefix = f"model.layers.{layers + depth}."
        tensors[f"{prefix}embed_tokens.weight"] = tensors["model.embed_tokens.weight"].clone()
        tied = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"])
        tensors[f"{prefix}shared_head.head.weight"] = tied.clone()
        tensors[f"{prefix}eh_proj.weight"] = 0.4 * torch.randn(wide, 2 * wide)
        for name in ("enorm", "hnorm", "shared_head.norm"):
            tensors[f"{prefix}{name}.weight"] = 1 + 0.3 * torch.randn(wide)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return layers, modules


@pytest.mark.parametrize("name", OPTIONS)
def test_transformers_drafts_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills an option that is ignored or read as another: ranks, biases, rotation, scaling, groups, weights, norms."""
    layers, modules = written(tmp_path, OPTIONS[name])
    ours = [rf"model\.layers\.{layers + depth}\..*" for depth in range(modules)]
    monkeypatch.setattr(DeepseekV3ForCausalLM, "_keys_to_ignore_on_load_unexpected", ours)  # it knows 61 alone
    main: Any = DeepseekV3ForCausalLM.from_pretrained(tmp_path, attn_implementation="eager")
    peer, cache = MtpModel.from_pretrained(main), MtpCache(config=main.config.get_mtp_config())
    ids = torch.tensor([TEXT])
    with torch.no_grad():
        states = main(input_ids=ids[:, :-1], output_hidden_states=True).hidden_states[-1]
        drafts, theirs, _ = peer(
            input_ids=ids[:, 1:], last_hidden_states=states, attention_mask=None,
            position_ids=torch.arange(1, len(TEXT))[None], mtp_cache=cache,
        )  # fmt: skip
    target = load_target(tmp_path)
    drafter = load_drafter(tmp_path, target, gamma=1 if modules == 1 else None)
    drafter.start(TEXT[:-1], begin(target, TEXT[:-1], drafter.taps))
    found = drafted(drafter, drafts[0].tolist())
    assert float(theirs.std()) >= 1
    assert float((found - theirs[0]).abs().max()) <= 1e-5 * float(theirs.std())


def drafted(drafter: Drafter, path: list[int]) -> Tensor:
    """Logits of a round's draft after TEXT, each about the token that follows the ones of `path` before it."""
    if isinstance(drafter, FeatureRecurrence):
        draft = Draft(drafter.network, drafter.cache, drafter.length, TEXT[-1], drafter.feature)
        rows = [draft.first, *(draft.grow((token,), (place,))[0] for place, token in enumerate(path[:-1]))]
        return torch.stack(rows)
    assert isinstance(drafter, ModuleChain)
    asked: list[Tensor] = []

    def note(logits: Tensor, prompt: object, out: object) -> Tensor:
        asked.append(logits)
        return torch.nn.functional.one_hot(torch.tensor(path[len(asked) - 1]), logits.shape[-1]).to(logits.dtype)

    drafter.propose(Turn(TEXT, TEXT, note, COINS))
    return torch.stack(asked)


def test_a_tie_of_experts_goes_to_the_lowest() -> None:
    """Kills a choice that is left to the sort: the same row routed otherwise in another batch."""
    routing = Routing(6, 3, 2, 3, True, 1.0)
    w = Weights({"weight": torch.zeros(6, 4), "e_score_correction_bias": torch.zeros(6)})
    chosen, weights = route(w, routing, torch.randn(5, 4))
    assert chosen.tolist() == [[0, 1, 2]] * 5
    assert torch.allclose(weights, torch.full((5, 3), 1 / 3))


def test_a_group_that_is_not_chosen_gives_no_expert() -> None:
    """Kills a dropped group whose experts count 0: where biases are negative they would come before the kept ones."""
    bias = torch.tensor([-2.0, -2.0, -3.0, -3.0])
    w = Weights({"weight": torch.zeros(4, 4), "e_score_correction_bias": bias})
    chosen, _ = route(w, Routing(4, 2, 1, 2, True, 1.0), torch.randn(3, 4))
    assert chosen.tolist() == [[0, 1]] * 3


def test_the_bias_of_the_choice_is_never_rounded() -> None:
    """Kills a half-precision drafter that goes to other experts than the checkpoint says."""
    drafter: Any = load_drafter(TINY / "mtp", load_target(TINY / "mtp", torch.bfloat16))
    stored = load_file(TINY / "mtp" / "model.safetensors")["model.layers.1.mlp.gate.e_score_correction_bias"]
    bias = drafter.network.w["mlp.gate.e_score_correction_bias"]
    assert bias.dtype == stored.dtype == torch.float32  # these few values are the same in half precision
    assert torch.equal(bias, stored)
    assert drafter.network.w["eh_proj.weight"].dtype is torch.bfloat16


# --- recursion and rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recycled", ["normed", "raw"])
def test_recursion_is_one_pass_over_its_own_rows(recycled: Recycled) -> None:
    """Kills a fed-back state of the other convention, a wrong position, a row that does not see the drafted ones."""
    drafter = load_drafter(TINY / "mtp", TARGET, gamma=3, recycled=recycled)
    assert isinstance(drafter, FeatureRecurrence)
    module: Any = drafter.network
    passed = begin(TARGET, TEXT[:-1], drafter.taps)
    drafter.start(TEXT[:-1], passed)
    found = drafted(drafter, [3, 0, 5])
    tokens, hidden = list(TEXT[1:]), passed.taps[TARGET.layers]
    w, eps = module.w, module.shape.rms_norm_eps
    for row, token in zip(found, (3, 0, 5), strict=True):
        count = len(tokens)
        sees = torch.ones(count, count).tril().bool()
        raw = Module(module.shape, w.tensors, 0, "raw")
        out, _ = raw.rows(torch.tensor(tokens), hidden, torch.arange(count), raw.empty(), sees)
        logits = w.linear("shared_head.head", w.norm("shared_head.norm", out[-1:], eps))[0]
        assert float((row - logits).abs().max()) < 1e-12
        fed = out[-1:] if recycled == "raw" else w.norm("shared_head.norm", out[-1:], eps)
        tokens, hidden = [*tokens, token], torch.cat((hidden, fed))


def test_conventions_agree_about_the_first_token_alone() -> None:
    """Kills two names for one convention."""
    rows = []
    conventions: tuple[Recycled, ...] = ("normed", "raw")
    for recycled in conventions:
        drafter = load_drafter(TINY / "mtp", TARGET, gamma=2, recycled=recycled)
        drafter.start(TEXT[:-1], begin(TARGET, TEXT[:-1], drafter.taps))
        rows.append(drafted(drafter, [3, 0]))
    assert float((rows[0] - rows[1])[0].abs().max()) < 1e-12
    assert float((rows[0] - rows[1])[1].abs().max()) > 1e-2


@pytest.mark.parametrize(("name", "gamma"), [("mtp", 2), ("mtp2", None)])
def test_a_checkpoint_is_verified(name: str, gamma: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a row that `checkpoint verify` cannot run, and an acceptance outside what is realistic."""
    monkeypatch.setattr(verify_checkpoint, "NEW_TOKENS", 20)
    found = verify_checkpoint.verify(str(TINY / name), str(TINY / name), "float32", gamma=gamma)
    assert {finding.verdict for finding in found} == {"consistent"}
    (acceptance,) = (finding.numbers for finding in found if finding.id == "checkpoint/acceptance")
    judged, expected = acceptance["judged"], acceptance["expected"]
    assert isinstance(judged, int)
    assert 0.5 < getattr(expected, "value", 0.0) / judged < 0.9
