"""What a machine can do to a command: no home, no language, no room, no streams, a signal, a library that is absent."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer.main

from properties.helpers.command_line import run, runs, shell
from refengine import cli
from refengine.audit.sandbox.child import MAX_PRINTED_BYTES, Child
from refengine.cli.output import coloured

SAMPLERS = """
import os, time

def none(p, q, draft, generator): pass
def umlauts(p, q, draft, generator): print("gr\\u00f6\\u00dfer \\u2713 \\udcff")
def shouts(p, q, draft, generator):
    print("y" * (1 << 20))
    return None
def daemon(p, q, draft, generator):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            name = str(os.getpid())
            with open(name, "w") as file: file.write(name)
            os.replace(name, "daemon")
            os.execvp("sleep", ["sleep", "600"])
        os._exit(0)
    while not os.path.exists("daemon"): time.sleep(0.01)
    return None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sampler.py").write_text(SAMPLERS)
    return tmp_path


def test_an_environment_without_a_home_or_a_language(tmp_path: Path) -> None:
    """Kills a table with signs that ASCII has not, and a settings folder that must be there."""
    bare = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONIOENCODING": "ascii:replace", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "refengine.cli", "rules"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=bare, check=False)
    assert done.returncode == 0, done.stderr
    assert b"leviathan" in done.stdout


def test_a_machine_that_has_no_room_for_a_scratch_file(folder: Path) -> None:
    """Kills a traceback that asks for a bug report where every disk is full or read-only."""
    done = shell("audit kernel sampler:none --path . --calls 40", folder, before="ulimit -f 0;")
    assert done.returncode == 2
    assert done.stderr.startswith("refengine: this machine does not let it go on: No usable temporary directory")
    assert len(done.stderr.splitlines()) == 1


def test_a_limit_of_memory_that_is_lower_than_ours(folder: Path) -> None:
    """Kills an audit that dies of asking for more memory than it may have."""
    done = shell("audit kernel sampler:none --path . --calls 40", folder, before="ulimit -d 3000000;")
    assert (done.returncode, done.stdout.splitlines()[-1][:16]) == (1, "VERDICT violated"), done.stderr


def test_a_subject_may_print_what_the_language_here_has_no_sign_for(folder: Path) -> None:
    """Kills a function that is not tested because ASCII has no sign for what it prints."""
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONWARNINGS": "error"}
    done = shell("audit kernel sampler:umlauts --path . --calls 40", folder, **bare)
    assert (done.returncode, done.stdout.splitlines()[-1][:16]) == (1, "VERDICT violated"), done.stderr
    assert "sampler:umlauts printed 1 line" in done.stderr


def test_a_folder_that_is_gone_and_signs_that_an_encoding_has_not(tmp_path: Path) -> None:
    """Kills a traceback of os.getcwd, and one of print."""
    gone = shell("rules", tmp_path, before="mkdir gone; cd gone; rmdir ../gone;")
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


def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills escape sequences in a file, and NO_COLOR ignored."""
    assert "\x1b" in coloured("violated")
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("violated") == "violated   "
    assert run("claims", "medusa.greedy_exact") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_json_is_json_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a verdict line that a parser of the output stumbles over."""
    assert run("audit", "kernel", "sampler:none", "--path", folder, "--calls", "40", "--json") == 1
    printed = capsys.readouterr()
    (finding,) = json.loads(printed.out)
    assert finding["verdict"] == "violated"
    assert printed.err.splitlines()[-1].startswith("VERDICT violated")


SAID = {
    signal.SIGINT: "refengine: interrupted",
    signal.SIGTERM: "refengine: ended by SIGTERM",
    signal.SIGHUP: "refengine: ended by SIGHUP",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_said_and_leaves_no_process(number: signal.Signals, folder: Path) -> None:
    """Kills a Ctrl-C or a cancelled job that ends in a traceback, in silence, in the exit code of a verdict, or with
    the subject running on."""
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
    assert process.returncode == 128 + number
    assert said.splitlines()[-1] == SAID[number]
    assert "Traceback" not in said
    until = time.monotonic() + 60
    while runs(int(begun.read_text())) and time.monotonic() < until:
        time.sleep(0.1)
    assert not runs(int(begun.read_text()))


@pytest.mark.parametrize("number", SAID)
def test_an_interrupt_in_a_callback_is_not_lost(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills a signal whose exception C drops, as numba's compiler does: the command would go on, or end as our bug; and
    a closed terminal, which sends SIGHUP, that ends a command in silence."""

    def compiles(then: Callable[[], None]) -> Callable[..., None]:
        def command(**_: object) -> None:
            ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), number))()
            then()

        return command

    def misses() -> None:
        raise RuntimeError("no compiled object yet")

    outside = signal.signal(number, signal.SIG_DFL)  # a job in the background is started with SIGINT ignored
    try:
        before = signal.getsignal(number), sys.unraisablehook
        for then in (misses, partial(time.sleep, 600)):
            command = SimpleNamespace(main=compiles(then))
            monkeypatch.setattr(typer.main, "get_command", lambda app, command=command: command)
            assert run("rules") == 128 + number
            assert capsys.readouterr().err.splitlines()[-1] == SAID[number]
        assert (signal.getsignal(number), sys.unraisablehook) == before
    finally:
        signal.signal(number, outside)


def test_an_audit_with_closed_streams_says_what_it_always_says(folder: Path) -> None:
    """Kills a socket or a scratch file that gets the number of standard input or error, and what is written there. Both
    are closed: one that is left out of those that are held fails, whichever it is."""
    done = shell("audit kernel sampler:none --path . --calls 40 <&- 2>&-", folder)
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


def test_help_is_quick() -> None:
    """Kills a help that waits for torch, numpy or the reports."""
    code = "import sys, refengine.cli; sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'jinja2')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert cli.app is not None
