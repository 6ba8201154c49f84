"""Checks of one round, over every lossless rule and every table: law, acceptance, shape, sites, the q-contract."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from refengine.bugs.checks import oracle
from refengine.bugs.checks.subjects import SUBJECTS, Run, Subject, enumerated
from refengine.bugs.checks.tables import Table, tables
from refengine.bugs.checks.violation import Violation, text
from refengine.bugs.shared_coins import coupled_law

Inspect = Callable[[Subject, Table, tuple[Run, ...]], Violation | None]


def first(inspect: Inspect) -> Violation | None:
    """The violation on the smallest table, over all rules."""
    for number, table in enumerate(tables()):
        for subject in SUBJECTS:
            found = inspect(subject, table, enumerated(subject, number))
            if found:
                return found
    return None


def witness(subject: Subject, table: Table, **more: Any) -> dict[str, Any]:
    return {"rule": subject.name, **table.as_json(), **more}


def law() -> Violation | None:
    """The tokens that a round emits, completed with target draws, have the target's joint law."""

    def inspect(subject: Subject, table: Table, branches: tuple[Run, ...]) -> Violation | None:
        emitted: dict[tuple[int, ...], Fraction] = {}
        for run in branches:
            emitted[run.round.tokens] = emitted.get(run.round.tokens, Fraction(0)) + run.weight

        def null(path: tuple[int, ...]) -> tuple[Fraction, ...]:
            return subject.null(table.p(path))

        length = table.gamma + 1
        have, want = oracle.topped_up(emitted, null, (), length), oracle.ancestral(null, (), length)
        tv = oracle.distance(have, want)
        if tv == 0:
            return None
        worst = max(have.keys() | want.keys(), key=lambda x: (abs(have.get(x, 0) - want.get(x, 0)), x))
        return Violation(
            f"{subject.name}: TV {tv}",
            witness(subject, table, tokens=text(worst), have=str(have.get(worst, 0)), want=str(want.get(worst, 0))),
            tv,
        )

    return first(inspect)


def coins() -> Violation | None:
    """The same claim when equal sites share one uniform, as they do under a counter-based generator."""
    # With two tokens a residual has one, and a coin that it shares with the refusal would not show.
    few = [table for table in tables() if table.vocabulary == 3 or table.gamma > 1]
    for table, subject in itertools.product(few[::3], SUBJECTS):
        draft = subject.drafter(table.q, table.gamma)

        def one_round(chance: Any, draft: Any = draft, subject: Subject = subject, table: Table = table) -> Any:
            block = draft((), chance)
            return subject.rule([table.p(block.path(j)) for j in range(-1, len(block.tokens))], block, chance).tokens

        def null(path: tuple[int, ...], subject: Subject = subject, table: Table = table) -> tuple[Fraction, ...]:
            return subject.null(table.p(path))

        have = oracle.topped_up(coupled_law(one_round), null, (), table.gamma + 1)
        tv = oracle.distance(have, oracle.ancestral(null, (), table.gamma + 1))
        if tv:
            return Violation(f"{subject.name}: TV {tv} when equal sites share a coin", witness(subject, table), tv)
    return None


def odds() -> Violation | None:
    """No rule asks Chance for negative odds, NaN, or a choice among nothing."""
    for number, subject in itertools.product(range(len(tables())), SUBJECTS):
        try:
            enumerated(subject, number)
        except ValueError as error:
            if str(error).startswith(("accept at", "choose at")):
                return Violation(f"{subject.name}: {error}", witness(subject, tables()[number]))
            raise
    return None


def acceptance() -> Violation | None:
    """The expected number of accepted tokens is the rule's own: sum of min(p, q) per depth for the ratio rule."""

    def inspect(subject: Subject, table: Table, branches: tuple[Run, ...]) -> Violation | None:
        want = kept(subject.name, table)
        have = sum((run.weight * len(run.round.path) for run in branches), Fraction(0))
        if want is None or have == want:
            return None
        return Violation(
            f"{subject.name}: keeps {have}, not {want}", witness(subject, table, have=str(have), want=str(want))
        )

    return first(inspect)


def kept(name: str, table: Table) -> Fraction | None:
    """The closed form; None where a rule has none."""
    if name == "leviathan":
        return oracle.kept_by_ratio(table.p, table.q, (), table.gamma)
    if name == "block":
        return oracle.kept_by_block(table.p, table.q, (), table.gamma)
    if name == "iid_candidates" and table.gamma == 1:
        return oracle.kept_first_of_iid(table.p(()), table.q(()), 2)
    if name in ("agreement", "point_mass"):
        return oracle.kept_by_agreement(table.p, lambda path: oracle.one_hot(table.q(path)), (), table.gamma)
    return None


def shape() -> Violation | None:
    """A round emits the tokens of a path from the root, then one more; the path is made of accepted nodes."""

    def inspect(subject: Subject, table: Table, branches: tuple[Run, ...]) -> Violation | None:
        for run in branches:
            path, tokens, block = run.round.path, run.round.tokens, run.block
            parents = (-1, *path)[: len(path)]
            connected = all(block.parents[node] == parent for node, parent in zip(path, parents, strict=True))
            if not connected or tokens[:-1] != tuple(block.tokens[node] for node in path):
                return Violation(
                    f"{subject.name}: tokens {tokens} are not those of path {path} and one more",
                    witness(subject, table, draft=text(block.tokens), tokens=text(tokens), path=text(path)),
                )
        return None

    return first(inspect)


def sites() -> Violation | None:
    """Within a round no coin is used twice, and depth and kind of every site are those of its decision."""

    def inspect(subject: Subject, table: Table, branches: tuple[Run, ...]) -> Violation | None:
        for run in branches:
            used = [decision.site for decision in run.trace]
            twice = next((site for site in used if used.count(site) > 1), None)
            if twice:
                return Violation(
                    f"{subject.name}: one coin for two uses, {twice}", witness(subject, table, site=text(twice))
                )
            odd = misnamed(run)
            if odd:
                return Violation(f"{subject.name}: {odd}", witness(subject, table, site=odd))
        return None

    return first(inspect)


def misnamed(run: Run) -> str:
    """Drafts are drawn at ("draft", depth), the last token at ("emit", number accepted), the rest judge a depth."""
    drafting, judging = run.trace[: run.draft_decisions], run.trace[run.draft_decisions :]
    drawn = [(site, len(run.block.path(node)) - 1) for node, site in enumerate(run.block.sites) if site is not None]
    for decision, (site, depth) in zip(drafting, drawn, strict=False):
        if decision.site != site or decision.site[:2] != ("draft", depth):
            return f"a draft at depth {depth} is drawn at {decision.site} and reported at {site}"
    for decision in judging:
        kind, depth = decision.site[0], int(decision.site[1])
        if kind not in ("accept", "emit") or not 0 <= depth <= len(run.round.path) + (kind == "accept") * len(
            run.block.tokens
        ):
            return f"a decision of a round with {len(run.round.path)} accepted stands at {decision.site}"
    return ""


def contract() -> Violation | None:
    """Every draft token is drawn from the very row that the block reports as q, and that row is the draft's."""

    def inspect(subject: Subject, table: Table, branches: tuple[Run, ...]) -> Violation | None:
        for run in branches:
            for what, expected, got in drawn_from(run, table):
                if tuple(expected) != tuple(got):
                    return Violation(
                        f"{subject.name}: {what}",
                        witness(subject, table, draft=text(run.block.tokens), expected=text(expected), got=text(got)),
                    )
        return None

    return first(inspect)


def drawn_from(run: Run, table: Table) -> Iterator[tuple[str, Any, Any]]:
    """(what, expected, got) for the row reported at each drawn node and for the odds it was drawn with."""
    block, drawn = run.block, [node for node, site in enumerate(run.block.sites) if site is not None]
    yield "nodes drawn", drawn, range(run.draft_decisions)
    for node, decision in zip(drawn, run.trace, strict=False):
        row, odds = block.q[node], decision.odds
        yield f"q of node {node} is not the draft's row", table.q(block.path(block.parents[node])), row or ()
        yield f"token of node {node} is not what was drawn", (block.tokens[node],), (decision.outcome,)
        elder = [block.tokens[j] for j in range(node) if block.parents[j] == block.parents[node]]
        total = sum(odds)
        left = [Fraction(0) if x in elder and odds[x] == 0 else w for x, w in enumerate(row or ())]
        yield f"node {node} is not drawn from q", [w / sum(left) for w in left], [w / total for w in odds]
