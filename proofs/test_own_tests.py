"""What the tests that claims name see of mistakes in rules: the record is of this text, and is found again."""

import random

import pytest

from refengine.bugs.process.pool import Job, run_jobs
from refengine.selfcheck.claims import mutants_of_tests
from refengine.selfcheck.claims.chains import DECODED
from refengine.selfcheck.claims.claims import load
from refengine.selfcheck.claims.mutants_of_tests import (
    RECORD,
    checks,
    pass_unedited,
    reaches,
    red,
    sample,
    status,
    texts,
)
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.committed import Committed
from refengine.source_tree import commit_seed

BRIDGE = "proofs/test_bridge.py::test_exact_is_what_coq_said"
COQ = "proofs/test_translate.py::test_the_translation_"  # as these tests begin


def test_every_claim_about_a_rule_has_tests_that_see_the_rule() -> None:
    """Kills: a claim whose tests are about something else, and a record older than a rule or a claim."""
    lines = {claim.id: claim.link() for claim in load()}
    assert {name: line for name, line in lines.items() if line and not line.startswith("its own tests see")} == {}
    assert sum(map(bool, lines.values())) > 50


def test_what_is_on_record_is_seen_again() -> None:
    """Kills: a record that says seen of tests that pass, or of tests that fail whatever the text. Two mistakes, one
    recorded test each; solvers and Coq left out, and laws of the whole loop, which a slow machine does not end in the
    time."""
    known = [
        (mutant, test)
        for module, entry in RECORD.entries().items()
        for mutant, tests in zip(sample(module), entry["seen"], strict=True)
        for test in tests
        if not test.startswith(("proofs/smt", "proofs/test_batched", COQ, "properties/decoder/test_law"))
    ]
    chosen = random.Random(commit_seed()).sample(known, 2)
    jobs = [
        Job(f"{m.number}", {m.module: m.source}, checks([test]), seconds=mutants_of_tests.SECONDS) for m, test in chosen
    ]
    pass_unedited([test for _, test in chosen])
    assert [red(answers) for answers in run_jobs(jobs, at_once=1)] == [[test] for _, test in chosen]


def test_a_test_that_is_not_there_sees_nothing() -> None:
    """Kills: a cited case that no file has, which would be red for every mistake."""
    with pytest.raises(RuntimeError, match="on unedited source pytest:"):
        pass_unedited([f"{BRIDGE}[on every GPU]"])


def test_a_rule_that_a_drafter_uses_is_tied_to_the_decoder() -> None:
    """Kills: a drafter under a rule that has neither a cell on record nor a test that `chains.DECODED` names."""
    assert {rule for row in ROWS.values() for rule in (*row.rules, *row.lossy)} <= DECODED.keys()


def test_the_last_link_of_a_chain_runs_its_rule() -> None:
    """Kills: a test of the decoder that is given as a rule's link and runs another rule. In three rules one of four
    mistakes must show; not each does, since a guard may be for places that the decoder's blocks do not have."""
    for chain in ("block", "greedy", "nucleus"):
        test = DECODED[chain]
        jobs = [Job(chain, {m.module: m.source}, (f"pytest:{test}",), seconds=60.0) for m in sample(texts([chain])[1])]
        assert any(red(answers) == [test] for job in jobs for answers in run_jobs([job])), chain


def test_the_line_on_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a share said of tests that saw nothing, or of tests that were never run."""
    assert status([], ["block"]) == status([BRIDGE], []) == ""
    asked = {"tests": ["a", "b"], "seen": [["a"], [], ["a", "b"]]}
    monkeypatch.setattr(Committed, "fresh", lambda self, module: asked)
    assert texts(["block"]) == ("refengine.exact.rules.block", "refengine.engine.rules.block")
    assert status(["a"], ["block"]) == "its own tests see 4 of 6 sampled mistakes in its rules"
    assert status(["b"], ["block"]).startswith("its own tests see 2 of 6")
    asked["seen"] = [["a"], [], ["a"]]
    assert status(["b"], ["block"]).startswith("blind: its own tests see 0 of 6")
    assert status(["a", "c"], ["block"]).startswith("stale")


def test_what_a_file_of_tests_reaches() -> None:
    """Kills: a test that is left out although it runs the rule, through a helper or by the rule's name."""
    root = mutants_of_tests.PROOFS.parent
    assert reaches(root / "proofs/test_bridge.py", "refengine.exact.rules.nucleus")
    assert reaches(root / "proofs/smt/test_rules.py", "refengine.exact.rules.block")
    assert reaches(root / "proofs/smt/test_defects.py", "refengine.exact.rules.leviathan")
    assert not reaches(root / "proofs/symbolic/test_speed.py", "refengine.exact.rules.block")
