"""The programs of examples/python, at small budgets: each is consistent, and found out with its planted mistake. The
commands are those of their docstrings; docs/auditing.md lists the programs."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from types import ModuleType

import pytest

from properties.helpers.command_line import run
from properties.helpers.listening import listening
from refengine.audit.kernel import plan
from refengine.commands.export_fixtures import export_fixtures
from refengine.source_tree import ROOT

pytestmark = pytest.mark.on_record

PROGRAMS = ROOT / "examples" / "python"
ON, OFF = "http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1"  # of the docstring


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("examples") / "pair"
    export_fixtures(made)
    return made


def commands(name: str, *begins: str) -> list[list[str]]:
    """The words of the docstring's commands that begin so."""
    docstring = (PROGRAMS / name).read_text().split('"""')[1]
    lines = [line.strip().removesuffix(" &") for line in docstring.splitlines() if line.startswith("    ")]
    found = [words for line in lines if (words := shlex.split(line))[: len(begins)] == list(begins)]
    assert found
    return found


def test_the_kernel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """64 runs of enumerations and 200 calls that agree with each law; a TV of 0.5 would show in 300 sampled calls.
    Kills a kernel that errs, an adapter that packs its drafts wrongly, and a mistake that is not found."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(plan, "RUNS", 64)
    monkeypatch.setattr(plan, "AGREEING_CALLS", 200)
    right, wrong = (words[1:] for words in commands("kernel.py", "refengine"))
    assert run(*right, "--calls", "300") == 0
    capsys.readouterr()
    assert run(*wrong, "--calls", "300") == 1
    assert "one-hot residual" in capsys.readouterr().out.splitlines()[-1]


def test_the_trace(pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 rounds: a TV of 0.5 in tokens of one kind would show. Kills rows that are not those of the round, and a
    mistake that is not found."""
    trace = loaded("trace")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pair").symlink_to(pair)
    for words in commands("trace.py", "python"):
        assert words[1] == "examples/python/trace.py"
        monkeypatch.setattr(sys, "argv", [*words[1:], "--rounds", "200"])
        trace.main()
    assert [run(*words[1:]) for words in commands("trace.py", "refengine", "audit")] == [0, 1]


def test_the_server(pair: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One look at every setting that it takes, eight choices each. Kills a server that does not sample from the law,
    and a forgotten parameter that is not found, beside the law or beside the same server without speculation."""
    monkeypatch.chdir(pair.parent)
    beside, known = (words[1:] for words in commands("server.py", "refengine", "audit"))
    module = loaded("server")
    with (
        served(module, pair, True) as right,
        served(module, pair, False) as off,
        served(module, pair, True, "top_p") as bad,
    ):
        known[known.index("--requests") + 1], beside[beside.index("--only") + 1] = "17", "parity/top_p"
        assert run(*addressed(known, right, off)) == 0
        capsys.readouterr()
        assert run(*addressed(known, bad, off)) == 1
        said = capsys.readouterr().out
        assert "top_p: a token comes that the policy leaves no chance" in said
        assert run(*addressed(beside, bad, off), "--requests", "200") == 1
        assert "parity/top_p: the text is that of plain decoding" in capsys.readouterr().out


def test_what_the_server_does_not_know_it_refuses(pair: Path) -> None:
    """Kills a parameter that is taken and ignored, ids that are not those of the words, a stop that is shown, and bad
    input that is anything but a 400."""
    with served(loaded("server"), pair, True) as base:
        one = '"max_tokens": 8, "temperature": 0'
        text = said(base, f'{{"prompt": "w7 w9 w11", {one}}}')
        assert text[0] == 200
        assert said(base, f'{{"prompt": [7, 9, 11], {one}}}') == text
        (word,) = re.findall(r'"text": " w\d+ (w\d+)', text[1])
        cut = said(base, f'{{"prompt": "w7 w9 w11", "stop": "{word}", {one}}}')[1]
        assert re.search(r'"text": " w\d+ "', cut)
        assert '"finish_reason": "stop"' in cut
        for body in (
            *('{"prompt": "w7", "min_p": 0.1}', '{"prompt": "w7", "temperature": -1}', '{"prompt": "w7", "top_p": 2}'),
            *('{"prompt": ""}', '{"prompt": [99]}', '{"prompt": "w7", "max_tokens": "8"}', "[]", "{", "{}"),
            *('{"prompt": "w7", "seed": -1}', '{"prompt": "w7", "stop": [1]}', '{"prompt": "w7", "max_tokens": 600}'),
        ):
            assert said(base, body)[0] == 400, body


def test_the_server_starts_as_its_docstring_says(pair: Path) -> None:
    """Kills a command that does not start, or that does not say where it listens."""
    on, off = (words[1:] for words in commands("server.py", "python"))
    assert (on[-1], off[-1]) == ("on", "off")
    words = [sys.executable, str(ROOT / off[0]), str(pair), "--port", "0", *off[4:]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert re.fullmatch(r"serving http://127\.0\.0\.1:\d+/v1\n", process.stdout.readline())
        process.kill()


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def served(module: ModuleType, pair: Path, speculation: bool, mistake: str = "") -> Iterator[str]:
    with listening(module.server(module.Served(pair, speculation, mistake))) as address:
        yield f"{address}/v1"


def addressed(words: list[str], on: str, off: str) -> list[str]:
    return [{ON: on, OFF: off}.get(word, word) for word in words]


def said(base: str, body: str) -> tuple[int, str]:
    connection = HTTPConnection(base.split("/")[2])
    connection.request("POST", "/v1/completions", body)
    reply = connection.getresponse()
    told = reply.status, reply.read().decode()
    connection.close()
    return told
