"""The child's side of a kernel audit: it draws the drafts, calls the subject and returns the emitted tokens."""

import math
import random
import time
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from refengine.audit.kernel.child.calls import Subject, Table, emit, expected
from refengine.audit.kernel.child.enumerate import enumerate_law, stateless
from refengine.audit.kernel.child.program import Program
from refengine.audit.kernel.child.signatures import (
    NOTHING,
    ContractBroken,
    load,
    refusal,
)
from refengine.audit.kernel.request import MARK
from refengine.audit.sandbox.child import Handler, SubjectRaised, subject_code


def make() -> Handler:
    """The factory that Child names."""
    return Worker()


class Worker:
    """Answers {"op": "open" | "case" | "run" | "exact" | "stateless", ...}; campaign.py is the other side."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self.opened: Subject | None = None
        self.tables: dict[str, Table] = {}
        self.fastest = math.inf  # seconds of the call that took least

    def __call__(self, request: dict[str, Any]) -> Any:
        return getattr(self, request.pop("op"))(**request)

    def open(self, subject: str, signature: str) -> None:
        with subject_code():
            function = Program(subject, signature) if subject.startswith(MARK) else load(subject)
        if why := refusal(function, signature):
            raise SubjectRaised(why)
        self.opened = Subject(function, signature)

    @property
    def subject(self) -> Subject:
        assert self.opened is not None, "no subject was opened"
        return self.opened

    def case(self, name: str, p: NDArray[np.float32], q: NDArray[np.float32], noise: str) -> None:
        self.tables[name] = Table(torch.from_numpy(p), torch.from_numpy(q), noise)

    def run(
        self, name: str, seeds: NDArray[np.int64], start: int, fresh: bool, seconds: float = math.inf
    ) -> dict[str, Any]:
        """One call per row of `seeds` [n, 3], numbered from `start`. Stops early at a broken contract or at the clock.
        `fresh` also seeds the generators of Python and numpy, which is too slow to do at every call. A row of -1 goes
        on with the generators as they are.

        tokens int32 [calls, lanes of a call, gamma + 1] padded with -1, drafts int32 [calls, lanes of a call, gamma].
        """
        table, until = self.tables[name], time.monotonic() + seconds
        if fresh:
            random.seed(int(seeds[0, 2]))
            np.random.seed(int(seeds[0, 2]))
        generator = torch.Generator()
        tokens, drafts, broken = [], [], None
        for offset, (ours, everyone, _) in enumerate(seeds.tolist()):
            if ours >= 0:
                generator.manual_seed(ours)
                torch.default_generator.manual_seed(everyone)
            begun = time.monotonic()
            try:
                lanes, drafted = emit(self.subject, table, start + offset, generator)
            except ContractBroken as error:
                line = 'one line {"tokens": [...]} with ' if isinstance(self.subject.function, Program) else ""
                wanted = line + expected(table, self.subject.signature)
                made = {"call made": self.subject.described(), "expected": wanted}
                broken = {"call": start + offset, "message": str(error), **made}
                break
            except SubjectRaised as error:
                raise SubjectRaised(f"{error}, at {self.subject.described()} on input {name!r}") from error
            self.fastest = min(self.fastest, time.monotonic() - begun)
            tokens.append([[*t, *[NOTHING] * (table.gamma + 1 - len(t))] for t in lanes])
            drafts.append(drafted)
            if time.monotonic() > until:
                break
        width = table.p.shape[0] if self.subject.signature == "verify_batch" else 1
        return {
            "tokens": np.array(tokens, dtype=np.int32).reshape(-1, width, table.gamma + 1),
            "drafts": np.array(drafts, dtype=np.int32).reshape(-1, width, table.gamma),
            "broken": broken,
        }

    def pace(self) -> float:
        """Seconds of the fastest call so far: what else the machine has to do makes a call slower, never faster."""
        return self.fastest if math.isfinite(self.fastest) else 0.0

    def exact(self, name: str, most: int, seconds: float) -> dict[str, Any]:
        """The exact law of one call on a case; see enumerate.py."""
        return enumerate_law(self.subject, self.tables[name], most, seconds)

    def stateless(self, name: str, seeds: NDArray[np.int64]) -> bool:
        """Whether calls on a case answer alike when they are made in the opposite order."""
        return stateless(partial(self.run, name), seeds)
