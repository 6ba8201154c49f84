"""Checks of where a request ends: limits, stop tokens, stop strings; and of what the decode loop refuses."""

from collections.abc import Iterator, Sequence
from typing import Any

from refengine.bugs.checks.chances import Case, first, refused
from refengine.bugs.checks.settings import EVERY, Setting
from refengine.bugs.checks.violation import Violation
from refengine.decoder.drafters.ar import AR
from refengine.decoder.loop import Played, Stop, generate, plain
from refengine.decoder.toys import ToyTarget
from refengine.engine import policy
from refengine.engine.coins import Branching
from refengine.engine.rules.leviathan import leviathan
from refengine.exact.chance import runs


def stops() -> Violation | None:
    """Where a request ends: limits, stop tokens, stop strings; a draft equal to the target is kept whole; refusals."""
    return first(_stops())


def _stops() -> Iterator[Case]:
    def decode(limit: int, stop: Stop, drafter: Any = None, prompt: Sequence[int] = (0,)) -> tuple[Any, Any]:
        target, greedy = ToyTarget(2, seed=3), policy.pipeline(policy.greedy())
        model = drafter or AR(ToyTarget(2, seed=3), 2)
        result = generate(target, model, leviathan, greedy, prompt, limit, Branching(_First()), stop)
        return result, plain(target, greedy, prompt, limit, Branching(_First()), stop)

    whole, alone = decode(8, Stop())
    yield "greedy decode", whole.tokens, alone
    yield "length", len(whole.tokens), 8
    yield "a draft equal to the target is kept", [len(r.verdict.path) for r in whole.rounds], [2, 2, 2]
    for played, weight in _with_equal_draft():
        yield f"an equal draft under a history, mass {weight:.3f}", len(played.verdict.path), 2
    yield "emitted to the limit", [len(r.emitted) for r in whole.rounds], [3, 3, 1]
    for limit in range(4):
        yield (
            f"limit {limit}",
            tuple(map(len, (decode(limit, Stop())[0].tokens, decode(limit, Stop())[1]))),
            (limit, limit),
        )

    def letters(tokens: Sequence[int]) -> str:
        return "".join("ab"[token] for token in tokens)

    for end in range(1, 6):
        wanted_text = letters(whole.tokens[:end])
        fresh = letters(whole.tokens).find(wanted_text) + end
        for got in decode(8, Stop(strings=(wanted_text,), decode=letters)):
            yield f"stop string {wanted_text}", (got if isinstance(got, tuple) else got.tokens), whole.tokens[:fresh]
    for token in (0, 1):
        cut = whole.tokens.index(token) + 1 if token in whole.tokens else 8
        for got in decode(8, Stop(frozenset({token}))):
            yield f"stop token {token}", (got if isinstance(got, tuple) else got.tokens), whole.tokens[:cut]
    yield refused(lambda: Stop(strings=("a",)), "stop strings need `decode`")
    yield refused(lambda: decode(3, Stop(), prompt=()), "the prompt is empty")
    for token in (-1, 2):
        yield refused(lambda t=token: decode(3, Stop(), prompt=(0, t)), f"prompt token {token} is outside")  # type: ignore[misc]
    ended = EVERY[0].play(_First())
    yield refused(lambda: ended.play(Branching(_First())), "this request has ended")
    yield refused(lambda: AR(ToyTarget(2), 0), "at least 1, got 0")


def _with_equal_draft() -> Iterator[tuple[Played, float]]:
    """Every round of a decode in which draft and target are one network under one history-dependent policy."""
    setting = Setting(
        "equal", lambda t: AR(ToyTarget(2, seed=3), 2), leviathan, (policy.presence_penalty(0.7),), (1,), 3
    )
    for session, weight, _ in runs(setting.play):
        if weight > 1e-9:  # rounding lets a draft be refused with some 1e-16
            yield from ((played, float(weight)) for played in session.rounds)


class _First:
    """Accepts whatever can be accepted and takes the first possible token: enough where rows are one-hot."""

    def accept(self, num: float, den: float, site: Any) -> bool:
        return num > 0

    def choose(self, weights: Sequence[float], site: Any) -> int:
        return next(i for i, w in enumerate(weights) if w > 0)
