"""Sixty ways to go wrong: each gets its exit code and a line that a stranger understands, before torch where it can."""

import os
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from properties.commands.test_command_line import MISTAKES, files, run
from refengine import cli

__all__ = ["files"]

SAMPLERS = """
import os, signal, socket, sys, time
import torch

calls = []

def right(p, q, draft, generator):
    for i, x in enumerate(draft.tolist()):
        if torch.rand((), generator=generator) * q[i, x] < p[i, x]:
            continue
        left = (p[i] - q[i]).clamp(min=0)
        return torch.cat([draft[:i], torch.multinomial(left, 1, generator=generator)])
    return torch.cat([draft, torch.multinomial(p[-1], 1, generator=generator)])

def none(p, q, draft, generator): right(p, q, draft, generator)
def dictionary(p, q, draft, generator): return {"tokens": right(p, q, draft, generator)}
def text(p, q, draft, generator): return "1 2"
def empty(p, q, draft, generator): return []
def rows(p, q, draft, generator): return p
def halves(p, q, draft, generator): return right(p, q, draft, generator) + 0.5
def too_long(p, q, draft, generator): return [0] * 100
def outside(p, q, draft, generator): return [10**6]
def keywords(*, p, q, draft, generator): return right(p, q, draft, generator)
def three(p, q, draft): return [0]
def as_a_round(target, draft, prefix, gamma, generator): return [0]
def exits(p, q, draft, generator): sys.exit(3)
def killed(p, q, draft, generator): os.kill(os.getpid(), signal.SIGSEGV)
def connects(p, q, draft, generator): return socket.create_connection(("127.0.0.1", 9), timeout=1)
def closes(p, q, draft, generator):
    os.closerange(3, 100)
    return right(p, q, draft, generator)
class Module(torch.nn.Module): pass
class Verifier:
    def verify(self, p, q, draft, generator): return right(p, q, draft, generator)
    def __call__(self, p, q, draft, generator): return right(p, q, draft, generator)
async def coroutine(p, q, draft, generator): return right(p, q, draft, generator)
def mask(p, q, draft, generator): return [True, False]
def unordered(p, q, draft, generator): return {0}
def nested(p, q, draft, generator): return [[[0]]]
def complexes(p, q, draft, generator): return [1 + 0j]
def shapeless(p, q, draft, generator): return torch.empty(1, dtype=torch.int64, device="meta")
def yields(p, q, draft, generator):
    yield broken(p)
def recursion(p, q, draft, generator): return recursion(p, q, draft, generator)
def hungry(p, q, draft, generator): return torch.empty(10**14)
def leaves(p, q, draft, generator): os._exit(0)
def asks(p, q, draft, generator): return [int(input("token? "))]
def speechless(p, q, draft, generator): raise Speechless
class Speechless(Exception):
    def __str__(self): raise ValueError
def manifold(p, q, draft, generator): raise ValueError("first line\\n\\x1b[31msecond line")
def endless(p, q, draft, generator):
    while True: yield 0
def enormous(p, q, draft, generator): return torch.zeros(10**8, dtype=torch.int64)
def unreadable(p, q, draft, generator): return Unreadable()
class Unreadable:
    def __iter__(self): raise RuntimeError("no iteration")
def sparse(p, q, draft, generator): return right(p, q, draft, generator).to_sparse()
def cyclic(p, q, draft, generator):
    answer = []
    answer.append(answer)
    return answer
def digits(p, q, draft, generator): return [10**5000]
def talkative(p, q, draft, generator): raise ValueError("x" * 10**6)
def replaces(p, q, draft, generator):
    torch.tensor = None
    return [int(draft[0])]
def elsewhere(p, q, draft, generator):
    torch.set_default_device("meta")
    return [0] * 9
def daemon(p, q, draft, generator):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open("daemon", "w").write(str(os.getpid()))
            os.execvp("sleep", ["sleep", "600"])
        os._exit(0)
    while not os.path.exists("daemon"): time.sleep(0.01)
    return None
def umlauts(p, q, draft, generator): print("gr\\u00f6\\u00dfer \\u2713 \\udcff")
def shouts(p, q, draft, generator):
    print("y" * (1 << 20))
    return None
def forks(p, q, draft, generator):
    os.fork()
    return right(p, q, draft, generator)
def third(p, q, draft, generator):
    calls.append(1)
    if len(calls) == 3:
        return broken(p)
    return right(p, q, draft, generator)
def broken(p):
    return p.reshape(7, 7, 7)
def prints(p, q, draft, generator):
    if not calls: print("loading", len(draft))
    calls.append(1)
    return right(p, q, draft, generator)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sampler.py").write_text(SAMPLERS)
    (tmp_path / "wrong.py").write_text("def verify(p, q, draft, generator)\n    return 0\n")
    (tmp_path / "my-sampler.py").touch()
    (tmp_path / "json.py").write_text("def verify(p, q, draft, generator): return [0]\n")
    (tmp_path / "lacking.py").write_text("import no_such_library\n")
    (tmp_path / "program.py").write_text("import sys\nprint('usage: program FILE')\nsys.exit(2)\n")
    return tmp_path


def at(text: str) -> str:
    """Where a line of the samplers begins so."""
    (line,) = [number for number, line in enumerate(SAMPLERS.splitlines(), 1) if line.startswith(text)]
    return f"sampler.py:{line}"


CONTRACT = "It breaks its contract: "
RAISED = "the subject raised: "
# What the subject does: exit code, what is said of it.
SUBJECTS = {
    "none": (1, [CONTRACT + "the answer is None: nothing was returned", "call made call 1: none(p float32[2, 4]"]),
    "dictionary": (1, [CONTRACT + "the answer is a dict, not a list", "expected  the 1 to 2 token ids below 4"]),
    "text": (1, [CONTRACT + "the answer is a str"]),
    "empty": (1, [CONTRACT + "0 tokens were emitted"]),
    "rows": (1, [CONTRACT]),
    "halves": (1, [CONTRACT, "not an integer"]),
    "too_long": (1, [CONTRACT + "100 tokens were emitted; a round over 1 drafts emits 1 to 2"]),
    "outside": (1, [CONTRACT + "token 1000000 lies outside the vocabulary of 4"]),
    "coroutine": (1, [CONTRACT + "the answer is a coroutine, not a list"]),
    "mask": (1, [CONTRACT + "entry 0 of the answer is True, not a token"]),
    "unordered": (1, [CONTRACT + "the answer is a set, not a list"]),
    "nested": (1, [CONTRACT + "entry 0 of the answer is [0], not a token"]),
    "complexes": (1, [CONTRACT + "entry 0 of the answer is (1+0j), not a token"]),
    "shapeless": (1, [CONTRACT + "the answer is a tensor on the meta device, which holds no values"]),
    "Verifier": (2, ["it takes ()", "it is a class: name an instance of it"]),
    "yields": (
        3,
        [RAISED + "RuntimeError: shape '[7, 7, 7]' is invalid", f"({at('    return p.reshape')}), at call 1: "],
    ),
    "recursion": (3, [RAISED + f"RecursionError: maximum recursion depth exceeded ({at('def recursion')})"]),
    "hungry": (3, ["the subject's process died: the memory limit was reached"]),
    "leaves": (3, ["the subject's process died: exit code 0"]),
    "asks": (3, [RAISED + f"EOFError: EOF when reading a line ({at('def asks')})"]),
    "speechless": (3, [RAISED, "Speechless", f"({at('def speechless')})"]),
    "manifold": (3, [RAISED + f"ValueError: first line [31msecond line ({at('def manifold')})"]),
    "endless": (1, [CONTRACT + "the answer has more than 65536 entries"]),
    "enormous": (1, [CONTRACT + "the answer has more than 65536 entries"]),
    "unreadable": (3, [RAISED + f"RuntimeError: no iteration ({at('    def __iter__')})"]),
    "sparse": (1, [CONTRACT + "the answer is a tensor of the layout sparse_coo"]),
    "cyclic": (1, [CONTRACT + "entry 0 of the answer is ["]),
    "digits": (1, [CONTRACT + "entry 0 of the answer has more than 64 bits"]),
    "talkative": (3, [RAISED + "ValueError: xxx", f"xxx... ({at('def talkative')})"]),
    "replaces": (3, ["our own code around the subject failed (a bug of ours, or the subject replaced what it calls)"]),
    "elsewhere": (1, [CONTRACT + "9 tokens were emitted"]),
    "forks": (0, ["VERDICT consistent"]),
    "closes": (3, ["the subject's process died: exit code 1; it closed the pipe through which it answers"]),
    "Verifier.verify": (2, ["it is a method of a class: name that of an instance"]),
    "Module": (2, ["it is a class: name an instance of it"]),
    "keywords": (2, ["it takes (*, p, q, draft, generator), and is called as f(p, q, draft, generator)"]),
    "three": (2, ["it takes (p, q, draft)", "wrap it"]),
    "as_a_round": (2, ["--signature round fits"]),
    "exits": (3, [RAISED + f"SystemExit: 3 ({at('def exits')}), at call 1: exits("]),
    "killed": (3, ["killed by SIGSEGV"]),
    "connects": (3, ["ConnectionRefusedError", f"({at('def connects')})"]),
    "third": (
        3,
        [RAISED + "RuntimeError: shape '[7, 7, 7]' is invalid", f"({at('    return p.reshape')}), at call 3: third("],
    ),
    "prints": (0, ["sampler:prints printed 1 line:", "    loading 1"]),
}


# A subject that forks at every call takes a minute and more.
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n == "forks")) for n in SUBJECTS])
def test_a_subject_that_goes_wrong_is_told_how(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a mistake in the user's own function without its file and line, without the call that was made or what was
    expected of it, and one with the exit code of another kind."""
    code, says = SUBJECTS[name]
    assert run("audit", "kernel", f"sampler:{name}", "--path", folder, "--calls", "40") == code
    printed = capsys.readouterr()
    told = " ".join((printed.out + printed.err).split())
    for words in says:
        assert " ".join(words.split()) in told


@pytest.mark.parametrize(
    ("subject", "says"),
    [
        ("wrong:verify", "SyntaxError: expected ':' (wrong.py:1)"),
        ("lacking:verify", "No module named 'no_such_library' (lacking.py:1)"),
        ("sampler.py:right", "did you mean sampler:right?"),
        ("sub/sampler.py:right", "did you mean sampler:right --path sub?"),
        ("smapler:right", "no module is called 'smapler'"),
        ("sampler:rihgt", "no attribute 'rihgt'"),
        ("my-sampler.py:verify", "'my-sampler' is no name of a module, so nothing can import my-sampler.py; rename it"),
        ("program:verify", "SystemExit: 2 (program.py:3); it printed 'usage: program FILE'; what runs"),
        ("sampler::right", "did you mean sampler:right?"),
        ("sampler.right", "did you mean sampler:right?"),
        ("sampler:right()", "did you mean sampler:right?"),
        ("a:b:c", "a subject is MODULE:FUNCTION, got 'a:b:c'"),
        ("json:verify", "json.py is hidden by a module of its name"),
    ],
)
def test_a_subject_that_cannot_be_loaded(
    subject: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills a line that does not say which of the user's files is at fault."""
    monkeypatch.chdir(folder)
    assert run("audit", "kernel", subject, "--path", folder) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert says in line


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
    import json

    cheap = [arguments for name, (arguments, _) in MISTAKES.items() if name not in NEED_TORCH]
    given = json.dumps([[argument.replace("{}", str(files)) for argument in arguments] for arguments in cheap])
    command = [sys.executable, "-c", ONE_AFTER_THE_OTHER]
    lines = subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == len(cheap) > 30
    assert [line for line in lines if not line.startswith("2 []")] == []


SHELL = "{python} -m refengine.cli {arguments}"


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


def shell(line: str, within: Path, folder: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """One line of a shell. folder: what is typed before it."""
    command = f"{folder} {sys.executable} -m refengine.cli {line}"
    environment = {**os.environ, "COLUMNS": "200", **more}
    return subprocess.run(
        ["bash", "-c", command], cwd=within, capture_output=True, text=True, env=environment, check=False
    )


def test_an_environment_without_a_home_or_a_language(tmp_path: Path) -> None:
    """Kills a table with signs that ASCII has not, and a settings folder that must be there."""
    bare = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONIOENCODING": "ascii:replace", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "refengine.cli", "rules"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=bare, check=False)
    assert done.returncode == 0, done.stderr
    assert b"leviathan" in done.stdout


def test_a_machine_that_has_no_room_for_a_scratch_file(folder: Path) -> None:
    """Kills a traceback that asks for a bug report where every disk is full or read-only."""
    done = shell("audit kernel sampler:none --path . --calls 40", folder, folder="ulimit -f 0;")
    assert done.returncode == 2
    assert done.stderr.startswith("refengine: this machine does not let it go on: No usable temporary directory")
    assert len(done.stderr.splitlines()) == 1


def test_a_limit_of_memory_that_is_lower_than_ours(folder: Path) -> None:
    """Kills an audit that dies of asking for more memory than it may have."""
    done = shell("audit kernel sampler:none --path . --calls 40", folder, folder="ulimit -d 3000000;")
    assert (done.returncode, done.stdout.splitlines()[-1][:16]) == (1, "VERDICT violated"), done.stderr


def test_a_subject_may_print_what_the_language_here_has_no_sign_for(folder: Path) -> None:
    """Kills a function that is not tested because ASCII has no sign for what it prints."""
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONWARNINGS": "error"}
    done = shell("audit kernel sampler:umlauts --path . --calls 40", folder, **bare)
    assert (done.returncode, done.stdout.splitlines()[-1][:16]) == (1, "VERDICT violated"), done.stderr
    assert "sampler:umlauts printed 1 line" in done.stderr


def test_a_folder_that_is_gone_and_signs_that_an_encoding_has_not(tmp_path: Path) -> None:
    """Kills a traceback of os.getcwd, and one of print."""
    gone = shell("rules", tmp_path, folder="mkdir gone; cd gone; rmdir ../gone;")
    assert (gone.returncode, gone.stderr) == (2, "refengine: the current folder is gone: change to one that exists\n")
    for line in ("rules", "bugs --json"):
        done = shell(line, tmp_path, PYTHONIOENCODING="ascii:strict")
        assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_that_may_not_be_written_is_said_before_the_audit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills minutes of an audit whose report cannot be written where it was asked for."""
    monkeypatch.setattr(os, "access", lambda file, mode: mode & os.W_OK == 0)  # root may write everywhere
    assert run("audit", "kernel", "sampler:none", "--path", folder, "--out", folder / "found.json") == 2
    assert "found.json cannot be written: its folder is read-only here" in capsys.readouterr().err


def test_colour_is_for_terminals_that_want_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills escape sequences in a file, and NO_COLOR ignored."""
    from refengine.cli.output import coloured

    assert "\x1b" in coloured("violated")
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("violated") == "violated   "
    done = shell("claims medusa.greedy_exact", folder)
    assert "\x1b" not in done.stdout


def test_json_is_json_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a verdict line that a parser of the output stumbles over."""
    import json

    assert run("audit", "kernel", "sampler:none", "--path", folder, "--calls", "40", "--json") == 1
    printed = capsys.readouterr()
    (finding,) = json.loads(printed.out)
    assert finding["verdict"] == "violated"
    assert printed.err.splitlines()[-1].startswith("VERDICT violated")


@pytest.mark.parametrize(
    ("number", "code", "says"),
    [
        (signal.SIGINT, 130, "refengine: interrupted"),
        (signal.SIGTERM, 143, "refengine: ended by SIGTERM"),
        (signal.SIGHUP, 129, "refengine: ended by SIGHUP"),
    ],
)
def test_an_interrupt_is_said_and_leaves_no_process(number: signal.Signals, code: int, says: str, folder: Path) -> None:
    """Kills a Ctrl-C, a cancelled job or a closed terminal that ends in a traceback, in silence, in the exit code of a
    verdict, or with the subject running on."""
    (folder / "waits.py").write_text(
        "import os, time\ndef verify(p, q, draft, generator):\n"
        "    open('begun', 'w').write(str(os.getpid()))\n    time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "refengine.cli", "audit", "kernel", "waits:verify"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),  # a shell's background jobs ignore some
    )  # fmt: skip
    begun = folder / "begun"
    while not (begun.is_file() and begun.read_text()) and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == code
    assert said.splitlines()[-1] == says
    assert "Traceback" not in said
    until = time.monotonic() + 60
    while runs(int(begun.read_text())) and time.monotonic() < until:
        time.sleep(0.1)
    assert not runs(int(begun.read_text()))


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_an_audit_with_closed_streams_says_what_it_always_says(closed: str, folder: Path) -> None:
    """Kills a socket or a scratch file that gets the number of standard input or error, and what is written there."""
    done = shell(f"audit kernel sampler:none --path . --calls 40 {closed}", folder)
    assert (done.returncode, done.stdout.splitlines()[-1][:16]) == (1, "VERDICT violated")
    assert done.stderr == ""


def test_an_interrupt_of_the_first_imports_is_said(tmp_path: Path) -> None:
    """Kills the traceback of an interpreter that is interrupted before the command line is there."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    command = [sys.executable, "-c", "import refengine.__main__ as m; import sys; sys.path.insert(0, '.'); m.main()"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (130, "refengine: interrupted\n", "")


def test_a_file_that_hides_a_module_is_named(tmp_path: Path) -> None:
    """Kills a traceback, and exit code 1, which says that something is violated, where nothing was begun."""
    (tmp_path / "typer.py").write_text("raise RuntimeError('mine')\n")
    done = subprocess.run(
        [sys.executable, "-m", "refengine", "rules"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line == f"refengine: cannot start: RuntimeError: mine ({tmp_path / 'typer.py'}:1)"


def test_a_library_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills a traceback that asks for a bug report where a package is missing."""
    monkeypatch.setitem(sys.modules, "rich.table", None)
    assert run("rules") == 2
    assert capsys.readouterr().err.startswith("refengine: rich.table is needed and not installed here")


def test_what_a_subject_leaves_behind_ends_with_the_audit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills a process that leaves the group of the subject's, and lives on."""
    monkeypatch.chdir(folder)
    assert run("audit", "kernel", "sampler:daemon") == 1
    left, until = int((folder / "daemon").read_text()), time.monotonic() + 30
    while runs(left) and time.monotonic() < until:
        time.sleep(0.05)
    assert not runs(left)


def test_what_a_subject_prints_does_not_fill_the_disk(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a file of everything that a subject prints, a megabyte a call."""
    from refengine.audit.sandbox.child import MAX_PRINTED_BYTES, Child

    asked = {"op": "open", "subject": "sampler:shouts", "signature": "verify"}
    rows = {"p": np.full((1, 2, 1, 2), 0.5, np.float32), "q": np.full((1, 1, 1, 2), 0.5, np.float32)}
    with Child("refengine.audit.kernel.child.worker:make", path=str(folder)) as child:
        assert child.ask(asked, 60).ok
        assert child.ask({"op": "case", "name": "a", "noise": "uniform", **rows}, 60).ok
        for start in range(3):
            seeds = np.array([[1, 2, 3]])
            assert child.ask({"op": "run", "name": "a", "seeds": seeds, "start": start, "fresh": True}, 60).ok
            assert os.fstat(child._log.fileno()).st_size <= 2 * MAX_PRINTED_BYTES
        assert len(child.printed()) == MAX_PRINTED_BYTES


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_help_is_quick() -> None:
    """Kills a help that waits for torch, numpy or the reports."""
    code = "import sys, refengine.cli; sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'jinja2')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert cli.app is not None
