"""What is due: the share of drafts that is kept at each position, from a golden profile or from a known law.

A golden profile was measured, so what is due is an interval; the audit spends half of its alpha on it. Of a known law
(`refengine fixtures export`) it is computed: the requests below are decoded by the rules of `exact`, and at each draft
that is judged what counts is not the coin but its chance, the sum of min(p, q) of the rows there, or p of a draft that
was not drawn. Which texts are visited is still left to chance, so this too is a profile of so many rounds, with less
noise than counts have.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refengine.audit.acceptance.rounds import Place, Sums, Told, design_effect
from refengine.audit.acceptance.sources import read, text_of
from refengine.audit.acceptance.sources.profiles import RATES
from refengine.audit.common import Progress
from refengine.errors import BadInput
from refengine.evidence.e_process_of_shares import EDGE, Share, interval
from refengine.exact.block import chain
from refengine.exact.chance import Sample
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.rules.point_mass import point_mass
from refengine.files import write_atomic

if TYPE_CHECKING:
    from torch import Tensor

    from refengine.audit.served.known.law import Ids, KnownLaw

KIND, VERSION = "acceptance profile of refengine", 1
MEAN = "the mean of a block"
REQUESTS = 300  # of a known law, equally many for each prompt of law.json
TOKENS = 16  # of such a request
LEAST_NOISE = 0.01  # of a share that is computed, beside one of as many coins
DRAWN, ARGMAX = "drawn", "argmax"  # how drafts come about


@dataclass(frozen=True)
class Profile:
    """Places by their names. exact: a rate that is given without counts, by the name of its place."""

    source: str
    places: Mapping[str, Place]
    exact: Mapping[str, float]

    def due(self, name: str, alpha: float, margin: float) -> tuple[float, float] | None:
        """The shares that may be due, with probability 1 - alpha, and the margin on both sides; None where unknown."""
        if name in self.exact:
            low = high = self.exact[name]
        elif name in self.places:
            place = self.places[name]
            shares = (place.share, Share(place.share.kept, max(place.fewest, place.share.kept)))
            low, high = (interval(s.thinned(place.noise or place.alike), alpha)[way] for way, s in enumerate(shares))
        else:
            return None
        return max(EDGE, low - margin), min(1 - EDGE, high + margin)

    def alike(self, name: str) -> float:
        return self.places[name].alike if name in self.places else 1.0

    def save(self, file: Path) -> None:
        """Raises BadInput."""
        places = [
            {
                "name": p.name,
                "kept": p.share.kept,
                "judged": p.share.judged,
                "fewest": p.fewest,
                "alike": p.alike,
                "noise": p.noise,
            }
            for p in self.places.values()
        ]
        told = {"kind": KIND, "version": VERSION, "source": self.source, "places": places}
        write_atomic(file, json.dumps(told, indent=1) + "\n")


def profile(sums: Sums, draft_tokens: int | None, source: str) -> Profile:
    """What some rounds are a golden profile of: their positions, and the mean of a block. Raises BadInput."""
    places = {place.name: place for place in sums.places(draft_tokens, source)}
    counted = [part for part in sums.parts if part.drafted]
    if MEAN not in places:
        depth = len(places)
        blocks = [Share(part.accepted / depth, part.drafted / depth) for part in counted]
        together = Share(sum(b.kept for b in blocks), sum(b.judged for b in blocks))
        alike = design_effect(blocks, together) if sums.requests else 1.0
        places[MEAN] = Place(MEAN, together, together.judged, alike)
    return Profile(source, places, {})


def load(file: Path) -> Profile:
    """A profile that was saved, or one of a draft checkpoint. Raises BadInput."""
    try:
        told = json.loads(text_of(file))
        if told.get("kind") == KIND:
            if told["version"] != VERSION:
                raise BadInput(f"{file} is of version {told['version']}, and this reads {VERSION}")
            places = [
                Place(
                    p["name"],
                    Share(float(p["kept"]), float(p["judged"])),
                    float(p["fewest"]),
                    float(p["alike"]),
                    p["noise"],
                )
                for p in told["places"]
            ]
            return Profile(told["source"], {place.name: place for place in places}, {})
        if told.get(RATES) and told.get("measured") and not told.get("acceptance_length_histogram"):
            rates = {f"position {i + 1}": float(rate) for i, rate in enumerate(told[RATES])}
            return Profile(str(file), {}, rates)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{file} is no profile: {error}") from None
    return profile(together(read(file), None, str(file)), None, str(file))


def together(told: list[Told], model: str | None, where: str) -> Sums:
    """What is told of one model. Raises BadInput where there are several and none is named."""
    models = sorted({one.model for one in told})
    if model is None and len(models) > 1:
        raise BadInput(
            f"{where} tells of {len(models)} models: name one with --model, of {', '.join(map(repr, models))}"
        )
    if model is not None and model not in models:
        raise BadInput(f"{where} tells nothing of the model {model!r}, but of {', '.join(map(repr, models)) or 'none'}")
    sums = Sums()
    for one in told:
        if model in (None, one.model):
            sums.add(one)
    return sums


def of_law(folder: Path, draft_tokens: int, drafts: str, requests: int, tell: Progress) -> Profile:
    """The profile of a folder of `refengine fixtures export`, at temperature 1. Raises BadInput.

    drafts  `drawn` from q, and weighed against it; `argmax` of q, a point mass, as an engine that samples the target
            and compares has it too
    """
    from refengine.audit.served.known.law import KnownLaw  # torch, which a profile does not need

    law, drafter = (KnownLaw.load(folder, part) for part in ("target", "drafter"))
    decoding = Decoding(law, drafter, draft_tokens, drafts == DRAWN)
    parts: list[Expected] = []
    for number, prompt in enumerate(law.prompts):
        parts += decoding.requests(law.ids(prompt), requests // len(law.prompts), number)
        tell(f"the law of {folder}", (number + 1) / len(law.prompts))
    places = {}
    for number, name in enumerate([*(f"position {i + 1}" for i in range(draft_tokens)), MEAN]):
        chances, coins = ([request.share(number, sums) for request in parts] for sums in ("chances", "kept"))
        total = Share(sum(s.kept for s in chances), sum(s.judged for s in chances))
        counted = Share(sum(s.kept for s in coins), total.judged)
        noise = design_effect(chances, total, LEAST_NOISE)
        places[name] = Place(name, total, total.judged, design_effect(coins, counted), noise)
    return Profile(f"the law of {folder}, {draft_tokens} drafts {drafts}", places, {})


@dataclass
class Expected:
    """Of a request: by position, the drafts that are judged and kept, and the sum of the chances of being kept."""

    coins: random.Random
    judged: list[int]
    kept: list[float]
    chances: list[float]

    def share(self, position: int, sums: str) -> Share:
        """By `kept` or by `chances`; of a whole block on average, behind the last position."""
        of: list[float] = getattr(self, sums)
        if position == len(of):
            return Share(sum(of) / len(of), self.judged[0])
        return Share(of[position], self.judged[position])


@dataclass(frozen=True)
class Decoding:
    """Decodes requests of one prompt side by side."""

    law: "KnownLaw"
    drafter: "KnownLaw"
    gamma: int
    drawn: bool

    def requests(self, prompt: "Ids", count: int, seed: int) -> list[Expected]:
        g = self.gamma
        made = [Expected(random.Random(f"{seed} {i}"), [0] * g, [0.0] * g, [0.0] * g) for i in range(count)]
        first = self.law.logits(prompt, [()])[0].softmax(-1)[-1].tolist()
        texts: list[Ids] = [(request.coins.choices(range(len(first)), first)[0],) for request in made]
        while going := [i for i, text in enumerate(texts) if len(text) < TOKENS and self.law.end not in text]:
            for i, more in zip(
                going, self._round(prompt, [texts[i] for i in going], [made[i] for i in going]), strict=True
            ):
                texts[i] += more
        return made

    def _round(self, prompt: "Ids", texts: "list[Ids]", made: list[Expected]) -> "list[Ids]":
        """What a round emits after each text."""
        q: list[list[list[float]]] = [[] for _ in texts]
        drafts: list[Ids] = [()] * len(texts)
        for _ in range(self.gamma):
            after = self.drafter.logits(prompt, [text + draft for text, draft in zip(texts, drafts, strict=True)])
            for i, logits in enumerate(after):
                row = logits[-1].softmax(-1)
                q[i].append(row.tolist())
                token = made[i].coins.choices(range(len(row)), q[i][-1])[0] if self.drawn else int(row.argmax())
                drafts[i] += (token,)
        rows = self.law.logits(prompt, [text + draft for text, draft in zip(texts, drafts, strict=True)])
        p = [logits[-self.gamma - 1 :].softmax(-1) for logits in rows]
        return [self._judged(p[i], q[i], drafts[i], request) for i, request in enumerate(made)]

    def _judged(self, p: "Tensor", q: list[list[float]], draft: "Ids", request: Expected) -> "Ids":
        rule = leviathan if self.drawn else point_mass
        rows: list[Any] = [row if self.drawn else None for row in q]
        block = chain(draft, rows, [("draft", i) if self.drawn else None for i in range(self.gamma)])
        given: list[Any] = p.tolist()
        emitted = rule(given, block, Sample(request.coins)).tokens
        for i in range(min(len(emitted), self.gamma)):
            chance = p[i].minimum(p.new_tensor(q[i])).sum() if self.drawn else p[i, draft[i]]
            request.judged[i] += 1
            request.kept[i] += i < len(emitted) - 1
            request.chances[i] += min(1.0, float(chance))
        return emitted
