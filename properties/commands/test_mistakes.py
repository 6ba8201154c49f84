"""What can be mistyped: each mistake gets exit code 2 and one line that names it, before torch where it can."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from properties.helpers.command_line import run, shell
from refengine.source_tree import FIXTURES

TINY = FIXTURES / "tiny"
TARGET, DRAFTER, AR = str(TINY / "target"), str(TINY / "dspark"), str(TINY / "ar")


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


# What only an import of torch or a reading of the weights tells.
NEED_TORCH = {"attribute", "not a function", "generator", "no record", "text to convert", "prompt", "load"}
NEED_TORCH |= {"device", "device to verify on"}
ONE_AFTER_THE_OTHER = """
import json, sys
from refengine import cli
for arguments in json.load(sys.stdin):
    try:
        cli.main(arguments)
    except SystemExit as ended:
        loaded = [name for name in ("torch", "transformers") if name in sys.modules]
        print(ended.code, loaded, arguments, flush=True)
"""


def test_what_is_mistyped_is_said_before_torch_is_imported(files: Path) -> None:
    """Kills a mistyped option that costs five seconds of imports."""
    cheap = [arguments for name, (arguments, _) in MISTAKES.items() if name not in NEED_TORCH]
    given = json.dumps([[argument.replace("{}", str(files)) for argument in arguments] for arguments in cheap])
    command = [sys.executable, "-c", ONE_AFTER_THE_OTHER]
    lines = subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == len(cheap) > 30
    assert [line for line in lines if not line.startswith("2 []")] == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("rules > /dev/full", "No space left on device"),
        ("bugs > /dev/full", "No space left on device"),
        ("rules >&-", "cannot write to stdout"),
        ("vectors export /dev/full", "No space left on device"),
        ("challenge new --seed $'\\xff' --out x.json", "the seed is no UTF-8 text"),
        ("ruels", "ruels"),
    ],
)
def test_what_the_shell_can_do_to_it(line: str, says: str, tmp_path: Path) -> None:
    """Kills a full disk, a closed stdout or a mistyped word that ends in a traceback or in a verdict's exit code."""
    done = shell(line, tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("vectors export /proc/nope", "/proc/nope"),
        ("report --out /proc/nope", "/proc/nope"),
        ("rules --jason", "--jason"),
        ("audit kernel", "Missing argument 'subject'; see refengine audit kernel --help"),
        ("audit kernel a:b --calls many", "--calls"),
        ("audit trace --alpha", "--alpha"),
        ("audit kernel a:b --signature verfy", "verfy"),
        ("audit trace .", ". is a folder, not a file"),
        ("audit trace 'a\nb'", "a\\nb: no such file"),
        ("audit kernel a:b --calls 5 --calls 6", "--calls is given 2 times"),
        ("audit trace x --out y --junit y", "--out and --junit both name y"),
        ("audit endpoint --on http://localhost:99999/v1 --off http://b", "no address of a server"),
        ("challenge new --seed '' --out x.json", "the seed is empty"),
        ("vectors run --seconds 1e300 true", "--seconds 1e+300 is not a time"),
        ("campaign engine leviathan --journal precious --rounds 10", "precious is no journal"),
        ("decode --target a --drafter b 1 --slots 4", "--slots is a size of --bitwise"),
        ("audit trace precious --out " + "x" * 300, "x: File name too long"),
        ("audit trace precious/x", "precious/x: no such file"),
        ("law loop", "cannot read loop: Too many levels of symbolic links"),
        ("show loop --page loop/page.html", "loop"),
        ("audit engine transformers --way nothing", "transformers has no way that is called nothing...: draft"),
        ("audit engine transformers --python true", "nothing answers under --python true: transformers died of"),
        ("audit engine transformers --python cat", "nothing answers under --python cat: transformers printed '"),
        ("audit process 'cat -u'", "there is no program 'cat -u' here: leave the quotes away, -- cat -u"),
        ("audit trace precious --junit precious", "--junit precious is read too: it would be replaced"),
        ("show precious --page ./precious", "--page precious is read too: it would be replaced"),
    ],
)
def test_what_is_mistyped_is_one_line(
    line: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills a mistyped word that ends in a traceback, in a verdict's exit code, or in a file that is overwritten."""
    monkeypatch.chdir(tmp_path)
    Path("precious").write_text("of one line, without an end")
    Path("loop").symlink_to("loop")
    assert run(*shlex.split(line)) == 2
    assert Path("precious").read_text() == "of one line, without an end"
    (said,) = capsys.readouterr().err.strip().splitlines()
    assert says in said
