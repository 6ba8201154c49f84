"""The claims are data: they load, their evidence exists, and CLAIMS.md says what they say."""

import os
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from refengine.errors import BadInput
from refengine.selfcheck.claims.chains import CHAINS, links
from refengine.selfcheck.claims.claims import ROOT, coq_theorems, exists, load, markdown, sources

pytestmark = pytest.mark.text

GOOD = {
    "id": '"a.one"',
    "source": '"a page"',
    "statement": '"1 < 2"',
    "verdict": '"consistent"',
    "smt": '["proofs/test_claims.py::test_claims_load"]',
}


def test_claims_load() -> None:
    """Kills a claim whose theorem or test was renamed or removed, a verdict without evidence, an id used twice."""
    claims = load()
    assert {claim.verdict for claim in claims} == {"consistent", "violated", "not tested"}
    assert {source.prefix for source in sources().values()} >= {f"seed_00{n}" for n in range(5)}


def test_links_are_tests() -> None:
    """Kills a chain that names a test which was renamed, and a claim about a rule that rests on no chain."""
    assert all(exists(test) for chain in CHAINS for tests in links(chain).values() for test in tests)
    tied = {chain for claim in load() for chain in claim.chains()}
    assert set(CHAINS) - tied == set(), (
        "no claim is about these rules: proofs/claims/*.toml (CONTRIBUTING.md, a new rule)"
    )
    assert tied <= set(CHAINS)


def test_cited_cases_are_there() -> None:
    """Kills: a claim or a chain that cites a case of a test which has none of that name, so that nothing is asked."""
    cited = {test for claim in load() for test in claim.tests()}
    cited |= {test for chain in CHAINS for tests in links(chain).values() for test in tests}
    cases = {test for test in cited if "[" in test}
    invented = "proofs/test_claims.py::test_bad_claims_are_named[no such case]"
    assert len(cases) > 20
    assert uncollected({*cases, invented}) == {invented}


def uncollected(cases: Collection[str]) -> set[str]:
    """The cases that pytest does not find in their files."""
    files = sorted({case.partition("::")[0] for case in cases})
    options = ["--collect-only", "-q", "-p", "no:cacheprovider", "-m", "long or not long"]
    command = [sys.executable, "-m", "pytest", *options, *files]
    plain = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}  # which says how it prints
    run = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, check=True)
    return {*cases} - {*run.stdout.splitlines()}


def test_page_is_fresh() -> None:
    """Kills a CLAIMS.md that was edited by hand or not rewritten (`--write`)."""
    assert (ROOT / "proofs" / "CLAIMS.md").read_text("utf-8") == markdown(sources())


def test_the_index_names_theorems() -> None:
    """Kills an index by paper that sends its reader to a theorem that was renamed."""
    named = set(re.findall(r"`([A-Z]\w+\.\w+)`", (ROOT / "proofs" / "README.md").read_text("utf-8")))
    assert len({name for name in named if not name.endswith((".v", ".md"))} - coq_theorems()) == 0
    assert len(named & coq_theorems()) > 40


def write(root: Path, *claims: dict[str, str]) -> Path:
    """A source tree with one file of claims, one theorem and this test."""
    (root / "proofs" / "claims").mkdir(parents=True)
    (root / "proofs" / "rocq").mkdir()
    (root / "proofs" / "rocq" / "_CoqProject").write_text("-Q . Proofs\nSingle.v\n")
    (root / "proofs" / "rocq" / "Single.v").write_text(
        "(* Theorem no : False. *) Theorem step : True.\nProof. by []. Qed.\n"
    )
    (root / "proofs" / "rocq" / "Unlisted.v").write_text("Theorem no : False.\nProof. by []. Qed.\n")
    (root / "proofs" / "test_claims.py").write_text("def test_claims_load() -> None: ...\n")
    blocks = ["[[claim]]\n" + "\n".join(f"{key} = {value}" for key, value in claim.items()) for claim in claims]
    (root / "proofs" / "claims" / "a.toml").write_text('title = "A"\n' + "\n".join(blocks) + "\n")
    return root


def test_good_claims_load(tmp_path: Path) -> None:
    """Kills a checker that refuses everything, and one that takes a theorem from a comment or from no listed file."""
    root = write(tmp_path, GOOD | {"coq": '["Single.step"]'})
    assert [claim.coq for claim in load(root)] == [("Single.step",)]
    assert coq_theorems(root) == {"Single.step"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coq": '["Single.gone"]'}, "there is no theorem Single.gone"),
        ({"exact": '["proofs/test_claims.py::test_gone"]'}, "there is no test proofs/test_claims.py::test_gone"),
        ({"exact": '["proofs/test_gone.py::test_a"]'}, "there is no test proofs/test_gone.py::test_a"),
        ({"smt": "[]"}, "consistent without evidence"),
        ({"verdict": '"violated"'}, "the correct statement is given exactly for violated claims"),
        ({"correct": '"2 < 3"'}, "the correct statement is given exactly for violated claims"),
        ({"verdict": '"not tested"'}, "a reason is given exactly for claims that are not tested"),
        ({"reason": '"no GPU"'}, "a reason is given exactly for claims that are not tested"),
        ({"verdict": '"maybe"'}, "Invalid enum value 'maybe'"),
        ({"rules": '["leviathen"]'}, "there is no chain leviathen"),
        ({"evidence": '"word of mouth"'}, "unknown field `evidence`"),
        ({"id": '"b.one"'}, "does not begin with a, the prefix of its file"),
    ],
)
def test_bad_claims_are_named(tmp_path: Path, change: dict[str, str], message: str) -> None:
    """Kills a check that is missing or that does not say which claim it is about."""
    with pytest.raises(BadInput, match=r"\b[ab]\.") as error:
        load(write(tmp_path, GOOD | change))
    assert message in str(error.value)


def test_an_id_is_used_once(tmp_path: Path) -> None:
    """Kills two claims that a report could not tell apart."""
    with pytest.raises(BadInput, match=r"a\.one is the id of 2 claims"):
        load(write(tmp_path, GOOD, GOOD))


def test_outside_the_source_tree(tmp_path: Path) -> None:
    """Kills an installed wheel that lists no claims and says nothing."""
    with pytest.raises(BadInput, match=r"no claims in .*: the source tree has them"):
        load(tmp_path)
