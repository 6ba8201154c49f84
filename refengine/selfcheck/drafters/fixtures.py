"""The drafters of the table, each on its tiny fixture: which checkpoint, which target, which rules fit.

One entry per row. `cells.py` enumerates them, `battery.py` makes findings of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from refengine.decoder.checkpoints.layouts.dart import load_dart
from refengine.decoder.checkpoints.layouts.deepseek_mtp import load_deepseek_mtp
from refengine.decoder.checkpoints.layouts.dflash import load_dflash
from refengine.decoder.checkpoints.layouts.eagle1 import load_eagle1
from refengine.decoder.checkpoints.layouts.eagle3 import load_eagle3
from refengine.decoder.checkpoints.layouts.gemma4_assistant import load_gemma4_assistant
from refengine.decoder.checkpoints.layouts.medusa import load_medusa
from refengine.decoder.checkpoints.layouts.p_eagle import load_amazon, load_p_eagle
from refengine.decoder.checkpoints.layouts.parallel_heads import load_parallel_heads
from refengine.decoder.checkpoints.layouts.qwen_mtp import load_qwen_mtp
from refengine.decoder.checkpoints.load import load_drafter
from refengine.decoder.drafters.dart import TreeSearch
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.drafters.dspark_schedule import Load
from refengine.decoder.drafters.eagle_trees import Chain, DynamicTree, StaticTree
from refengine.decoder.drafters.lookahead import Lookahead
from refengine.decoder.drafters.medusa import Medusa
from refengine.decoder.drafters.ngram import NGram
from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence
from refengine.decoder.protocols import Drafter, Target
from refengine.source_tree import FIXTURES

Read: TypeAlias = Callable[[Path, Target], Drafter]


@dataclass(frozen=True)
class Tiny:
    """One drafter.

    read       from its folder (those without weights have none) and the target it drafts for
    prompt     after it the drafter accepts, rejects, rolls back and stops inside a block: found by trying
    folder     the checkpoint, under fixtures/; empty for drafters without weights
    target     a folder under fixtures/
    rules      those under which it is lossless; the first stands for it
    lossy      those of its released modes that change the law by design
    rounds     of a cell, and the length of the output that is compared
    threshold  a confidence below which blocks end, in cells of their own
    """

    read: Read
    prompt: tuple[int, ...]
    folder: str = ""
    target: str = "tiny/target"
    rules: tuple[str, ...] = ("leviathan", "block")
    lossy: tuple[str, ...] = ()
    rounds: int = 3
    length: int = 5
    threshold: float = 0.0

    def load(self, target: Target, **options: Any) -> Drafter:
        """The drafter in the target's dtype and on its device."""
        return self.read(FIXTURES / self.folder, target, **options)


def _medusa(folder: Path, target: Target) -> Medusa:
    loaded = load_medusa(folder, target)
    return Medusa(loaded.shape, dict(loaded.w.tensors), ((0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)))


def _dart(folder: Path, target: Target) -> FeatureRecurrence:
    loaded: Any = load_dart(folder, target)
    loaded.plan = TreeSearch(loaded.plan.masks, loaded.plan.store, loaded.plan.eos, top_k=2, beam=2, total=6)
    return FeatureRecurrence(loaded.network, loaded.plan)


def _scheduled(folder: Path, target: Target) -> DSpark:
    """A pass over two rows takes as long as over one; each further row costs a fifth of that."""
    loaded: Any = load_drafter(folder, target)
    return DSpark(loaded.shape, dict(loaded.w.tensors), load=Load(((1, 1.0), (2, 1.0), (4, 1.4))))


def _qwen_mtp(folder: Path, target: Target) -> FeatureRecurrence:
    return FeatureRecurrence(load_qwen_mtp(folder, target, length=2).network, Chain(2))


REPEATING = (6, 4, 2, 4, 3, 2, 0, 2, 4, 3)
EAGLE_PROMPT = (5, 4, 0, 4, 0, 6, 3, 2)
DEEPSEEK_PROMPT = (3, 5, 0, 5, 6, 0, 1, 6)
DFLASH_PROMPT = (2, 3, 2, 4, 5, 1, 4, 3)
EAGLE1_TREE = StaticTree(((0,), (1,), (0, 0)))
EAGLE2_TREE = DynamicTree(total=6, depth=2, top_k=2)

TINY: dict[str, Tiny] = {
    "ar": Tiny(partial(load_drafter, gamma=2), (4, 3, 4, 0), "tiny/ar"),
    "dspark": Tiny(load_drafter, (4, 3, 4, 0), "tiny/dspark", threshold=0.8),
    "dspark_speculators": Tiny(load_drafter, DFLASH_PROMPT, "dspark/speculators"),
    "dspark_scheduled": Tiny(_scheduled, DFLASH_PROMPT, "tiny/dspark"),
    "deepseek_mtp": Tiny(partial(load_deepseek_mtp, gamma=2), DEEPSEEK_PROMPT, "deepseek/mtp", target="deepseek/mtp"),
    "deepseek_mtp2": Tiny(load_deepseek_mtp, DEEPSEEK_PROMPT, "deepseek/mtp2", target="deepseek/mtp2"),
    "dart": Tiny(_dart, (0, 5, 2, 5, 5, 4, 3, 4), "dart/drafter", rules=("point_mass",), length=7),
    "eagle1": Tiny(
        partial(load_eagle1, plan=EAGLE1_TREE), EAGLE_PROMPT, "eagle/eagle1", rules=("without_replacement",)
    ),
    "eagle2": Tiny(
        partial(load_eagle1, plan=EAGLE2_TREE), EAGLE_PROMPT, "eagle/eagle1", rules=("point_mass",), length=7
    ),
    "eagle3": Tiny(
        partial(load_eagle3, plan=EAGLE2_TREE), EAGLE_PROMPT, "eagle/eagle3", rules=("point_mass",), length=7
    ),
    "eagle3_deepspec": Tiny(partial(load_eagle3, plan=Chain(2)), EAGLE_PROMPT, "eagle/eagle3_deepspec"),
    "eagle3_gemma4": Tiny(
        partial(load_eagle3, plan=Chain(2)), EAGLE_PROMPT, "variants/eagle3_gemma4", target="gemma4/target"
    ),
    "eagle3_speculators": Tiny(partial(load_eagle3, plan=Chain(2)), EAGLE_PROMPT, "variants/eagle3_speculators"),
    "dspark_gemma4": Tiny(load_drafter, EAGLE_PROMPT, "variants/dspark_gemma4", target="gemma4/target"),
    "gemma4_assistant": Tiny(  # the prompt is longer than the sliding window
        partial(load_gemma4_assistant, gamma=2), EAGLE_PROMPT, "gemma4/assistant", target="gemma4/target"
    ),
    "dflash": Tiny(load_dflash, (6, 3, 6, 3, 0, 2, 4, 3), "dflash/zlab", rules=("point_mass",), length=6),
    "dflash_drawn": Tiny(partial(load_dflash, greedy=False), DFLASH_PROMPT, "dflash/zlab"),
    "dflash_transformers": Tiny(load_dflash, DFLASH_PROMPT, "dflash/transformers"),
    "dflash_speculators": Tiny(load_dflash, DFLASH_PROMPT, "dflash/speculators"),
    "dflash_deepspec": Tiny(load_drafter, DFLASH_PROMPT, "dflash/deepspec"),
    "parallel_heads": Tiny(load_parallel_heads, (4, 3, 4, 0), "heads/parallel_heads", target="heads/parallel_heads"),
    "p_eagle": Tiny(partial(load_p_eagle, length=2), (5, 0, 5, 6, 0, 1, 6, 4), "eagle/p_eagle"),
    "p_eagle_amazon": Tiny(partial(load_amazon, length=2), (5, 0, 5, 6, 0, 1, 6, 4), "p_eagle/amazon"),
    "qwen_mtp": Tiny(_qwen_mtp, EAGLE_PROMPT, "qwen_mtp/speculators", target="qwen_mtp/target"),
    "medusa": Tiny(
        _medusa,
        (0, 3, 5, 3, 0, 4, 1, 1),
        "heads/medusa",
        rules=("point_mass",),
        lossy=("typical", "nucleus"),
        length=6,
    ),
    "prompt_lookup": Tiny(
        lambda folder, target: PromptLookup(gamma=2, ngram=2, device=str(target.device)),
        REPEATING,
        rules=("point_mass",),
        length=6,
    ),
    "ngram": Tiny(
        lambda folder, target: NGram(gamma=2, n=3, device=str(target.device)),
        REPEATING,
        rules=("point_mass",),
        length=6,
    ),
    "lookahead": Tiny(
        lambda folder, target: Lookahead(target, level=4, window=3, guesses=3, from_prompt=True),
        REPEATING,
        rules=("point_mass",),
        rounds=4,  # the window is not full before the second
        length=7,
    ),
}
