"""The instances on which the bridge is checked: rows, a way of drafting, a rule, and the query that asks Coq about it.

Generated from fixed seeds. Rows are integers over 16, so that the engine, too, computes exactly. Every chain (a rule
with a way of drafting) meets rows with and without zeros, p = q, and numbers that lie exactly on a threshold.
"""

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from proofs.bridge import coq_block, coq_histories, coq_list, coq_number, coq_numbers, coq_table, coq_tokens, coq_tree
from refengine.exact.rules.typical import DELTA, EPSILON, INSIDE_LOG, threshold

Tokens = tuple[int, ...]
Table = dict[str, list[str]]
SCALE = 16
# Siblings 1, 0 and 1 again; 2 after the first, 0 after the second. And the same with two tokens, last leaf shallow.
TREES = {3: ((1, 0, 1, 2, 0), (-1, -1, -1, 0, 1)), 2: ((1, 0, 1, 0), (-1, 0, 0, -1))}
# Where every leaf draws for itself, runs are many: a shared candidate, a candidate below a candidate, two leaves alike.
SMALL = (((0, 1, 0), (-1, 0, 0)), ((1, 0, 1), (-1, -1, 0)), ((0, 0), (-1, -1)), ((1, 1), (-1, 0)), ((), ()))


def instances() -> Iterator[dict[str, Any]]:
    """Every instance, in a fixed order, with its query and without its law."""
    for make in (chains, truncations, several, trees, greedy_chains, typicals, nuclei):
        yield from make()


def instance(chain: str, seed: object, rule: str, query: str, p: Table, drafter: dict[str, Any], **options: Any) -> Any:
    found = {"name": f"{chain}/{seed}", "chain": chain, "rule": rule, "query": query, "p": p, "drafter": drafter}
    return {**found, "options": options} if options else found


def rows(seed: object, vocabulary: int, depth: int, zeros: bool) -> Table:
    """A row after every history of at most `depth` tokens."""
    rng = random.Random(f"bridge/{seed}")
    return {
        ",".join(map(str, history)): one_row(rng, vocabulary, zeros)
        for size in range(depth + 1)
        for history in product(range(vocabulary), repeat=size)
    }


def one_row(rng: random.Random, vocabulary: int, zeros: bool) -> list[str]:
    """Integers over SCALE that sum to 1."""
    cuts = [rng.randint(0, SCALE) for _ in range(vocabulary - 1)]
    while not zeros and len({0, SCALE, *cuts}) <= vocabulary:
        cuts = [rng.randint(0, SCALE) for _ in range(vocabulary - 1)]
    edges = [0, *sorted(cuts), SCALE]
    return [str(Fraction(b - a, SCALE)) for a, b in pairwise(edges)]


def histories(vocabulary: int, depth: int) -> list[Tokens]:
    return [h for size in range(depth + 1) for h in product(range(vocabulary), repeat=size)]


def pairs() -> Iterator[tuple[str, int, int, Table, Table]]:
    """(seed, vocabulary, gamma, p, q) of the chains: with zeros, without, and p = q."""
    for seed, vocabulary, gamma, zeros in ((1, 2, 3, False), (2, 3, 2, False), (3, 3, 2, True), (4, 2, 2, True)):
        p = rows(("p", seed), vocabulary, gamma, zeros)
        yield f"{seed}", vocabulary, gamma, p, rows(("q", seed), vocabulary, gamma, zeros)
    yield "p=q", vocabulary, gamma, p, p


def chains() -> Iterator[Any]:
    for seed, vocabulary, gamma, p, q in pairs():
        drafter = {"kind": "chain", "gamma": gamma, "q": q}
        for rule in ("leviathan", "agreement", "block"):
            query = f"run_{rule} id{vocabulary} {coq_table(p)} {coq_table(q)} {gamma}"
            yield instance(rule, seed, rule, query, p, drafter)


def truncations() -> Iterator[Any]:
    """Confidences in quarters and a threshold that is one of them; lengths that promise the same."""
    for seed, vocabulary, gamma, p, q in pairs():
        rng = random.Random(f"bridge/truncation/{seed}")
        sure = {",".join(map(str, h)): f"{rng.randint(0, 4)}/4" for h in histories(vocabulary, gamma)}
        # The empty history is among the last ones: nothing is asked before the first token.
        last = ["", *(",".join(map(str, h)) for h in histories(vocabulary, gamma)[1:] if rng.random() < 0.5)]
        cost = [["2", "16/5", "18/5", "4"], ["1", "3/2", "7/4", "15/8"]][int(seed == "1")][: gamma + 1]
        if seed == "1":
            sure = dict.fromkeys(sure, "1/2")  # every length promises one token per unit of cost
        tables = f"id{vocabulary} {coq_table(p)} {coq_table(q)}"
        causal = {"kind": "causal", "gamma": gamma, "q": q, "confidence": sure, "threshold": "1/2"}
        stopping = {"kind": "stopping", "gamma": gamma, "q": q, "last": last}
        for rule in ("leviathan", "block"):
            query = f"run_causal_{rule} {tables} {coq_numbers(sure)} {coq_number('1/2')} {gamma}"
            yield instance("causal", f"{rule}-{seed}", rule, query, p, causal)
            query = f"run_stopping_{rule} {tables} {coq_histories(last)} {gamma}"
            yield instance("stopping", f"{rule}-{seed}", rule, query, p, stopping)
        query = f"run_retrospective {tables} {coq_numbers(sure)} {coq_list([coq_number(c) for c in cost])} {gamma}"
        backward = {"kind": "retrospective", "gamma": gamma, "q": q, "confidence": sure, "cost": cost}
        yield instance("retrospective", seed, "leviathan", query, p, backward)


def several() -> Iterator[Any]:
    """Candidates drawn independently and without replacement: lists and trees."""
    for seed, vocabulary, widths in ((6, 3, (2,)), (7, 2, (2, 1)), (8, 3, (3,)), (9, 2, (1, 2))):
        zeros, depth = seed == 8, len(widths)
        p, q = (rows((which, seed), vocabulary, depth, zeros) for which in "pq")
        tables = f"id{vocabulary} {coq_table(p)} {coq_table(q)} {coq_tokens(widths)}"
        for rule, kind, run in (("iid_candidates", "iid", "iid"), ("without_replacement", "distinct", None)):
            query = f"run_{run or rule} {tables}"
            yield instance(rule, seed, rule, query, p, {"kind": kind, "widths": list(widths), "q": q})


def trees() -> Iterator[Any]:
    """Candidates that nobody drew."""
    for seed, vocabulary, zeros in ((10, 3, True), (11, 3, False), (12, 2, True), (13, 2, False)):
        p, (tokens, parents) = rows(("p", seed), vocabulary, 2, zeros), TREES[vocabulary]
        drafter = {"kind": "tree", "tokens": list(tokens), "parents": list(parents)}
        rest = f"{coq_table(p)} 2 {coq_tree(vocabulary, tokens, parents)}"
        yield instance("point_mass", seed, "point_mass", f"run_point_mass id{vocabulary} {rest}", p, drafter)
        yield instance("agreement", seed, "agreement", f"run_agreement_tree id{vocabulary} {rest}", p, drafter)
        query = f"run_greedy id{vocabulary} (T{vocabulary} 0) {rest}"
        yield instance("greedy", seed, "greedy", query, p, drafter)


def greedy_chains() -> Iterator[Any]:
    """Drafts that the argmax follows for a while; half of the rows are ties."""
    for seed in range(14, 20):
        p = rows(("p", seed), 2, 3, True)
        p = {h: ["1/2", "1/2"] if len(h) % 4 == seed % 2 else row for h, row in p.items()}
        xs = [list(s) for s in product(range(2), repeat=3)][seed % 8]
        drafter = {"kind": "tree", "tokens": xs, "parents": [-1, 0, 1]}
        query = f"run_greedy_chain id2 (T2 0) {coq_table(p)} {coq_list([f'T2 {x}' for x in xs])}"
        yield instance("greedy", seed, "greedy", query, p, drafter)


def typicals() -> Iterator[Any]:
    """Rows with probabilities on the threshold (1/4), with the entropy deciding, and under the released settings."""
    for rule, inside in (("typical", INSIDE_LOG), ("typical_inclusive", 0.0)):
        for seed, vocabulary, epsilon, delta in (
            *((s, 3, 0.25, 8.0) for s in range(20, 24)),
            *((s, 3, 0.9, 0.5) for s in range(24, 26)),
            *((s, 2, 0.25, 8.0) for s in range(26, 30)),
        ):
            p = rows(("p", seed), vocabulary, 2, True) | ON_THRESHOLD.get(seed, {})
            yield typical(rule, seed, vocabulary, p, TREES[vocabulary], epsilon, delta, inside)
        row = as_row(["5/16", "11/16"])  # short of passing by 10^-7: a hundred times less than what 1e-5 does to H
        almost = float(row[0]) / threshold(row, 9.0, 1.0, inside) * (1 + 1e-7)
        p = rows(("p", 30), 2, 2, True) | {"": ["5/16", "11/16"]}
        yield typical(rule, 30, 2, p, SHORT, 9.0, almost, inside)
        for seed, given in ((31, ["1/8", "7/8"]), (32, ["11/128", "39/128", "39/128", "39/128"])):
            p = rows(("p", seed), len(given), 1, True) | {"": given}
            yield typical(rule, seed, len(given), p, SHORT, EPSILON, DELTA, inside, released=True)


SHORT = ((0,), (-1,))
ON_THRESHOLD: dict[int, Table] = {
    26: {"": ["1/4", "3/4"], "1": ["1/2", "1/2"]},  # both paths of two tokens are equally likely
    27: {"": ["3/4", "1/4"], "1": ["7/8", "1/8"]},  # the longest path begins on the threshold
    28: {"": ["5/16", "11/16"], "1": ["3/4", "1/4"]},
    29: {"": ["3/8", "5/8"], "1": ["7/8", "1/8"]},
}


def typical(
    rule: str,
    seed: int,
    vocabulary: int,
    p: Table,
    block: tuple[Tokens, Tokens],
    epsilon: float,
    delta: float,
    inside: float,
    released: bool = False,
) -> Any:
    """The threshold is a float in every program; Coq is given that very number, after each history."""
    theta = {h: str(Fraction(threshold(as_row(row), epsilon, delta, inside))) for h, row in p.items()}
    drafter = {"kind": "tree", "tokens": list(block[0]), "parents": list(block[1])}
    query = (
        f"run_{rule} id{vocabulary} (T{vocabulary} 0) {coq_table(p)} {coq_numbers(theta)} 2 "
        f"{coq_block(vocabulary, *block)}"
    )
    options = {} if released else {"epsilon": epsilon, "delta": delta}
    return instance(rule, seed, rule, query, p, drafter, **options)


def as_row(row: list[str]) -> tuple[Fraction, ...]:
    return tuple(Fraction(value) for value in row)


def nuclei() -> Iterator[Any]:
    """Two tokens, and heads whose mass is exactly the share that is asked for."""
    for number, (tokens, parents) in enumerate(SMALL):
        for fast, top in ((False, "3/4"), (True, "3/4"), (False, "1")):
            seed = f"{number}-{'fast' if fast else 'slow'}-{top}"
            p = rows(("nucleus", number, top), 2, 2, False)
            p |= {"0": ["3/4", "1/4"]} if number % 2 else {"": ["1/2", "1/2"], "0": ["3/8", "5/8"]}
            drafter = {"kind": "tree", "tokens": list(tokens), "parents": list(parents)}
            query = (
                f"run_nucleus id2 (T2 0) {coq_table(p)} {coq_number(top)} {str(fast).lower()} 2 "
                f"{coq_block(2, tokens, parents)}"
            )
            yield instance("nucleus", seed, "nucleus", query, p, drafter, top_p=top, fast=fast)
    # As released, top_p = 4/5: the second token is within the head after nothing, and outside it after token 0.
    p = rows(("nucleus", "released"), 2, 2, False) | {"": ["3/4", "1/4"], "0": ["13/16", "3/16"]}
    drafter = {"kind": "tree", "tokens": [0], "parents": [-1]}
    query = f"run_nucleus id2 (T2 0) {coq_table(p)} {coq_number('4/5')} false 2 {coq_block(2, *SHORT)}"
    yield instance("nucleus", "released", "nucleus", query, p, drafter)
