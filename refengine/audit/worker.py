"""The child's side of a kernel audit: draws the drafts, calls the subject, sends back what it emitted."""

import random
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from refengine.audit import enumerated
from refengine.audit.case import step
from refengine.audit.child import Handler, SubjectRaised, subject_code
from refengine.audit.program import MARK, Program
from refengine.audit.signatures import (
    NOTHING,
    ContractBroken,
    Prefix,
    as_list,
    check_lanes,
    check_prefix,
    emitted,
    load,
)

Call = TypeVar("Call", int, NDArray[np.int64])
PREFIX = 3  # tokens before a round
Lanes: TypeAlias = tuple[tuple[int, ...], ...]  # the emitted tokens of every lane of a call


def make() -> Handler:
    """The factory that Child names."""
    return Worker()


@dataclass
class Table:
    """The rows of one case as tensors, ready to be handed over."""

    p: Tensor  # float32 [lanes, gamma + 1, contexts, V]
    q: Tensor
    noise: str
    cumulative: list[Any] = field(default_factory=list)  # [lane][position][context] -> list of V partial sums
    paths: dict[tuple[int, ...], tuple[Tensor, Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        q = self.q.double()
        self.cumulative = (q.cumsum(-1) / q.sum(-1, keepdim=True)).tolist()

    @property
    def gamma(self) -> int:
        return self.q.shape[1]

    def draw(self, lane: int, uniforms: list[float], race: Tensor | None) -> tuple[list[int], tuple[int, ...]]:
        """A draft from q, and the contexts it went through; by inverse CDF or as the winner of a race."""
        tokens: list[int] = []
        contexts, context = [0], 0
        for i, u in enumerate(uniforms):
            if race is None:
                x = bisect_right(self.cumulative[lane][i][context], u)
                x = min(x, self.q.shape[3] - 1)
            else:
                x = int((race[i] / self.q[lane, i, context]).argmin())
            tokens.append(x)
            context = int(step(context, x, self.p.shape[2]))
            contexts.append(context)
        return tokens, (lane, *contexts)

    def rows(self, path: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Fresh copies of the rows along a path (lane, context, context, ...): a subject may write into them."""
        if path not in self.paths:
            index = torch.tensor(path[1:])
            at = torch.arange(len(index))
            self.paths[path] = (self.p[path[0], at, index], self.q[path[0], at[:-1], index[:-1]])
        p, q = self.paths[path]
        return p.clone(), q.clone()


class Worker:
    """Answers {"op": "open" | "case" | "run" | "exact" | "stateless", ...}; drive.py is the other side."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self.subject: Callable[..., Any] | None = None
        self.signature = ""
        self.tensor_prefix = False
        self.tables: dict[str, Table] = {}

    def __call__(self, request: dict[str, Any]) -> Any:
        return getattr(self, request.pop("op"))(**request)

    def open(self, subject: str, signature: str) -> None:
        self.signature = signature
        with subject_code():
            self.subject = Program(subject, signature) if subject.startswith(MARK) else load(subject)

    def case(self, name: str, p: NDArray[np.float32], q: NDArray[np.float32], noise: str) -> None:
        self.tables[name] = Table(torch.from_numpy(p), torch.from_numpy(q), noise)

    def run(self, name: str, seeds: NDArray[np.int64], start: int, fresh: bool, seconds: float) -> dict[str, Any]:
        """One call per row of `seeds` [n, 3], numbered from `start`. Stops early at a broken contract or at the clock.
        `fresh` also seeds the generators of Python and numpy, which is too slow to do at every call.

        tokens int32 [calls, lanes of a call, gamma + 1] padded with -1, drafts int32 [calls, lanes of a call, gamma].
        """
        table, until = self.tables[name], time.monotonic() + seconds
        if fresh:
            random.seed(int(seeds[0, 2]))
            np.random.seed(int(seeds[0, 2]))
        generator = torch.Generator()
        tokens, drafts, broken = [], [], None
        for offset, (ours, everyone, _) in enumerate(seeds.tolist()):
            generator.manual_seed(ours)
            torch.default_generator.manual_seed(everyone)
            try:
                lanes, drafted = emit(self, table, start + offset, generator)
            except ContractBroken as error:
                broken = {"call": start + offset, "message": str(error)}
                break
            except SubjectRaised as error:
                raise SubjectRaised(f"{error} (case {name!r}, call {start + offset})") from error
            tokens.append([[*t, *[NOTHING] * (table.gamma + 1 - len(t))] for t in lanes])
            drafts.append(drafted)
            if time.monotonic() > until:
                break
        width = table.p.shape[0] if self.signature == "verify_batch" else 1
        return {
            "tokens": np.array(tokens, dtype=np.int32).reshape(-1, width, table.gamma + 1),
            "drafts": np.array(drafts, dtype=np.int32).reshape(-1, width, table.gamma),
            "broken": broken,
        }

    def exact(self, name: str, seconds: float) -> dict[str, Any]:
        """The exact law of one call on a case; see enumerated.py."""
        return enumerated.enumerate_law(self, name, seconds)

    def stateless(self, name: str, seeds: NDArray[np.int64]) -> bool:
        return enumerated.stateless(self, name, seeds)

    def ask(self, *arguments: Any) -> Any:
        assert self.subject is not None
        with subject_code():
            answer = self.subject(*arguments)
        if isinstance(answer, ContractBroken):
            raise answer
        return answer


def emit(worker: Worker, table: Table, call: int, generator: torch.Generator) -> tuple[Lanes, list[list[int]]]:
    """One call with drafts of its own: (emitted tokens per lane, drafts per lane)."""
    lanes = range(table.p.shape[0]) if worker.signature == "verify_batch" else [turn(call, table.p.shape[0])]
    if worker.signature == "round":
        return judge(worker, table, [[]], [(lanes[0],)], generator), [[NOTHING] * table.gamma]
    drawn = [_draw(table, lane, generator) for lane in lanes]
    drafts = [draft for draft, _ in drawn]
    return judge(worker, table, drafts, [path for _, path in drawn], generator), drafts


def judge(
    worker: Worker, table: Table, drafts: list[list[int]], paths: list[tuple[int, ...]], generator: torch.Generator
) -> Lanes:
    """What the subject emits for these drafts, checked. A path is (lane, context, context, ...)."""
    if worker.signature == "round":
        return (tuple(_round(worker, table, paths[0][0], generator)),)
    rows = [table.rows(path) for path in paths]
    vocabulary = table.p.shape[3]
    if worker.signature == "verify":
        answers = [worker.ask(*rows[0], torch.tensor(drafts[0]), generator)]
    else:
        p, q = torch.stack([p for p, _ in rows]), torch.stack([q for _, q in rows])
        answers = check_lanes(worker.ask(p, q, torch.tensor(drafts), generator), len(rows))
    lanes = [emitted(answer, table.gamma, vocabulary) for answer in answers]
    for tokens, draft in zip(lanes, drafts, strict=True):
        check_prefix(tokens, draft)
    return tuple(tuple(tokens) for tokens in lanes)


def _round(worker: Worker, table: Table, lane: int, generator: torch.Generator) -> list[int]:
    prefix: Any = Prefix((lane + i) % table.p.shape[3] for i in range(PREFIX))
    target, draft = _after(table.p[lane]), _after(table.q[lane])
    if worker.tensor_prefix:
        prefix = torch.tensor(prefix)
    try:
        answer = worker.ask(target, draft, prefix, table.gamma, generator)
    except SubjectRaised as error:  # the signature leaves open what a prefix is: a tensor is tried once
        if worker.tensor_prefix or not isinstance(error.__cause__, (TypeError, AttributeError)):
            raise
        worker.tensor_prefix = True
        return _round(worker, table, lane, generator)
    return emitted(answer, table.gamma, table.p.shape[3])


def turn(call: Call, lanes: int) -> Call:
    """Which lane a call of one lane takes: each twice in a row."""
    return call // 2 % lanes


def _draw(table: Table, lane: int, generator: torch.Generator) -> tuple[list[int], tuple[int, ...]]:
    """The draft comes from the very generator that the subject gets next: a subject that rewinds it meets our noise."""
    if table.noise == "race":
        race = torch.empty(table.gamma, table.q.shape[3]).exponential_(generator=generator)
        return table.draw(lane, [0.0] * table.gamma, race)
    return table.draw(lane, torch.rand(table.gamma, generator=generator).tolist(), None)


def _after(rows: Tensor) -> Callable[[Any], Tensor]:
    """tokens -> row after them, from rows [positions, contexts, V]; past the last position its row stays."""

    def after(tokens: Any) -> Tensor:
        context = 0
        continued = as_list(tokens)[PREFIX:]
        for token in continued:
            context = int(step(context, int(token), rows.shape[1]))
        return rows[min(len(continued), rows.shape[0] - 1), context].clone()

    return after
