"""The sampling claim: completions in pairs, one of each side, and nothing tells which is whose.

The evidence is `evidence/e_process_of_pairs.py`.
"""

import re
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from refengine.audit.common import TOO_LITTLE, Progress, thinned
from refengine.audit.kernel.campaign import seeds
from refengine.audit.paired.completion import Completion, Failed
from refengine.audit.paired.request import SAMPLING, Request, Sides
from refengine.evidence.e_process_of_pairs import COMMONER, Pairs
from refengine.evidence.naming import unexplained
from refengine.evidence.power import ends_wealth
from refengine.report.finding import Finding, Number

WHOLE = "the whole completion"


@dataclass
class Sampled:
    """The pairs so far, and why there are no more, if that is not the evidence."""

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
    request: Request, sides: Sides, pool: ThreadPoolExecutor, at_once: int, until: float, progress: Progress
) -> Finding:
    """Pairs of completions, one of each side, the prompts in turn, until evidence, pairs or clock end it."""
    asked, bar = request.asked, -np.log(request.asked.alpha)
    sampled = Sampled(Pairs(len(asked.prompts), kinds=2 * asked.tokens + 1))
    drawn = seeds(asked.seed, "beside", 0, asked.pairs)

    def pair(number: int) -> tuple[int, list[Completion]]:
        prompt = number % len(asked.prompts)
        text, own = asked.prompts[prompt], drawn[number, :2].tolist()  # a seed of its own for each side
        completions = [
            side.complete(text, asked.tokens, asked.temperature, s) for side, s in zip(sides, own, strict=True)
        ]
        return prompt, completions

    while sampled.count < asked.pairs and sampled.log_evidence < bar and monotonic() < until:
        try:
            block = list(pool.map(pair, range(sampled.count, min(sampled.count + at_once, asked.pairs))))
        except Failed as error:
            sampled.failed = str(error)
            break
        for prompt, (on, off) in block:
            by_tokens = on.tokens is not None and off.tokens is not None
            sampled.pairs.add(prompt, *(features(asked.tokens, said, by_tokens) for said in (on, off)))
            sampled.curve.append((sampled.count + 1, sampled.pairs.log_evidence()))
        progress(f"{sampled.count} pairs of completions", sampled.count / asked.pairs)
    return _finding(request, sampled, bar)


def features(count: int, completion: Completion, by_tokens: bool) -> dict[str, Hashable]:
    """What is compared: the whole, its length, every token, and every two in a row. Words stand for tokens where one
    side reports none, since a token is not a word."""
    told: dict[str, Hashable] = {WHOLE: completion.text}
    by_words = tuple(re.findall(r"\s*\S+", completion.text))
    pieces = completion.tokens if by_tokens and completion.tokens is not None else by_words
    tokens = (*pieces, *[None] * count)[:count]
    told |= {"how long it is": len(pieces)} | {f"token {i}": token for i, token in enumerate(tokens)}
    return told | {f"tokens {i} and {i + 1}": tokens[i : i + 2] for i in range(len(tokens) - 1)}


def always_alike(pairs: Pairs) -> bool:
    """Whether a side gave the same completions whatever the seed: that is no sample, and says nothing of its law."""
    whole = [feature for (_, name), feature in pairs.features.items() if name == WHOLE]
    return any(
        all(len(side) == 1 for side in sides) for sides in zip(*((f.first, f.second) for f in whole), strict=True)
    )


def _finding(request: Request, sampled: Sampled, bar: float) -> Finding:
    method = f"sequential evidence on exchangeable pairs, alpha {request.asked.alpha:g}, {sampled.count} pairs of "
    method += f"{request.asked.tokens} tokens at temperature {request.asked.temperature:g}"
    numbers: dict[str, Number] = {"pairs": sampled.count}
    given: dict[str, Any] = {"numbers": numbers, "tables": {"evidence": thinned(sampled.curve)}}
    if sampled.log_evidence >= bar and always_alike(sampled.pairs):
        reason = "a side gives one completion whatever the seed is, so nothing is sampled"
        return request.finding("sampling", SAMPLING, method, "not tested", reason=reason, **given)
    if sampled.log_evidence >= bar:
        return request.finding(
            "sampling",
            SAMPLING,
            method,
            "violated",
            witness=_witness(request, sampled),
            diagnosis=unexplained(f"in {sampled.pairs.strongest()[1]}"),
            **given,
        )
    if sampled.failed:
        return request.finding("sampling", SAMPLING, method, "not tested", reason=sampled.failed, **given)
    one, each = detectable(sampled.pairs, request.asked.alpha)
    if each > TOO_LITTLE:
        reason = f"{sampled.count} pairs would not show a TV of {TOO_LITTLE:g} at every prompt: give it more"
        return request.finding("sampling", SAMPLING, method, "not tested", reason=reason, **given)
    note = f"A total variation of about {one:.2g} at one prompt, or {each:.2g} at all alike, would have been seen."
    return request.finding("sampling", SAMPLING, method, "consistent", notes=[note], **given)


def _witness(request: Request, sampled: Sampled) -> dict[str, Any]:
    """The feature that told, and the outcomes in which the sides differ most."""
    prompt, name = sampled.pairs.strongest()
    if name == COMMONER:
        feature = sampled.pairs.commoner
        counts = {"the more common": {"on": feature.first[True], "off": feature.second[True]}}
        return {"what": name, "pairs": feature.count, "counts": counts}
    feature = sampled.pairs.features[prompt, name]
    differ = sorted(feature.first | feature.second, key=lambda o: -abs(feature.first[o] - feature.second[o]))
    counts = {str(o): {"on": feature.first[o], "off": feature.second[o]} for o in differ[:4]}
    return {"prompt": request.asked.prompts[prompt], "what": name, "pairs": feature.count, "counts": counts}


def detectable(pairs: Pairs, alpha: float) -> tuple[float, float]:
    """The TV between two samplers that would end it with probability 0.99: at the prompt that was asked most, and where
    every prompt shows as much of it.

    About two even outcomes: a pair at distance d gains d^2 nats with variance 2 d^2, half of what one draw beside a
    known law does, and must pay log(1/alpha) and what the mixture gives to the others.
    """
    most = max((f.count for f in pairs.features.values()), default=0)
    one, each = (
        ends_wealth(count / 2, np.log(1 / alpha) + np.log(9.0 * others) + 3.0)
        for count, others in ((most, pairs.prompts * pairs.kinds), (pairs.commoner.count, pairs.kinds))
    )
    return one, each
