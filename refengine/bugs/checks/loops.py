"""Checks of the exact loop: its law, stop tokens and limits included, and the absolute positions of its coins."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

from refengine.bugs.checks import oracle
from refengine.bugs.checks.tables import Path, Row, share, tangled
from refengine.bugs.checks.violation import Violation, text
from refengine.bugs.shared_coins import coupled_law
from refengine.exact import drafters
from refengine.exact.block import Drafter, Rule
from refengine.exact.chance import Chance, Decision, runs
from refengine.exact.loop import generate, plain
from refengine.exact.rules.block import block
from refengine.exact.rules.iid_candidates import iid_candidates
from refengine.exact.rules.leviathan import leviathan

P = [share(w) for w in ((1, 1), (2, 1), (1, 3), (1, 0))]
Q = [share(w) for w in ((1, 2), (1, 1), (3, 1), (1, 1))]
CASES: list[tuple[Path, int, tuple[int, ...]]] = [
    ((), 0, ()),
    ((), 1, ()),
    ((1,), 2, ()),
    ((), 2, (0, 1)),
    ((), 3, ()),
    ((1,), 3, (1,)),
    ((0, 1), 4, (0,)),
    ((0,), 4, (1,)),
]


def target(prefix: Path) -> Row:
    """Depends on the last token and on the position."""
    return P[(2 * len(prefix) + sum(prefix[-1:])) % 4]


def draft(prefix: Path) -> Row:
    return Q[(len(prefix) + sum(prefix[-1:])) % 4]


SUBJECTS: tuple[tuple[str, Drafter, Rule], ...] = (
    ("leviathan", drafters.sampled_chain(draft, 2), leviathan),
    ("iid_candidates", drafters.iid_tree(draft, (2, 1)), iid_candidates),
)

COUPLED: tuple[tuple[str, Callable[[Callable[[Path], Row]], Drafter], Rule], ...] = (
    ("leviathan", lambda q: drafters.sampled_chain(q, 2), leviathan),
    ("block", lambda q: drafters.sampled_chain(q, 2), block),
    ("iid_candidates", lambda q: drafters.iid_tree(q, (2,)), iid_candidates),
)


def until_stop(prompt: Path, limit: int, stop: tuple[int, ...]) -> dict[Path, Fraction]:
    """The target's own law: one token after the other, until a stop token or the limit."""
    if limit == 0:
        return {(): Fraction(1)}
    out: dict[Path, Fraction] = {}
    for x, px in enumerate(target(prompt)):
        if px and x in stop:
            out[(x,)] = px
        elif px:
            for rest, mass in until_stop((*prompt, x), limit - 1, stop).items():
                out[(x, *rest)] = px * mass
    return out


def law() -> Violation | None:
    """The loop's output has the law of plain decoding: it ends with the first stop token, or at the limit."""
    for prompt, limit, stop in CASES:
        want = until_stop(prompt, limit, stop)
        for name, have in _laws(prompt, limit, stop):
            tv = oracle.distance(have, want)
            if tv:
                worst = max(have.keys() | want.keys(), key=lambda x: (abs(have.get(x, 0) - want.get(x, 0)), x))
                case = {"loop": name, "prompt": text(prompt), "limit": limit, "stop": text(stop), "tokens": text(worst)}
                shares = {"have": str(have.get(worst, 0)), "want": str(want.get(worst, 0))}
                return Violation(f"{name}: TV {tv}", {**case, **shares}, tv)
    return None


def _laws(prompt: Path, limit: int, stop: tuple[int, ...]) -> Iterator[tuple[str, dict[Path, Fraction]]]:
    programs: list[tuple[str, Any]] = [("plain", partial(_alone, prompt, limit, frozenset(stop)))]
    for name, drafter, rule in SUBJECTS:
        if name == "leviathan" or limit < 3:
            programs.append((name, partial(_speculative, drafter, rule, prompt, limit, frozenset(stop))))
    for name, program in programs:
        out: dict[Path, Fraction] = {}
        for tokens, weight, _ in runs(program):
            out[tokens] = out.get(tokens, Fraction(0)) + weight
        yield name, out


def coins() -> Violation | None:
    """The same law when equal sites share one coin. Block verification decides by coins beyond what it keeps."""
    for seed, (name, drafter_of, rule) in itertools.product(range(4), COUPLED):
        table = tangled(2, 3, seed)
        have = coupled_law(partial(generate, table.p, drafter_of(table.q), rule, (), 2))
        tv = oracle.distance(have, oracle.ancestral(table.p, (), 2))
        if tv:
            return Violation(f"{name}: TV {tv} when equal sites share a coin", {"loop": name, **table.as_json()}, tv)
    return None


def sites() -> Violation | None:
    """Coins stand where `exact.chance.place` says: no coin is used twice, emit coins at their absolute positions."""
    name, drafter, rule = SUBJECTS[0]
    for prompt, limit, stop in CASES:
        for tokens, _, trace in runs(partial(_speculative, drafter, rule, prompt, limit, frozenset(stop))):
            fault = misplaced(prompt, tokens, trace)
            if fault:
                return Violation(f"{name}: {fault}", {"prompt": text(prompt), "limit": limit, "tokens": text(tokens)})
        for tokens, _, trace in runs(partial(_alone, prompt, limit, frozenset(stop))):
            if [decision.site for decision in trace] != [("emit", len(prompt) + i) for i in range(len(tokens))]:
                case = {"prompt": text(prompt), "tokens": text(tokens)}
                return Violation("plain: a coin is not at its token's position", case)
    return None


def _speculative(drafter: Drafter, rule: Rule, prompt: Path, limit: int, stop: frozenset[int], chance: Chance) -> Path:
    return generate(target, drafter, rule, prompt, limit, chance, stop)


def _alone(prompt: Path, limit: int, stop: frozenset[int], chance: Chance) -> Path:
    return plain(target, prompt, limit, chance, stop)


def misplaced(prompt: Path, tokens: Path, trace: list[Decision]) -> str:
    """What is wrong with the places of one run's coins; "" where nothing is."""
    start, depth, used = len(prompt), 0, set()
    for decision in trace:
        site = decision.site
        if site in used:
            return f"{site} is used twice"
        used.add(site)
        if site[0] == "emit":
            position = int(site[1])
            if not start <= position <= start + depth:
                return f"the round after {start} tokens emits at {site}"
            if position - len(prompt) < len(tokens) and tokens[position - len(prompt)] != decision.outcome:
                return f"the token drawn at {site} is not the one at its position"
            start, depth = position + 1, 0
        elif site[0] == "draft":
            if site != ("draft", start * 1024 + depth):
                return f"depth {depth} of the round after {start} tokens is drafted at {site}"
            depth += 1
        elif not start * 1024 <= int(site[1]) < start * 1024 + depth:
            return f"the round after {start} tokens judges at {site}"
    return ""
