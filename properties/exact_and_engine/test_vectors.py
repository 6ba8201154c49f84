"""Conformance vectors: they hold, they sit on edges, and a wrong or unwell program is told apart."""

import json
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from refengine.commands.vectors import run_command
from refengine.commands.vectors_release import DIGEST, digest_of
from refengine.errors import BadInput
from refengine.exact.block import Block
from refengine.exact.chance import Decision, Uniforms, accept_below, choose_below
from refengine.exact.rules import RULES
from refengine.exact.vectors import BITS, LOSSLESS, edge, vectors

REFEREE = """
import json, sys
from fractions import Fraction
from refengine.exact.block import Block
from refengine.exact.chance import Uniforms
from refengine.exact.vectors import LOSSLESS
import refengine.exact.chance as chance
{patch}
for line in sys.stdin:
    v = json.loads(line)
    rows = lambda table: [tuple(Fraction(x, v["scale"]) for x in row) for row in table]
    q = rows(v["q"])
    block = Block(tuple(v["tokens"]), tuple(v["parents"]), tuple(q), (None,) * len(q))
    site = lambda text: tuple(int(part) if part.lstrip("-").isdigit() else part for part in text.split())
    table = {{site(name): Fraction(n, 1 << bits) for name, (n, bits) in v["uniforms"].items()}}
    print(json.dumps(list(LOSSLESS[v["rule"]].rule(rows(v["p"]), block, Uniforms(table)).tokens)))
"""


def program(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "subject.py"
    file.write_text(text)
    return [sys.executable, str(file)]


def test_every_rule_has_vectors_on_both_edges() -> None:
    """Kills a generator that skips a rule, or one whose uniforms sit inside and not on the edge."""
    seen = list(vectors())
    assert {v["rule"] for v in seen} == set(LOSSLESS)
    assert len({v["id"] for v in seen}) == len(seen)
    edge = [(n, bits) for v in seen for n, bits in v["uniforms"].values()]
    assert any(n == 0 for n, _ in edge)
    assert any(n == (1 << bits) - 1 for n, bits in edge)


def test_the_vectors_are_the_same_on_every_machine() -> None:
    """Kills a changed vector under an old version, which an engine never passed that passed the version."""
    seen = list(vectors())
    assert digest_of(seen) == DIGEST, "a version names one text: set VERSION and DIGEST anew"
    assert all(sum(row) == v["scale"] == 256 for v in seen for name in ("p", "q") for row in v[name])
    assert all(len(v["p"]) == len(v["q"]) + 1 == len(v["parents"]) + 1 for v in seen)
    assert all(v["q"][node][token] > 0 for v in seen for node, token in enumerate(v["tokens"]))
    distinct = [v for v in seen if RULES[v["rule"]].drawn == "distinct"]
    assert distinct
    assert all(v["tokens"][0] != v["tokens"][1] for v in distinct)


def test_an_edge_is_the_outermost_point_at_which_the_decision_holds() -> None:
    """Kills a uniform one grid point inside, on which `<` and `<=` agree, or outside, on which the run differs."""
    grid = 1 << BITS
    accepts = [(1, 3), (1, 1), (0, 1), (0, 0), (5, 2), (1, 0), (1, 2), (1, 1 << 30), (grid - 1, grid)]
    chooses = [(1, 2, 0, 3), (0, 1), (5,), (1, 1, 1 << 30), (1 << 30, 1)]
    for odds, holds in (
        *((odds, partial(_accepts, odds)) for odds in accepts),
        *((odds, partial(choose_below, weights=odds)) for odds in chooses),
    ):
        outcomes = {holds(Fraction(n, grid)) for n in (0, 1, grid // 7, grid // 2, grid - 2, grid - 1)}
        for outcome in outcomes:
            for side, out in (("low", -1), ("high", 1)):
                n, bits = edge(Decision(("accept", 0), outcome, odds), side)
                assert bits == BITS
                assert 0 <= n < grid
                assert holds(Fraction(n, grid)) == outcome
                assert not 0 <= n + out < grid or holds(Fraction(n + out, grid)) != outcome


def _accepts(odds: tuple[int, int], u: Fraction) -> bool:
    return accept_below(u, *odds)


def test_a_conforming_program_passes(tmp_path: Path) -> None:
    """Kills a runner that pairs questions with the wrong answers."""
    count, wrong = run_command(program(tmp_path, REFEREE.format(patch="")), [])
    assert count == len(list(vectors()))
    assert wrong == []


@pytest.mark.parametrize(
    "patch",
    [
        "chance.accept_below = lambda u, num, den: u * den <= num",
        "chance.choose_below = lambda u, w: next(i for i in range(len(w)) if u * sum(w) <= sum(w[: i + 1]))",
    ],
)
def test_an_inclusive_comparison_is_seen(tmp_path: Path, patch: str) -> None:
    """Kills vectors that stay off the boundary: `<=` differs from `<` there only."""
    _, wrong = run_command(program(tmp_path, REFEREE.format(patch=patch)), ["leviathan", "point_mass"])
    assert wrong


@pytest.mark.parametrize(
    ("text", "message", "seconds"),
    [
        ("raise SystemExit(3)", "exited with 3", 60),
        ("print('hello')", "gave 1 lines", 60),
        ("import sys\nfor line in sys.stdin: print('hello')", "not JSON", 60),
        ("import time; time.sleep(60)", "did not answer", 2),
        ("import subprocess; subprocess.run(['sleep', '60'])", "did not answer", 2),
        ("while True: print('x' * 65536)", "without an end", 60),
        ("import os; os.write(1, bytes([255, 10]) * 12)", "not JSON", 60),
    ],
)
def test_an_unwell_program_is_no_mismatch(tmp_path: Path, text: str, message: str, seconds: float) -> None:
    """Kills a runner that counts a crash or a hang as a detection."""
    with pytest.raises(BadInput, match=message):
        run_command(program(tmp_path, text), ["greedy"], seconds=seconds)


def test_the_uniforms_of_a_vector_suffice() -> None:
    """Kills vectors whose decisions need a uniform that is not given."""
    for v in vectors():
        rows = [[tuple(Fraction(x, v["scale"]) for x in row) for row in v[name]] for name in ("p", "q")]
        block = Block(tuple(v["tokens"]), tuple(v["parents"]), tuple(rows[1]), (None,) * len(rows[1]))
        table = {
            tuple(int(s) if s.lstrip("-").isdigit() else s for s in name.split()): Fraction(n, 1 << bits)
            for name, (n, bits) in v["uniforms"].items()
        }
        result = LOSSLESS[v["rule"]].rule(rows[0], block, Uniforms(table))
        assert list(result.tokens) == v["emitted"]
        assert list(result.path) == v["path"]
        assert json.loads(json.dumps(v)) == v
