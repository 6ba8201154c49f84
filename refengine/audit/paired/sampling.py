"""The sampling claim: of a pair of completions, one from each side, no feature says which side made which.

The evidence is `evidence/e_process_of_pairs.py`.
"""

import re
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from refengine.audit.common import MAX_UNSEEN_TV, Progress, thinned
from refengine.audit.kernel.campaign import seeds
from refengine.audit.paired.comparison import SAMPLING, Comparison, Sides
from refengine.audit.paired.completion import Completion, Failed
from refengine.evidence.e_process_of_pairs import COMMONER, Pairs
from refengine.evidence.naming import unexplained
from refengine.evidence.power import ends_wealth
from refengine.report.finding import Finding, Number

WHOLE = "the whole completion"


@dataclass
class Sampled:
    """The pairs so far, and the failure that ended them, if any."""

    pairs: Pairs
    curve: list[tuple[int, float]] = field(default_factory=list)
    failed: str = ""

    @property
    def count(self) -> int:
        return len(self.curve)

    @property
    def log_evidence(self) -> float:
        return self.curve[-1][1] if self.curve else 0.0


def sampling(
    comparison: Comparison, sides: Sides, pool: ThreadPoolExecutor, at_once: int, until: float, progress: Progress
) -> Finding:
    """Pairs of completions, one of each side, the prompts in turn, until evidence, pairs or clock end it."""
    settings, bar = comparison.settings, -np.log(comparison.settings.alpha)
    sampled = Sampled(Pairs(len(settings.prompts), kinds=2 * settings.tokens + 1))
    drawn = seeds(settings.seed, "beside", 0, settings.pairs)

    def pair(number: int) -> tuple[int, list[Completion]]:
        prompt = number % len(settings.prompts)
        text, own = settings.prompts[prompt], drawn[number, :2].tolist()  # a seed of its own for each side
        completions = [
            side.complete(text, settings.tokens, settings.temperature, s) for side, s in zip(sides, own, strict=True)
        ]
        return prompt, completions

    while sampled.count < settings.pairs and sampled.log_evidence < bar and monotonic() < until:
        try:
            block = list(pool.map(pair, range(sampled.count, min(sampled.count + at_once, settings.pairs))))
        except Failed as error:
            sampled.failed = str(error)
            break
        for prompt, (on, off) in block:
            by_tokens = on.tokens is not None and off.tokens is not None
            sampled.pairs.add(prompt, *(features(settings.tokens, said, by_tokens) for said in (on, off)))
            sampled.curve.append((sampled.count + 1, sampled.pairs.log_evidence()))
        progress(f"{sampled.count} pairs of completions", sampled.count / settings.pairs)
    return _finding(comparison, sampled, bar)


def features(count: int, completion: Completion, by_tokens: bool) -> dict[str, Hashable]:
    """The features that are compared: the whole, its length, every token, and every two in a row. Words stand for
    tokens where one side reports no tokens."""
    found: dict[str, Hashable] = {WHOLE: completion.text}
    by_words = tuple(re.findall(r"\s*\S+", completion.text))
    pieces = completion.tokens if by_tokens and completion.tokens is not None else by_words
    tokens = (*pieces, *[None] * count)[:count]
    found |= {"the length": len(pieces)} | {f"token {i}": token for i, token in enumerate(tokens)}
    return found | {f"tokens {i} and {i + 1}": tokens[i : i + 2] for i in range(len(tokens) - 1)}


def always_alike(pairs: Pairs) -> bool:
    """Whether a side gave the same completions whatever the seed: these are no sample of its law."""
    whole = [feature for (_, name), feature in pairs.features.items() if name == WHOLE]
    return any(
        all(len(side) == 1 for side in sides) for sides in zip(*((f.first, f.second) for f in whole), strict=True)
    )


def _finding(comparison: Comparison, sampled: Sampled, bar: float) -> Finding:
    method = (
        f"sequential evidence on exchangeable pairs, alpha {comparison.settings.alpha:g}, {sampled.count} pairs of "
    )
    method += f"{comparison.settings.tokens} tokens at temperature {comparison.settings.temperature:g}"
    numbers: dict[str, Number] = {"pairs": sampled.count}
    given: dict[str, Any] = {"numbers": numbers, "tables": {"evidence": thinned(sampled.curve)}}
    if sampled.log_evidence >= bar and always_alike(sampled.pairs):
        reason = "a side gives one completion whatever the seed is, so nothing is sampled"
        return comparison.finding("sampling", SAMPLING, method, "not tested", reason=reason, **given)
    if sampled.log_evidence >= bar:
        return comparison.finding(
            "sampling",
            SAMPLING,
            method,
            "violated",
            witness=_witness(comparison, sampled),
            diagnosis=unexplained(f"in {sampled.pairs.strongest()[1]}"),
            **given,
        )
    if sampled.failed:
        return comparison.finding("sampling", SAMPLING, method, "not tested", reason=sampled.failed, **given)
    one, each = detectable(sampled.pairs, comparison.settings.alpha)
    if each > MAX_UNSEEN_TV:
        reason = f"{sampled.count} pairs would not show a TV of {MAX_UNSEEN_TV:g} at every prompt: give it more"
        return comparison.finding("sampling", SAMPLING, method, "not tested", reason=reason, **given)
    note = f"A total variation of about {one:.2g} at one prompt, or {each:.2g} at all alike, would have been seen."
    return comparison.finding("sampling", SAMPLING, method, "consistent", notes=[note], **given)


def _witness(comparison: Comparison, sampled: Sampled) -> dict[str, Any]:
    """The feature with the most evidence, and the outcomes in which the sides differ most."""
    prompt, name = sampled.pairs.strongest()
    if name == COMMONER:
        feature = sampled.pairs.commoner
        counts = {"the more common": {"on": feature.first[True], "off": feature.second[True]}}
        return {"what": name, "pairs": feature.count, "counts": counts}
    feature = sampled.pairs.features[prompt, name]
    differ = sorted(feature.first | feature.second, key=lambda o: -abs(feature.first[o] - feature.second[o]))
    counts = {str(o): {"on": feature.first[o], "off": feature.second[o]} for o in differ[:4]}
    return {"prompt": comparison.settings.prompts[prompt], "what": name, "pairs": feature.count, "counts": counts}


def detectable(pairs: Pairs, alpha: float) -> tuple[float, float]:
    """The TV between two samplers that would end it with probability 0.99: at the most frequent prompt, and where every
    prompt shows as much of it.

    About two even outcomes: a pair at distance d gains d^2 nats with variance 2 d^2, half of what one draw beside a
    known law does, and must pay log(1/alpha) and the share of the other components.
    """
    most = max((f.count for f in pairs.features.values()), default=0)
    one, each = (
        ends_wealth(count / 2, np.log(1 / alpha) + np.log(9.0 * others) + 3.0)
        for count, others in ((most, pairs.prompts * pairs.kinds), (pairs.commoner.count, pairs.kinds))
    )
    return one, each
