"""`refengine law`: right numbers on cases worked out by hand, and one clear line for every kind of bad input."""

import json
from pathlib import Path
from typing import Any

import pytest

from refengine.commands.law import answer, question, read
from refengine.errors import BadInput

GOOD: dict[str, Any] = {"rule": "leviathan", "p": [["0.7", "0.3"], ["1/3", "2/3"]], "q": [["0.5", "0.5"]]}


def test_the_ratio_rule_by_hand() -> None:
    """Kills an answer that forgets the drafting, or completes with the wrong row: accepted 0.5 + 0.5 * 0.6 = 0.8."""
    found = answer(question(GOOD))
    assert found["accepted"] == {"0": "1/5", "1": "4/5"}
    assert found["law"] == {"0": "1/5", "0 0": "1/6", "0 1": "1/3", "1 0": "1/10", "1 1": "1/5"}
    assert found["expected tokens"] == "9/5"
    assert found["TV from the target"] == "0"


def test_a_lossy_rule_is_measured() -> None:
    """Kills a distance that is always 0: both drafts pass and 1 follows, (1/2, 1/2) against (7/15, 1/5) of p."""
    found = answer(question({**GOOD, "rule": "typical"}))
    assert found["TV from the target"] == "1/3"


def test_a_given_tree_is_judged_as_given() -> None:
    """Kills a reader that drops `parents`: the second sibling is judged after the first was taken out of p."""
    tree = {"rule": "point_mass", "p": [["1/2", "1/4", "1/4"]] * 3, "tokens": [0, 1], "parents": [-1, -1]}
    assert answer(question(tree))["accepted"] == {"0": "1/4", "1": "3/4"}


BAD = [
    ({"rule": "magic"}, "rule 'magic' is unknown"),
    ({"p": [[0.7, 0.2], [0.5, 0.5]]}, "p[0] sums to 0.9, not to 1"),
    ({"p": [["1.5", "-0.5"], [0.5, 0.5]]}, "p[0][1] is negative"),
    ({"p": [["nan", "0.5"], [0.5, 0.5]]}, "p[0][0] is 'nan', not a number"),
    ({"p": [[0.5, 0.5], [1.0]]}, "p[1] has 1 entries, p[0] has 2: rows are ragged"),
    ({"p": []}, "p must be a list of rows"),
    ({"q": [[0.5, 0.25, 0.25]]}, "q is 1 x 3; with p 2 x 2 it must be 1 x 2"),
    ({"tokens": [2]}, "tokens[0] is 2, outside the vocabulary of 2 tokens"),
    ({"tokens": [0, 1]}, "tokens has 2 entries"),
    ({"tokens": [True]}, "tokens must be a list of integers"),
    ({"tokens": [0], "parents": [0]}, "parents[0] is 0: parents come before their children"),
    ({"q": None}, "give q, from which the draft is drawn, or tokens"),
    ({"q": None, "tokens": [0]}, "leviathan: node 0 was not drawn"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Kills a check that is missing or that names the wrong thing."""
    file = tmp_path / "rows.json"
    file.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(BadInput) as caught:
        answer(read(file))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"rule": "leviathan", "p": [[NaN, 1.0]]}', "NaN stands where a probability is expected"),
        ('{"rule": "leviathan", "p": [[0.5', "is not valid JSON"),
        ("[]", "expected a JSON object"),
        ('{"rules": 1}', "unknown key 'rules'"),
    ],
)
def test_a_bad_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    """Kills a reader that lets NaN, a cut-off file or a misspelt key through."""
    file = tmp_path / "rows.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=message):
        read(file)
