"""Checks of Chance: the two comparisons at their boundaries, the five interpreters, and the enumeration itself."""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from refengine.bugs.checks.violation import Violation
from refengine.exact import chance as subject
from refengine.exact.chance import Decision, Enumerate, Record, Replay, Sample, Shifted, Uniforms, runs

HALF, TINY = Fraction(1, 2), Fraction(1, 1 << 60)
Case = tuple[str, Any, Any]  # what, got, want


def first(cases: Iterator[Case]) -> Violation | None:
    for what, got, want in cases:
        if got != want or type(got) is not type(want):
            return Violation(f"{what}: {got!r}, not {want!r}", {"case": what, "got": repr(got), "want": repr(want)})
    return None


def refusal(call: Callable[[], Any]) -> str:
    """The error that a call ends in, as "Type: message"; "" where it ends well."""
    try:
        call()
    except (ValueError, RuntimeError, LookupError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def refused(call: Callable[[], Any], words: str) -> Case:
    """The case that `call` is refused with one line that holds `words`."""
    said = refusal(call)
    return f"refusal naming {words!r}", said if words not in said else words, words


def boundaries() -> Violation | None:
    """accept is strict at u den = num; choose takes the first i with u total < cdf[i]; zero weight is never taken."""
    return first(_boundaries())


def _boundaries() -> Iterator[Case]:
    want: Any
    for num, den in ((0, 1), (0, 0), (1, 3), (1, 2), (2, 3), (1, 1), (3, 2), (1, 0)):
        for u in (Fraction(0), Fraction(1, 3) - TINY, Fraction(1, 3), HALF - TINY, HALF, HALF + TINY, 1 - TINY):
            want = num > 0 if den == 0 else u < Fraction(num, den)
            yield f"accept_below({u}, {num}, {den})", subject.accept_below(u, Fraction(num), Fraction(den)), want
    for weights in ((1,), (1, 1), (0, 1, 1), (1, 0, 2, 0), (0, 0, 3), (5, 3, 0, 1)):
        edges = [Fraction(sum(weights[: i + 1]), sum(weights)) for i in range(len(weights))]
        for u in [Fraction(0), *(e for edge in edges for e in (edge - TINY, edge) if 0 <= e < 1)]:
            want = min(i for i, edge in enumerate(edges) if u < edge)
            yield f"choose_below({u}, {weights})", subject.choose_below(u, weights), want
    yield refused(lambda: subject.choose_below(Fraction(1), (1, 2)), "outside [0, 1)")


def odds() -> Violation | None:
    """Negative and NaN odds are refused by name, whoever is asked; zero against zero is False."""
    return first(_odds())


def _odds() -> Iterator[Case]:
    nan = float("nan")
    table: Any = {("accept", 0): HALF, ("emit", 0): HALF}
    for make in (
        Enumerate,
        lambda: Sample(random.Random(0)),
        lambda: Uniforms(table),
        lambda: Replay([(("accept", 0), True)]),
    ):
        for num, den in ((-1, 1), (1, -1), (nan, 1.0), (1.0, nan)):
            asked = (num, den, ("accept", 0))
            words = f"odds {num} : {den} are negative or NaN"
            yield refused(lambda m=make, a=asked: m().accept(*a), words)  # type: ignore[misc]
        for weights, words in (
            ((1, -1), "weight 1 is -1"),
            ((nan, 1.0), "weight 0 is nan"),
            ((0, 0), "no weight is positive"),
        ):
            yield refused(lambda m=make, w=weights: m().choose(w, ("emit", 0)), words)  # type: ignore[misc]
        if make is not Enumerate:
            continue
        yield "accept(0, 0)", make().accept(0, 0, ("accept", 0)), False
        yield "accept(1, 0)", make().accept(1, 0, ("accept", 0)), True
        yield "accept(2, 1)", make().accept(2, 1, ("accept", 0)), True
    yield "ratio of ints", subject.ratio(1, 3), Fraction(1, 3)
    yield "ratio of a float", subject.ratio(1.0, 4), 0.25
    yield "ratio by a float", subject.ratio(1, 4.0), 0.25


def enumeration() -> Violation | None:
    """Every branch once, with its probability and its decisions; a program that is no function of chance is refused."""
    return first(_enumeration())


def _enumeration() -> Iterator[Case]:
    def program(chance: Any) -> tuple[Any, ...]:
        kept = chance.accept(1, 3, ("accept", 0))
        sure = chance.accept(1, 1, ("accept", 1))
        return (kept, sure, chance.choose((2, 0, 1), ("emit", int(kept))))

    third = Fraction(1, 3)
    want = {
        (True, True, 0): third * 2 / 3,
        (True, True, 2): third / 3,
        (False, True, 0): 2 * third * 2 / 3,
        (False, True, 2): 2 * third / 3,
    }
    seen = list(runs(program))
    yield "number of runs", len(seen), 4
    for result, weight, trace in seen:
        yield f"weight of {result}", weight, want.get(result, Fraction(0))
        yield f"outcomes of {result}", tuple(decision.outcome for decision in trace), result
        sites = [("accept", 0), ("accept", 1), ("emit", int(result[0]))]
        yield f"sites of {result}", [decision.site for decision in trace], sites
        yield f"odds of {result}", [decision.odds for decision in trace], [(1, 3), (1, 1), (2, 0, 1)]
    answers = iter((2, 1, 1))
    yield refused(
        lambda: list(runs(lambda chance: chance.choose((1,) * next(answers), ("emit", 0)))),
        "not a function of its chance",
    )


def interpreters() -> Violation | None:
    """Uniforms, Replay, Record, Sample and Shifted do what they say, and are strict about what is missing or unused."""
    return first(_interpreters())


def _interpreters() -> Iterator[Case]:
    yield from _uniforms_and_record()
    yield from _replay()
    shifted = Shifted(Uniforms({("accept", 4097): HALF, ("emit", 6): Fraction(2, 3), ("draft", 4096, 1): HALF}), 4)
    yield "Shifted accept", shifted.accept(2, 3, ("accept", 1)), True
    yield "Shifted choose", shifted.choose((1, 1, 1), ("emit", 2)), 2
    yield "Shifted candidate", shifted.choose((1, 1), ("draft", 0, 1)), 1
    bits: list[int] = []

    class Listening(random.Random):
        def getrandbits(self, k: int) -> int:
            bits.append(k)
            return 1 << k - 1

    sample = Sample(Listening())
    yield "Sample accept at 1/2", sample.accept(1, 2, ("accept", 0)), False
    yield "Sample accept above 1/2", sample.accept(2, 3, ("accept", 0)), True
    yield "Sample choose at 1/2", sample.choose((1, 1), ("emit", 0)), 1
    yield "bits of Sample", bits, [24, 24, 53]


def _uniforms_and_record() -> Iterator[Case]:
    uniforms = Uniforms({("accept", 0): HALF, ("emit", 1): HALF, ("emit", 2): HALF})
    yield "Uniforms accept", uniforms.accept(1, 2, ("accept", 0)), False
    yield "Uniforms choose", uniforms.choose((1, 0, 1), ("emit", 1)), 2
    yield "Uniforms unused", uniforms.unused(), [("emit", 2)]
    yield refused(lambda: uniforms.accept(1, 2, ("accept", 0)), "used twice")
    yield refused(lambda: uniforms.choose((1,), ("emit", 9)), "no uniform was given")
    record = Record(Uniforms({("accept", 0): Fraction(3, 4), ("emit", 1): HALF}))
    yield "Record accept", record.accept(2, 3, ("accept", 0)), False
    yield "Record choose", record.choose((1, 1), ("emit", 1)), 1
    want = [Decision(("accept", 0), False, (2, 3)), Decision(("emit", 1), 1, (1, 1))]
    yield "Record trace", record.trace, want
    yield refused(
        lambda: Record(Sample(random.Random(0)), [], {("emit", 1)}).choose((1,), ("emit", 1)), "decided twice"
    )
    twice = Record(Sample(random.Random(0)))
    twice.accept(1, 2, ("accept", 0))
    yield refused(lambda: twice.accept(1, 2, ("accept", 0)), "decided twice")


def _replay() -> Iterator[Case]:
    trace: list[tuple[Any, Any]] = [(("accept", 0), True), (("accept", 1), False), (("emit", 1), 2)]

    def fresh(**more: Any) -> Replay:
        return Replay(trace, **more)

    whole = fresh()
    got = (whole.accept(1, 2, ("accept", 0)), whole.accept(1, 2, ("accept", 1)), whole.choose((1, 0, 1), ("emit", 1)))
    yield "Replay", got, (True, False, 2)
    yield "Replay finish", refusal(whole.finish), ""
    yield refused(lambda: whole.choose((1,), ("emit", 2)), "never recorded")
    part = fresh()
    part.accept(1, 2, ("accept", 0))
    yield refused(part.finish, "2 decisions were never asked for")
    yield "Replay finish, not strict", refusal(fresh(strict=False).finish), ""
    yield refused(lambda: fresh().accept(1, 2, ("accept", 1)), "where the program asks")
    yield "Replay elsewhere, not strict", fresh(strict=False).accept(1, 2, ("accept", 1)), True
    yield refused(lambda: fresh().accept(0, 2, ("accept", 0)), "is impossible")
    refusing = [(("accept", 0), False)]
    yield refused(lambda: Replay(refusing).accept(1, 1, ("accept", 0)), "is impossible")
    yield "Replay of a refusal", Replay(refusing).accept(1, 2, ("accept", 0)), False
    for outcome in (-1, 1, 3):
        yield refused(lambda o=outcome: Replay([(("emit", 0), o)]).choose((1, 0, 1), ("emit", 0)), "has no weight")  # type: ignore[misc]
    yield "Replay of choice 0", Replay([(("emit", 0), 0)]).choose((1, 0), ("emit", 0)), 0
