"""Sixty functions that go wrong: each gets its exit code and a line that a stranger understands."""

from pathlib import Path

import pytest

from properties.helpers.command_line import run

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
