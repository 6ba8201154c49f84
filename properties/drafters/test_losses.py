"""The published losses against values worked out by hand. (FastMTP's is in test_qwen_mtp_golden.py, on a recording.)"""

import math
import runpy
from typing import Any

import torch
from torch import Tensor

from refengine.source_tree import FIXTURES

LOSSES: dict[str, Any] = runpy.run_path(str(FIXTURES / "train" / "losses.py"))


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def off(loss: Tensor, by_hand: float) -> float:
    return abs(float(loss) - by_hand)


def test_eagle1_is_a_distance_of_features_and_a_tenth_of_a_cross_entropy() -> None:
    """Kills a squared distance beyond 1, a sum over the width, weights that change places."""
    guess, feature = rows([0.5, 3.0], [0.0, 0.0]), rows([0.0, 0.0], [0.0, 0.0])
    p, q = rows([0.5, 0.5], [1.0, 0.0]), rows([0.25, 0.75], [0.5, 0.5])
    regression = (0.5 * 0.5**2 + (3.0 - 0.5)) / 4
    crossing = (-0.5 * math.log(0.25) - 0.5 * math.log(0.75) + math.log(2)) / 2
    assert off(LOSSES["eagle1"](guess, feature, p, q.log()), regression + 0.1 * crossing) < 1e-12


def test_a_training_time_test_weighs_its_steps() -> None:
    """Kills weights that grow, and a row that learns from what is left of a token that cannot be drafted."""
    p = [rows([0.6, 0.4, 0.0], [0.2, 0.2, 0.6]), rows([0.3, 0.5, 0.2])]
    q = [rows([0.5, 0.5, 0.0], [0.9, 0.1, 0.0]), rows([0.25, 0.75, 0.0])]
    first = math.log(2) / 2  # the second row's likeliest token cannot be drafted
    second = -(0.3 / 0.8) * math.log(0.25) - (0.5 / 0.8) * math.log(0.75)
    assert off(LOSSES["training_time_test"](p, [x.log() for x in q]), first + 0.8 * second) < 1e-12
    assert off(LOSSES["training_time_test"](p, [x.log() for x in q], decay=0.5), first + 0.5 * second) < 1e-12


def test_deepseek_is_a_mean_over_modules() -> None:
    """Kills a sum that grows with the number of modules."""
    logits = [rows([0.5, 0.5], [0.25, 0.75]).log(), rows([0.1, 0.9]).log()]
    tokens = [torch.tensor([0, 1]), torch.tensor([0])]
    by_hand = 0.3 / 2 * ((math.log(2) - math.log(0.75)) / 2 - math.log(0.1))
    assert off(LOSSES["deepseek"](logits, tokens, 0.3), by_hand) < 1e-12


def test_dart_is_an_annealed_divergence() -> None:
    """Kills weights that grow with depth, the reverse divergence, mass on tokens that cannot be drafted."""
    p = rows([0.5, 0.25, 0.25], [0.75, 0.25, 0.0])[None]
    q = rows([0.5, 0.5, 0.0], [0.25, 0.75, 0.0])[None]
    logits = q.log()  # the third token cannot be drafted, so that p's first row is (2/3, 1/3)
    first = 2 / 3 * math.log(4 / 3) + 1 / 3 * math.log(2 / 3)
    second = 0.75 * math.log(3) + 0.25 * math.log(1 / 3)
    assert off(LOSSES["dart"](p, logits), first + 0.6 * second) < 1e-12
    twice = LOSSES["dart"](torch.cat((p, q)), torch.cat((logits, logits)), decay=0.5)
    assert off(twice, (first + 0.5 * second) / 2) < 1e-12


def test_dspark_is_three_terms_that_fade_along_the_block() -> None:
    """Kills a term of another weight, a decay by base instead of by length, an unnormalised mean."""
    p, q = rows([0.5, 0.5], [0.8, 0.2])[None], rows([0.25, 0.75], [0.3, 0.7])[None]
    confidence = torch.tensor([[0.0, math.log(3)]], dtype=torch.float64)  # sigmoids 1/2 and 3/4
    # ||q - p||_1 is 1/2 and 1, so that the confidences are to be 3/4 and 1/2.
    first = 0.1 * -math.log(0.75) + 0.9 * 0.5 + math.log(2)
    second = 0.1 * -math.log(0.3) + 0.9 * 1.0 - 0.5 * math.log(0.75) - 0.5 * math.log(0.25)
    fading = math.exp(-1 / 4)
    by_hand = (first + fading * second) / (1 + fading)
    assert off(LOSSES["dspark"](p, q.log(), torch.tensor([[1, 0]]), confidence), by_hand) < 1e-12


def test_what_a_confidence_is_to_learn_is_no_way_to_learn_it() -> None:
    """Kills a gradient that makes the draft worse so that a low confidence becomes right."""
    confidence = torch.tensor([[3.0]], dtype=torch.float64)
    p, tokens = rows([0.5, 0.5])[None], torch.tensor([[1]])

    def pull(weight: float) -> Tensor:
        logits = torch.tensor([[[0.2, 0.7]]], dtype=torch.float64, requires_grad=True)
        (found,) = torch.autograd.grad(LOSSES["dspark"](p, logits, tokens, weight * confidence), logits)
        return found

    assert torch.equal(pull(1.0), pull(-1.0))


def test_medusa_heads_look_two_and_three_ahead() -> None:
    """Kills a head that is compared with the next token, which is the target's own, and weights that start at 1."""
    sure = math.log(1e6)
    logits = torch.zeros(2, 1, 4, 3, dtype=torch.float64)
    tokens = torch.tensor([[0, 1, 2, 0]])
    logits[0, 0, 0, 2] = logits[0, 0, 1, 0] = logits[1, 0, 0, 0] = sure
    known = math.log(1 + 2e-6)  # of a right head
    assert off(LOSSES["medusa"](logits, tokens), 0.8 * known + 0.64 * known) < 1e-12
    logits[1, 0, 0] = 0.0
    assert off(LOSSES["medusa"](logits, tokens), 0.8 * known + 0.64 * math.log(3)) < 1e-12
