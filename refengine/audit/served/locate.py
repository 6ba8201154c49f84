"""Where a law that was rejected differs: at which tokens, in which choice, alone or in company.

The pairs that rejected it fix, for every prefix they came to, the set of tokens that speculation gives too often. Fresh
answers are then counted: how much mass stands on those sets with speculation, less how much without. Each set was fixed
before the answers were asked for, so the mass that moved is at most the total variation there. Where rows are reported,
a token counts less the mass that its own row has on the set: what an earlier token led to is then no difference.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from statistics import fmean, stdev
from typing import Any, TypeAlias

from refengine.audit.served.ask import Answer, Choice
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.sampled import CLAIM, LAW_PROMPTS, NOWHERE, Law, Sampled
from refengine.audit.served.claims.scores import EVERY, LIKELIEST, PLACES, against_row
from refengine.evidence.e_process_of_prefixes import DEEPEST, Step

SAMPLED = 160  # choices of either side, alone and again in company
MOST_REQUESTS = 40  # of either side, for each of the two
SEEN = 8  # of either sampler, from which a prefix has a set of its own
WORDS = 8  # places of a text without rows that are told apart
DOUBT = 0.01  # that any of the intervals is wrong
CLEAR = 3.5  # standard errors
ALONE, COMPANY = "alone", "in company"
WAYS = ("likelier tokens come too often", "unlikely tokens come too often")
Counted: TypeAlias = dict[str, list[float]]  # a place -> one entry a token


@dataclass(frozen=True)
class Sets:
    """The tokens that come too often, by what was seen so far."""

    law: Law

    def counted(self, prompt: int, choice: Choice) -> list[tuple[int, float]]:
        """(position, whether the token is in the set of its prefix, less what its row has there); only where told."""
        steps, rows = self.law.reader.steps(choice), self.law.reader.laws(choice)
        found = []
        for i, (token, chance) in enumerate(steps):
            chosen = self._of(prompt, steps, i)
            if chosen is not None:
                mass = sum(map(rows[i].chance, chosen)) if chance is not None else 0.0
                found.append((i, float(token in chosen) - min(1.0, mass)))
            elif chance is not None and rows[i].listed:
                _, above, _ = against_row(token, rows[i])
                found.append((i, above if self.sharper(_place(i)) else -above))
        return found

    def sharper(self, place: str) -> bool:
        """Whether likely tokens came too often there."""
        score = self.law.scores.scores.get(f"{LIKELIEST} at {place}")
        return score is None or score.mean > 0

    def _of(self, prompt: int, steps: Sequence[Step], i: int) -> set[str] | None:
        if i >= DEEPEST:
            return None
        node = self.law.prefixes.nodes.get((prompt, *(token for token, _ in steps[:i])))
        if node is None or min(node.count) < SEEN:
            return None
        here, there = node.count
        return {token for token in node.first if node.first[token] * there > node.second[token] * here}


def _place(i: int) -> str:
    return next(name for name, places in PLACES.items() if i in places and name != EVERY)


def located(bench: Bench, cell: Sampled) -> dict[str, Any]:
    """Fresh answers, one at a time and then together: the mass that moved, with its interval, by place. Raises Refused,
    Failed."""
    law = cell.beliefs[CLAIM]
    sets = Sets(law)
    requests = min(MOST_REQUESTS, ceil(SAMPLED / cell.choices))
    asks = [
        [cell.ask(bench, i % LAW_PROMPTS, (7 << 24) + 2 * i + side) for i in range(2 * requests)] for side in (0, 1)
    ]
    alone = [bench.apart(on, off) for on, off in zip(asks[0][:requests], asks[1][:requests], strict=True)]
    company = bench.company(asks[0][requests:], asks[1][requests:])
    counted: tuple[Counted, Counted] = (defaultdict(list), defaultdict(list))
    name, gains = law.scores.strongest(), {ALONE: list[float](), COMPANY: list[float]()}
    for arm, pairs, first in ((ALONE, alone, 0), (COMPANY, company, requests)):
        for i, answers in enumerate(pairs):
            on, off = (law.score(name, (first + i) % LAW_PROMPTS, answer.choices) for answer in answers)
            gains[arm].append(on - off)
            for side, answer in zip(counted, answers, strict=True):
                _count(sets, side, (first + i) % LAW_PROMPTS, answer, arm)
    moved = _intervals(*counted)
    way = WAYS[not sets.sharper(EVERY)]
    said, only = _said(moved, way) or [law.named()], only_in(gains)
    return {
        "fresh choices of a side": 2 * requests * cell.choices,
        "mass moved, at least and at most": {name: list(ends) for name, ends in moved.items()},
        "it shows": [*said, *only] if said != [NOWHERE] or not only else only,
    }


def only_in(gains: dict[str, list[float]]) -> list[str]:
    """The arm in which alone fresh pairs move the score that told most; nothing where that is not clear. A pair's
    differences are independent of others', so that their mean is as far as that from another by chance once in 2,000
    times."""
    means = {arm: (fmean(found), stdev(found) / sqrt(len(found))) for arm, found in gains.items() if len(found) > 1}
    if len(means) < len(gains):
        return []
    (arm, (most, error)), (_, (least, other)) = sorted(means.items(), key=lambda told: -abs(told[1][0]))
    clear = abs(most) > CLEAR * error and abs(most - least) > CLEAR * sqrt(error**2 + other**2)
    return [f"only {arm}"] if clear and abs(least) <= CLEAR * other else []


def _count(sets: Sets, counted: Counted, prompt: int, answer: Answer, arm: str) -> None:
    for index, choice in enumerate(answer.choices):
        rows = bool(choice.top)
        for i, value in sets.counted(prompt, choice):
            if rows:
                names = [_place(i), arm, _choice(index)]
            else:
                names = [f"word {i + 1}"] * (i < WORDS) + [arm, _choice(index)] * (i == 0)
            for name in names:
                counted[name].append(value)


def _choice(index: int) -> str:
    return f"in choice {index + 1}"


def _intervals(on: Counted, off: Counted) -> dict[str, tuple[float, float]]:
    """Of the difference of the means: Azuma's bound on either side, for all places at once. A token counts in a range
    of 1, and given what stands before it its mean does not depend on the others."""
    names = [name for name in on if name in off]
    found = {}
    for name in names:
        here, there = on[name], off[name]
        middle = sum(here) / len(here) - sum(there) / len(there)
        width = sqrt(log(2 * len(names) / DOUBT) / 2 * (1 / len(here) + 1 / len(there)))
        found[name] = (round(max(-1.0, middle - width), 2), round(min(1.0, middle + width), 2))
    return found


def _said(moved: dict[str, tuple[float, float]], way: str) -> list[str]:
    """In words: the first place that differs, the choices that do alone, and the way it goes; nothing where
    fresh answers show it at no place."""
    places = [name for name in (*PLACES, *(f"word {i + 1}" for i in range(WORDS))) if name in moved]
    shows = next((name for name in places if moved[name][0] > 0), None)
    said = []
    if shows:
        said = [f"at {shows}, {moved[shows][0]:g} to {moved[shows][1]:g} of the mass moved"]
        if moved[places[0]][1] < moved[shows][0]:
            said.append(f"not at {places[0]}")
    choices = [name for name in moved if name.startswith("in choice")]
    found = [name for name in choices if moved[name][0] > 0]
    rest = [moved[name][1] for name in choices if name not in found]
    if found and rest and max(rest) < max(moved[name][0] for name in found):
        said.append(f"only {', '.join(found)}")
    return [*said, way] if said else []
