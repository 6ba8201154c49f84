"""What the options of `refengine decode` that shape the target's rows do, and in which order."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from refengine.commands.decode import policy
from refengine.commands.decode_request import Request, check
from refengine.decoder.protocols import Tokens
from refengine.engine import policy as steps
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

PROMPT, PREFIX = (0, 1), (2, 2, 3)
LOGITS = torch.tensor([2.0, -0.5, 2.6, 1.9, 1.5, -1.0, 1.2, 0.4], dtype=torch.float64)
OPTIONS: dict[str, tuple[float, Callable[[Any], steps.Step]]] = {
    "repetition_penalty": (1.3, steps.repetition_penalty),
    "presence_penalty": (0.4, steps.presence_penalty),
    "frequency_penalty": (0.3, steps.frequency_penalty),
    "temperature": (0.7, steps.temperature),
    "top_k": (6, steps.top_k),
    "top_p": (0.9, steps.top_p),
    "min_p": (0.35, steps.min_p),
}


def asked(**options: Any) -> Request:
    return Request(FIXTURES / "tiny" / "target", FIXTURES / "tiny" / "ar", "1", **options)


def row(chosen: steps.Policy, prompt: Tokens = PROMPT, prefix: Tokens = PREFIX) -> list[float]:
    return chosen(LOGITS, prompt, prefix).tolist()


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_its_step(name: str) -> None:
    """Kills an option that is taken and has no effect, or another option's."""
    value, step = OPTIONS[name]
    alone = row(policy(asked(**{name: value})))
    assert alone == row(steps.pipeline(step(value)))
    assert alone != row(policy(asked()))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("repetition_penalty", 1.3), ("presence_penalty", 0.4)),
        (("repetition_penalty", 1.3), ("frequency_penalty", 0.3)),
        (("frequency_penalty", 0.3), ("temperature", 0.7)),
        (("presence_penalty", 0.8), ("top_k", 3)),
        (("temperature", 3.0), ("top_p", 0.8)),
        (("temperature", 3.0), ("min_p", 0.35)),
        (("top_k", 3), ("top_p", 0.7)),
        (("top_p", 0.7), ("min_p", 0.35)),
    ],
)
def test_two_steps_are_done_in_the_stated_order(first: tuple[str, float], second: tuple[str, float]) -> None:
    """Kills filters before the temperature, penalties after it, top-p of a mass that min-p or top-k has cut or not."""
    one, other = (OPTIONS[name][1](value) for name, value in (first, second))
    got = row(policy(asked(**dict([second, first]))))
    assert got == row(steps.pipeline(one, other))
    assert got != pytest.approx(row(steps.pipeline(other, one)), abs=1e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_p": 1.1},
        {"min_p": float("nan")},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": float("inf")},
        {"presence_penalty": float("nan")},
        {"frequency_penalty": float("-inf")},
    ],
)
def test_a_wrong_number_is_named(wrong: dict[str, float]) -> None:
    """Kills a row of NaN, and an error that does not say which option."""
    ((name, _),) = wrong.items()
    with pytest.raises(BadInput, match=f"^--{name.replace('_', '-')} "):
        check(asked(**wrong))
