"""Checks of where a request ends: limits, stop tokens, stop strings; and of what the decode loop refuses."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from refengine.bugs.checks.chances import Case, first, refusal, refused
from refengine.bugs.checks.decoding import CLOSE, wanted
from refengine.bugs.checks.settings import EVERY, Setting
from refengine.bugs.checks.violation import Violation
from refengine.decoder.drafters.ar import AR
from refengine.decoder.loop import Played, Result, Session, Stop, generate, plain
from refengine.decoder.protocols import State, Tokens
from refengine.decoder.targets.toy import ToyTarget
from refengine.engine import policy
from refengine.engine.coins import Branching
from refengine.engine.rules.leviathan import leviathan
from refengine.exact.chance import runs


def stops() -> Violation | None:
    """Where a request ends: limits, stop tokens, stop strings; a draft equal to the target is kept whole; refusals."""
    return first(_stops())


def decode(limit: int, stop: Stop, prompt: Sequence[int] = (0,)) -> tuple[Result, Tokens]:
    """Greedy, with a draft equal to the target; and the same without speculation."""
    target, greedy = ToyTarget(2, seed=3), policy.pipeline(policy.greedy())
    drafter = AR(ToyTarget(2, seed=3), 2)
    result = generate(target, drafter, leviathan, greedy, prompt, limit, Branching(_First()), stop)
    return result, plain(target, greedy, prompt, limit, Branching(_First()), stop)


def _stops() -> Iterator[Case]:
    whole, alone = decode(8, Stop())
    yield "greedy decode", whole.tokens, alone
    yield "length", len(whole.tokens), 8
    yield "a draft equal to the target is kept", [len(r.verdict.path) for r in whole.rounds], [2, 2, 2]
    for played, weight in _with_equal_draft():
        yield f"an equal draft under a history, mass {weight:.3f}", len(played.verdict.path), 2
    yield "emitted to the limit", [len(r.emitted) for r in whole.rounds], [3, 3, 1]
    for limit in range(4):
        cut, plainly = decode(limit, Stop())
        yield f"limit {limit}", (len(cut.tokens), len(plainly)), (limit, limit)
    for end in range(1, 6):
        words = letters(whole.tokens[:end])
        length = letters(whole.tokens).find(words) + end
        for strings in ((words,), (words, "c"), ("c", words)):
            result, plainly = decode(8, Stop(strings=strings, decode=letters))
            yield f"stop strings {strings}", (result.tokens, plainly), (whole.tokens[:length],) * 2
    counted = Stop(strings=("#20",), decode=lambda out: f"{letters(out)}#{len(out)}")
    yield (
        "a text that depends on the whole output",
        [len(out) for out in (decode(24, counted)[0].tokens, decode(24, counted)[1])],
        [20, 20],
    )
    for token in (0, 1):
        length = whole.tokens.index(token) + 1 if token in whole.tokens else 8
        result, plainly = decode(8, Stop(frozenset({token})))
        yield f"stop token {token}", (result.tokens, plainly), (whole.tokens[:length],) * 2
    yield from _plain_law()


def letters(tokens: Sequence[int]) -> str:
    return "".join("ab"[token] for token in tokens)


def _plain_law() -> Iterator[Case]:
    """Decoding without speculation: rows from scratch, the policy's history, coins at absolute positions."""
    for setting in EVERY[1:4]:
        steps, stop = policy.pipeline(*setting.steps), Stop(frozenset(setting.stop))
        law: dict[Tokens, float] = {}
        for out, weight, trace in runs(
            lambda chance, s=setting, p=steps, end=stop: plain(
                ToyTarget(2, seed=3), p, s.prompt, s.limit, Branching(chance), end
            )
        ):
            law[out] = law.get(out, 0.0) + float(weight)
            places = [decision.site for decision in trace]
            yield f"plain, {setting.name}: sites", places, [("emit", len(setting.prompt) + i) for i in range(len(out))]
        want = wanted(setting)
        far = sum(abs(law.get(x, 0.0) - want.get(x, 0.0)) for x in law.keys() | want.keys()) / 2
        yield f"plain, {setting.name}: TV {far:.9f}", far < CLOSE, True


def refusals() -> Violation | None:
    """Bad prompts, bad rows and rounds after the end are refused; a snapshot is restored part by part."""
    return first(_refusals())


def _refusals() -> Iterator[Case]:
    yield refused(lambda: Stop(strings=("a",)), "stop strings need `decode`")
    yield refused(lambda: decode(3, Stop(), prompt=()), "the prompt is empty")
    for token in (-1, 2):
        yield refused(lambda t=token: decode(3, Stop(), prompt=(0, t)), f"prompt token {token} is outside")  # type: ignore[misc]
    yield refused(lambda: AR(ToyTarget(2), 0), "at least 1, got 0")
    ended = EVERY[0].play(_First())
    yield refused(lambda: ended.play(Branching(_First())), "this request has ended")
    live = EVERY[0].session()
    live.begin((0, 1), Branching(_First()))
    ended.restore((0, 1), live.out, live.state())
    yield "a restored request goes on", refusal(lambda: ended.play(Branching(_First()))), ""
    ended = EVERY[0].play(_First())
    ended.rebuild((0, 1), (0,))
    yield "a rebuilt request goes on", refusal(lambda: ended.play(Branching(_First()))), ""
    for after in (0, 1):  # a row that does not sum to 1: the first token's, then the first round's
        live.policy = partial(_doubled, after)
        yield refused(lambda: _one_round(live), "does not sum to 1")
    parts, target, drafter = EVERY[0].session(), _Part(), _Part()
    setattr(parts, "target", target)  # noqa: B010  # stand-ins
    setattr(parts, "drafter", drafter)  # noqa: B010
    parts.restore((0,), (), {"target.a": 1, "drafter.b": 2})
    yield "parts of a snapshot", (target.restored, drafter.restored), ({"a": 1}, {"b": 2})


def _doubled(after: int, logits: Tensor, prompt: Tokens, out: Tokens) -> Tensor:
    return logits.softmax(-1) * (2.0 if len(out) == after else 1.0)


def _one_round(session: Session) -> None:
    session.begin((0, 1), Branching(_First()))
    session.play(Branching(_First()))


class _Part:
    """Stands for a target or a drafter, and remembers what it was told to restore."""

    def __init__(self) -> None:
        self.restored: Any = None

    def restore(self, state: State) -> None:
        self.restored = dict(state)


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
