"""The command line: what is typed reaches the library, every outcome has its exit code, and a mistake gets one line."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from refengine import cli
from refengine.cli import reports
from refengine.cli.output import verdict
from refengine.commands.rounding import in_floats
from refengine.source_tree import FIXTURES

TINY = FIXTURES / "tiny"
TARGET, DRAFTER, AR = str(TINY / "target"), str(TINY / "dspark"), str(TINY / "ar")


def run(*arguments: str | Path) -> int:
    """The exit code of one command."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with one file of each kind that a mistake can be about."""
    (tmp_path / "text").write_text("not JSON")
    (tmp_path / "rule.json").write_text('{"rule": "hope", "p": [[1], [1]], "q": [[1]]}')
    (tmp_path / "mass.json").write_text('{"rule": "leviathan", "p": [[0.5, 0.4], [1, 0]], "q": [[0.5, 0.5]]}')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for name, entry in {"digits": "1" * 5000, "above": "1e400", "exponent": "1e-999999999"}.items():
        (tmp_path / f"{name}.json").write_text(f'{{"rule": "leviathan", "p": [[{entry}, 1], [1, 0]], "q": [[1, 0]]}}')
    (tmp_path / "empty").mkdir()
    (tmp_path / "there.safetensors").write_text("precious")
    (tmp_path / "odd.py").write_text("three = 3\ndef verify(p, q, draft, generator):\n    return [0]\n")
    return tmp_path


MISTAKES = {
    "module": (["audit", "kernel", "nowhere_to_be_found:f"], "nowhere_to_be_found"),
    "attribute": (["audit", "kernel", "odd:missing", "--path", "{}"], "missing"),
    "not a function": (["audit", "kernel", "odd:three", "--path", "{}"], "three"),
    "no colon": (["audit", "kernel", "odd", "--path", "{}"], "odd"),
    "import path": (["audit", "kernel", "odd:verify", "--path", "{}/nowhere"], "nowhere"),
    "alpha": (["audit", "kernel", "odd:verify", "--alpha", "1.5"], "1.5"),
    "seconds": (["audit", "kernel", "odd:verify", "--seconds", "0"], "seconds are a positive time"),
    "out": (["audit", "kernel", "odd:verify", "--out", "{}/none/found.json"], "none"),
    "calls": (["audit", "kernel", "odd:verify", "--calls", "0"], "calls are one or more"),
    "seed": (["audit", "kernel", "odd:verify", "--seed", "seven"], "seven"),
    "long seed": (["audit", "kernel", "odd:verify", "--seed", str(2**63)], "64 bits"),
    "no record": (["audit", "trace", "{}/text"], "text"),
    "no address": (["audit", "endpoint", "--on", "localhost", "--off", "localhost"], "localhost"),
    "no prompts": (["audit", "endpoint", "--on", "a", "--off", "b", "--prompts", "{}/none.txt"], "none.txt"),
    "no requests": (["audit", "endpoint", "--on", "a", "--off", "b", "--requests", "0"], "--requests 0"),
    "no program": (["audit", "process", "no-such-program", "--fast"], "no-such-program"),
    "library": (["audit", "generate", "unheard_of"], "unheard_of"),
    "generator": (["audit", "generate", "odd:verify", "--off", "odd:missing", "--path", "{}"], "missing"),
    "no report": (["rerun", "{}/report.json"], "report.json"),
    "report of text": (["rerun", "{}/text"], "text"),
    "rule": (["law", "{}/rule.json"], "hope"),
    "mass": (["law", "{}/mass.json"], "0.9"),
    "not an object": (["law", "{}/list.json"], "list.json"),
    "no text": (["law", "{}/bytes"], "bytes is not UTF-8 text"),
    "nested": (["law", "{}/deep.json"], "nested too deeply"),
    "digits": (["law", "{}/digits.json"], "digits.json is not valid JSON to read here"),
    "above one": (["law", "{}/above.json"], "p[0] sums to 1e+300 or more, not to 1"),
    "exponent": (["law", "{}/exponent.json"], "p[0][0] is '1e-999999999', not a number"),
    "report of bytes": (["rerun", "{}/bytes"], "bytes is not UTF-8 text"),
    "report of digits": (["rerun", "{}/digits.json"], "digits.json is not valid JSON"),
    "no such claim": (["claims", "blcok"], "blcok"),
    "no law": (["law", "{}/none.json"], "none.json"),
    "no checkpoint": (["checkpoint", "verify", "{}/empty", "--target", TARGET], "empty"),
    "no target": (["checkpoint", "verify", DRAFTER, "--target", "{}/empty"], "empty"),
    "nothing to convert": (["checkpoint", "convert", "{}/heads.pt", "{}/out.safetensors"], "heads.pt"),
    "text to convert": (["checkpoint", "convert", "{}/text", "{}/out.safetensors"], "text"),
    "overwriting": (["checkpoint", "convert", "{}/text", "{}/there.safetensors"], "there.safetensors"),
    "no texts": (["checkpoint", "ngram", "{}/none.txt", "--target", TARGET, "--out", "{}/x.trie"], "none.txt"),
    "drafter": (["decode", "--target", TARGET, "--drafter", "{}/empty", "1 2"], "empty"),
    "prompt": (["decode", "--target", TARGET, "--drafter", DRAFTER, "hello"], "hello"),
    "length": (["decode", "--target", TARGET, "--drafter", DRAFTER, "1 2", "--max-new-tokens", "0"], "0"),
    "temperature": (["decode", "--target", TARGET, "--drafter", DRAFTER, "1 2", "--temperature", "-1"], "-1"),
    "decoding rule": (["decode", "--target", TARGET, "--drafter", DRAFTER, "1 2", "--rule", "hope"], "hope"),
    "load": (["decode", "--target", TARGET, "--drafter", AR, "1 2", "--load", "1:1,2:2"], "DSpark"),
    "device": (["decode", "--target", TARGET, "--drafter", DRAFTER, "1 2", "--device", "abacus"], "abacus"),
    "device to verify on": (["checkpoint", "verify", DRAFTER, "--target", TARGET, "--device", "cuda:99"], "cuda:99"),
    "vector file": (["vectors", "export", "{}/none/vectors.jsonl"], "none"),
    "vector rule": (["vectors", "run", "--rule", "hope", "true"], "hope"),
    "vector release": (["vectors", "release", "{}/text"], "text"),
    "challenged rule": (["challenge", "new", "--seed", "s", "--rule", "hope", "--out", "{}/new.json"], "hope"),
    "old challenge": (["challenge", "new", "--seed", "s", "--out", "{}/text"], "not overwritten"),
    "no challenge": (["challenge", "check", "{}/list.json", "{}/list.json", "--seed", "s"], "no challenge"),
    "no answers": (["challenge", "check", "{}/list.json", "{}/none.jsonl", "--seed", "s"], "none.jsonl"),
    "no transcript": (["challenge", "verify", "{}/rule.json"], "no transcript"),
}


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_gets_one_line_that_names_it(mistake: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a traceback, a message that leaves one searching, and a file half-written or overwritten on the way."""
    arguments, named = MISTAKES[mistake]
    before = {file: file.read_bytes() for file in files.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    code = run(*(argument.replace("{}", str(files)) for argument in arguments))
    said = capsys.readouterr().err.strip().splitlines()
    assert code == 2, said
    assert len(said) == 1, said
    assert said[0].startswith("refengine: ")
    assert named in said[0]
    assert before == {file: file.read_bytes() for file in files.rglob("*") if file.is_file() and file.suffix != ".pyc"}


@pytest.mark.parametrize("arguments", [["audit", "kernal"], ["audit", "kernel"], ["law", "--jason", "x"]])
def test_a_word_that_is_no_command_or_option_is_bad_input(arguments: list[str]) -> None:
    """Kills a usage error that exits like a violated claim (1)."""
    assert run(*arguments) == 2


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
    for curve in ("1:1", "1:x,2:1", "quick"):
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
