"""Remembered passes: the whole input decides, and nothing of a network is hidden."""

import torch
from torch import Tensor

from refengine.selfcheck.drafters.laws.memo import Remembered, remembered


def test_every_byte_of_the_input_counts() -> None:
    """Kills a pass that is remembered under its tokens alone: a stale cache would be answered with the right result."""
    runs = []

    def forward(tokens: Tensor, past: tuple[Tensor, ...]) -> int:
        runs.append(1)
        return len(runs)

    known, cache = remembered(forward), torch.zeros(3)
    first = known(torch.tensor([1]), (cache,))
    assert known(torch.tensor([1]), (cache.clone(),)) == first
    others = [(torch.tensor([1]), (cache.index_fill(0, torch.tensor([2]), 1e-30),)), (torch.tensor([2]), (cache,))]
    others += [(torch.tensor([1]), (cache[:2],)), (torch.tensor([1]), (cache.double(),))]
    assert len({first, *(known(*inputs) for inputs in others)}) == 1 + len(others)


class Network:
    taps = (1, 2)

    def __init__(self) -> None:
        self.runs = 0

    def fused(self, features: Tensor) -> Tensor:
        return features

    def rows(self, tokens: Tensor) -> Tensor:
        self.runs += 1
        return tokens + 1

    def logits(self, hidden: Tensor) -> Tensor:
        return -hidden


def test_a_remembered_network_is_the_network() -> None:
    """Kills a pass that is answered by another one's result, one that is not remembered, and a setting that is lost."""
    network = Network()
    known, x = Remembered(network), torch.tensor([3])
    assert [int(known.fused(x)), int(known.rows(x)), int(known.logits(x)), int(known.rows(x))] == [3, 4, -3, 4]
    assert (network.runs, known.taps, known.runs) == (1, (1, 2), 1)
