"""The sampling claim: completions in pairs, one of each side, and nothing tells which is whose (evidence/pairs.py)."""

import re
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from refengine.audit.asked import SAMPLING, Asked, Request, Sides
from refengine.audit.completion import Completion, Failed
from refengine.audit.drive import seeds
from refengine.audit.promise import Progress, thinned
from refengine.evidence.pairs import Pairs
from refengine.report.finding import Finding, Number


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
    sampled = Sampled(Pairs(most=2 * asked.tokens * len(asked.prompts)))
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
            sampled.pairs.add(features(asked, prompt, on), features(asked, prompt, off))
            sampled.curve.append((sampled.count + 1, sampled.pairs.log_evidence()))
        progress(f"{sampled.count} pairs of completions", sampled.count / asked.pairs)
    return _finding(request, sampled, bar)


def features(asked: Asked, prompt: int, completion: Completion) -> dict[str, Hashable]:
    """What is compared: the whole, every token, and every two in a row; words where no tokens are reported."""
    told: dict[str, Hashable] = {f"{prompt}: the whole completion": completion.text}
    pieces = completion.tokens if completion.tokens is not None else re.findall(r"\s*\S+", completion.text)
    tokens = (*pieces, *[None] * asked.tokens)[: asked.tokens]
    told |= {f"{prompt}: token {i}": token for i, token in enumerate(tokens)}
    return told | {f"{prompt}: tokens {i} and {i + 1}": tokens[i : i + 2] for i in range(len(tokens) - 1)}


def always_alike(pairs: Pairs) -> bool:
    """Whether a side gave the same completions whatever the seed: that is no sample, and says nothing of its law."""
    whole = [feature for name, feature in pairs.features.items() if name.endswith("the whole completion")]
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
            diagnosis="another law",
            **given,
        )
    if sampled.failed:
        return request.finding("sampling", SAMPLING, method, "not tested", reason=sampled.failed, **given)
    least = detectable(sampled.pairs, request.asked.alpha)
    note = f"A total variation of about {least:.2g} in what was looked at most would have been seen."
    return request.finding("sampling", SAMPLING, method, "consistent", notes=[note], **given)


def _witness(request: Request, sampled: Sampled) -> dict[str, Any]:
    """The feature that told, and the outcomes in which the sides differ most."""
    name = sampled.pairs.strongest()
    feature, (prompt, _, what) = sampled.pairs.features[name], name.partition(": ")
    differ = sorted(feature.first | feature.second, key=lambda o: -abs(feature.first[o] - feature.second[o]))
    counts = {str(o): {"on": feature.first[o], "off": feature.second[o]} for o in differ[:4]}
    return {
        "prompt": request.asked.prompts[int(prompt)],
        "what": what,
        "pairs": feature.first.total(),
        "counts": counts,
    }


def detectable(pairs: Pairs, alpha: float) -> float:
    """The TV between two samplers at which the pairs of the feature that has most would end it with probability 0.99.

    About two even outcomes: a pair at distance d gains d^2 nats with variance 2 d^2, and must pay log(1/alpha) and what
    the mixture gives to the others.
    """
    most = max((feature.first.total() for feature in pairs.features.values()), default=0)
    need, z = np.log(1 / alpha) + np.log(3 * pairs.most) + 3.0, 2.33 * np.sqrt(2.0)
    root = (z + np.sqrt(z**2 + 4.0 * need)) / 2.0  # solves d^2 n - z d sqrt(n) = need for d sqrt(n)
    return float(min(1.0, root / np.sqrt(max(most, 1))))
