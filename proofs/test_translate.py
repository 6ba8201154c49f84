"""The translation of the rules into Coq's words: it is of the text that runs, and refuses what it has no words for."""

import ast
from pathlib import Path

import pytest

from proofs import translate
from proofs.translate import FILE, Function, Untranslated, translated, written
from refengine.bugs.mutation.mutants import mutants


def test_the_file_is_of_the_text_that_runs() -> None:
    """Kills: a proof about the rules as they once were: run `python3 -m proofs.translate --write`."""
    assert FILE.read_text() == written()


@pytest.mark.parametrize("name", [name for file, name in translate.WANTED if file == f"rules/{name}"])
def test_every_mutant_is_translated_differently_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a part of a rule that the translator does not look at, in which a mistake would be proved right.

    What is not seen is the sites, of which the words of Python.v know nothing.
    """
    texts = {m.number: m.source for m in mutants(f"refengine.exact.rules.{name}")}
    ours, unseen = written(), []
    for mutant in mutants(f"refengine.exact.rules.{name}"):
        monkeypatch.setattr(
            translate,
            "source",
            lambda file, text=texts[mutant.number], n=name: (
                text if file == f"rules/{n}" else (translate.EXACT / f"{file}.py").read_text()
            ),
        )
        try:
            same = written() == ours
        except Untranslated:
            same = False
        if same and not about_sites(mutant.key()):
            unseen.append(mutant.key())
    assert unseen == []


def about_sites(key: tuple[str, ...]) -> bool:
    return '("accept"' in " ".join(key) or '("emit"' in " ".join(key)


@pytest.mark.parametrize(
    "text",
    [
        "while x: pass",
        "for i in range(3):\n    pass\nelse:\n    pass",
        "with a: pass",
        "p[x] = 1",
        "a = lambda: 1",
        "left, right = right, left",
        "return p // q",
        "return p ** 2",
        "if a:\n    b = 1\nc = 2",
        "return chance.guess(p)",
        "return [x for x in p if x]",
    ],
)
def test_what_it_has_no_words_for_is_refused(text: str) -> None:
    """Kills: a translator that skips what it does not know."""
    function = Function(set(), {"p": "row", "q": "row", "x": "token", "a": "bool", "left": "num", "right": "num"})
    with pytest.raises(Untranslated, match=r"^line "):
        function.block(ast.parse(text).body, lambda: "raised", None)


def test_helpers_that_are_known_by_their_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: another meaning of `row_after` or `children` under rules that are proved with the old one."""
    text = (translate.EXACT / "block.py").read_text().replace("return p[node + 1]", "return p[node]")
    monkeypatch.setattr(
        translate, "source", lambda file: text if file == "block" else (translate.EXACT / f"{file}.py").read_text()
    )
    with pytest.raises(Untranslated, match="row_after is not what"):
        written()


def test_a_break_and_a_continue_are_not_the_same() -> None:
    """Kills: a loop whose end is told what the next turn is told."""
    assert "out (" in translated("rules/block", "block", {"residual", "prefix_weights"})
    assert translated("row", "residual", set()).count("Num.max") == 1
