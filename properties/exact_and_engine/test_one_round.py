"""`refengine law`: right numbers on cases worked out by hand, and one clear line for every kind of bad input."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refengine.commands.law import WALKED, answer, emitted, one_round, question, read
from refengine.errors import BadInput
from refengine.exact import unknowns
from refengine.exact.law import law
from refengine.exact.rules import RULES

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


def rows_of(vocabulary: int, drafts: int) -> dict[str, Any]:
    """Uniform rows."""
    row = [f"1/{vocabulary}"] * vocabulary
    return {"p": [row] * (drafts + 1), "q": [row] * drafts}


def hostile(count: int, shift: int) -> list[list[str]]:
    """Rows of three tokens with zeros and a certain token among them, no two alike."""
    rows = [["1/2", "1/3", "1/6"], ["0", "2/5", "3/5"], ["1", "0", "0"], ["1/7", "2/7", "4/7"], ["1/4", "3/4", "0"]]
    return [rows[(i + shift) % len(rows)] for i in range(count)]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("shift", range(5))
def test_the_merged_law_is_that_of_every_path(name: str, shift: int) -> None:
    """Kills: a law with equal states merged that is another one, of tokens, of accept counts, or of both together."""
    asked = question({"rule": name, "p": hostile(4, shift), "q": hostile(3, 2 * shift + 1)})
    for first in (1, 4):
        short = replace(asked, first=first)
        assert emitted(short) == law(one_round(short, RULES[name].rule, short.p, short.q))


@pytest.mark.parametrize("name", RULES)
def test_the_rules_that_are_walked_are_those_that_weigh_whole_drafts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: a rule whose law would take all V^gamma drafts at once and is let through as one whose states merge."""
    most, plain = [0], unknowns.pointwise

    def counted(function: Any, *arguments: Any) -> Any:
        found = plain(function, *arguments)
        most[0] = max(most[0], len(found.cells) if isinstance(found, unknowns.Value) else 0)
        return found

    monkeypatch.setattr(unknowns, "pointwise", counted)
    monkeypatch.setattr("refengine.exact.merged.pointwise", counted)
    monkeypatch.setattr("refengine.commands.law.WALKED", set())
    emitted(question({**rows_of(2, 6), "rule": name, "p": [["1/3", "2/3"]] * 7}))
    assert (most[0] >= 2**6) == (name in WALKED)
    assert name in WALKED or most[0] <= 2**2


def test_drafts_beyond_every_walk() -> None:
    """Kills: a walk in disguise. 64 drafts of 8 tokens are 10^58 paths; merged they are 65 runs. Where p = q all drafts
    are kept."""
    rows = [[f"{x + i % 3 + 1}/{36 + 8 * (i % 3)}" for x in range(8)] for i in range(65)]
    found = answer(question({"rule": "leviathan", "p": rows, "q": rows[:64], "first": 2}))
    assert (found["accepted"], found["expected tokens"], found["first"]) == ({"64": "1"}, "65", 2)
    assert found["TV from the target"] == "0"
    assert len(found["law"]) == 64


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
    ({"first": 3}, "first is 3; it is 1 to 2 here: a round emits no more"),
    ({"first": True}, "first is True"),
    (rows_of(2, 17) | {"rule": "block"}, "2^17 drafts are too many to enumerate"),
    (rows_of(300, 4), "4 drafts of 300 tokens take"),
    (rows_of(16, 5) | {"first": 5}, "first is 5; it is 1 to 4 here: 16^5 are too many to list"),
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
