"""Checks of the decode loop on toy networks in float64: its law with shared coins, its state, its q."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

import torch

from refengine.bugs.checks.settings import LONG, SETTINGS, Setting
from refengine.bugs.checks.violation import Violation, text
from refengine.bugs.shared_coins import coupled_law
from refengine.decoder.loop import Played, Session
from refengine.decoder.protocols import State
from refengine.decoder.rows import chain_rows
from refengine.decoder.targets.toy import ToyTarget
from refengine.engine import policy
from refengine.exact.chance import Decision, Record, Sample, runs

SHARED = ("draft model", "draft model, block verification", "tree of point masses")
CLOSE = 1e-9  # rounding leaves some 1e-15; the smallest planted defect of state moves a law by 1e-4


@cache
def scratch(setting: Setting, out: tuple[int, ...]) -> list[float]:
    """The row after `out`, from one pass over the whole prefix."""
    target = ToyTarget(2, seed=3)
    passed = target.run(chain_rows((*setting.prompt, *out), 0, target.device))
    return list(policy.pipeline(*setting.steps)(passed.logits[-1], setting.prompt, out).tolist())


def wanted(setting: Setting, out: tuple[int, ...] = ()) -> dict[tuple[int, ...], float]:
    """The law of plain decoding, every row recomputed from scratch."""
    if len(out) == setting.limit or (out[-1:] and out[-1] in setting.stop):
        return {out: 1.0}
    law: dict[tuple[int, ...], float] = {}
    for x, px in enumerate(scratch(setting, out)):
        law |= {whole: px * mass for whole, mass in wanted(setting, (*out, x)).items()}
    return law


@dataclass(frozen=True)
class Branch:
    """One branch of a decode, with the live state before each of its rounds and what had been emitted by then."""

    session: Session
    weight: float
    trace: list[Decision]
    states: list[tuple[tuple[int, ...], State]]


@cache
def branches(setting: Setting) -> tuple[Branch, ...]:
    def program(chance: Any) -> tuple[Session, list[tuple[tuple[int, ...], State]]]:
        states: list[tuple[tuple[int, ...], State]] = []
        return setting.play(chance, lambda session: states.append((session.out, session.state()))), states

    return tuple(Branch(session, float(weight), trace, states) for (session, states), weight, trace in runs(program))


def law() -> Violation | None:
    """The tokens of the real loop have the law of plain decoding with every row recomputed from scratch."""
    for setting in SETTINGS:
        have: dict[tuple[int, ...], float] = {}
        for branch in branches(setting):
            have[branch.session.out] = have.get(branch.session.out, 0.0) + branch.weight
        found = differ(setting, have)
        if found:
            return found
    return None


def differ(setting: Setting, have: dict[tuple[int, ...], float]) -> Violation | None:
    want = wanted(setting)
    tv = sum(abs(have.get(x, 0.0) - want.get(x, 0.0)) for x in have.keys() | want.keys()) / 2
    if tv < CLOSE:
        return None
    worst = max(have.keys() | want.keys(), key=lambda x: (abs(have.get(x, 0.0) - want.get(x, 0.0)), x))
    return Violation(
        f"{setting.name}: TV {tv:.6f}",
        {"setting": setting.name, "tokens": text(worst)},
        Fraction(round(tv * 10**9), 10**9),
    )


def coins() -> Violation | None:
    """The same law when equal sites share one uniform, as they do under Philox."""
    for setting in [s for s in SETTINGS if s.name in SHARED]:
        exact = coupled_law(partial(_played, setting))
        found = differ(setting, {tokens: float(mass) for tokens, mass in exact.items()})
        if found:
            return found
    return None


def _played(setting: Setting, chance: Any) -> tuple[int, ...]:
    return setting.play(_Once(chance)).out


class _Once:
    """Chance over floats as exact numbers, so that intervals of shared coins split exactly."""

    def __init__(self, chance: Any) -> None:
        self.chance = chance

    def accept(self, num: float, den: float, site: Any) -> bool:
        return bool(self.chance.accept(Fraction(num), Fraction(den), site))

    def choose(self, weights: Sequence[float], site: Any) -> int:
        return int(self.chance.choose([Fraction(w) for w in weights], site))


def state() -> Violation | None:
    """After every round all live state equals a recompute from scratch, and a snapshot restores."""
    for setting in SETTINGS:
        for out, live in (pair for branch in branches(setting) for pair in branch.states):
            fresh = recomputed(setting, out)
            odd = next((key for key, value in fresh.items() if not same(live.get(key), value)), None)
            if odd or len(live) > len(fresh):
                what = f"{setting.name}: after {out}, {odd or 'its extra state'} is not what a recompute gives"
                return Violation(what, {"setting": setting.name, "out": text(out), "entry": odd})
            restored = setting.session()
            restored.restore(setting.prompt, out, live)
            if not all(same(live[key], value) for key, value in restored.state().items()):
                return Violation(f"{setting.name}: a snapshot after {out} does not restore", {"out": text(out)})
    return None


@cache
def recomputed(setting: Setting, out: tuple[int, ...]) -> State:
    session = setting.session()
    session.rebuild(setting.prompt, out)
    return session.state()


def same(a: Any, b: Any) -> bool:
    """Equal, floats within rounding: another order of summation moves the last bits."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=0.0, atol=1e-12)
    return type(a) is type(b) and bool(a == b)


def contract() -> Violation | None:
    """Every draft is drawn from the row that its block reports, at its own place, and judged by rows from scratch."""
    for setting in SETTINGS:
        for branch in branches(setting):
            fault = next(_faults(setting, branch.session, branch.trace), None)
            if fault:
                return Violation(f"{setting.name}: {fault}", {"setting": setting.name, "out": text(branch.session.out)})
    return None


def _faults(setting: Setting, session: Session, trace: Sequence[Decision]) -> Iterator[str]:
    sites = [decision.site for decision in trace]
    if len(set(sites)) < len(sites):
        yield "one coin for two uses"
    drawn = [decision for decision in trace if decision.site[0] == "draft"]
    out: tuple[int, ...] = session.out[:1]
    for played in session.rounds:
        tokens = played.block.tokens[0].tolist()
        q = [] if played.block.q is None else played.block.q[0].tolist()
        for node, token in enumerate(tokens if q else ()):
            if not drawn:
                yield f"after {out}, node {node} is not drawn at all"
                return
            decision, start = drawn.pop(0), len(setting.prompt) + len(out)
            if list(decision.odds) != q[node] or decision.outcome != token:
                yield f"after {out}, node {node} is not drawn from its q"
            if decision.site != ("draft", start * 1024 + node):
                yield f"after {out}, node {node} is drawn at {decision.site}"
        yield from _judged(setting, played, out)
        out += played.emitted
    if drawn or out != session.out:
        yield f"the rounds emitted {out}, the request {session.out}"


def long() -> Violation | None:
    """One decode of 60 tokens per setting: rows and drafts of every round, and all live state, as at the beginning.

    Settings of three tokens end before a block is kept whole and gone on from, and before anything is far away.
    """
    for setting in [replace(s, limit=60, stop=()) for s in SETTINGS] + LONG:
        chance, states = Record(Sample(random.Random(3))), list[tuple[tuple[int, ...], State]]()
        session = setting.play(chance, lambda s, kept=states: kept.append((s.out, s.state())))  # type: ignore[misc]
        fault = next(_faults(setting, session, chance.trace), None)
        for out, live in [] if fault else states:
            fresh = recomputed(setting, out)
            odd = [key for key, value in fresh.items() if not same(live.get(key), value)]
            fault = fault or (f"after {out}, {odd[0]} is not what a recompute gives" if odd else None)
        if fault:
            return Violation(f"{setting.name}, 60 tokens: {fault}", {"setting": setting.name})
    return None


def _judged(setting: Setting, played: Played, out: tuple[int, ...]) -> Iterator[str]:
    tokens, parents = played.block.tokens[0].tolist(), played.block.parents[0].tolist()
    paths: list[tuple[int, ...]] = [()]
    for token, parent in zip(tokens, parents, strict=True):
        paths.append((*paths[parent + 1], token))
    for node, path in enumerate(paths, -1):
        row = torch.tensor(scratch(setting, (*out, *path)), dtype=torch.float64)
        if not same(played.p[node + 1], row):
            yield f"after {out}, the row after node {node} is not the target's"
    verdict = played.verdict
    above = (-1, *verdict.path)[: len(verdict.path)]
    if tuple(parents[node] for node in verdict.path) != above:
        yield f"after {out}, {verdict.path} is no path"
    if verdict.tokens[:-1] != tuple(tokens[node] for node in verdict.path):
        yield f"after {out}, verdict {verdict} is no path and one token more"
