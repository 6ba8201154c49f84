"""A violation as a letter: what is emitted too often, where and by how much; and where to look for every class."""

from typing import Any

import pytest

from refengine.bugs.catalogue.classes import named
from refengine.commands.told import told
from refengine.evidence import naming
from refengine.evidence.e_process import DEFECTS
from refengine.report.finding import Finding, Recipe
from refengine.report.letter import LOOK, sentence, site, table, where_to_look

EXACT = {"position": 1, "emitted": [2], "law": [0.5, 0.5, 0.0], "null": [0.25, 0.7, 0.05]}
COUNTS = {
    "site": {"lane": 0, "position": 0, "draws": 200},
    "came": {"0": 150, "4": 50},
    "due": {"0": 0.9, "4": 0.1},
}
CALL = {"position": 0, "tokens": [3], "draft": [1], "what": "token 3 has p = 0", "due": [0.5, 0.5, 0.0, 0.0]}
BROKEN = {"what": "the answer is None: nothing was returned", "call made": "call 1: f()", "expected": "tokens"}


def violated(witness: dict[str, Any], diagnosis: str = "") -> Finding:
    recipe = Recipe(function="refengine.made_up:findings")
    texts = {"id": "a", "subject": "m:f", "claim": "It holds.", "source": "s", "method": "by hand"}
    return Finding(**texts, verdict="violated", role="subject", recipe=recipe, witness=witness, diagnosis=diagnosis)


@pytest.mark.parametrize(
    ("witness", "says"),
    [
        (
            EXACT,
            "It emits token 0 too often at position 1 of a block, after [2]: 0.5 of the time where 0.25 is due, "
            "2 times as often as is right.",
        ),
        (
            COUNTS,
            "It emits token 4 too often at position 0 of a block: 0.25 of the time where 0.1 is due, "
            "2.5 times as often as is right.",
        ),
        (CALL, "It emits token 3, whose probability is zero, at position 0 of a block, before any other."),
        (BROKEN, "It breaks its contract: the answer is None: nothing was returned."),
        ({"prompt": "of another kind"}, ""),
    ],
)
def test_the_first_sentence_says_what_is_emitted(witness: dict[str, Any], says: str) -> None:
    """Kills a sentence about another token than the witness shows, a wrong factor, and one made up without data."""
    assert sentence(violated(witness)) == says


def test_a_long_block_does_not_fill_the_screen() -> None:
    """Kills a letter whose sentence has scrolled away, and rows that are left out without a word."""
    lines = told(violated({**EXACT, "p": [[0.5, 0.5]] * 17}))
    assert sum("p[" in line for line in lines) == 4
    assert any("p has 13 more rows" in line for line in lines)


def test_the_table_marks_the_token_of_the_sentence() -> None:
    """Kills a sentence and a table of different rows."""
    for witness, token in ((EXACT, "0"), (COUNTS, "4"), (CALL, "3")):
        shown = site(violated(witness))
        assert shown is not None
        (marked,) = [line for line in table(shown) if line.endswith("<-")]
        assert marked.split()[0] == token


def test_every_class_that_an_audit_names_has_a_place_to_look() -> None:
    """Kills a new class of defects of which a maintainer is not told where it is made."""
    constants = [value for name, value in vars(naming).items() if name.isupper() and isinstance(value, str)]
    diagnoses = [*DEFECTS, *(text for text in constants if ": " in text)]
    classes = {found.name for diagnosis in diagnoses for found in named(diagnosis)}
    assert len(classes) > 25
    assert classes <= LOOK.keys()
    assert where_to_look(["no such class"]) == ""


def test_a_letter_begins_with_what_to_do_and_ends_with_the_witness() -> None:
    """Kills a witness above the sentence, a diagnosis without its place, and a broken contract read as a wrong law."""
    lines = [line.strip() for line in told(violated(EXACT, "resample from target: corrected from p"))]
    assert lines[0].startswith("It emits token 0 too often")
    assert "It looks like resample from target: corrected from p." in lines
    assert any(line.startswith("Look at the line that replaces a refused draft") for line in lines)
    assert next(i for i, line in enumerate(lines) if line.startswith("witness")) > lines.index("claim     It holds.")
    broken = "\n".join(told(violated(BROKEN, naming.BROKEN_CONTRACT)))
    assert "expected  tokens" in broken
    assert "call made call 1: f()" in broken
    assert "looks like" not in broken
