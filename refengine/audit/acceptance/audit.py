"""`audit acceptance`: a finding for each position of a block. Nothing is run: what an engine has counted is read.

Half of alpha is spent on what is due, and half on what was seen; each is split over the positions. Evidence depends on
the sums alone, so counters may be scraped and held to the same profile as often as one likes.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from refengine.audit.acceptance import texts
from refengine.audit.acceptance.due import DRAWN, REQUESTS, Profile, load, of_law, profile, together
from refengine.audit.acceptance.meaning import meaning
from refengine.audit.acceptance.rounds import Place, Sums
from refengine.audit.acceptance.sources import read
from refengine.audit.common import MAX_UNSEEN_TV, Progress
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.evidence.e_process_of_shares import Share, detectable, interval, log_evidence, log_evidence_of_chances
from refengine.report.finding import Finding, Number, Quantity, Recipe

SOURCE = "Leviathan et al. 2023, Corollary 3.6: a draft is kept with probability sum min(p, q) = 1 - TV(p, q)"
RUNNING = 1024  # requests at once, of which the last step may be counted in part when an engine is scraped
MARGIN = 0.02  # of a share, by which prompts and rounding may move it


@dataclass(frozen=True)
class Looked:
    """A position. nats: of evidence; way: whether drafts are kept too often."""

    place: Place
    low: float
    high: float
    share: Share
    nats: float

    @property
    def too_often(self) -> bool:
        return self.share.rate > self.high


def audit_acceptance(
    files: Sequence[str],
    since: str | None = None,
    known: str | None = None,
    golden: str | None = None,
    draft_tokens: int | None = None,
    drafts: str = DRAWN,
    model: str | None = None,
    margin: float = MARGIN,
    alpha: float = ALPHA,
    digest: str | None = None,
    requests: int = REQUESTS,
    progress: Progress = lambda what, share: None,
) -> list[Finding]:
    """The findings about what `files` count. Raises BadInput where they count nothing, or are not those with `digest`.

    since    an earlier scrape, which is taken off the counters of the one file
    known    a folder of `fixtures export`: what is due are its sums of min(p, q); else `golden`, a profile
    margin   by how much a share may differ from what is due
    digest   SHA-256 of the files that a finding is about, for making it again
    """
    sha = digest_of([*files, *([since] if since else [])])
    if digest is not None and digest != sha:
        raise BadInput(f"{' '.join(files)}: not what was audited, the SHA-256 is {sha}")
    told = texts.answers(files) if known is not None else []
    sums = counted(files, since, model)
    places = sums.places(draft_tokens, " ".join(files))
    due = load(Path(golden)) if golden else None
    if due is None and not told:
        depth = draft_tokens or len(places)
        due = of_law(Path(str(known)), depth, drafts, requests, progress)
    asked = {"files": list(files), "since": since, "known": known, "golden": golden, "model": model}
    chosen = {"draft_tokens": draft_tokens, "drafts": drafts, "margin": margin, "alpha": alpha, "requests": requests}
    arguments = {**asked, **chosen, "digest": sha}
    found: list[Looked | None]
    if due is not None:
        found, source = [looked(place, due, alpha / (2 * len(places)), margin) for place in places], due.source
    else:
        every = texts.judged(told, Path(str(known)), drafts == DRAWN)
        places = places[: len(every)]
        found = [looked_at_each(*pair, alpha / len(places)) for pair in zip(places, every, strict=True)]
        source = f"the law of {known} at every prefix"
    named = Named(model or " ".join(Path(file).name for file in files), source, sums.notes, arguments)
    of_places = [named.finding(place, one, found) for place, one in zip(places, found, strict=True)]
    return of_places + [named.of_two_counts(*twice, len(places)) for twice in sums.twice]


def counted(files: Sequence[str], since: str | None, model: str | None) -> Sums:
    """What files tell of one model. Raises BadInput."""
    if since is not None and len(files) > 1:
        raise BadInput("--since belongs to one scrape: name one file beside it")
    told = [one for file in files for one in read(Path(file), Path(since) if since else None)]
    return together(told, model, " ".join(files))


def looked(place: Place, due: Profile, alpha: float, margin: float) -> Looked | None:
    """None where nothing is known to be due."""
    ends = due.due(place.name, alpha, margin)
    if ends is None:
        return None
    alike = max(place.alike, due.alike(place.name))
    within = min(max(place.share.rate, ends[0]), ends[1])
    fitting = min(max(place.share.kept / within, place.fewest), place.share.judged)  # of what may have been judged
    share = Share(place.share.kept, fitting).thinned(alike)
    return Looked(place, *ends, share, log_evidence(share, *ends) - log(1 / alpha))


def looked_at_each(place: Place, judged: texts.Judged, alpha: float) -> Looked | None:
    """Of drafts whose chances are known one by one, whatever the margin and the design effect."""
    share = Share(float(sum(judged.kept)), float(len(judged.kept)))
    if not judged.kept:
        return None
    due = sum(judged.chances) / len(judged.chances)
    nats = log_evidence_of_chances(judged.kept, judged.chances) - log(1 / alpha)
    return Looked(place, due, due, share, nats)


def digest_of(files: Sequence[str]) -> str:
    """Raises BadInput."""
    whole = hashlib.sha256()
    for file in files:
        try:
            whole.update(Path(file).read_bytes())
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error.strerror}") from None
    return whole.hexdigest()


@dataclass(frozen=True)
class Named:
    """Whose counts are audited, and how the findings are made again."""

    subject: str
    due: str
    notes: Sequence[str]
    arguments: dict[str, Any]

    def finding(self, place: Place, one: Looked | None, every: Sequence[Looked | None]) -> Finding:
        position = place.name.startswith("position")
        claim = f"Drafts at {place.name} are kept" if position else f"Of {place.name} as much is kept"
        common = self._common(place.name, f"{claim} as often as is due." if position else f"{claim} as is due.")
        alpha = self.arguments["alpha"]
        method = f"sequential evidence, alpha {alpha:g} over all positions, {place.share.judged:.0f} drafts judged"
        if one is None:
            return Finding(verdict="not tested", reason=f"{self.due} has no {place.name}", method=method, **common)
        numbers: dict[str, Number] = {"kept": _number(place.share.kept), "judged": _number(place.share.judged)}
        numbers["nats over the bar"] = Quantity(value=round(one.nats, 2), tolerance=1e9)
        table = {
            "position": [_index(place)],
            "expected": [round(_middle(one), 4)],
            "observed": [round(place.share.rate, 4)],
            "count": [round(one.share.judged, 4)],
        }
        common |= {"numbers": numbers, "tables": {"acceptance": table}}
        bar = log(2 * len(every) / alpha)
        least = detectable(one.share.judged, one.low, one.high, bar)
        seen = f"a share that is {least:.2g} above or below it would have been seen with probability 0.99"
        if one.nats >= 0:
            first = every[0]
            too = first is not None and first.nats >= 0 and first.too_often == one.too_often
            later = _index(place) > 1 and not too
            meant = meaning(one.too_often, later)
            witness = {"kept": numbers["kept"], "judged": numbers["judged"], "due": self._said(one)}
            ends = interval(one.share, alpha / (2 * len(every)))
            witness["the share at every look"] = f"{ends[0]:.4f} to {ends[1]:.4f}"
            way = "too often" if one.too_often else "too seldom"
            observed = f"drafts at {place.name} are kept {way}, {place.share.rate:.3f} of the time"
            told = [meant.sentence, *self.notes]
            more: dict[str, Any] = {"witness": witness, "diagnosis": meant.diagnosis(observed), "notes": told}
            return Finding(verdict="violated", method=method, **common, **more)
        if least > MAX_UNSEEN_TV:
            reason = f"{place.share.judged:.0f} drafts at {place.name} would not show {MAX_UNSEEN_TV:g} more or less"
            return Finding(verdict="not tested", reason=reason, method=method, notes=list(self.notes), **common)
        note = f"{place.share.rate:.3f} at {place.name}; due is {self._said(one)}: {seen}."
        return Finding(verdict="consistent", method=method, notes=[note, *self.notes], **common)

    def of_two_counts(self, by_position: int, in_all: int, depth: int) -> Finding:
        """Nothing is due: two counts of the same tokens agree, but for what a scrape misses in the middle of a step."""
        common = self._common("one count", "The positions add up to the tokens that are accepted in all.")
        common["numbers"] = {"by position": by_position, "in all": in_all}
        observed = f"by position {by_position} tokens are accepted, and in all {in_all}"
        method = f"equality; a scrape may miss a step of {RUNNING} requests and {depth} positions"
        if by_position == in_all:
            return Finding(verdict="consistent", method=method, **common)
        if abs(by_position - in_all) <= RUNNING * depth:
            reason = f"{observed}, as a scrape may while requests run: scrape again when none does"
            return Finding(verdict="not tested", reason=reason, method=method, **common)
        return Finding(verdict="violated", diagnosis=observed, witness=common["numbers"], method=method, **common)

    def _common(self, name: str, claim: str) -> dict[str, Any]:
        return {
            "id": f"audit.acceptance/{name}",
            "subject": f"acceptance counted in {self.subject}",
            "claim": claim,
            "source": SOURCE,
            "role": "subject",
            "recipe": Recipe(function=f"{__name__}:audit_acceptance", arguments=self.arguments),
            "replay": "statistical" if self.arguments["known"] else "exact",
        }

    def _said(self, one: Looked) -> str:
        return f"{one.low:.4f} to {one.high:.4f} by {self.due}"


def save_golden(
    files: Sequence[str],
    since: str | None,
    known: str | None,
    draft_tokens: int | None,
    drafts: str,
    model: str | None,
    out: Path,
    progress: Progress,
) -> str:
    """Write what files count, or what is due by a known law, as a profile; and say so. Raises BadInput."""
    if files:
        made = profile(counted(files, since, model), draft_tokens, " ".join(Path(file).name for file in files))
    else:
        made = of_law(Path(str(known)), draft_tokens or 3, drafts, REQUESTS, progress)
    made.save(out)
    told = (f"{place.share.rate:.4f} of {place.share.judged:.0f} at {place.name}" for place in made.places.values())
    return f"{out} written: {', '.join(told)}"


def _number(value: float) -> Number:
    return int(value) if value == int(value) else Quantity(value=round(value, 6), tolerance=1e-3)


def _index(place: Place) -> int:
    """From 1; 0 of the mean of a block."""
    last = place.name.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


def _middle(one: Looked) -> float:
    return (one.low + one.high) / 2
