"""A test that writes into what other tests of its process read fails itself, instead of those that come after it."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

REMEMBERING = "refengine.selfcheck.drafters.laws.remembering"
# Of each target that is loaded once for all: its weights, and their norms when they had been loaded.
_shared: dict[str, tuple[list[Any], list[float]]] = {}


@pytest.fixture(autouse=True)
def shared_weights_stay(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kills a test that sets weights to zero which a drafter has from the target: later laws are those of another."""
    if remembering := sys.modules.get(REMEMBERING):
        load = remembering.load_target

        def load_target(path: Path, *options: Any) -> Any:
            target = load(path, *options)
            weights = [*target.model.parameters()]
            _shared[str(path)] = weights, norms(weights)
            return target

        monkeypatch.setattr(remembering, "load_target", load_target)
    yield
    written = [name for name, (weights, before) in _shared.items() if norms(weights) != before]
    assert not written, f"this test has written into the target {written[0]} of all tests: load one of its own"


def norms(weights: Iterable[Any]) -> list[float]:
    import torch  # only where a target has been loaded

    return torch.stack(torch._foreach_norm([x.detach() for x in weights])).tolist()
