"""`campaign kernel`: a function or a program held to the rows we pass over 10^8 calls and more, in shards.

`audit kernel` seeds the generators before every call, so that any call can be made alone. There are 2^32 such seeds
(torch's generator on a CPU takes 32 bits): too few for calls by the billion. So here BLOCK calls in a row share a seed
and go on with its generators, and every block of a campaign has a seed that no other has.
"""

from functools import cache, partial
from typing import Any

import msgspec
import numpy as np

from refengine.audit.at_length import counted, judged
from refengine.audit.common import CONTRACT_CLAIM
from refengine.audit.inputs.case import Case, turn
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel.campaign import HANG_SECONDS, send
from refengine.audit.kernel.request import Request, opened
from refengine.jobs.campaign import Counts, merged
from refengine.jobs.ranges import Range, batches, split
from refengine.jobs.run import Job
from refengine.report.finding import Finding, Recipe

BLOCK = 1 << 12  # calls that share a seed
SHARD = 8 * BLOCK  # calls: some seconds
USES = 4  # of a seed; three are taken: our drafts and the subject's generator, torch's own, Python's and numpy's
WORD = 1 << 32


class Answers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one shard brought: counts by input, and how it ended where not with its calls (`kind`, `said`, more)."""

    counts: Counts
    ended: dict[str, str] = {}


@cache
def inputs() -> tuple[Case, ...]:
    """Those with few tokens: counts at their sites grow."""
    return tuple(item for item in cases() if item.cell is None)


def jobs(request: Request) -> list[Job]:
    """The shards: every input gets the same number of calls, whole blocks; all share one counter."""
    made, each = list[Job](), calls_of_an_input(request)
    for which, item in enumerate(inputs()):
        for calls in split(Range(which * each, each), SHARD):
            made.append(Job(f"{item.name}, calls from {calls.first}", partial(shard, request, which, calls)))
    return made


def calls_of_an_input(request: Request) -> int:
    """At least its share, in whole blocks."""
    return -(-(request.calls or 1) // (BLOCK * len(inputs()))) * BLOCK


def seeds(seed: int, calls: Range) -> np.ndarray[Any, np.dtype[np.int64]]:
    """[count, 3]: of the first call of a block, then -1 for those that go on. Different blocks have different seeds:
    32 bits are mixed by steps that can each be taken back (the end of MurmurHash3)."""
    out = np.full((calls.count, 3), -1, dtype=np.int64)
    number = calls.first // BLOCK * USES
    if not 0 <= number <= WORD - USES:
        raise ValueError(f"call {calls.first} is beyond the {WORD // USES * BLOCK} calls that have seeds of their own")
    out[0] = [mixed((seed + number + use) % WORD) for use in range(3)]
    return out


def mixed(x: int) -> int:
    """A permutation of the numbers below 2^32."""
    x = (x ^ x >> 16) * 0x85EBCA6B % WORD
    x = (x ^ x >> 13) * 0xC2B2AE35 % WORD
    return x ^ x >> 16


def shard(request: Request, which: int, calls: Range) -> Answers:
    """The counts of one shard: a child, and block after block of calls."""
    item = inputs()[which]
    counts = np.zeros((item.p.size // item.vocabulary, item.vocabulary), dtype=np.int64)
    with opened(request) as child:
        send(child, item)
        for block in batches(calls, BLOCK):
            asked = {"name": item.name, "seeds": seeds(request.seed, block), "start": block.first, "fresh": True}
            outcome = child.ask({"op": "run", **asked}, HANG_SECONDS)
            if outcome.kind == "adapter":
                raise RuntimeError(str(outcome))
            if not outcome.ok:
                return Answers({item.name: counts.ravel().tolist()}, {"kind": outcome.kind, "said": str(outcome)})
            tokens, broken = outcome.value["tokens"], outcome.value["broken"]
            if len(tokens):
                counts += counted(item, _lanes(item, tokens, block.first), tokens.reshape(-1, item.gamma + 1))
            if broken:
                said = {"what": broken["message"], "call made": broken["call made"], "expected": broken["expected"]}
                return Answers({item.name: counts.ravel().tolist()}, {"kind": "broken", **said})
    return Answers({item.name: counts.ravel().tolist()})


def _lanes(item: Case, tokens: Any, first: int) -> Any:
    calls, width = tokens.shape[:2]
    return np.tile(np.arange(width), calls) if width > 1 else turn(first + np.arange(calls), item.lanes)


def finding(request: Request, every: list[Answers]) -> Finding:
    """The verdict on all shards, in their order: the first that broke off says why."""
    recipe = Recipe(function=f"{__name__}:again", arguments=request.arguments())
    method = f"{calls_of_an_input(request):,} calls of each of {len(inputs())} inputs, counted by site and token"
    ended = next((answers.ended for answers in every if answers.ended), None)
    found = judged(inputs(), merged(answers.counts for answers in every), request.alpha)
    if ended and ended["kind"] == "broken":
        witness = {key: value for key, value in ended.items() if key != "kind"}
        return request.finding("violated", method, recipe, claim=CONTRACT_CLAIM, witness=witness, replay="statistical")
    if ended and not found.accused:
        return request.finding("not tested", method, recipe, reason=ended["said"])
    where = found.farthest
    return request.finding(
        "violated" if found.accused else "consistent",
        f"{method}; a TV of {found.seen:.2g} at the site visited most is seen with probability 0.99 "
        f"(alpha {request.alpha:g})",
        recipe,
        numbers=found.numbers(),
        witness=where if found.accused else None,
        diagnosis=f"no class of defects is looked for; token {where['token']} of input {where['input']!r} at "
        f"{where['where']} came {where['times']:,} times of {where['of']:,}"
        if found.accused
        else "",
        notes=["Dependence between rounds, or between the rows of a batch, is looked for by `audit kernel`."],
        replay="statistical",
    )


def again(**arguments: Any) -> list[Finding]:
    """The whole campaign in this process."""
    request = Request(**arguments)
    return [finding(request, [job.call() for job in jobs(request)])]
