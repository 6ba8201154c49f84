"""The list of released pairs: readable layouts, every drafter, and nothing that was not published."""

import re
from pathlib import Path

import pytest

from refengine.cli import lists
from refengine.commands.released import DATA, known, pairs, without_release
from refengine.decoder.checkpoints.load import LAYOUTS
from refengine.errors import BadInput

NAME = re.compile(r"[\w.-]+/[\w.-]+")


def test_every_pair_is_of_a_layout_that_is_read_and_every_layout_is_there() -> None:
    """Kills a pair that no reader takes, and a drafter whose releases are not listed."""
    layouts = {layout.name for layout in LAYOUTS}
    listed = {pair.layout for pair in pairs()} | without_release()
    assert listed == layouts, "commands/released.toml names the pairs of a layout, or it in without_release"
    assert not {pair.layout for pair in pairs()} & without_release()


def test_pairs_are_of_repositories_and_stand_once() -> None:
    """Kills a name that the hub cannot have, and a pair whose figures depend on which entry is found."""
    names = [(pair.drafter, pair.target) for pair in pairs()]
    assert len(set(names)) == len(names) > 50
    assert [name for both in names for name in both if not NAME.fullmatch(name)] == []


def test_figures_can_be_and_say_how_they_came_about() -> None:
    """Kills a rate above 1, a mean of less than one token, and a figure without a source or conditions."""
    figures = [published for pair in pairs() for published in pair.figures]
    assert figures
    for published in figures:
        assert published.source
        assert published.conditions
        assert published.tokens_per_pass or published.accepted_by_position
        assert all(value >= 1 for value in published.tokens_per_pass.values())
        assert all(0 <= x <= 1 for values in published.accepted_by_position.values() for x in values)
    assert known("deepseek-ai/dspark_qwen3_4b_block7", "Qwen/Qwen3-8B") is None


def test_the_list_is_in_the_package() -> None:
    """Kills a list that a wheel leaves behind."""
    assert DATA.parent == Path(lists.__file__).parent.parent / "commands"


def test_the_command_says_what_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a figure that is left out where none was published, and a word that nothing has."""
    lists.checkpoints("qwen4b-dart")
    assert "published figures: unknown" in capsys.readouterr().out
    lists.checkpoints("dspark_qwen3_4b")
    said = capsys.readouterr().out
    assert "GSM8K 6.11" in said
    assert "unknown" not in said
    with pytest.raises(BadInput, match="no released pair has 'nobody'"):
        lists.checkpoints("nobody")
