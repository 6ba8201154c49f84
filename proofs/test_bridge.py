"""The theorems are about the rules that run: Coq's definition and refengine.exact give the same law, exactly."""

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

from proofs import bridge
from refengine.exact.block import Drafter, Rule
from refengine.exact.drafters import fixed, iid_tree, sampled_chain, without_replacement_tree
from refengine.exact.law import Law, round_law
from refengine.exact.row import Row, row
from refengine.exact.rules.agreement import agreement
from refengine.exact.rules.block import block
from refengine.exact.rules.greedy import greedy
from refengine.exact.rules.iid_candidates import iid_candidates
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.rules.point_mass import point_mass
from refengine.exact.rules.truncation import causal
from refengine.exact.rules.without_replacement import without_replacement

Tokens = tuple[int, ...]
Rows = dict[Tokens, Row]


def rows(seed: int, vocabulary: int, depth: int, zeros: bool) -> Rows:
    """A row after every prefix of at most `depth` tokens; small weights, some zero."""
    rng = random.Random(seed)
    low = 0 if zeros else 1
    table: Rows = {}
    for size in range(depth + 1):
        for prefix in product(range(vocabulary), repeat=size):
            weights = [rng.randint(low, 6) for _ in range(vocabulary)]
            weights[rng.randrange(vocabulary)] += 1
            table[prefix] = row(weights)
    return table


def argmax_rows(p: Rows) -> Rows:
    return {
        h: row([int(x == max(range(len(r)), key=lambda x: (r[x], -x))) for x in range(len(r))]) for h, r in p.items()
    }


TREE = ((1, 0, 1, 2, 0), (-1, -1, -1, 0, 1))  # siblings 1, 0 and 1 again; 2 after the first, 0 after the second
CASES: list[tuple[str, str, Callable[[], Law[Tokens]]]] = []


def case(name: str, query: str, p: Rows, drafter: Drafter, rule: Rule) -> None:
    CASES.append((name, query, lambda: round_law(p.__getitem__, drafter, rule, ())))


def chain_cases() -> None:
    for seed, vocabulary, gamma, zeros in ((1, 2, 3, False), (2, 3, 2, False), (3, 3, 2, True), (4, 2, 2, True)):
        p, q = rows(seed, vocabulary, gamma, zeros), rows(seed + 100, vocabulary, gamma, zeros)
        for other, tag in ((q, "q"), (p, "p=q")):
            tables = f"id{vocabulary} {bridge.coq_table(p)} {bridge.coq_table(other)} [::] {gamma}"
            for name, rule in (("leviathan", leviathan), ("agreement", agreement), ("block", block)):
                drafter = sampled_chain(other.__getitem__, gamma)
                case(f"{name}-{seed}-{tag}", f"run_{name} {tables}", p, drafter, rule)


def truncated_cases() -> None:
    p, q, halts = rows(5, 3, 2, False), rows(105, 3, 2, False), [(1,), (2,)]
    drafter = causal(q.__getitem__, lambda h: Fraction(int(h not in halts)), Fraction(1, 2), 2)
    stop = bridge.coq_list([bridge.coq_tokens(h) for h in halts])
    tables = f"id3 {bridge.coq_table(p)} {bridge.coq_table(q)} {stop} 2"
    for name, rule in (("leviathan", leviathan), ("block", block)):
        case(f"{name}-truncated", f"run_{name} {tables}", p, drafter, rule)


def tree_cases() -> None:
    for seed, vocabulary, widths in ((6, 3, (2,)), (7, 2, (2, 1)), (8, 3, (3,))):
        zeros, depth = seed == 8, len(widths)
        p, q = rows(seed, vocabulary, depth, zeros), rows(seed + 100, vocabulary, depth, zeros)
        tables = f"id{vocabulary} {bridge.coq_table(p)} {bridge.coq_table(q)} {bridge.coq_tokens(widths)}"
        case(f"iid-{widths}", f"run_iid {tables}", p, iid_tree(q.__getitem__, widths), iid_candidates)
        drafter = without_replacement_tree(q.__getitem__, widths)
        case(f"without_replacement-{widths}", f"run_without_replacement {tables}", p, drafter, without_replacement)
    p, drafter = rows(9, 3, 2, True), fixed(lambda prefix: TREE)
    tree = bridge.coq_tree(3, *TREE)
    case("point_mass-tree", f"run_point_mass id3 {bridge.coq_table(p)} 2 {tree}", p, drafter, point_mass)
    case("agreement-tree", f"run_agreement_tree id3 {bridge.coq_table(p)} 2 {tree}", p, drafter, agreement)
    best = bridge.coq_table(argmax_rows(p))
    case("greedy-tree", f"run_agreement_tree id3 {best} 2 {tree}", p, drafter, greedy)


chain_cases()
truncated_cases()
tree_cases()


@pytest.fixture(scope="module")
def coq_laws() -> dict[str, Law[Tokens]]:
    if not bridge.compiled():
        pytest.skip(bridge.INSTALL)
    return dict(zip((name for name, _, _ in CASES), bridge.ask([query for _, query, _ in CASES]), strict=True))


@pytest.mark.parametrize(("name", "exact_law"), [(name, law) for name, _, law in CASES], ids=[c[0] for c in CASES])
def test_coq_and_exact_agree(name: str, exact_law: Callable[[], Law[Tokens]], coq_laws: dict[str, Law[Tokens]]) -> None:
    """Kills: any change of an inequality, a residual, an order or a bonus in one of the two texts."""
    ours = {tokens: mass for tokens, mass in exact_law().items() if mass}
    assert sum(coq_laws[name].values()) == 1
    assert coq_laws[name] == ours


def test_the_comparison_can_fail(coq_laws: dict[str, Law[Tokens]]) -> None:
    """Kills: a parser that reads the same law for everything."""
    assert coq_laws["leviathan-2-q"] != coq_laws["agreement-2-q"]
    assert coq_laws["leviathan-2-q"] != coq_laws["block-2-q"]
