"""The claim about coins in company: requests without a seed that are under way together are independent.

Where one coin serves all rows of a batch each answer has the right law, and those of one batch begin alike too often:
two of them by some percent, which two equal requests a look show too seldom. So two batches of equal requests are sent,
one after the other, and what is compared are all pairs in a batch.

Null: which batch an answer was in moves nothing. The bet is exp(weight * how alike the answers of a batch are, in
standard deviations), divided by its mean over this way to part the answers and DRAWN others, which are drawn before:
whatever the answers are, each of these is as likely as the true one. So it has mean 1, and gains log (DRAWN + 1) = 6.9
nats a look at most. One weight is for a coin that decides all, the other for one that decides some.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from random import Random
from typing import Any

import numpy as np

from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.others_seeds import Followed, alike
from refengine.audit.served.claims.schedule_requests import sampled
from refengine.evidence.rows import Rows, log_sum

CLAIM = "Requests without a seed that are under way together are independent."
SIZE = 14  # requests of a batch
TOKENS = 4  # what is alike by chance is seldom longer
WEIGHTS = (1.0, 3.0)  # nats of a standard deviation
DRAWN = 999


def bet(texts: Sequence[str], key: str) -> float:
    """In nats, of the answers of two batches, one after the other."""
    chance = Random(key)
    parted = np.array([range(2 * SIZE), *(chance.sample(range(2 * SIZE), 2 * SIZE) for _ in range(DRAWN))])
    likeness = np.array([[alike(a, b) for b in texts] for a in texts])
    halves = (parted[:, :SIZE], parted[:, SIZE:])
    within: Rows = sum(likeness[half[:, :, None], half[:, None, :]].sum((1, 2)) for half in halves) / 2
    likely = (within - within.mean()) / (within.std() or 1.0)
    nats = np.array([weight * likely[0] - log_sum(weight * likely, 0) for weight in WEIGHTS])
    return float(log_sum(nats, 0)) + log((DRAWN + 1) / len(WEIGHTS))


@dataclass
class OneBatch:
    """A look is two batches, at either side."""

    name: str = "seed/of a batch"
    cost: int = 4 * SIZE
    wanted: int = 1

    def __post_init__(self) -> None:
        constant = "there was one answer, whatever batch it was in"
        independent = "answers of one batch were no more alike than those of two"
        self.beliefs: dict[str, Any] = {CLAIM: Followed(constant, independent)}

    def unit(self, bench: Bench, k: int) -> None:
        """Raises Refused, Failed."""
        ask = replace(sampled(bench, k, None), tokens=TOKENS)
        batches = [bench.each([ask] * SIZE) for _ in range(2)]
        texts = [[answer.text for batch in batches for answer in batch[side]] for side in (0, 1)]
        nats = [bet(said, f"{self.name}/{k}") for said in texts]
        witness = {
            "requests": [[ask.summary()] * SIZE],
            "first batch": texts[0][:SIZE],
            "second batch": texts[0][SIZE:],
        }
        (belief,) = self.beliefs.values()
        belief.add(*nats, len(set(texts[0])) > 1, witness)
