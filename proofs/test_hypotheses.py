"""Hypotheses of theorems: which there are, and that every theorem with one is applied. Taking them away needs Coq."""

from pathlib import Path

from proofs.hypotheses import drops, every, unapplied


def test_every_theorem_with_hypotheses_is_applied() -> None:
    """Kills: a theorem whose hypotheses nothing satisfies, which would be true of nothing."""
    assert unapplied() == []


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
