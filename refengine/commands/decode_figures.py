"""One request played with a clock, and the figures that a reader of papers looks for."""

import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch

from refengine.decoder.loop import Played, Session, nodes, one_lane
from refengine.decoder.protocols import Tokens
from refengine.engine.block import NOTHING, ROOT
from refengine.engine.coins import Coins

MIB = 1 << 20


@dataclass
class Clock:
    """Seconds: to the first token, drafting, verifying (the target's pass, the policy and the rule), in all."""

    first: float = 0.0
    drafting: float = 0.0
    verifying: float = 0.0
    whole: float = 0.0


def play(session: Session, prompt: Tokens, coins: Coins) -> Clock:
    """Decode a request: the rounds of `Session.play`, in halves between which the clock is read."""
    device, clock = session.target.device, Clock()
    begun = now(device)
    session.begin(prompt, coins)
    clock.first = now(device) - begun
    while not session.done:
        start = now(device)
        turn, block, rows = session.propose(coins)
        drafted = now(device)
        passed = session.target.run(rows, session.drafter.taps)
        p = session.weigh(block, passed)
        session.commit(block, passed, p, one_lane(session.rule(p[None], block, turn.coins)))
        clock.drafting += drafted - start
        clock.verifying += now(device) - drafted
    clock.whole = now(device) - begun
    return clock


def now(device: torch.device) -> float:
    """Seconds, once the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def figures(session: Session, clock: Clock) -> dict[str, Any]:
    """Counts, rates and times of a request that has ended; None where there was nothing to count."""
    rounds = session.rounds
    emitted = sum(len(played.emitted) for played in rounds)
    return {
        "tokens": len(session.out),
        "rounds": len(rounds),
        "drafted": sum(int((played.block.tokens != NOTHING).sum()) for played in rounds),
        "accepted": sum(len(played.verdict.path) for played in rounds),
        "tokens per pass": _share(emitted, len(rounds)),
        **by_position(rounds),
        "seconds to the first token": round(clock.first, 4),
        "tokens per second after it": _share(emitted, clock.whole - clock.first),
        "milliseconds drafting a round": _share(1e3 * clock.drafting, len(rounds)),
        "milliseconds verifying a round": _share(1e3 * clock.verifying, len(rounds)),
        "peak memory in MiB": round(peak_memory(session.target.device) / MIB),
    }


def by_position(rounds: list[Played]) -> dict[str, Any]:
    """How often a candidate was accepted where the path so far was and there was one to judge; and beside it, for
    chains that were drawn, the mean of sum min(p, q) there: what the ratio rule accepts of them (Leviathan 2023, 3.2).
    """
    tried: list[int] = []
    accepted: list[int] = []
    overlap: list[float] = []
    drawn = all(chain_of_draws(played) for played in rounds)
    for played in rounds:
        parents = [up if token != NOTHING else None for token, up in zip(*nodes(played.block), strict=True)]
        for depth, at in enumerate((ROOT, *played.verdict.path)):
            if at not in parents:
                break
            if depth == len(tried):
                tried, accepted, overlap = [*tried, 0], [*accepted, 0], [*overlap, 0.0]
            tried[depth] += 1
            accepted[depth] += depth < len(played.verdict.path)
            if drawn and played.block.q is not None:
                overlap[depth] += float(
                    torch.minimum(played.p[depth].double(), played.block.q[0, depth].double()).sum()
                )
    found = {"accepted of those judged, by position": [_share(a, n) for a, n in zip(accepted, tried, strict=True)]}
    beside = {"sum of min(p, q), by position": [_share(o, n) for o, n in zip(overlap, tried, strict=True)]}
    return found | (beside if drawn and tried else {})


def chain_of_draws(played: Played) -> bool:
    """Whether the drafts were drawn, each after the one before."""
    _, parents = nodes(played.block)
    return played.block.q is not None and parents == tuple(range(-1, len(parents) - 1))


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 3) if whole else None


def peak_memory(device: torch.device) -> int:
    """Bytes: of the device, else of this process so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
