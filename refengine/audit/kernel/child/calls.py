"""One call of the subject: its rows, its drafts, and its answer, checked. In the child."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from refengine.audit.inputs.case import step, turn
from refengine.audit.kernel.child.signatures import (
    MAX_ENTRIES,
    NOTHING,
    ContractBroken,
    Prefix,
    as_list,
    check_lanes,
    check_prefix,
    emitted,
)
from refengine.audit.kernel.request import PARAMETERS
from refengine.audit.sandbox.child import SubjectRaised, alive, subject_code

PREFIX_TOKENS = 3  # before a round
CPU: Any = {"device": "cpu"}  # named at every tensor of ours: a subject may set another default
Lanes: TypeAlias = tuple[tuple[int, ...], ...]  # the emitted tokens of every lane of a call


@dataclass
class Table:
    """The rows of one input as tensors, ready to be passed."""

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
        """A draft from q and the contexts along it; by inverse CDF or as the winner of a race."""
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
            index = torch.tensor(path[1:], **CPU)
            at = torch.arange(len(index), **CPU)
            self.paths[path] = (self.p[path[0], at, index], self.q[path[0], at[:-1], index[:-1]])
        p, q = self.paths[path]
        return p.clone(), q.clone()


class Subject:
    """The audited function behind its signature. Its exceptions are SubjectRaised; ours are not."""

    def __init__(self, function: Callable[..., Any], signature: str) -> None:
        self.function, self.signature = function, signature
        self.tensor_prefix = False
        self.calls = 0
        self.arguments: tuple[Any, ...] = ()  # of the last call

    def described(self) -> str:
        """The last call, for a message."""
        given = zip(PARAMETERS[self.signature], self.arguments, strict=True)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"call {self.calls}: {name}({', '.join(f'{name}{_shown(value)}' for name, value in given)})"

    def call(self, *arguments: Any) -> Any:
        alive()
        self.calls += 1
        self.arguments = arguments
        with subject_code():
            answer = self.function(*arguments)
            answer = taken(answer)
        if isinstance(answer, ContractBroken):
            raise answer
        return answer


def taken(answer: Any) -> Any:
    """What an iterable of the subject's own yields, which is its own code too; at most MAX_ENTRIES and one more."""
    known = (Tensor, np.ndarray, str, bytes, list, tuple, Mapping, Set)
    lazy = isinstance(answer, Iterable) and not isinstance(answer, known)
    return list(islice(answer, MAX_ENTRIES + 1)) if lazy else answer


def _shown(value: Any) -> str:
    """An argument of a call: its numbers where they are few and whole, else its type and shape."""
    if isinstance(value, int):
        return f"={value}"
    if isinstance(value, Prefix) or (isinstance(value, Tensor) and not value.is_floating_point()):
        return f"={as_list(value)}"
    return f" {str(value.dtype).removeprefix('torch.')}{list(value.shape)}" if isinstance(value, Tensor) else ""


def expected(table: Table, signature: str) -> str:
    """What a call on this input should have answered."""
    some = f"1 to {table.gamma + 1} token ids below {table.p.shape[3]}"
    if signature == "verify_batch":
        return f"{table.p.shape[0]} rows of {some}, padded with {NOTHING} to one length: a tensor, an array or lists"
    return f"the {some} that were emitted: a list, or a tensor or array of one dimension"


def emit(subject: Subject, table: Table, call: int, generator: torch.Generator) -> tuple[Lanes, list[list[int]]]:
    """One call with drafts of its own: (emitted tokens per lane, drafts per lane)."""
    lanes = range(table.p.shape[0]) if subject.signature == "verify_batch" else [turn(call, table.p.shape[0])]
    if subject.signature == "round":
        return judge(subject, table, [[]], [(lanes[0],)], generator), [[NOTHING] * table.gamma]
    drawn = [_draw(table, lane, generator) for lane in lanes]
    drafts = [draft for draft, _ in drawn]
    return judge(subject, table, drafts, [path for _, path in drawn], generator), drafts


def judge(
    subject: Subject, table: Table, drafts: list[list[int]], paths: list[tuple[int, ...]], generator: torch.Generator
) -> Lanes:
    """What the subject emits for these drafts, checked. A path is (lane, context, context, ...)."""
    if subject.signature == "round":
        return (tuple(_round(subject, table, paths[0][0], generator)),)
    rows = [table.rows(path) for path in paths]
    vocabulary = table.p.shape[3]
    if subject.signature == "verify":
        answers = [subject.call(*rows[0], torch.tensor(drafts[0], **CPU), generator)]
    else:
        p, q = torch.stack([p for p, _ in rows]), torch.stack([q for _, q in rows])
        answers = check_lanes(subject.call(p, q, torch.tensor(drafts, **CPU), generator), len(rows))
    lanes = [emitted(answer, table.gamma, vocabulary) for answer in answers]
    for tokens, draft in zip(lanes, drafts, strict=True):
        check_prefix(tokens, draft)
    return tuple(tuple(tokens) for tokens in lanes)


def _round(subject: Subject, table: Table, lane: int, generator: torch.Generator) -> list[int]:
    prefix: Any = Prefix((lane + i) % table.p.shape[3] for i in range(PREFIX_TOKENS))
    target, draft = _after(table.p[lane]), _after(table.q[lane])
    if subject.tensor_prefix:
        prefix = torch.tensor(prefix, **CPU)
    try:
        answer = subject.call(target, draft, prefix, table.gamma, generator)
    except SubjectRaised as error:  # the signature does not say what a prefix is: a tensor is tried once
        if subject.tensor_prefix or not isinstance(error.__cause__, (TypeError, AttributeError)):
            raise
        subject.tensor_prefix = True
        return _round(subject, table, lane, generator)
    return emitted(answer, table.gamma, table.p.shape[3])


def _draw(table: Table, lane: int, generator: torch.Generator) -> tuple[list[int], tuple[int, ...]]:
    """The draft comes from the generator that the subject gets next: a subject that rewinds it reuses our noise."""
    if table.noise == "race":
        race = torch.empty(table.gamma, table.q.shape[3], dtype=torch.float32, **CPU).exponential_(generator=generator)
        return table.draw(lane, [0.0] * table.gamma, race)
    return table.draw(lane, torch.rand(table.gamma, generator=generator, dtype=torch.float32, **CPU).tolist(), None)


def _after(rows: Tensor) -> Callable[[Any], Tensor]:
    """tokens -> row after them, from rows [positions, contexts, V]; after the last position its row stays."""

    def after(tokens: Any) -> Tensor:
        context = 0
        continued = as_list(tokens)[PREFIX_TOKENS:]
        for token in continued:
            context = int(step(context, int(token), rows.shape[1]))
        return rows[min(len(continued), rows.shape[0] - 1), context].clone()

    return after


def drafts(table: Table, signature: str) -> Iterator[tuple[list[list[int]], list[tuple[int, ...]], float]]:
    """(draft per lane, path of contexts per lane, probability); a proposer of the subject's own draws for itself."""
    lanes = range(table.p.shape[0] if signature == "verify_batch" else 1)
    if signature == "round":
        yield [[] for _ in lanes], [(lane,) for lane in lanes], 1.0
        return
    per_lane = [list(_chains(table, lane)) for lane in lanes]
    for chosen in product(*per_lane):
        weight = float(np.prod([mass for _, _, mass in chosen]))
        yield [draft for draft, _, _ in chosen], [path for _, path, _ in chosen], weight


def _chains(table: Table, lane: int) -> Iterator[tuple[list[int], tuple[int, ...], float]]:
    for draft in product(range(table.q.shape[3]), repeat=table.gamma):
        context, path, mass = 0, [0], 1.0
        for i, x in enumerate(draft):
            row = table.q[lane, i, context].double()
            mass *= float(row[x] / row.sum())
            context = int(step(context, x, table.p.shape[2]))
            path.append(context)
        if mass > 0:
            yield list(draft), (lane, *path), mass
