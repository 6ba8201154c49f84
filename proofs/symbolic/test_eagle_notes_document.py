"""The notes on EAGLE and MTP: indices, orders, speeds, policies and rejections that its other files do not cover."""

import json
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from proofs.symbolic.speed import emitted, speedup
from refengine.decoder import load_drafter, load_target
from refengine.decoder.loop import begin
from refengine.exact.block import Rule, Target, target_rows
from refengine.exact.chance import Chance, Shifted
from refengine.exact.drafters import fixed, sampled_chain
from refengine.exact.law import law, losslessness, target_law, tv
from refengine.exact.loop import generate
from refengine.exact.policy import Policy, greedy, pipeline, temperature, top_k, top_p
from refengine.exact.row import overlap, row
from refengine.exact.rules.block import block
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.rules.point_mass import point_mass
from refengine.selfcheck.effects import overlap as effects
from refengine.source_tree import FIXTURES


def test_the_head_on_a_feature_gives_the_token_after_it() -> None:
    """f_{t+1} is the state after x_{t+1}: exchange x_{t+1} and the head's row there changes, f_t's row does not.

    So softmax(W f_t) is the law of x_{t+1} and the head on f_{t+1} gives x_{t+2}. Kills "P(x_{t+1} | f_{t+1})" and "the
    draft now predicts f_{t+2} instead of f_{t+1}". Bitwise: the shared prefix runs through the same kernels.
    """
    torch.manual_seed(0)
    network, head = nn.GRU(8, 8, batch_first=True), nn.Linear(8, 5, bias=False)  # any causal network
    embedding = nn.Embedding(5, 8)
    one, other = torch.tensor([[1, 2, 3]]), torch.tensor([[1, 2, 4]])  # t = 1; x_2 differs
    rows = [torch.softmax(head(network(embedding(ids))[0]), -1)[0] for ids in (one, other)]
    assert torch.equal(rows[0][1], rows[1][1])  # softmax(W f_1): the law of x_2, the same for both
    assert not torch.allclose(rows[0][2], rows[1][2])  # softmax(W f_2) depends on x_2


def test_released_order_is_embedding_first() -> None:
    """The seed concatenates [RMSNorm(h); RMSNorm(Emb)]; DeepSeek-V3 checkpoints as loaded here take [Emb; h].

    Kills the paper's order applied to the released eh_proj: same shapes, silently another map.
    """
    layers = pytest.importorskip("transformers.modeling_layers", reason="not tested: needs transformers 5")
    if not hasattr(layers, "MtpLayer"):
        pytest.skip("not tested: this transformers has no MtpLayer")
    config = SimpleNamespace(hidden_size=3, rms_norm_eps=1e-6)

    class Plain(nn.Module):
        """Stands for norm and decoder layer alike."""

        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__()

        def forward(self, x: torch.Tensor, **kwargs: object) -> torch.Tensor:
            return x

    layer = layers.MtpLayer(config, Plain, Plain, 0, use_post_norm=False)
    with torch.no_grad():
        layer.eh_proj.weight.copy_(torch.cat([torch.eye(3), torch.zeros(3, 3)], dim=1))
    embedding, hidden = torch.tensor([[[1.0, 2.0, 3.0]]]), torch.tensor([[[7.0, 8.0, 9.0]]])
    out = layer(embedding, hidden, None, None, None, None)
    assert torch.equal(out, embedding)


def test_the_order_of_a_concatenation_is_that_of_a_matrixs_columns() -> None:
    """M [a; b] = M' [b; a] where M' has the halves of M's columns exchanged: bit for bit on integers.

    Kills a verdict on a formula that is one on a file's layout.
    """
    generator = torch.Generator().manual_seed(0)
    matrix, a, b = (torch.randint(-9, 9, size, generator=generator).double() for size in ((4, 6), (3,), (3,)))
    exchanged = torch.cat([matrix[:, 3:], matrix[:, :3]], 1)
    assert torch.equal(matrix @ torch.cat([a, b]), exchanged @ torch.cat([b, a]))
    assert not torch.equal(matrix @ torch.cat([a, b]), matrix @ torch.cat([b, a]))


def test_mtp_speed_is_less_than_its_tokens_per_pass() -> None:
    """A_2 in [.85, .90] gives 1.85 to 1.90 tokens per pass; a speed of 1.8 leaves 2.8 to 5.6 % of a pass for drafting.

    Kills "speed = 1.85 to 1.90": it is that only for a draft that costs nothing.
    """
    for acceptance, cost in ((Fraction(85, 100), Fraction(1, 36)), (Fraction(90, 100), Fraction(1, 18))):
        tau = emitted([acceptance])
        assert speedup(0, 1, tau) == tau == 1 + acceptance
        assert speedup(cost, 1, tau) == Fraction(18, 10)
    least = speedup(0, 1, emitted([Fraction(90, 100)])) / Fraction(175, 100) - 1  # 1.75 is rounded to 1.8
    assert round(float(least), 3) == 0.086


def test_two_is_the_ceiling_of_one_peek() -> None:
    """1 + A_2 <= 2, reached iff A_2 = 1; with D modules D + 1. Kills a ceiling of D."""
    assert [emitted([1] * depth) for depth in range(4)] == [1, 2, 3, 4]


def test_a_module_has_tensors_that_are_nobody_elses() -> None:
    """A file in DeepSeek-V3's layout: the module's projection and decoder layer are equal to no tensor of the model.

    Kills "no extra weights": the copies of embedding and head, where a file has them, are shared and not counted.
    """
    tensors = load_file(FIXTURES / "deepseek" / "mtp" / "model.safetensors")
    layers = json.loads((FIXTURES / "deepseek" / "mtp" / "config.json").read_text())["num_hidden_layers"]
    module = {name: x for name, x in tensors.items() if name.startswith(f"model.layers.{layers}.")}
    others = [x for name, x in tensors.items() if name not in module]
    own = {name for name, x in module.items() if not any(x.shape == y.shape and torch.equal(x, y) for y in others)}
    assert any("eh_proj" in name for name in own)
    assert {"self_attn", "mlp"} <= {name.split(".")[3] for name in own}


@pytest.mark.parametrize("modules", ["of noise", "left out"])
def test_the_target_does_without_its_modules(modules: str, tmp_path: Path) -> None:
    """A file in DeepSeek-V3's layout whose modules are noise, or are not there: bit for bit the rows of the whole file.

    Kills a target that reads a tensor of a module, and one that cannot be had without them.
    """
    torch.manual_seed(1)
    folder = FIXTURES / "deepseek" / "mtp2"
    config, tensors = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    layers = {name: int(number) for name in tensors for number in re.findall(r"layers\.(\d+)\.", name)}
    of_modules = [name for name, layer in layers.items() if layer >= config["num_hidden_layers"]]
    assert any("eh_proj" in name for name in of_modules)
    if modules == "left out":
        tensors = {name: x for name, x in tensors.items() if name not in of_modules}
        config["num_nextn_predict_layers"] = 0
    else:
        own = [name for name in of_modules if not name.endswith(("embed_tokens.weight", "shared_head.head.weight"))]
        tensors |= {name: 100 * torch.randn_like(tensors[name]) for name in own}  # the others must be copies
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / "model.safetensors")
    text = (1, 4, 2, 5, 0, 3)
    rows = [begin(load_target(x, torch.float32), text, ()).logits for x in (folder, tmp_path)]
    assert torch.equal(*rows)


def test_the_mtp_module_has_weights() -> None:
    """DeepSeek-V3's module from its config: hidden 7168, 256 + 1 experts of width 2048, MLA: 11.6 billion parameters.

    Without the copies of embedding and head, which are shared. Kills "no extra weights" and "0 GB (built-in)".
    """
    hidden, expert, experts = 7168, 2048, 256
    heads, q_rank, kv_rank, nope, rope, value = 128, 1536, 512, 128, 64, 128
    attention = hidden * q_rank + q_rank * heads * (nope + rope) + hidden * (kv_rank + rope)
    attention += kv_rank * heads * (nope + value) + heads * value * hidden
    mixture = (experts + 1) * 3 * hidden * expert + hidden * experts
    projection = 2 * hidden * hidden
    assert round((attention + mixture + projection) / 1e9, 1) == 11.6


# --- a policy, and how often a draft is rejected ---------------------------------------------------------------------

Tokens = tuple[int, ...]
POLICIES: dict[str, Policy] = {
    "id": pipeline(),
    "temperature": pipeline(temperature(2)),
    "top-k": pipeline(top_k(2)),
    "top-p": pipeline(top_p(Fraction(3, 4))),
    "greedy": pipeline(greedy()),
    "history": lambda weights, prompt, prefix: row([0 if x in prefix[-1:] else w for x, w in enumerate(weights)]),
}


def tables(seed: int) -> tuple[Target, Target]:
    """P and Q over three tokens, every weight positive, another row after every prefix."""

    def of(name: str) -> Target:
        return cache(lambda prefix: row([Random(f"{seed} {name} {prefix} {x}").randint(1, 6) for x in range(3)]))

    return of("p"), of("q")


def under(policy: Policy, rows: Target) -> Target:
    """pi[P] as a target."""
    return lambda prefix: policy(rows(prefix), (), prefix)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("rule", [leviathan, block, point_mass], ids=lambda rule: rule.__name__)
def test_lossless_with_respect_to_a_policy(name: str, rule: Rule) -> None:
    """Three tokens of the loop from rows pi[P], drafts drawn from Q without any policy: the law of pi, exactly.

    Kills a rule that needs the drafter under the target's policy, and one that fails where pi has zeros.
    """
    p, q = tables(1)
    judged = under(POLICIES[name], p)
    fixed_chain = fixed(lambda prefix: ((1, 0), (-1, 0)))
    drafter = fixed_chain if rule is point_mass else sampled_chain(q, 2)
    assert losslessness(judged, drafter, rule, (), 3) == 0


def test_a_policy_in_the_wrong_place_is_lossy() -> None:
    """Judged by raw rows a sampler of pi is off by what pi changes; a filter on the drafts alone changes nothing.

    Kills "lossless" said without the policy that it is meant for.
    """
    p, q = tables(1)
    for name, policy in POLICIES.items():
        wanted = target_law(under(policy, p), (), 1)
        raw = law(lambda chance: generate(p, sampled_chain(q, 1), leviathan, (), 1, chance))
        drafts = law(lambda chance, pi=policy: generate(p, sampled_chain(under(pi, q), 1), leviathan, (), 1, chance))
        assert raw == drafts == target_law(p, (), 1)
        assert tv(raw, wanted) == tv(target_law(p, (), 1), wanted)
        assert (tv(raw, wanted) == 0) == (name in ("id", "history"))  # no token stands before the first


def rejections(p: Target, q: Target, length: int, gamma: int) -> Fraction:
    """Expected number of rejected drafts while `length` tokens are emitted, blocks of up to `gamma`, exactly."""

    def program(chance: Chance) -> int:
        out: Tokens = ()
        count = 0
        while len(out) < length:
            here = Shifted(chance, len(out))
            drafted = sampled_chain(q, min(gamma, length - len(out)))(out, here)
            judged = leviathan(target_rows(p, out, drafted), drafted, here)
            count += len(judged.path) < len(drafted.tokens)
            out = (*out, *judged.tokens)
        return count

    return sum((mass * count for count, mass in law(program).items()), Fraction(0))


@pytest.mark.parametrize("seed", range(2))
def test_expected_rejections_are_the_sum_of_tv(seed: int) -> None:
    """Yin et al. 2024, Theorem 1: sum over n of E TV(p_n, q_n), prefixes from the target's law and not the drafter's.

    Kills prefixes drawn from q, a count of rejected tokens instead of rejections, and a TV without its 1/2. With blocks
    of one the place after an accepted draft is a bonus, which nothing judges: fewer.
    """
    p, q = tables(seed)
    length = 3
    terms, of_drafts = (
        [
            sum((mass * (1 - overlap(p(h), q(h))) for h, mass in target_law(source, (), n).items()), Fraction(0))
            for n in range(length)
        ]
        for source in (p, q)
    )
    assert rejections(p, q, length, length) == sum(terms) != sum(of_drafts)
    assert rejections(p, q, length, 1) < sum(terms)


def mean_overlap(renamed: torch.Tensor) -> float:
    """Of EAGLE-3's first drafts after every prefix of the target's texts, token x of which is called renamed[x]."""
    drafter: Any = load_drafter(FIXTURES / "eagle" / "eagle3_deepspec", effects.target())
    network, total = drafter.network, 0.0
    for words in effects.texts():
        passed, count = begin(effects.target(), words, network.taps), len(words) - 1
        features = network.fused(torch.cat([passed.taps[j] for j in network.taps], -1))[:count]
        causal = torch.ones(count, count, dtype=torch.bool).tril()
        tokens = renamed[torch.tensor(words[1:])]
        hidden, _ = network.rows(tokens, features, torch.arange(count), network.empty(), causal)
        p = passed.logits[1:].softmax(-1)[:, renamed.argsort()]
        total += float(torch.minimum(p, network.logits(hidden).softmax(-1)).sum(-1).mean())
    return total / len(effects.texts())


def test_a_draft_of_one_target_is_worse_on_another() -> None:
    """EAGLE-3's fixture beside its own target, and beside one whose words are exchanged. Kills "fits any target".

    Mean overlap of the first draft over 24 texts that each target wrote; the other target is the same network with its
    tokens renamed, so it is as easy to draft for.
    """
    assert mean_overlap(torch.arange(8)) > mean_overlap(torch.tensor([1, 2, 3, 4, 5, 6, 7, 0])) + 0.2
