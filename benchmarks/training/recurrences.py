"""What recurrences over features are trained with and given: losses, inputs, whose tokens, which rows they see."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.training import rollouts
from benchmarks.training.rollouts import (
    DEPTHS,
    EAGLE1,
    EAGLE3,
    MTP,
    STEPS,
    Branches,
    Inputs,
    Values,
    gumbel,
    measured,
    over_texts,
    rollout,
    train,
)  # fmt: skip
from benchmarks.training.world import LAYERS, PLAIN, Read, Tensors, World
from fixtures.train import losses
from refengine.decoder.drafters.eagle1 import Eagle1
from refengine.decoder.drafters.eagle3 import Eagle3
from refengine.decoder.drafters.qwen_mtp import QwenMTP

SOFT = 0.1  # the weight of EAGLE-1's cross-entropy


# --- EAGLE-1 ---------------------------------------------------------------------------------------------------------

INPUTS = {
    "feature": Inputs(shift=None),
    "token": Inputs(features=False),
    "feature and unshifted token": Inputs(shift=0),
    "feature and shifted token": Inputs(),
}


def eagle1_inputs(world: World) -> Values:
    """EAGLE-1 under its own loss, given four kinds of input."""
    return {
        name: measured(lambda w: Eagle1(EAGLE1, w), train_eagle1(world, inputs), world, inputs)
        for name, inputs in INPUTS.items()
    }


def train_eagle1(
    world: World, inputs: Inputs = Inputs(), texts: Callable[[int], Tensor] | None = None  # noqa: B008 frozen
) -> Tensors:  # fmt: skip
    """Its regression of the next feature, and the soft cross-entropy of that feature's row: depth 0 alone."""

    def loss(weights: Tensors, read: Read, words: Tensor) -> Tensor:
        (step,) = rollout(Eagle1(EAGLE1, weights), read, words, inputs, depths=1)
        feature = read.states[LAYERS][1 : 1 + len(step.hidden)]
        return losses.eagle1(step.hidden, feature, step.p.softmax(-1), step.logits, SOFT)

    return train(rollouts.start_eagle1(world), world, loss, texts)


# --- training-time test ----------------------------------------------------------------------------------------------


def training_time_test(world: World) -> Values:
    """EAGLE-3 trained on one depth, on its own features beside the text's tokens, and on its own tokens as well.

    Measured both where drafting leads: on the text (what follows accepted tokens), and on its own draws.
    """
    variants = {"none": (1, False), "own features": (DEPTHS, False), "own features and tokens": (DEPTHS, True)}
    found = {}
    for name, (depths, own) in variants.items():
        tensors = train_eagle3(world, depths, own)
        found[name] = measured(lambda w: Eagle3(EAGLE3, w), tensors, world) | drawn_overlap(tensors, world)
    return found


def train_eagle3(
    world: World, depths: int = DEPTHS, own: bool = False, inputs: Inputs = Inputs(),  # noqa: B008
    texts: Callable[[int], Tensor] | None = None,
) -> Tensors:  # fmt: skip
    """EAGLE-3's loss over a roll-out; at the text's tokens, or at its own draws with the target's rows after them."""
    noise = {}  # of a step

    def chosen(step: int) -> Tensor:
        noise["now"] = gumbel(step)
        return (texts or world.corpus)(step)

    def loss(weights: Tensors, read: Read, words: Tensor) -> Tensor:
        branches = Branches(weights, read, noise["now"]) if own else None
        steps = rollout(Eagle3(EAGLE3, weights), read, words, inputs, depths, branches)
        return losses.training_time_test([x.p.softmax(-1) for x in steps], [x.logits for x in steps])

    return train(rollouts.start_eagle3(world), world, loss, chosen)


@torch.no_grad()
def drawn_overlap(tensors: Tensors, world: World) -> dict[str, list[float]]:
    """Overlap by depth after tokens that the draft drew, whether the target would have accepted them or not."""
    noise = gumbel(0)

    def follow(weights: Tensors, read: Read, words: Tensor) -> Tensor:
        steps = rollout(Eagle3(EAGLE3, weights), read, words, own=Branches(weights, read, noise))
        return torch.stack([torch.minimum(x.p.softmax(-1), x.logits.softmax(-1)).sum(-1).mean() for x in steps])

    by_depth = over_texts(follow, tensors, world, world.measured()).mean(1)
    return {f"overlap {s + 1} after own tokens": by_depth[:, s].tolist() for s in range(1, DEPTHS)}


# --- FastMTP ---------------------------------------------------------------------------------------------------------


def step_weights(world: World) -> Values:
    """A module of one depth, tuned on three: with FastMTP's weights of its steps, with equal ones, and not."""
    start = train_mtp(world, rollouts.start_mtp(world), [1.0], STEPS)
    weights = {"FastMTP": losses.fastmtp_weights(DEPTHS), "uniform": losses.fastmtp_weights(DEPTHS, 1.0)}
    tuned = {name: train_mtp(world, {k: x.clone() for k, x in start.items()}, w, STEPS) for name, w in weights.items()}
    return {name: measured(lambda w: QwenMTP(MTP, w), x, world) for name, x in ({"before": start} | tuned).items()}


def train_mtp(world: World, tensors: Tensors, weights: list[float], steps: int) -> Tensors:
    def loss(tensors: Tensors, read: Read, words: Tensor) -> Tensor:
        run = rollout(QwenMTP(MTP, tensors), read, words, depths=len(weights))
        wanted = [words[2 + s :][: len(x.logits)] for s, x in enumerate(run)]
        return losses.fastmtp([x.logits for x in run], wanted, weights)

    return train(tensors, world, loss, steps=steps)


# --- what drafts see, and which texts they learn from ----------------------------------------------------------------


def draft_attention(world: World) -> Values:
    """EAGLE-3 whose drafts attend to the text and to each other, and one whose drafts attend to the text alone."""
    variants = {"each other": Inputs(), "the text alone": Inputs(related=False)}
    found = {}
    for name, inputs in variants.items():
        values = measured(lambda w: Eagle3(EAGLE3, w), train_eagle3(world, inputs=inputs), world, inputs)
        falls = [a - b for a, b in zip(values["overlap 1"], values[f"overlap {DEPTHS}"], strict=True)]
        found[name] = values | {"fall": falls}
    return found


def domains(world: World) -> Values:
    """EAGLE-3 trained on one domain, and on two, each on as many texts; measured on either domain."""
    home, other = PLAIN
    found: Values = {}
    for name, learned in {"one domain": (home,), "both domains": PLAIN}.items():
        tensors = train_eagle3(world, texts=lambda step, learned=learned: world.corpus(step, learned))
        for place, domain in {"at home": home, "elsewhere": other}.items():
            texts = world.measured((domain,))
            found[f"{name}, {place}"] = measured(lambda w: Eagle3(EAGLE3, w), tensors, world, texts=texts)
    return found
