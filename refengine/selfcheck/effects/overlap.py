"""What the papers say makes a drafter good, in miniature: overlap of p and q by depth, for one choice made differently.

Each variant is a tiny checkpoint of `fixtures/effects`, trained alike but for that choice, or one head of a checkpoint
switched off. The overlap is the mean of sum min(p, q) over rows of text that the target itself wrote: what Leviathan's
rule accepts at that depth, given that it accepted all before.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from refengine.decoder.checkpoints.layouts.gemma4_assistant import FULL
from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.drafters.gemma4_assistant import SLIDING
from refengine.decoder.loop import begin, plain
from refengine.decoder.networks.feature_recurrence import Network
from refengine.decoder.protocols import Target, Tokens
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature
from refengine.report.finding import Finding, Quantity, Recipe, Verdict
from refengine.selfcheck.effects.over_seeds import trained
from refengine.source_tree import FIXTURES

SENTENCES, LENGTH, DEPTHS = 24, 24, 3
SAMPLED = pipeline(temperature(1.0))
EAGLE, VARIANTS = FIXTURES / "eagle" / "eagle3_deepspec", FIXTURES / "effects"
Overlap = tuple[float, ...]  # by depth


@dataclass(frozen=True)
class Effect:
    """A claim that one variant overlaps more than another, from a depth on (0 is the first)."""

    claim: str
    source: str
    better: str
    worse: str
    depth: int = 0


EFFECTS = {
    "training": Effect(
        "Training raises the overlap at every depth.",
        "every document; here EAGLE-3's objective",
        "released",
        "untrained",
    ),
    "on-policy": Effect(
        "Training on its own outputs raises the overlap where it feeds on them.",
        "EAGLE-3, section 3.2: training-time test",
        "released",
        "teacher_forced",
        depth=1,
    ),
    "shifted-tokens": Effect(
        "The token after a feature says more than the feature's own token.", "EAGLE, section 4", "released", "unshifted"
    ),
    "markov-head": Effect(
        "The Markov head raises the overlap at every slot; switched off, not trained without.",
        "DSpark, section 3",
        "markov",
        "no markov",
    ),
    "centroid-head": Effect(
        "Scoring every token overlaps more than scoring those of the best centroids, all else equal.",
        "seed 000, section 06",
        "full head",
        "centroid head",
    ),
}


def effects() -> list[Finding]:
    """Every effect, the fading of acceptance along a block, and what was trained over seeds, in runs of its own."""
    return [finding for name in EFFECTS for finding in effect(name)] + fading() + trained()


def effect(name: str) -> list[Finding]:
    """One choice against the other."""
    told = EFFECTS[name]
    good, bad = overlap(told.better)[told.depth :], overlap(told.worse)[told.depth :]
    holds = all(a > b for a, b in zip(good, bad, strict=True))
    verdict: Verdict = "consistent" if holds else "violated"
    numbers = [
        (f"{variant}, depth {i}", value)
        for variant, values in ((told.better, good), (told.worse, bad))
        for i, value in enumerate(values, told.depth + 1)
    ]
    return [_finding(name, told.claim, told.source, verdict, numbers, {"name": name})]


def fading() -> list[Finding]:
    """Overlap along a parallel block, whose later slots know less of what stands before them."""
    slots = overlap("no markov")
    falls = all(a > b for a, b in itertools.pairwise(slots))
    numbers = [(f"slot {i}", value) for i, value in enumerate(slots, 1)]
    claim = "Without the Markov head the overlap fades along a parallel block."
    return [_finding("fading", claim, "DSpark, section 3", "consistent" if falls else "violated", numbers, {})]


def _finding(
    name: str,
    claim: str,
    source: str,
    verdict: Verdict,
    numbers: Sequence[tuple[str, float]],
    arguments: dict[str, str],
) -> Finding:
    return Finding(
        id=f"effects/{name}",
        subject="effects in miniature",
        claim=claim,
        source=source,
        verdict=verdict,
        method=f"mean of sum min(p, q) by depth, {SENTENCES} texts of {LENGTH} tokens that the target wrote, float64",
        recipe=Recipe(function=f"{__name__}:{'effect' if arguments else name}", arguments=arguments),
        numbers={name: Quantity(value=value, tolerance=1e-4) for name, value in numbers},
    )


@cache
def overlap(variant: str) -> Overlap:
    """Mean overlap of a variant by depth."""
    if "markov" in variant:
        drafter = load_drafter(FIXTURES / "tiny" / "dspark", target())
        assert isinstance(drafter, DSpark)
        return blocks(drafter, with_markov=variant == "markov")
    if variant.endswith("head"):
        return assistants(centroids=variant == "centroid head")
    folder = EAGLE if variant == "released" else VARIANTS / variant
    eagle: Any = load_drafter(folder, target())
    return recurrences(eagle.network, 0 if variant == "unshifted" else 1)


@cache
def target(family: str = "tiny") -> Target:
    return load_target(FIXTURES / family / "target", torch.float64)


@cache
def texts(family: str = "tiny") -> tuple[Tokens, ...]:
    """Texts that the target wrote, each begun with one of its words."""
    coins = (Philox(11, torch.tensor([i])) for i in range(SENTENCES))
    return tuple((i % 7, *plain(target(family), SAMPLED, (i % 7,), LENGTH - 1, c)) for i, c in enumerate(coins))


def recurrences(network: Network, shift: int) -> Overlap:
    """Of a recurrence on the text's own tokens, fed with its own outputs from the second depth on."""
    total = torch.zeros(DEPTHS, dtype=torch.float64)
    for words in texts():
        passed = begin(target(), words, network.taps)
        hidden = network.fused(torch.cat([passed.taps[j] for j in network.taps], -1))
        for depth in range(DEPTHS):
            count = len(words) - 1 - depth
            tokens, positions = torch.tensor(words[shift + depth :][:count]), torch.arange(count)
            causal = torch.ones(count, count, dtype=torch.bool).tril()
            hidden, _ = network.rows(tokens, hidden[:count], positions, network.empty(), causal)
            q, p = network.logits(hidden).softmax(-1), passed.logits[1 + depth :].softmax(-1)
            total[depth] += torch.minimum(p, q).sum(-1).mean()
    return tuple((total / SENTENCES).tolist())


def blocks(drafter: DSpark, with_markov: bool) -> Overlap:
    """Of a block after every prefix of the text, each slot told the text's own token before it, or nothing."""
    slots = drafter.shape.block_size
    total, count = torch.zeros(slots, dtype=torch.float64), 0
    for words in texts():
        passed = begin(target(), words, drafter.taps)
        for start in range(1, len(words) - slots):
            drafter.start(words[:start], passed.select(range(start)))
            hidden = drafter.block(words[start], start)
            base, memory = drafter.logits(hidden), hidden.new_zeros(drafter.shape.markov_rank)
            for k in range(slots):
                bias, memory = drafter.markov(hidden[k], drafter.before(words[start + k]), memory)
                q, p = (base[k] + bias * with_markov).softmax(-1), passed.logits[start + k].softmax(-1)
                total[k] += torch.minimum(p, q).sum()
            count += 1
    return tuple((total / count).tolist())


def assistants(centroids: bool) -> Overlap:
    """Of the Gemma 4 assistant after every prefix of the text, fed with its own states from the second depth on."""
    judge = target("gemma4")
    drafter: Any = load_drafter(FIXTURES / "gemma4" / "assistant", judge)
    if not centroids:
        drafter.shape = replace(drafter.shape, num_centroids=0)
    total = torch.zeros(DEPTHS, dtype=torch.float64)
    for words in texts("gemma4"):
        passed = begin(judge, words, drafter.taps)
        anchors, rows = torch.arange(1, len(words) - DEPTHS + 1), torch.arange(len(words))
        before = rows < anchors[:, None]
        sees = {FULL: before, SLIDING: before & (rows >= anchors[:, None] - drafter.shape.sliding_window - 1)}
        keys, hidden = drafter.rows(len(words)), passed.taps[drafter.taps[0]][anchors - 1]
        for depth in range(DEPTHS):
            step = drafter.step(torch.tensor(words)[anchors + depth], hidden, anchors, keys, sees)
            q = step.logits.masked_fill(~step.scored, float("-inf")).softmax(-1)
            total[depth] += torch.minimum(passed.logits[anchors + depth].softmax(-1), q).sum(-1).mean()
            hidden = step.hidden
    return tuple((total / SENTENCES).tolist())
