"""Checks of a transformers model behind the Target protocol: cache, positions, masks, rollback, against full passes."""

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from refengine.bugs.checks.violation import Case, Violation, first, refused
from refengine.decoder.rows import chain_rows, tree_rows
from refengine.decoder.targets.transformers import TransformersTarget

CPU = torch.device("cpu")
SIZES: dict[str, Any] = {
    "vocab_size": 7,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}
PROMPT = (3, 1, 4, 1, 5)
PROMPTS = (PROMPT, PROMPT * 7)


@cache
def models() -> dict[str, Any]:
    """Two layers with random weights, float64: one attends to everything, one through a window of 3."""
    out: dict[str, Any] = {}
    for name, make in (
        ("full attention", lambda: LlamaForCausalLM(LlamaConfig(**SIZES))),
        ("sliding window", lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=3))),
    ):
        torch.manual_seed(1)
        out[name] = make().double()
        out[name].train(False)
        for parameter in out[name].parameters():
            torch.nn.init.normal_(parameter, std=0.6)
    return out


def whole(model: Any, tokens: Sequence[int]) -> tuple[Tensor, list[Tensor]]:
    """Logits of the last row and every hidden state, from one pass without any cache."""
    with torch.no_grad():
        out = model(input_ids=torch.tensor([list(tokens)]), use_cache=False, output_hidden_states=True)
    return out.logits[0, -1], [hidden[0, -1] for hidden in out.hidden_states]


def close(a: Tensor, b: Tensor) -> bool:
    """Within 1e-5: the reference pass takes norms and rotations in float32; a planted defect of state moves 1e-2."""
    return bool(torch.allclose(a.double(), b.double(), rtol=0.0, atol=1e-5))


def passes() -> Violation | None:
    """Chains, trees, rollback, taken-back passes and restored snapshots give the logits of one pass without a cache."""
    return first(_passes())


def _passes() -> Iterator[Case]:
    for (name, model), prompt in itertools.product(models().items(), PROMPTS):
        target = TransformersTarget(model)
        passed = target.run(chain_rows(prompt, 0, CPU), (0, 1, 2))
        for i in (0, 1, 2, 3, 4, len(prompt) - 1):
            yield from _agrees(name, model, prompt[: i + 1], passed, i)
        target.keep(range(len(prompt)))
        committed = prompt
        for tokens, parents, kept in (
            ((2, 6, 0, 5), (-1, 0, 0, 2), (0, 1, 3)),
            ((1, 2, 3), (-1, 0, 1), (0,)),
            ((), (), (0,)),
            ((5, 5), (-1, -1), (0, 2)),
            ((1, 2, 3, 0, 6, 2), (-1, 0, 1, 2, 3, 4), (0, 1)),
        ):
            anchor = 4
            passed = target.run(tree_rows(anchor, tokens, parents, len(committed), CPU), (0, 1, 2))
            for node in range(-1, len(tokens)):
                yield from _agrees(name, model, (*committed, anchor, *_path(tokens, parents, node)), passed, node + 1)
            snapshot = dict(target.state())
            target.keep(kept)
            committed += tuple((anchor, *tokens)[row] for row in kept)
            yield f"{name}: rows kept", _lengths(target), [len(committed)] * 2
            other = TransformersTarget(model)
            other.restore(snapshot)
            other.keep(kept)
            yield f"{name}: a snapshot restores", _alike(other, target), True
        yield from _one_by_one(name, model, target, committed)


def _path(tokens: Sequence[int], parents: Sequence[int], node: int) -> tuple[int, ...]:
    return () if node < 0 else (*_path(tokens, parents, parents[node]), tokens[node])


def _agrees(name: str, model: Any, tokens: Sequence[int], passed: Any, row: int) -> Iterator[Case]:
    logits, hidden = whole(model, tokens)
    yield f"{name}: logits after {tuple(tokens)}", close(passed.logits[row], logits), True
    for j in (0, 1, 2):
        yield f"{name}: tap {j} after {tuple(tokens)}", close(passed.taps[j][row], hidden[j]), True


def _one_by_one(name: str, model: Any, target: TransformersTarget, committed: tuple[int, ...]) -> Iterator[Case]:
    """Two passes without a keep between them, as draft models run; then nothing kept of a third."""
    new = (6, 2, 4)
    for i, token in enumerate(new):
        passed = target.run(chain_rows((token,), len(committed) + i, CPU))
        alone, _ = whole(model, (*committed, *new[: i + 1]))
        yield f"{name}: tentative row {i}", close(passed.logits[0], alone), True
    target.keep((0, 1))
    committed += new[:2]
    target.run(chain_rows((0, 0, 0), len(committed), CPU))
    target.keep(())
    passed = target.run(chain_rows((1,), len(committed), CPU), (2,))
    yield f"{name}: after a pass taken back", close(passed.logits[0], whole(model, (*committed, 1))[0]), True
    yield f"{name}: keys and values of kept rows", [tuple(x.shape) for x in target.kv(1)], [(1, len(committed), 4)] * 2
    target.reset()
    again = target.run(chain_rows(PROMPT, 0, CPU))
    yield f"{name}: after a reset", close(again.logits[-1], whole(model, PROMPT)[0]), True


def _lengths(target: TransformersTarget) -> list[int]:
    return [k.shape[2] for k, _ in target.past]


def _alike(a: TransformersTarget, b: TransformersTarget) -> bool:
    mine, theirs = a.state(), b.state()
    return mine.keys() == theirs.keys() and all(
        torch.equal(torch.as_tensor(mine[k]), torch.as_tensor(theirs[k])) for k in mine
    )


def refusals() -> Violation | None:
    """A model whose layers cannot be rolled back is refused by name."""
    return first(_refusals())


def _refusals() -> Iterator[Case]:
    class Recurrent:
        class config:
            vocab_size, hidden_size, num_hidden_layers, model_type = 7, 8, 1, "recurrent"
            layer_types = ("linear_attention",)

            @classmethod
            def get_text_config(cls) -> Any:
                return cls

    model: Any = Recurrent()
    yield refused(lambda: TransformersTarget(model), "recurrent: layers of type linear_attention cannot be rolled back")
