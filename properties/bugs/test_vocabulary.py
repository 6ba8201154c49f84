"""One vocabulary of defects: laws, diagnoses, entries, planted bugs and z3's defects name the same classes."""

from collections import defaultdict

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from proofs.smt.defects import DEFECTS as OF_Z3
from properties.helpers import report_example as example
from refengine.audit.adapters.transformers.generate import DIAGNOSES, MIXTURE
from refengine.audit.kernel.diagnosis import SHARED
from refengine.bugs.catalogue import all_bugs
from refengine.bugs.catalogue.classes import KNOWN, NO_DEFECT, classes, glossary, named
from refengine.bugs.laws import is_rule_level, next_token
from refengine.cli import app
from refengine.commands.told import told
from refengine.evidence import naming
from refengine.evidence.bets.defect_laws import alternatives, names
from refengine.evidence.e_process import LISTED
from refengine.evidence.naming import OR, joined, unexplained
from refengine.exact.row import Row, row
from refengine.report.html import render
from refengine.report.report import make_report
from refengine.selfcheck.drafters.table import ROWS

CONSTANTS = [text for name, text in vars(naming).items() if name.isupper() and ": " in text]
PLANTED = sorted({plant.diagnosis for drafter in ROWS.values() for plant in drafter.plants})
DIAGNOSED = [*LISTED, *CONSTANTS, *SHARED.values(), *DIAGNOSES.values(), MIXTURE, *PLANTED]


@pytest.mark.parametrize("diagnosis", dict.fromkeys(DIAGNOSED))
def test_every_diagnosis_resolves_to_one_class_with_a_description_and_a_source(diagnosis: str) -> None:
    """Kills a law or a diagnosis that `refengine bugs` does not know, and one that cannot be told from two."""
    (found,) = named(diagnosis)
    assert all(found.titles)
    assert all(found.sources)
    assert OR not in diagnosis


def test_several_and_no_class_are_read_back() -> None:
    """Kills a list of classes of which the first alone is explained, and a class where none fits."""
    several = joined([LISTED[0], LISTED[3], LISTED[0], unexplained("at position 2 of a block")])
    assert [found.name for found in named(several)] == ["accepts always", "no coin"]
    assert named(unexplained("in many small signs")) == named("") == []
    with pytest.raises(ValueError, match="names no class"):
        named("a boundary")
    assert glossary(["a boundary", unexplained("nowhere"), LISTED[0]]).keys() == {LISTED[0]}


def test_the_defects_of_z3_have_classes_of_the_catalogue() -> None:
    """Kills a second vocabulary beside this one."""
    known = classes()
    assert {defect.name for defect in OF_Z3} <= known.keys()
    assert {bug.law_class for bug in all_bugs()} == {NO_DEFECT, *known} - {k.law_class for k in KNOWN}


def test_every_class_without_an_edit_is_used() -> None:
    """Kills a class that nothing can be diagnosed as."""
    used = {found.name for diagnosis in DIAGNOSED for found in named(diagnosis)}
    used |= {defect.name for defect in OF_Z3}
    assert {known.law_class for known in KNOWN} <= used


# Rows at which the edits with constants of their own (typical-by-default, a draft that is dropped below 1/3) agree with
# the laws, whose constants are others.
P: tuple[Row, ...] = (row([1, 30, 2, 4]), row([30, 2, 5, 2]), row([3, 1, 2, 2]))
Q: tuple[Row, ...] = (row([2, 1, 4, 1]), row([1, 3, 3, 1]))
WITHOUT_LAW = {
    "rejected-token-stays",  # two tokens where one is due: a length, which no law of the next token has
    "relaxed-acceptance",
    "ensemble-weight",
    "synthetic-acceptance",
    "entropy-verify",  # modes that an engine declares
}
ENTRIES = [bug for bug in all_bugs() if is_rule_level(bug) and "leviathan" in bug.edits[0].module]


@pytest.mark.parametrize("bug", ENTRIES, ids=lambda bug: bug.id)
def test_an_entry_has_a_law_that_evidence_bets_on_under_its_class(bug) -> None:  # type: ignore[no-untyped-def]
    """Kills a law under the name of a class whose entries, enumerated, have another one; a class without a bet."""
    laws = [name for name in names() if name.startswith(f"{bug.law_class}: ")]
    law_or_reason = (
        f"write a law that begins with '{bug.law_class}: ' in evidence/bets/defect_laws.py, or list it in WITHOUT_LAW"
    )
    assert bool(laws) != (bug.id in WITHOUT_LAW), law_or_reason
    p, q = (np.array(rows, dtype=float)[None, :, None] for rows in (P, Q))
    tables = alternatives(p, q)
    apart: dict[str, float] = defaultdict(float)
    for emitted in ((), *((x,) for x in range(4))):
        law = next_token(bug, P, Q, emitted)
        if law is None:
            continue
        for name in laws:
            apart[name] = max(apart[name], float(np.abs(tables[name][0, len(emitted), 0] - np.array(law, float)).max()))
    assert not laws or min(apart.values()) < 1e-12, dict(apart)


def test_the_terminal_and_the_report_explain_a_diagnosis() -> None:
    """Kills a diagnosis that says a name and leaves the reader alone with it."""
    diagnosis = "resample from target: corrected from p instead of the residual"
    finding = msgspec.structs.replace(example.findings()[0], verdict="violated", diagnosis=diagnosis)
    printed = " ".join(" ".join(told(finding)).split())
    assert "a rejected position is drawn again from p" in printed
    assert "ShopeeLLM/Spec-RL #14" in printed
    page = render(make_report([finding], seed=0, defects=glossary([diagnosis])))
    assert "a rejected position is drawn again from p" in page
    assert "ShopeeLLM/Spec-RL #14" in page
    listed = CliRunner().invoke(app, ["bugs", "resample from target"])
    assert "Spec-RL" in listed.output
    assert CliRunner().invoke(app, ["bugs", "coarse coin"]).exit_code == 0
