"""The bridge from the proofs to the programs: on the same rows Coq's law, the exact text's and the engine's are one.

`proofs/bridge.json` holds instances with the law that Coq printed for each, from the very definitions that the theorems
are about. Here the other two laws are computed again: drafting and the exact rule enumerated, and the engine's rule
enumerated through Branching coins behind the same drafter. Rows are integers over 16, so every law is a law of
Fractions and equal means equal. No prover is needed for that; `make prove` asks Coq again.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import torch

from refengine.engine.block import Block as LaneBlock
from refengine.engine.coins import Branching
from refengine.engine.rules import RULES as ENGINE
from refengine.exact import drafters
from refengine.exact.block import Block, Drafter, target_rows
from refengine.exact.chance import Chance, runs
from refengine.exact.law import law
from refengine.exact.row import Row
from refengine.exact.rules import RULES, truncation
from refengine.report.finding import Finding, Recipe
from refengine.selfcheck.claims.chains import TRUNCATED, files
from refengine.source_edits.committed import Committed, digest
from refengine.source_tree import PROOFS

Tokens: TypeAlias = tuple[int, ...]
Law: TypeAlias = dict[Tokens, Fraction]
Instance: TypeAlias = dict[str, Any]

FILE = PROOFS / "bridge.json"
DEFINITIONS, COMMAND = PROOFS / "rocq", "python -m proofs.bridge --write"


def audit_bridge() -> Iterator[Finding]:
    """One finding per rule and way of drafting."""
    stale = next(map(RECORD.stale, RECORD.every_stale()), "")
    by_chain: dict[str, list[Instance]] = {}
    for instance in recorded():
        by_chain.setdefault(instance["chain"], []).append(instance)
    for chain, instances in by_chain.items():
        yield chain_finding(chain, instances, stale)


def rerun() -> list[Finding]:
    return list(audit_bridge())


def chain_finding(chain: str, instances: list[Instance], stale: str) -> Finding:
    """Both links of one chain; the first instance on which one breaks is the witness."""
    coq = [parse_law(instance["law"]) for instance in instances]
    broken = {
        "laws of exact that are not Coq's": [i for i, c in zip(instances, coq, strict=True) if exact_law(i) != c],
        "laws of the engine that are not Coq's": [i for i, c in zip(instances, coq, strict=True) if engine_law(i) != c],
    }
    witness = next((i for failed in broken.values() for i in failed), None)
    return Finding(
        id=f"bridge/{chain}",
        subject=f"refengine.exact and refengine.engine: {chain}",
        claim=f"The rule that the theorems on {chain} are about is the rule that runs, exactly and batched.",
        source="proofs/rocq/Bridge.v",
        verdict="violated" if witness else "not tested" if stale else "consistent",
        reason="" if witness else stale,
        method=f"{len(instances)} laws evaluated in Coq, enumerated from the exact text and through the engine's coins",
        numbers={name: len(failed) for name, failed in broken.items()},
        witness=witness,
        recipe=Recipe(function=f"{__name__}:rerun"),
    )


@cache
def definitions() -> str:
    """The digest of every Coq source that Bridge.v rests on: a law on record was printed by these and no others."""
    return digest(*(f"{name} {(DEFINITIONS / f'{name}.v').read_text('utf-8')}" for name in sorted(required("Bridge"))))


RECORD = Committed(FILE, lambda instance: definitions(), COMMAND)


def recorded() -> list[Instance]:
    """Every instance with the law that Coq printed for it; none where the record was not shipped."""
    return [{k: v for k, v in entry.items() if k != "digest"} for entry in RECORD.entries().values()]


@cache
def required(file: str) -> set[str]:
    """The file itself and all that it imports of ours, however indirectly."""
    text = (DEFINITIONS / f"{file}.v").read_text()
    direct = {
        name for line in re.findall(r"^From Proofs Require Import ([\w\s]+)\.", text, re.M) for name in line.split()
    }
    return {file}.union(*(required(name) for name in direct))


def exact_law(instance: Instance) -> Law:
    """The law of one round: the drafter, then the rule of `refengine.exact`."""
    return without_zeros(law(exact_round(instance)))


def engine_law(instance: Instance) -> Law:
    """The same with the rule of `refengine.engine`, every decision handed over."""
    return without_zeros(law(engine_round(instance)))


def decisions(program: Callable[[Chance], Tokens]) -> list[Any]:
    """Every run: what it returns, its probability, and each site with its outcome."""
    return [(result, weight, [(d.site, d.outcome) for d in trace]) for result, weight, trace in runs(program)]


def exact_round(instance: Instance) -> Callable[[Chance], Tokens]:
    rule, target, draft = named("exact", instance["rule"]), table(instance["p"]), drafter(instance["drafter"])
    options = {name: option(value) for name, value in instance.get("options", {}).items()}

    def one_round(chance: Chance) -> Tokens:
        block = draft((), chance)
        verdict = rule(target_rows(target, (), block), block, chance, **options)
        return followed(block, verdict.tokens, verdict.path)

    return one_round


def engine_round(instance: Instance) -> Callable[[Chance], Tokens]:
    rule, target, draft = named("engine", instance["rule"]), table(instance["p"]), drafter(instance["drafter"])
    options = {name: float_option(option(value)) for name, value in instance.get("options", {}).items()}

    def one_round(chance: Chance) -> Tokens:
        block = draft((), chance)
        p = torch.tensor([[[float(px) for px in row] for row in target_rows(target, (), block)]])
        verdict = rule(p, lane(block, p.shape[2]), Branching(chance, rational=True), **options)
        length = int(verdict.length[0])
        return followed(block, verdict.tokens[0, :length].tolist(), verdict.path[0, : length - 1].tolist())

    return one_round


def followed(block: Block, tokens: Sequence[int], path: Sequence[int]) -> Tokens:
    """The tokens; ValueError where the path is not the way through the block that spells all of them but the last."""
    if [block.parents[j] for j in path] != [-1, *path][:-1] or [block.tokens[j] for j in path] != [*tokens][:-1]:
        raise ValueError(f"path {list(path)} of {block} does not spell {list(tokens)}")
    return tuple(tokens)


def refuses_trees(text: str, rule: str) -> bool:
    """Whether a rule that Coq defines on chains only is so in the program."""
    p, q = (Fraction(1, 2),) * 2, (Fraction(1, 2),) * 2
    block = Block((0, 1), (-1, -1), (q, q), (None, None))
    try:
        if text == "exact":
            law(lambda chance: named(text, rule)([p] * 3, block, chance))
        else:
            rows = torch.full((1, 3, 2), 0.5)
            law(lambda chance: named(text, rule)(rows, lane(block, 2), Branching(chance, rational=True)) and None)
    except ValueError:
        return True
    return False


def lane(block: Block, vocabulary: int) -> LaneBlock:
    """The block as a batch of one; NaN where nothing was drawn, so that a rule which looks there is seen."""
    q = [[float("nan")] * vocabulary if row is None else [float(qx) for qx in row] for row in block.q]
    n = len(block.tokens)
    return LaneBlock(
        torch.tensor(block.tokens, dtype=torch.int64).reshape(1, n),
        torch.tensor(block.parents, dtype=torch.int64).reshape(1, n),
        torch.tensor(q, dtype=torch.float32).reshape(1, n, vocabulary),
    )


def named(text: str, rule: str) -> Callable[..., Any]:
    """A rule by its name, in "exact" or "engine"."""
    return RULES[rule].rule if text == "exact" else ENGINE[rule]


def modules_of(instance: Instance) -> set[str]:
    """The files of rules that an instance runs."""
    kind = instance["drafter"]["kind"]
    return {*files(instance["rule"]), *(files(kind) if kind in TRUNCATED else ())}


def drafter(data: dict[str, Any]) -> Drafter:
    """The drafter that an instance describes."""
    if data["kind"] == "tree":
        return drafters.fixed(lambda prefix: (data["tokens"], data["parents"]))
    q = table(data["q"])
    if data["kind"] in ("iid", "distinct"):
        grow = drafters.iid_tree if data["kind"] == "iid" else drafters.without_replacement_tree
        return grow(q, data["widths"])
    gamma = data["gamma"]
    if data["kind"] == "chain":
        return drafters.sampled_chain(q, gamma)
    if data["kind"] == "stopping":
        last = {history(text) for text in data["last"]}
        return truncation.stopping(q, lambda prefix: prefix in last, gamma)
    sure = {history(text): Fraction(value) for text, value in data["confidence"].items()}
    if data["kind"] == "causal":
        return truncation.causal(q, sure.__getitem__, Fraction(data["threshold"]), gamma)
    return truncation.retrospective(q, sure.__getitem__, [Fraction(c) for c in data["cost"]], gamma)


def table(rows: dict[str, list[str]]) -> Callable[[Tokens], Row]:
    """Rows by history."""
    return {history(text): tuple(Fraction(value) for value in row) for text, row in rows.items()}.__getitem__


def history(text: str) -> Tokens:
    """ "0,2" is token 0, then token 2; the empty text is the empty history."""
    return tuple(int(x) for x in text.split(",") if x)


def parse_law(data: dict[str, str]) -> Law:
    return {history(text): Fraction(mass) for text, mass in data.items()}


def without_zeros(found: dict[Tokens, Any]) -> Law:
    return {tokens: Fraction(mass) for tokens, mass in found.items() if mass}


def option(value: Any) -> Any:
    """Fractions are written as text."""
    return Fraction(value) if isinstance(value, str) else value


def float_option(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value
