"""Every lossless rule of `refengine.exact`, run on symbolic rows: no real p and q make its round differ from p."""

import pytest

pytest.importorskip("z3", reason="not tested: z3-solver is not installed")

from proofs.smt.judge import Rows, difference
from refengine.exact.block import Drafter, Rule
from refengine.exact.drafters import fixed, iid_tree, sampled_chain, without_replacement_tree
from refengine.exact.rules.agreement import agreement
from refengine.exact.rules.block import block
from refengine.exact.rules.iid_candidates import iid_candidates
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.rules.point_mass import point_mass
from refengine.exact.rules.truncation import causal
from refengine.exact.rules.without_replacement import without_replacement

TREE = ((0, 1, 1), (-1, -1, 0))  # two siblings, and a child of the first
long = pytest.mark.long  # in `make prove`
REPEATED = ((0, 0, 1), (-1, -1, -1))  # three siblings, two of them equal


def chain_of(gamma: int) -> object:
    return lambda q: sampled_chain(q, gamma)


@pytest.mark.parametrize(
    ("size", "gamma"), [(2, 1), (2, 2), (3, 1), pytest.param(3, 2, marks=long), pytest.param(4, 1, marks=long)]
)
def test_leviathan(size: int, gamma: int) -> None:
    """Kills: ratio upside down, residual not clamped, bonus from the wrong row, 0/0 at p = q and at q = 0."""
    assert difference(size, chain_of(gamma), leviathan) is None


@pytest.mark.parametrize(("size", "gamma"), [(2, 1), (2, 2), (3, 1), pytest.param(4, 1, marks=long)])
def test_block(size: int, gamma: int) -> None:
    """Kills: weights not carried along the prefix or not clipped at one, shorter prefixes kept with the wrong odds."""
    assert difference(size, chain_of(gamma), block) is None


@pytest.mark.parametrize(("size", "gamma"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_agreement(size: int, gamma: int) -> None:
    """Kills: drawing again after a disagreement."""
    assert difference(size, chain_of(gamma), agreement) is None


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("candidates", [TREE, REPEATED], ids=["tree", "repeated"])
def test_point_mass(size: int, candidates: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Kills: siblings judged without renormalising, a repeated sibling judged against p again."""
    assert difference(size, lambda q: fixed(lambda prefix: candidates), point_mass) is None


@pytest.mark.parametrize("widths", [(2,), (3,), pytest.param((1, 2), marks=long)], ids=str)
def test_iid_candidates(widths: tuple[int, ...]) -> None:
    """Kills: q not subtracted between siblings, residual of the last sibling dropped (two tokens; proofs/rocq: all)."""
    assert difference(2, lambda q: iid_tree(q, widths), iid_candidates) is None


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=long)])
def test_without_replacement(size: int) -> None:
    """Kills: the second sibling weighed against q instead of q renormalised without the first."""
    assert difference(size, lambda q: without_replacement_tree(q, (2,)), without_replacement) is None


def test_causal_truncation() -> None:
    """Kills: a cut decided after the token was drawn. The confidence here is the draft's own largest probability."""

    def stops_when_unsure(q: Rows) -> Drafter:
        return causal(q, lambda prefix: max(q(prefix)), 3 / 4, 2)  # type: ignore[arg-type]

    assert difference(2, stops_when_unsure, leviathan) is None


@pytest.mark.parametrize("rule", [leviathan, block, point_mass], ids=lambda rule: rule.__name__)
def test_the_instrument_sees_a_wrong_target(rule: Rule) -> None:
    """Kills an instrument that calls everything lossless: judged against rows with two tokens exchanged."""

    def crossed(p: object, block: object, chance: object) -> object:
        swapped = [(row[1], row[0]) for row in p]  # type: ignore[attr-defined]
        return rule(swapped, block, chance)  # type: ignore[arg-type]

    drafter = (lambda q: fixed(lambda prefix: ((0,), (-1,)))) if rule is point_mass else chain_of(1)
    assert difference(2, drafter, crossed) is not None
