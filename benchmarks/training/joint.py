"""DeepSeek-V3's multi-token prediction: target and modules learn together, from the start."""

import torch
from torch import Tensor

from benchmarks.training.rollouts import MTP, SHARED, Values, overlaps, start_mtp
from benchmarks.training.world import (
    DOMAINS,
    PLAIN,
    SEEDS,
    Llama,
    Tensors,
    World,
    learn,
    next_word,
    seeded,
    speak,
    target_shape,
)  # fmt: skip
from fixtures.train import losses
from refengine.decoder.drafters.qwen_mtp import QwenMTP

MODULES, STEPS, SENTENCES = 2, 240, 8  # prediction modules, and texts of a step
MODEST, LARGE = 0.3, 3.0  # lambda: DeepSeek's first, and ten times that
HELD_OUT = 64  # texts of the language that the target's own loss is measured on


def modules(_: World) -> Values:
    """Targets with two modules: in a chain, each told the token before its own; told nothing; or not trained."""
    arms = {"chain": (MODEST, True), "parallel": (MODEST, False), "none": (0.0, True)}
    arms["chain, large lambda"] = (LARGE, True)
    return {name: measured(train(*arm), arm[1]) for name, arm in arms.items()}


def train(weight: float, chained: bool) -> Tensors:
    """The target's own cross-entropy plus DeepSeek's loss of the modules, on sentences of the language."""
    tensors = seeded(target_shape(), "target") | start()

    def one(weights: Tensors, words: Tensor) -> Tensor:
        count = words.shape[1] - 1 - MODULES
        logits, own = torch.vmap(lambda text: ahead(weights, text, chained))(words)
        main = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), words[:, 1:].flatten())
        rows = [own[:, k].flatten(0, 1) for k in range(MODULES)]
        tokens = [words[:, 2 + k :][:, :count].flatten() for k in range(MODULES)]
        return main + losses.deepseek(rows, tokens, weight)

    learn(tensors, STEPS, lambda step: torch.vmap(one)(tensors, speak(SENTENCES, 700_000 + step)))
    return tensors


def start() -> Tensors:
    """The modules' own tensors; embedding and head are the target's, and learn with it."""
    names = (f"mtp.{k}" for k in range(MODULES))
    empty = World({name: torch.empty(SEEDS) for name in SHARED})
    return {f"{k}.{name}": x for k in names for name, x in start_mtp(empty, k).items() if name not in SHARED}


def ahead(weights: Tensors, words: Tensor, chained: bool) -> tuple[Tensor, Tensor]:
    """The target's logits of one text, and each module's [modules, m, V]: module k at place i is about i + 2 + k."""
    read, count = Llama(weights)(words), len(words) - 1 - MODULES
    hidden, found = read.states[-1][:count], []
    for k in range(MODULES):
        mine = {name.removeprefix(f"mtp.{k}."): x for name, x in weights.items()}
        net = QwenMTP(MTP, mine)
        tokens = words[1 + k :][:count] * int(chained)
        given = hidden if chained else read.states[-1][:count]
        sees = torch.ones(count, count, dtype=torch.bool).tril()
        hidden, _ = net.rows(tokens, given, torch.arange(count), net.empty(), sees)
        found.append(net.logits(hidden))
    return read.logits, torch.stack(found)


@torch.no_grad()
def measured(tensors: Tensors, chained: bool) -> dict[str, list[float]]:
    """The target's own cross-entropy on texts of the language; the modules' overlap with it on texts that it wrote."""

    def one(weights: Tensors, words: Tensor) -> tuple[Tensor, Tensor]:
        logits, own = torch.vmap(lambda text: ahead(weights, text, chained))(words)
        count = own.shape[2]
        return torch.stack([logits[:, 1 + k :][:, :count] for k in range(MODULES)], 1), own

    words = World({name: x for name, x in tensors.items() if not name.startswith("mtp.")}).measured(PLAIN)
    p, q = torch.vmap(one)(tensors, words)
    loss = next_word(tensors, speak(HELD_OUT, 31, DOMAINS))
    return overlaps(p, q, words) | {"next-word loss": loss.tolist()}
