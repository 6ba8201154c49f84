"""A native prediction module that is tuned on one of the domains that it was trained on."""

from dataclasses import dataclass

from torch import Tensor

from benchmarks.training.recurrences import train_mtp
from benchmarks.training.rollouts import DEPTHS, MTP, STEPS, Values, measured, start_mtp
from benchmarks.training.world import BATCH, PLAIN, World
from fixtures.train import losses
from refengine.decoder.drafters.qwen_mtp import QwenMTP

HOME, OTHER = PLAIN


@dataclass
class AtHome(World):
    """The same targets; the texts to learn from are of one domain."""

    def corpus(self, step: int, domains: tuple[int, ...] = (HOME,), batch: int = BATCH) -> Tensor:  # type: ignore[override]
        return super().corpus(step, domains, batch)


def fine_tuning(world: World) -> Values:
    """Qwen's module trained on two domains; and tuned after it by FastMTP's loss on one of them, or on both."""
    native = train_mtp(world, start_mtp(world), [1.0], STEPS)
    learned = {"one domain": AtHome(world.target, world.kept), "both domains": world}
    modules = {"before": native} | {
        name: train_mtp(texts, {key: x.clone() for key, x in native.items()}, losses.fastmtp_weights(DEPTHS), STEPS)
        for name, texts in learned.items()
    }
    return {
        f"{name}, {place}": measured(lambda w: QwenMTP(MTP, w), tensors, world, texts=world.measured((domain,)))
        for name, tensors in modules.items()
        for place, domain in (("at home", HOME), ("elsewhere", OTHER))
    }
