"""The notes on EAGLE and MTP: indices, orders and speeds that its other files do not cover."""

from fractions import Fraction
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from proofs.symbolic.speed import emitted, speedup


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


def test_mtp_speed_is_less_than_its_tokens_per_pass() -> None:
    """A_2 in [.85, .90] gives 1.85 to 1.90 tokens per pass; a speed of 1.8 leaves 2.8 to 5.6 % of a pass for drafting.

    Kills "speed = 1.85 to 1.90": it is that only for a draft that costs nothing.
    """
    for acceptance, cost in ((Fraction(85, 100), Fraction(1, 36)), (Fraction(90, 100), Fraction(1, 18))):
        tau = emitted([acceptance])
        assert speedup(0, 1, tau) == tau == 1 + acceptance
        assert speedup(cost, 1, tau) == Fraction(18, 10)


def test_two_is_the_ceiling_of_one_peek() -> None:
    """1 + A_2 <= 2, reached iff A_2 = 1; with D modules D + 1. Kills a ceiling of D."""
    assert [emitted([1] * depth) for depth in range(4)] == [1, 2, 3, 4]


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
