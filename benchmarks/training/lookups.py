"""Trees of equal size grown from one checkpoint, and drafters that only look things up beside one that was trained.

All of these drafts are deterministic, and `point_mass` judges them: the target draws, and drafts that agree are kept.
On a text that the target drew, as many are accepted as the text itself follows one of the drafted paths.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from benchmarks.training.recurrences import train_eagle1
from benchmarks.training.rollouts import DEPTHS, EAGLE1, Values, over_texts, rollout
from benchmarks.training.world import DOMAINS, FORMULAIC, LAYERS, LENGTH, PLAIN, SEEDS, Read, Tensors, World
from refengine.decoder.drafters.eagle1 import Eagle1
from refengine.decoder.drafters.eagle_trees import MC_SIM_7B_63, DynamicTree, StaticTree
from refengine.decoder.drafters.ngram import NGram
from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.networks.cache import causal
from refengine.decoder.networks.feature_recurrence import Draft, Plan
from refengine.decoder.protocols import Drafter, Pass, Turn
from refengine.engine.block import ROOT, Block
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline

TREES: dict[str, Plan] = {
    "fixed": StaticTree(MC_SIM_7B_63, drawn=False),
    "dynamic": DynamicTree(total=len(MC_SIM_7B_63), depth=max(map(len, MC_SIM_7B_63)) - 1, top_k=8),
}
TREE_TEXTS, ROUNDS = 16, 3  # texts of a seed on which trees are grown, and rounds of each
TEXTS, LONG, LEARNED = 32, 36, 16  # texts on which is looked up, their length, and after how many words it begins


# --- trees -----------------------------------------------------------------------------------------------------------


def trees(world: World) -> Values:
    """Accepted tokens of EAGLE-1's fixed tree and of EAGLE-2's dynamic one, of as many nodes and levels."""
    tensors = train_eagle1(world)
    words = world.measured()[:, :TREE_TEXTS]
    states = world.read(words).states[..., LAYERS, :, :]
    found: Values = {name: {"accepted": []} for name in TREES}
    for seed in range(SEEDS):
        network = Eagle1(EAGLE1, {name: x[seed] for name, x in tensors.items()})
        for name, plan in TREES.items():
            lengths = [
                n for text in range(TREE_TEXTS) for n in rounds(network, plan, words[seed, text], states[seed, text])
            ]
            found[name]["accepted"].append(sum(lengths) / len(lengths))
    pairs = zip(found["dynamic"]["accepted"], found["fixed"]["accepted"], strict=True)
    found["dynamic"]["gain"] = [more / less - 1 for more, less in pairs]
    return found | {f"{share:.0%}": {"gain": [share] * SEEDS} for share in (0.2, 0.5)}


@torch.no_grad()
def rounds(network: Eagle1, plan: Plan, words: Tensor, features: Tensor) -> list[int]:
    """How many tokens of a text are accepted after some of its beginnings."""
    lengths = []
    for start in range(LENGTH // 3, LENGTH - 5, (LENGTH - 5 - LENGTH // 3) // ROUNDS):
        count = start - 1  # rows before the anchor's: a token beside the feature of the place before
        sees = causal(count, 0, words.device)
        _, cache = network.rows(words[1:start], features[:count], torch.arange(count), network.empty(), sees)
        prefix = tuple(words[: start + 1].tolist())
        draft = Draft(network, cache, count, prefix[-1], features[count : count + 1])
        lengths.append(followed(plan(draft, turn(prefix)), words[start + 1 :].tolist()))
    return lengths


def turn(prefix: tuple[int, ...]) -> Turn:
    """A round in which nothing is drawn."""
    return Turn(prefix[:1], prefix, pipeline(greedy()), Philox(0, torch.tensor([0])))


def followed(block: Block, text: Sequence[int]) -> int:
    """How many tokens of the text stand on one path of a block."""
    nodes = zip(block.parents[0].tolist(), block.tokens[0].tolist(), strict=True)
    children = {edge: node for node, edge in enumerate(nodes)}
    node, count = ROOT, 0
    while count < len(text) and (node, text[count]) in children:
        node, count = children[node, text[count]], count + 1
    return count


# --- lookups ---------------------------------------------------------------------------------------------------------


def lookups(world: World) -> Values:
    """Tokens per pass on plain and on formulaic texts: an n-gram cache, prompt lookup, and a trained EAGLE-1."""
    tensors = train_eagle1(world, texts=lambda step: world.corpus(step, DOMAINS))
    makers: dict[str, Callable[[], Drafter]] = {
        "n-gram cache": lambda: NGram(DEPTHS, 3), "prompt lookup": lambda: PromptLookup(DEPTHS, 2),
    }  # fmt: skip
    found: Values = {}
    for kind, domains in {"plain": PLAIN, "formulaic": (FORMULAIC,)}.items():
        words = world.write(TEXTS, 21, domains, LONG)
        for name, make in makers.items():
            found[f"{name}, {kind}"] = {"tau": [looked_up(make, texts) for texts in words.tolist()]}
        found[f"EAGLE-1, {kind}"] = {"tau": chained(tensors, world, words)}
    return found


def looked_up(make: Callable[[], Drafter], texts: list[list[int]]) -> float:
    """Mean tokens of a round, one after every beginning of every text."""
    lengths = []
    for text in texts:
        for anchor in range(LEARNED, LONG - DEPTHS):
            drafter, nothing = make(), torch.empty(0, 0)
            before = torch.tensor(text[:anchor])
            drafter.start(tuple(text[:anchor]), Pass(before, torch.arange(anchor), nothing, {}))
            lengths.append(followed(drafter.propose(turn(tuple(text[: anchor + 1]))), text[anchor + 1 :]))
    return 1 + sum(lengths) / len(lengths)


def chained(tensors: Tensors, world: World, words: Tensor) -> list[float]:
    """The same of a chain of likeliest tokens, after the same beginnings."""

    def follow(weights: Tensors, read: Read, words: Tensor) -> Tensor:
        steps = rollout(Eagle1(EAGLE1, weights), read, words)
        agrees = torch.stack([x.logits.argmax(-1) == words[2 + s :][: len(x.logits)] for s, x in enumerate(steps)])
        return agrees.long().cumprod(0).sum(0)[LEARNED - 1 :].float().mean()

    with torch.no_grad():
        return (1 + over_texts(follow, tensors, world, words).mean(-1)).tolist()
