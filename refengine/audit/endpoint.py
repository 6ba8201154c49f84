"""`audit endpoint`: a server with speculation on, held to the same server with speculation off.

Two claims. Greedy: at temperature 0 the texts are equal; where they part, the server's own chances say whether it is a
tie, decided by rounding, or a defect. Sampling: nothing tells which of two completions came from which server,
whatever the policy is; see evidence/pairs.py. A server has noise of its own, so a finding is replayed statistically.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeAlias

import numpy as np

from refengine.audit.completions import Completion, Server, ServerFailed, connected
from refengine.audit.drive import seeds
from refengine.audit.partings import parting, rounding
from refengine.errors import BadInput
from refengine.evidence.pairs import Pairs
from refengine.report.finding import Finding, Number, Quantity, Recipe, Verdict

PROMPTS = (
    "The capital of France is",
    "Once upon a time there was a",
    "def add(a, b):\n    return",
    "1, 2, 3, 4, 5, 6,",
    "yes no yes no yes no",
)
GREEDY = "At temperature 0 the server completes as it does with speculation off."
SAMPLING = "Nothing tells a sampled completion from one that was made with speculation off."
SOURCE = "Leviathan et al. 2023, Theorem 1; Chen et al. 2023, Theorem 1"
AT_ONCE = 8  # requests under way
GREEDY_TOKENS = 48
NOISES = 10.0  # a margin of so many times the measured noise is no tie
POINTS = 200  # of the plot
Servers: TypeAlias = tuple[Server, Server]  # with speculation on, and off


@dataclass(frozen=True)
class Request:
    """What is asked of whom. tokens: length of a sampled completion. alpha: false alarms of the sampling claim."""

    on: str
    off: str
    model: str | None
    prompts: Sequence[str]
    tokens: int
    temperature: float
    pairs: int
    seed: int
    alpha: float
    seconds: float

    def finding(self, name: str, claim: str, method: str, verdict: Verdict, **more: Any) -> Finding:
        arguments = {**self.__dict__, "prompts": list(self.prompts)}
        return Finding(
            id=f"audit.endpoint/{name}",
            subject=f"{self.on} beside {self.off}",
            claim=claim,
            source=SOURCE,
            role="subject",
            verdict=verdict,
            method=method,
            recipe=Recipe(function="refengine.audit.endpoint:audit_endpoint", arguments=arguments),
            replay="statistical",
            **more,
        )


def audit_endpoint(
    on: str,
    off: str,
    model: str | None = None,
    prompts: Sequence[str] = PROMPTS,
    tokens: int = 4,
    temperature: float = 1.0,
    pairs: int = 4000,
    seed: int = 0,
    alpha: float = 1e-6,
    seconds: float = 50.0,
    progress: Callable[[str, float], None] = lambda *_: None,
) -> list[Finding]:
    """The greedy and the sampling finding. Raises BadInput where a server refuses what is asked."""
    if min(tokens, pairs, len(prompts)) < 1 or temperature <= 0:
        raise BadInput("an endpoint is asked for at least one token of one prompt, sampled at a positive temperature")
    request = Request(on, off, model, prompts, tokens, temperature, pairs, seed, alpha, seconds)
    until = monotonic() + seconds
    try:
        servers = (connected(on, model, prompts[0]), connected(off, model, prompts[0]))
    except ServerFailed as error:
        claims = (("greedy", GREEDY), ("sampling", SAMPLING))
        return [request.finding(*claim, "none", "not tested", reason=str(error)) for claim in claims]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        progress("greedy", 0.0)
        return [greedy(request, servers, pool), sampling(request, servers, pool, until, progress)]


# --- greedy ----------------------------------------------------------------------------------------------------------


def greedy(request: Request, servers: Servers, pool: ThreadPoolExecutor) -> Finding:
    """Each prompt once with speculation and twice without: what does not agree with itself is not held to itself."""
    (on, off), method = servers, f"{len(request.prompts)} prompts, up to {GREEDY_TOKENS} tokens each"

    def ask(asked: tuple[Server, str]) -> Completion:
        return asked[0].complete(asked[1], GREEDY_TOKENS, 0.0, request.seed)

    try:
        said = list(pool.map(ask, [(server, prompt) for prompt in request.prompts for server in (on, off, off)]))
        noise = rounding(off, request.prompts, said[1::3], request.seed)
    except ServerFailed as error:
        return request.finding("greedy", GREEDY, method, "not tested", reason=str(error))
    partings = []
    for prompt, ours, theirs, again in zip(request.prompts, said[0::3], said[1::3], said[2::3], strict=True):
        found, own = parting(prompt, ours, theirs), parting(prompt, again, theirs)
        if found is not None and (own is None or own.position > found.position):
            partings.append(found)
    numbers: dict[str, Number] = {"prompts": len(request.prompts), "partings": len(partings)}
    numbers["noise"] = Quantity(value=noise, tolerance=1.0)
    defects = [p for p in partings if p.margin is not None and p.margin > NOISES * noise]
    if defects:
        witness = dict(max(defects, key=lambda p: p.margin or 0.0).__dict__)
        diagnosis = "a token that is not the likeliest"
        return request.finding(
            "greedy", GREEDY, method, "violated", numbers=numbers, witness=witness, diagnosis=diagnosis
        )
    unknown = sum(p.margin is None for p in partings)
    if unknown:
        reason = f"{unknown} completions part where the server gives no log probabilities: a tie or a defect"
        return request.finding("greedy", GREEDY, method, "not tested", numbers=numbers, reason=reason)
    notes = [f"{p.prompt!r} parts at token {p.position}: a tie, its margin is {p.margin:.1e} nats" for p in partings]
    return request.finding("greedy", GREEDY, method, "consistent", numbers=numbers, notes=notes)


# --- sampling --------------------------------------------------------------------------------------------------------


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
    request: Request,
    servers: Servers,
    pool: ThreadPoolExecutor,
    until: float,
    progress: Callable[[str, float], None],
) -> Finding:
    """Pairs of completions, one of each server, the prompts in turn, until evidence, pairs or clock end it."""
    sampled, bar = Sampled(Pairs(most=2 * request.tokens * len(request.prompts))), -np.log(request.alpha)
    drawn = seeds(request.seed, "endpoint", 0, request.pairs)

    def pair(number: int) -> tuple[int, list[Completion]]:
        prompt = number % len(request.prompts)
        asked = zip(servers, drawn[number, :2].tolist(), strict=True)  # a seed of its own for each
        text = request.prompts[prompt]
        return prompt, [server.complete(text, request.tokens, request.temperature, seed) for server, seed in asked]

    while sampled.count < request.pairs and sampled.log_evidence < bar and monotonic() < until:
        try:
            block = list(pool.map(pair, range(sampled.count, min(sampled.count + AT_ONCE, request.pairs))))
        except ServerFailed as error:
            sampled.failed = str(error)
            break
        for prompt, (on, off) in block:
            sampled.pairs.add(features(request, prompt, on), features(request, prompt, off))
            sampled.curve.append((sampled.count + 1, sampled.pairs.log_evidence()))
        progress(f"{sampled.count} pairs of completions", sampled.count / request.pairs)
    return _finding(request, sampled, bar)


def features(request: Request, prompt: int, completion: Completion) -> dict[str, Hashable]:
    """What is compared: the whole, every token, and every two in a row; words where a server reports no tokens."""
    told: dict[str, Hashable] = {f"{prompt}: the whole completion": completion.text}
    pieces = completion.tokens if completion.tokens is not None else re.findall(r"\s*\S+", completion.text)
    tokens = (*pieces, *[None] * request.tokens)[: request.tokens]
    told |= {f"{prompt}: token {i}": token for i, token in enumerate(tokens)}
    return told | {f"{prompt}: tokens {i} and {i + 1}": tokens[i : i + 2] for i in range(len(tokens) - 1)}


def always_alike(pairs: Pairs) -> bool:
    """Whether a server gave the same completions whatever the seed: that is no sample, and says nothing of its law."""
    whole = [feature for name, feature in pairs.features.items() if name.endswith("the whole completion")]
    return any(
        all(len(side) == 1 for side in sides) for sides in zip(*((f.first, f.second) for f in whole), strict=True)
    )


def _finding(request: Request, sampled: Sampled, bar: float) -> Finding:
    kept = sampled.curve[:: max(1, sampled.count // POINTS)]
    wealth = [round(log / float(np.log(10)), 2) for _, log in kept]
    method = f"sequential evidence on exchangeable pairs, alpha {request.alpha:g}, {sampled.count} pairs of "
    method += f"{request.tokens} tokens at temperature {request.temperature:g}"
    numbers: dict[str, Number] = {"pairs": sampled.count}
    tables = {"evidence": {"draws": [n for n, _ in kept], "log10_wealth": wealth}}
    given: dict[str, Any] = {"numbers": numbers, "tables": tables}
    if sampled.log_evidence >= bar and always_alike(sampled.pairs):
        reason = "a server gives one completion whatever the seed is, so nothing is sampled"
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
    least = detectable(sampled.pairs, request.alpha)
    note = f"A total variation of about {least:.2g} in what was looked at most would have been seen."
    return request.finding("sampling", SAMPLING, method, "consistent", notes=[note], **given)


def _witness(request: Request, sampled: Sampled) -> dict[str, Any]:
    """The feature that told, and the outcomes in which the servers differ most."""
    name = sampled.pairs.strongest()
    feature, (prompt, _, what) = sampled.pairs.features[name], name.partition(": ")
    differ = sorted(feature.first | feature.second, key=lambda o: -abs(feature.first[o] - feature.second[o]))
    counts = {str(o): {"on": feature.first[o], "off": feature.second[o]} for o in differ[:4]}
    return {"prompt": request.prompts[int(prompt)], "what": what, "pairs": feature.first.total(), "counts": counts}


def detectable(pairs: Pairs, alpha: float) -> float:
    """The TV between two samplers at which the pairs of the feature that has most would end it with probability 0.99.

    About two even outcomes: a pair at distance d gains d^2 nats with variance 2 d^2, and must pay log(1/alpha) and what
    the mixture gives to the others.
    """
    most = max((feature.first.total() for feature in pairs.features.values()), default=0)
    need, z = np.log(1 / alpha) + np.log(3 * pairs.most) + 3.0, 2.33 * np.sqrt(2.0)
    root = (z + np.sqrt(z**2 + 4.0 * need)) / 2.0  # solves d^2 n - z d sqrt(n) = need for d sqrt(n)
    return float(min(1.0, root / np.sqrt(max(most, 1))))
