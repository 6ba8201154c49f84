"""Hypotheses of theorems: which there are, that every theorem with one is applied, and what fails without each.

The record is made with Coq (`python3 -m proofs.hypotheses`); these tests hold it to the text as it is now.
"""

from pathlib import Path

import pytest

from proofs.hypotheses import ENDLESS, STATEMENT, failing
from proofs.statements import drops, every, premises_of, unapplied
from refengine.selfcheck.claims.coq_text import SOURCES, listed
from refengine.selfcheck.claims.hypotheses import RECORD, blank_comments, fresh, status
from refengine.source_edits.committed import Committed


def test_every_theorem_with_hypotheses_is_applied() -> None:
    """Kills: a theorem that no instance names, or one that assumes; that it is applied there, the gate asks Coq."""
    assert unapplied() == []


def test_every_hypothesis_is_missed() -> None:
    """Kills: a hypothesis that no proof needs, a record that is older than the theorems, and an answer that somebody
    wrote in."""
    answers = fresh()
    proved = {file: {*STATEMENT.findall((SOURCES / f"{file}.v").read_text())} for file in listed()}
    assert {by for key, by in answers.items() if by not in proved[key.split(".")[0]]} <= {ENDLESS}
    assert [drop.key() for drop in every() if not answers.get(drop.key())] == [], "make records RECORDS=hypotheses"


def test_a_changed_theorem_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a line that says missed of a text that nobody has run."""
    assert status(["Leviathan.leviathan_lossless", "Round.x"])["Leviathan"] == "missed: each of its 3 hypotheses"
    changed = {"Leviathan": {**RECORD.entries()["Leviathan"], "digest": "0"}}
    monkeypatch.setattr(Committed, "entries", lambda self: changed)
    assert status(["Leviathan.leviathan_lossless"])["Leviathan"].startswith("stale")
    assert fresh() == {}


def test_hypotheses_are_found(tmp_path: Path) -> None:
    """Kills: a premise that is never taken away because it is not seen, or is seen as part of another."""
    file = tmp_path / "A.v"
    file.write_text(
        "Section A. (* Hypothesis no : False. *)\nHypothesis pP : forall h, dist (p h).\n"
        "Theorem one (x : V -> R) : dist x ->\n"
        "  (forall y, 0 <= y -> y = y) -> let z := x in z =1 x.\nProof. by []. Qed.\n"
        "Theorem two : a <-> b /\\ forall f, ok f -> f = f.\nProof. by []. Qed.\n"
    )
    assert [drop.key() for drop in drops(file)] == [
        "A.pP: forall h, dist (p h)",
        "A.one: dist x",
        "A.one: (forall y, 0 <= y -> y = y)",
        "A.two: ok f",
    ]
    assert len({drop.key() for drop in every()}) == len(every()) > 150


def test_an_instance_that_assumes_is_found() -> None:
    """Kills: an instance with a premise, which would be no instance."""
    code = blank_comments(
        "Example fine n : p n = q n. (* a -> b *)\nProof. by []. Qed.\nExample bad n : n = 0 -> p n.\n"
    )
    assert [name for name, _, _ in premises_of(code, "Example")] == ["bad"]


def test_what_fails_is_named() -> None:
    """Kills: a hypothesis that counts as missed because the text without it cannot be read."""
    text = "(* a\ncomment *)\nTheorem one : True  -> b.\nProof. by []. Qed.\nLemma two : a.\nProof. bad. Qed.\n"
    at = text.index("True")
    assert failing(text, at, 'File "A.v", line 6, characters 7-10:\nError: no.') == "two"
    assert failing(text, at, 'File "A.v", line 4, characters 7-12:\nError: no.') == "one"
    for stderr in ('File "A.v", line 3, characters 14-18:\nError: ill-typed.', "Out of memory"):
        with pytest.raises(ValueError, match=r"not a hypothesis|nothing of a line"):
            failing(text, at, stderr)
