"""The catalogue of defects, the loader of edits, and the laws of edited rules."""

import os
import subprocess
import sys
from fractions import Fraction

import pytest

from refengine.bugs.catalogue import NOT_EXPRESSED, all_bugs, find
from refengine.bugs.checks import CHECKS
from refengine.bugs.laws import edited_rule, is_rule_level, next_token, round_law
from refengine.exact.row import row
from refengine.exact.rules.leviathan import leviathan
from refengine.source_edits.edit import Edit
from refengine.source_edits.loader import edited_module, edited_source, install_sources, source_path

LEVIATHAN = "refengine.exact.rules.leviathan"


def test_entries_are_complete_and_distinct() -> None:
    """Kills a catalogue that is padded: two entries with one edit, a check that does not exist, too few rows."""
    bugs = all_bugs()
    assert len(bugs) >= 60
    assert len({bug.id for bug in bugs}) == len(bugs)
    assert len({frozenset(bug.edits) for bug in bugs}) == len(bugs)
    assert {bug.part for bug in bugs} == {"A1", "A2", "A3", "A4", "A5", "A6"}
    for bug in bugs:
        assert bug.check in CHECKS
        assert bug.title
        assert bug.source
        assert bug.edits
    assert {bug.id for bug in bugs if bug.expected == "consistent"} == {
        "point-mass-siblings",
        "agreement-under-shared-noise",
    }
    assert all(reason for _, _, reason in NOT_EXPRESSED)


@pytest.mark.parametrize("bug", all_bugs(), ids=lambda bug: bug.id)
def test_every_edit_still_applies(bug) -> None:  # type: ignore[no-untyped-def]
    """Kills an entry that the source has moved away from, and one whose edited source is no Python."""
    for module in {edit.module for edit in bug.edits}:
        text = edited_source(module, bug.edits)
        assert text != source_path(module).read_text()
        compile(text, module, "exec")


def test_an_edit_that_is_not_found_once_is_refused() -> None:
    """Kills a loader that applies an edit nowhere or in two places."""
    for old in ("no such text", "chance"):
        with pytest.raises(ValueError, match="not once"):
            edited_source(LEVIATHAN, [Edit(LEVIATHAN, old, "")])
    with pytest.raises(ValueError, match=r"there is no module refengine\.nothing"):
        source_path("refengine.nothing")
    with pytest.raises(ValueError, match="json is no module of refengine"):
        source_path("json")


def test_an_imported_module_cannot_be_edited_any_more() -> None:
    """Kills a loader that installs an edit that can no longer take effect."""
    with pytest.raises(RuntimeError, match="applied in a fresh process"):
        install_sources({LEVIATHAN: source_path(LEVIATHAN).read_text()})


def test_a_fresh_process_runs_the_edited_source_and_the_file_stays() -> None:
    """Kills a hook that serves the cached bytecode, or writes to disk."""
    before = source_path(LEVIATHAN).read_bytes()
    program = (
        "from refengine.bugs.catalogue import find\n"
        "from refengine.source_edits.loader import edited_source, install_sources\n"
        f"install_sources({{'{LEVIATHAN}': edited_source('{LEVIATHAN}', find('accepts-always').edits)}})\n"
        "from refengine.exact.rules.leviathan import leviathan\n"
        "from refengine.exact.drafters import sampled_chain\n"
        "from refengine.exact.law import round_law\n"
        "from refengine.exact.row import row\n"
        "p, q = row([1, 0]), row([1, 1])\n"
        "print(sorted(round_law(lambda t: p, sampled_chain(lambda t: q, 1), leviathan, ())))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(source_path("refengine").parent.parent)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[(0, 0), (1, 0)]"
    assert source_path(LEVIATHAN).read_bytes() == before


def test_an_edited_module_stands_beside_the_original() -> None:
    """Kills an in-process edit that leaks into the package."""
    edited = edited_module(LEVIATHAN, find("accepts-always").edits)
    assert edited.leviathan is not leviathan
    assert edited_rule(find("accepts-always")) is not leviathan


def test_unknown_names_come_with_the_nearest() -> None:
    """Kills a lookup that fails without saying what it knows."""
    with pytest.raises(ValueError, match=r"unknown bug 'accept-always': did you mean accepts-always"):
        find("accept-always")


def test_laws_of_edited_rules_by_hand() -> None:
    """Kills a conditional law that is taken at the wrong place or under the wrong draft."""
    p, q = row([7, 3]), row([1, 1])
    always, target = find("accepts-always"), find("resample-from-target")
    assert next_token(always, [p, p], [q], ()) == q
    assert next_token(always, [p, p], [q], (0,)) == p
    # 0 is kept with 1/2; 1 is kept with 1/2 * 3/5, and after a refusal (1/5) p is drawn from again.
    assert next_token(target, [p, p], [q], ()) == (Fraction(1, 2) + Fraction(7, 50), Fraction(3, 10) + Fraction(3, 50))
    assert sum(round_law(target, [p, p], [q]).values()) == 1
    assert next_token(always, [p, p], [row([1, 0])], (1,)) is None
    with pytest.raises(ValueError, match="no single rule"):
        edited_rule(find("seed-ignored"))
    assert sum(map(is_rule_level, all_bugs())) >= 15
