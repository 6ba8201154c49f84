"""The drafters that are built from the target's own parts or from its text, each on its tiny fixture.

One entry per row of the table of drafters: which fixture, which code, which rules fit. `cells.py` enumerates them,
`battery.py` makes findings of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from refengine.decoder.checkpoints.dart import load_dart
from refengine.decoder.checkpoints.deepseek_mtp import load_deepseek_mtp
from refengine.decoder.checkpoints.dflash import load_dflash
from refengine.decoder.checkpoints.dspark import load_dspark
from refengine.decoder.checkpoints.eagle1 import load_eagle1
from refengine.decoder.checkpoints.eagle3 import load_eagle3
from refengine.decoder.checkpoints.gemma4_assistant import load_gemma4_assistant
from refengine.decoder.checkpoints.medusa import load_medusa
from refengine.decoder.checkpoints.p_eagle import load_p_eagle
from refengine.decoder.checkpoints.parallel_heads import load_parallel_heads
from refengine.decoder.checkpoints.qwen_mtp import load_qwen_mtp
from refengine.decoder.drafters import (
    dart,
    deepseek_mtp,
    dflash,
    dspark,
    gemma4_assistant,
    lookahead,
    medusa,
    ngram,
    parallel_heads,
    prompt_lookup,
    recurrence,
)
from refengine.decoder.drafters.plans import Chain, DynamicTree, StaticTree
from refengine.decoder.drafters.recurrence import FeatureRecurrence, Plan
from refengine.decoder.drafters.schedule import Load
from refengine.decoder.protocols import Drafter, Target

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
Build: TypeAlias = Callable[[Any, Target], Drafter]  # the drafter's module (perhaps with a bug in it), the target

MEDUSA_TREE = ((0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0))


@dataclass(frozen=True)
class Tiny:
    """One drafter.

    rules   those under which it is lossless; the first stands for it
    lossy   those of its released modes that change the law by design
    target  a folder under fixtures/
    folder  the checkpoint, under fixtures/; empty for drafters without weights
    rounds  of a cell, and the length of the output that is compared
    """

    module: ModuleType
    build: Build
    rules: tuple[str, ...]
    prompt: tuple[int, ...]
    target: str = "tiny/target"
    folder: str = ""
    lossy: tuple[str, ...] = ()
    rounds: int = 3
    length: int = 6


# After it the drafters accept, reject, roll back and stop inside a block: found by trying, and held to it by a test.
REPEATING = (6, 4, 2, 4, 3, 2, 0, 2, 4, 3)


def _medusa(module: Any, target: Target) -> Drafter:
    loaded = load_medusa(FIXTURES / "heads" / "medusa", target)
    drafter: Drafter = module.Medusa(loaded.shape, dict(loaded.w.tensors), MEDUSA_TREE)
    return drafter


def _eagle(load: Callable[[Path, Target], FeatureRecurrence], name: str, plan: Plan) -> Build:
    def build(module: Any, target: Target) -> Drafter:
        drafter: Drafter = module.FeatureRecurrence(load(FIXTURES / "eagle" / name, target).network, plan)
        return drafter

    return build


def _p_eagle(module: Any, target: Target) -> Drafter:
    loaded = load_p_eagle(FIXTURES / "eagle" / "p_eagle", target, 2)
    drafter: Drafter = module.FeatureRecurrence(loaded.network, loaded.plan)
    return drafter


def _qwen_mtp(module: Any, target: Target) -> Drafter:
    loaded = load_qwen_mtp(FIXTURES / "qwen_mtp" / "target", target, 2)
    drafter: Drafter = module.FeatureRecurrence(loaded.network, loaded.plan)
    return drafter


def _deepseek_mtp(module: Any, target: Target) -> Drafter:
    loaded = load_deepseek_mtp(FIXTURES / "deepseek" / "mtp", target, 2)
    assert isinstance(loaded, FeatureRecurrence)
    drafter: Drafter = module.FeatureRecurrence(loaded.network, loaded.plan)
    return drafter


def _deepseek_mtp2(module: Any, target: Target) -> Drafter:
    loaded = load_deepseek_mtp(FIXTURES / "deepseek" / "mtp2", target)
    assert isinstance(loaded, deepseek_mtp.ModuleChain)
    drafter: Drafter = module.ModuleChain(loaded.modules)
    return drafter


def _dart(module: Any, target: Target) -> Drafter:
    loaded: Any = load_dart(FIXTURES / "dart" / "drafter", target)
    plan = module.TreeSearch(loaded.plan.masks, loaded.plan.store, loaded.plan.eos, top_k=2, beam=2, total=6)
    drafter: Drafter = module.drafter(loaded.network.shape, loaded.network.w.tensors, plan)
    return drafter


DEEPSEEK_PROMPT = (3, 5, 0, 5, 6, 0, 1, 6)


def _dflash(name: str, greedy: bool | None = None) -> Build:
    def build(module: Any, target: Target) -> Drafter:
        loaded = load_dflash(FIXTURES / "dflash" / name, target, greedy)
        drafter: Drafter = module.DFlash(loaded.shape, dict(loaded.w.tensors), loaded.greedy)
        return drafter

    return build


# A pass over two rows takes as long as over one; each further row costs a fifth of that.
LOAD = Load(((1, 1.0), (2, 1.0), (4, 1.4)))


def _dspark_scheduled(module: Any, target: Target) -> Drafter:
    loaded = load_dspark(FIXTURES / "tiny" / "dspark")
    tensors = {name: x.to(target.dtype) for name, x in loaded.w.tensors.items()}
    drafter: Drafter = module.DSpark(loaded.shape, tensors, load=LOAD)
    return drafter


def _dflash_deepspec(module: Any, target: Target) -> Drafter:
    loaded = load_dspark(FIXTURES / "dflash" / "deepspec")
    tensors = {name: x.to(target.dtype) for name, x in loaded.w.tensors.items()}
    drafter: Drafter = module.DSpark(loaded.shape, tensors)
    return drafter


EAGLE_PROMPT = (5, 4, 0, 4, 0, 6, 3, 2)
DFLASH_PROMPT = (2, 3, 2, 4, 5, 1, 4, 3)
EAGLE1_TREE = StaticTree(((0,), (1,), (0, 0)))
EAGLE2_TREE = DynamicTree(total=6, depth=2, top_k=2)


def _parallel(module: Any, target: Target) -> Drafter:
    loaded = load_parallel_heads(FIXTURES / "heads" / "parallel_heads", target)
    drafter: Drafter = module.ParallelHeads(loaded.shape, dict(loaded.w.tensors))
    return drafter


def _gemma4(module: Any, target: Target) -> Drafter:
    loaded = load_gemma4_assistant(FIXTURES / "gemma4" / "assistant", target)
    drafter: Drafter = module.Gemma4Assistant(loaded.shape, loaded.w.tensors, loaded.backbone, gamma=2)
    return drafter


TINY: dict[str, Tiny] = {
    "deepseek_mtp": Tiny(
        recurrence,
        _deepseek_mtp,
        ("leviathan", "block"),
        DEEPSEEK_PROMPT,
        target="deepseek/mtp",
        folder="deepseek/mtp",
        length=5,
    ),
    "deepseek_mtp2": Tiny(
        deepseek_mtp,
        _deepseek_mtp2,
        ("leviathan", "block"),
        DEEPSEEK_PROMPT,
        target="deepseek/mtp2",
        folder="deepseek/mtp2",
        length=5,
    ),
    "dart": Tiny(dart, _dart, ("point_mass",), (0, 5, 2, 5, 5, 4, 3, 4), folder="dart/drafter", length=7),
    "eagle1": Tiny(
        recurrence,
        _eagle(load_eagle1, "eagle1", EAGLE1_TREE),
        ("without_replacement",),
        EAGLE_PROMPT,
        folder="eagle/eagle1",
        length=5,
    ),
    "eagle2": Tiny(
        recurrence,
        _eagle(load_eagle1, "eagle1", EAGLE2_TREE),
        ("point_mass",),
        EAGLE_PROMPT,
        folder="eagle/eagle1",
        length=7,
    ),
    "eagle3": Tiny(
        recurrence,
        _eagle(load_eagle3, "eagle3", EAGLE2_TREE),
        ("point_mass",),
        EAGLE_PROMPT,
        folder="eagle/eagle3",
        length=7,
    ),
    "eagle3_deepspec": Tiny(
        recurrence,
        _eagle(load_eagle3, "eagle3_deepspec", Chain(2)),
        ("leviathan", "block"),
        EAGLE_PROMPT,
        folder="eagle/eagle3_deepspec",
        length=5,
    ),
    "gemma4_assistant": Tiny(
        gemma4_assistant,
        _gemma4,
        ("leviathan", "block"),
        (5, 4, 0, 4, 0, 6, 3, 2),  # longer than the sliding window
        target="gemma4/target",
        folder="gemma4/assistant",
        length=5,
    ),
    "dspark_scheduled": Tiny(
        dspark, _dspark_scheduled, ("leviathan", "block"), DFLASH_PROMPT, folder="tiny/dspark", length=5
    ),
    "dflash": Tiny(dflash, _dflash("zlab"), ("point_mass",), (6, 3, 6, 3, 0, 2, 4, 3), folder="dflash/zlab"),
    "dflash_drawn": Tiny(
        dflash, _dflash("zlab", greedy=False), ("leviathan", "block"), DFLASH_PROMPT, folder="dflash/zlab", length=5
    ),
    "dflash_transformers": Tiny(
        dflash, _dflash("transformers"), ("leviathan", "block"), DFLASH_PROMPT, folder="dflash/transformers", length=5
    ),
    "dflash_speculators": Tiny(
        dflash, _dflash("speculators"), ("leviathan", "block"), DFLASH_PROMPT, folder="dflash/speculators", length=5
    ),
    "dflash_deepspec": Tiny(
        dspark, _dflash_deepspec, ("leviathan", "block"), DFLASH_PROMPT, folder="dflash/deepspec", length=5
    ),
    "parallel_heads": Tiny(
        parallel_heads,
        _parallel,
        ("leviathan", "block"),
        (4, 3, 4, 0),
        target="heads/parallel_heads",
        folder="heads/parallel_heads",
        length=5,
    ),
    "p_eagle": Tiny(
        recurrence, _p_eagle, ("leviathan", "block"), (5, 0, 5, 6, 0, 1, 6, 4), folder="eagle/p_eagle", length=5
    ),
    "qwen_mtp": Tiny(
        recurrence,
        _qwen_mtp,
        ("leviathan", "block"),
        (5, 4, 0, 4, 0, 6, 3, 2),
        target="qwen_mtp/target",
        folder="qwen_mtp/speculators",
        length=5,
    ),
    "prompt_lookup": Tiny(
        prompt_lookup, lambda module, target: module.PromptLookup(gamma=2, ngram=2), ("point_mass",), REPEATING
    ),
    "lookahead": Tiny(
        lookahead,
        lambda module, target: module.Lookahead(target, level=4, window=3, guesses=3, from_prompt=True),
        ("point_mass",),
        REPEATING,
        rounds=4,  # the window is not full before the second
        length=7,
    ),
    "medusa": Tiny(
        medusa, _medusa, ("point_mass",), (0, 3, 5, 3, 0, 4, 1, 1), folder="heads/medusa", lossy=("typical", "nucleus")
    ),
    "ngram": Tiny(ngram, lambda module, target: module.NGram(gamma=2, n=3), ("point_mass",), REPEATING),
}
