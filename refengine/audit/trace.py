"""`audit trace`: the record of an engine's own rounds, compared with the rows that it verified against.

The record is one safetensors file of N rounds, in the shapes of the batched signature:

    p        float [N, gamma + 1, V]   the target's rows, along the draft
    q        float [N, gamma, V]       the draft's rows
    draft    int   [N, gamma]          padded with -1 where a round drafted fewer
    emitted  int   [N, gamma + 1]      padded with -1

Nothing is run: the rounds are sequential evidence, in their order. Whether the rows are those of the model cannot be
said from a record; whether the emitted tokens follow the rows can.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from refengine.audit.common import CLAIM, MAX_UNSEEN_TV, SOURCE, Progress, thinned
from refengine.audit.kernel.child.signatures import ContractBroken, check_prefix, emitted
from refengine.audit.magnitude import at_least
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.evidence.distance import mean_tv_at_least
from refengine.evidence.e_process_of_rounds import SHARES, RoundEvidence
from refengine.evidence.naming import BROKEN_CONTRACT, ZERO_MASS
from refengine.evidence.power import ends_wealth
from refengine.evidence.rows import Rows
from refengine.report.finding import Finding, Number, Recipe

Rounds: TypeAlias = Iterator[tuple[Rows, Rows, list[int], list[int]]]
NAMES = ("p", "q", "draft", "emitted")
MAX_EXCESS_MASS = 1e-3  # of a row, beyond the rounding of its type; rows are renormalised in float64
MIN_NORMAL = 1e-9  # a type whose normal numbers end above it may have rounded a lighter token to zero
NAMING_ROUNDS = 500  # after the verdict, for its diagnosis and its size
CONFIDENCE = 0.999  # of the bound on its size
POWER_TEXT = "would have been seen with probability 0.99"
WHOLE = {f"{sign}{bits}": np.dtype(f"{sign.lower()}{bits // 8}") for sign in "IU" for bits in (8, 16, 32, 64)}
STORED = {**WHOLE, "F16": np.dtype("f2"), "F32": np.dtype("f4"), "F64": np.dtype("f8"), "BF16": np.dtype("u2")}
TINY = {"F16": 2.0**-14, "BF16": 2.0**-126, "F32": 2.0**-126, "F64": 2.0**-1022}  # the least normal number
EPS = {"F16": 2.0**-10, "BF16": 2.0**-7, "F32": 2.0**-23, "F64": 2.0**-52}  # between 1 and the next number


@dataclass(frozen=True)
class Stored:
    """A tensor as it lies in the file. kind: as safetensors calls it; of BF16 the upper half of a float32 is kept."""

    kind: str
    entries: NDArray[Any]

    def rows(self, number: int, count: int) -> Rows:
        """The first of a round, in float64."""
        entries = self.entries[number, :count]
        if self.kind == "BF16":
            entries = (entries.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return np.asarray(entries, dtype=np.float64)


@dataclass(frozen=True)
class Record:
    """The tensors of the file, checked."""

    p: Stored
    q: Stored
    draft: NDArray[np.int64]
    emitted: NDArray[np.int64]

    def rounds(self) -> Rounds:
        """(p, q, draft, emitted) of each round, without padding, the rows in float64 and normalised."""
        for number, (draft, answer) in enumerate(zip(self.draft, self.emitted, strict=True)):
            gamma = int((draft >= 0).sum())
            rows = [
                _normalised(stored.rows(number, count), stored.kind, name, number)
                for name, stored, count in (("p", self.p, gamma + 1), ("q", self.q, gamma))
            ]
            yield rows[0], rows[1], draft[:gamma].tolist(), answer.tolist()


@dataclass
class Trial:
    """The evidence of the rounds so far. end: why the null is rejected; empty while it is not."""

    evidence: RoundEvidence
    bar: float  # log evidence at which the null is rejected
    rounds: int = 0
    tokens: int = 0
    end: Literal["", "rejected", "impossible", "broken"] = ""
    what: str = ""
    curve: list[tuple[int, float]] = field(default_factory=list)

    def add(self, p: Rows, q: Rows, draft: list[int], answer: list[int]) -> None:
        """One more round; p and q without padding."""
        self.rounds += 1
        try:
            tokens = emitted(answer, len(draft), p.shape[1])
            check_prefix(tokens, draft)
        except ContractBroken as error:
            self.end, self.what = "broken", f"round {self.rounds}: {error}"
            return
        self.tokens += len(tokens)
        if not self.evidence.add(p, q, np.array(tokens)):
            site = next(i for i, token in enumerate(tokens) if p[i, token] <= 0)
            self.end = "impossible"
            self.what = f"round {self.rounds}: token {tokens[site]} at position {site} has p = 0"
            return
        found = self.evidence.log_evidence()
        self.curve.append((self.rounds, found))
        if found >= self.bar and not self.end:
            self.end, self.what = "rejected", f"the first {self.rounds} rounds: 1e{found / np.log(10):.1f} to 1"


def audit_trace(
    file: str, alpha: float = ALPHA, digest: str | None = None, progress: Progress = lambda what, share: None
) -> list[Finding]:
    """One finding about the rounds in `file`. Raises BadInput where it is no record, or not the one with `digest`.

    alpha   the probability of accusing an engine whose rounds are lossless, however long the record
    digest  SHA-256 of the file that a finding is about, for making it again
    """
    record, sha = read(Path(file)), hashlib.sha256(Path(file).read_bytes()).hexdigest()
    if digest is not None and digest != sha:
        raise BadInput(f"{file} is not the record that was audited: its SHA-256 is {sha}")
    trial = Trial(RoundEvidence(record.draft.shape[1]), -np.log(alpha))
    rounds = record.rounds()
    try:
        for one in rounds:
            trial.add(*one)
            progress(f"{trial.rounds} rounds", trial.rounds / len(record.draft))
            if trial.end:
                break
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    return [_finding(file, alpha, sha, record, trial, _named(trial, rounds) if trial.end else None)]


def _named(trial: Trial, rest: Rounds) -> tuple[str, float]:
    """(the diagnosis, a lower bound on the mean total variation), both from a few rounds more. The cells that come too
    often were fixed before those rounds, so their surplus bounds the total variation (Azuma)."""
    if trial.end != "rejected":
        return (BROKEN_CONTRACT if trial.end == "broken" else ZERO_MASS), 0.0
    learned, every = trial.evidence.learned, trial.evidence.every
    often = learned.often(every)
    seen, expected = learned.seen[every].copy(), learned.expected[every].copy()
    for p, q, draft, answer in islice(rest, NAMING_ROUNDS):
        with suppress(ContractBroken):
            trial.evidence.add(p, q, np.array(emitted(answer, len(draft), p.shape[1])))
    hits, mass = (learned.seen[every] - seen), (learned.expected[every] - expected)
    draws = max(int(hits.sum()), 1)
    least = mean_tv_at_least(int(hits[often].sum()), draws, float(mass[often].sum()) / draws, CONFIDENCE)
    return trial.evidence.diagnosis(), round(least, 3)


def _finding(
    file: str, alpha: float, sha: str, record: Record, trial: Trial, named: tuple[str, float] | None
) -> Finding:
    arguments = {"file": file, "alpha": alpha, "digest": sha}
    least = detectable(trial, alpha)
    method = f"sequential evidence, alpha {alpha:g}, {trial.rounds} rounds, {trial.tokens} tokens"
    reason = _says_nothing(record, trial, least)
    numbers: dict[str, Number] = {"rounds": trial.rounds, "tokens": trial.tokens}
    violated: dict[str, Any] = {}
    if named is not None and not reason:
        violated["magnitude"] = at_least(named[1], 1e-3, trial.end == "impossible")
        violated["witness"] = {"rounds": trial.rounds, "what": trial.what}
        violated["diagnosis"] = named[0]
    return Finding(
        id=f"audit.trace/{Path(file).name}",
        subject=f"{len(record.draft)} recorded rounds over a vocabulary of {record.p.entries.shape[2]}",
        claim=CLAIM,
        source=SOURCE,
        role="subject",
        verdict="not tested" if reason else "violated" if trial.end else "consistent",
        reason=reason,
        method=method if trial.end or reason else f"{method}, TV >= {least:.1g} in tokens of one kind {POWER_TEXT}",
        recipe=Recipe(function=f"{__name__}:audit_trace", arguments=arguments),
        numbers=numbers,
        tables={"evidence": thinned(trial.curve)},
        **violated,
    )


def _says_nothing(record: Record, trial: Trial, least: float) -> str:
    """Why the record decides nothing; empty where it does."""
    if trial.end == "impossible" and TINY[record.p.kind] > MIN_NORMAL:
        return f"{trial.what}, to which {record.p.kind} may have rounded it: record the rows as float32"
    if not trial.end and least > MAX_UNSEEN_TV:
        return f"{trial.tokens} tokens would not show a TV of {MAX_UNSEEN_TV:g}: record more rounds"
    return ""


def detectable(trial: Trial, alpha: float) -> float:
    """The TV that would have been seen where every token shows as much of it: a learner must pay log(1/alpha), its
    share, and its choice between positions and concentrations."""
    choices = trial.evidence.learned.log_wealth.size / SHARES["learned"]
    return ends_wealth(trial.tokens, alpha, 16.0 * choices)


def read(file: Path) -> Record:
    """The record, its shapes checked. Raises BadInput."""
    try:
        tensors = _stored(file)
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{file} cannot be read as safetensors: {error}") from None
    for name in NAMES:
        if name not in tensors:
            raise BadInput(f"{file} has no tensor {name!r}; a record holds {', '.join(NAMES)}")
    p, q, draft, answer = (tensors[name] for name in NAMES)
    if p.entries.ndim != 3 or 0 in p.entries.shape:
        raise BadInput(f"{file}: p has shape {list(p.entries.shape)}, not [rounds, gamma + 1, V]")
    rounds, width, vocabulary = p.entries.shape
    for name, tensor, shape, rows in (
        ("p", p, [rounds, width, vocabulary], True),
        ("q", q, [rounds, width - 1, vocabulary], True),
        ("draft", draft, [rounds, width - 1], False),
        ("emitted", answer, [rounds, width], False),
    ):
        found = list(tensor.entries.shape)
        if found != shape:
            raise BadInput(f"{file}: {name} has shape {found}; beside p {[rounds, width, vocabulary]} it is {shape}")
        if (tensor.kind in EPS) != rows:
            raise BadInput(f"{file}: {name} is {tensor.kind}, not {'probabilities' if rows else 'token ids'}")
    drafted, told = (tensor.entries.astype(np.int64) for tensor in (draft, answer))
    padded = (drafted[:, 1:] >= 0) & (drafted[:, :-1] < 0)
    if padded.any() or (drafted < -1).any() or (drafted >= vocabulary).any():
        raise BadInput(f"{file}: draft holds token ids below {vocabulary}, then only -1 as padding")
    return Record(p, q, drafted, told)


def _stored(file: Path) -> dict[str, Stored]:
    """The tensors of a record, where they lie. Raises OSError, SafetensorError, BadInput for kinds that none has."""
    with safe_open(file, framework="np"):
        pass  # now its header is sound, and the tensors fill the file
    data = np.memmap(file, np.uint8, "r")
    begin = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:begin].tobytes())
    found = {}
    for name in header.keys() & set(NAMES):
        told = header[name]
        if (kind := told["dtype"]) not in STORED:
            raise BadInput(f"{file}: {name} is stored as {kind}: record rows as float32, tokens as int64")
        first, last = told["data_offsets"]
        found[name] = Stored(kind, data[begin + first : begin + last].view(STORED[kind]).reshape(told["shape"]))
    return found


def _normalised(exact: Rows, kind: str, name: str, number: int) -> Rows:
    total = exact.sum(-1, keepdims=True)
    if not np.isfinite(exact).all() or (exact < 0).any() or (np.abs(total - 1) > MAX_EXCESS_MASS + EPS[kind]).any():
        sums = ", ".join(f"{x:.6g}" for x in total.ravel())
        raise BadInput(f"{name} of round {number + 1} is no distribution: its rows sum to {sums}")
    return np.asarray(exact / total)
