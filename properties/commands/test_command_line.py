"""The command line: what is typed reaches the library, every outcome has its exit code, and a mistake gets one line."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from properties.helpers.command_line import run
from refengine.cli import reports
from refengine.cli.output import print_rows, verdict
from refengine.commands.rounding import in_floats
from refengine.source_tree import FIXTURES

TINY = FIXTURES / "tiny"
TARGET, DRAFTER, AR = str(TINY / "target"), str(TINY / "dspark"), str(TINY / "ar")


def test_what_an_audit_found_is_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a witness that nobody can replay: findings that no file holds, or in a form that rerun does not read."""
    rounds = {"p": torch.tensor([[[0.0, 1.0]] * 2]), "q": torch.tensor([[[1.0, 0.0]]])}
    tokens = {"draft": torch.tensor([[0]]), "emitted": torch.tensor([[0, 1]])}  # kept although p has none of it
    save_file({**rounds, **tokens}, tmp_path / "record.safetensors")
    assert run("audit", "trace", tmp_path / "record.safetensors", "--out", tmp_path / "found.json") == 1
    assert run("rerun", tmp_path / "found.json") == 0
    assert "RERUN 1 of 1 findings confirmed" in capsys.readouterr().out


def test_a_report_can_name_its_maker(capsys: pytest.CaptureFixture[str]) -> None:
    """Kills --version asking for a command."""
    assert run("--version") == 0
    assert capsys.readouterr().out.strip() == version("refengine")


def test_an_own_fault_is_told_apart(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a fault of refengine that reads like a verdict or like bad input."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("refengine.selfcheck.claims.claims.load", broken)
    assert run("claims") == 70
    assert "internal error" in capsys.readouterr().err


def test_a_table_prints_its_cells_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Kills "pip install 'refengine[gguf]'" printed without its brackets, as markup is."""
    print_rows([{"install": "pip install 'refengine[gguf]'", "source": "a :heart: and [/no] tag"}], as_json=False)
    assert "pip install 'refengine[gguf]' a :heart: and [/no] tag" in capsys.readouterr().out


def test_every_verdict_has_its_exit_code() -> None:
    """Kills an audit that tested nothing and exits as consistent."""
    assert verdict([])[0] == 3
    assert verdict([])[1].startswith("VERDICT not-tested")


def test_the_law_of_rows_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a law that is rounded, and a distance that is left out."""
    (tmp_path / "rows.json").write_text(
        json.dumps({"rule": "leviathan", "p": [["3/4", "1/4"], ["1/2", "1/2"]], "q": [["1/4", "3/4"]]})
    )
    assert run("law", tmp_path / "rows.json", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accepted"] == {"0": "1/2", "1": "1/2"}
    assert found["TV from the target"] == "0"


def test_the_options_of_a_program_are_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a `vectors run` that takes `-c` for its own option."""
    program = "import sys; [print([0]) for _ in sys.stdin]"
    assert run("vectors", "run", "--rule", "greedy", sys.executable, "-c", program) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("VERDICT violated (")


def test_decode_prints_tokens_and_how_many_each_pass_gave(capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a text mixed with its statistics, and a length limit that is not kept."""
    options = ["--temperature", "0", "--max-new-tokens", "9"]
    assert run("decode", "--target", TARGET, "--drafter", DRAFTER, "1 2 3", *options) == 0
    printed = capsys.readouterr()
    assert len(printed.out.split()) == 9
    assert json.loads(printed.err.splitlines()[-1])["tokens"] == 9


def test_a_load_shortens_the_blocks_of_dspark(capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a load curve that is read and not used, and one that changes greedy output."""
    printed = []
    for curve in ("1:1,2:1", "1:1,2:9"):
        options = ["--temperature", "0", "--max-new-tokens", "9", "--load", curve]
        assert run("decode", "--target", TARGET, "--drafter", DRAFTER, "1 2 3", *options) == 0
        printed.append(capsys.readouterr())
    free, dear = (x.out for x in printed)
    drafted, none = (json.loads(x.err.splitlines()[-1])["drafted"] for x in printed)
    assert free == dear
    assert drafted > none == 0
    for curve in ("1:1", "1:x,2:1", "quick", "2:1,3:2"):  # of the last a pass of one row takes no time
        assert run("decode", "--target", TARGET, "--drafter", DRAFTER, "1 2 3", "--load", curve) == 2
        assert curve in capsys.readouterr().err


def test_a_report_that_fails_exits_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kills a CI that stays green over a violated reference, and one that fails over a third party's defect."""
    from refengine.commands import report

    for failed, violated, strict, code in ((True, 0, [], 1), (False, 3, [], 0), (False, 3, ["--strict"], 1)):
        outcome = report.Outcome(["done"], failed, violated)
        monkeypatch.setattr(report, "write_report", lambda out, outcome=outcome, **_: outcome)
        assert run("report", "--out", tmp_path, *strict) == code
    assert reports.VIOLATED == 1


def test_gamma_is_that_of_the_file_or_the_readers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a bound of block for blocks of another length than was asked about."""
    rows = tmp_path / "rows.json"
    rows.write_text('{"rule": "block", "p": [[0.5, 0.5], [1, 0], [0, 1]], "q": [[0.5, 0.5], [0.25, 0.75]]}')
    for asked, gamma in (([], 2), (["--gamma", "7"], 7), (["--gamma", "0"], 0)):
        assert run("law", rows, "--json", *asked) == 0
        assert json.loads(capsys.readouterr().out)["in floats"] == in_floats("block", 2, 3, 1, gamma)
    assert run("law", rows) == 0
    assert "gamma at most 2" in capsys.readouterr().out
