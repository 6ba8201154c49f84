"""`audit process` on a program that is not ours: its defect is found and replays, and an end is told apart."""

import shlex
import sys
from typing import Any

import pytest
import torch

from refengine.audit.kernel import campaign, plan
from refengine.audit.kernel.audit import audit_kernel
from refengine.audit.kernel.child.program import MARK, Program
from refengine.audit.kernel.replay import replay
from refengine.errors import BadInput
from refengine.evidence.naming import BROKEN_CONTRACT
from refengine.report.finding import Finding
from refengine.source_tree import FIXTURES

PROGRAM = FIXTURES / "subjects" / "program.py"
ENUMERATED = 600  # runs for its laws
FEW = 1000  # calls on a program that is expected to be consistent: 300 show a TV of 0.43, and one of 0.5 has to show


pytestmark = [pytest.mark.on_record, pytest.mark.usefixtures("fewer_calls_beside_a_law")]


def audit(mode: str = "", signature: str = "verify", calls: int | None = None) -> Finding:
    command = shlex.join([sys.executable, str(PROGRAM), *([mode] if mode else [])])
    (finding,) = audit_kernel(f"$ {command}", signature, seconds=300, calls=calls)
    return finding


def test_a_defect_is_found_named_and_replays() -> None:
    """Kills rows that reach a program changed, a seed that does not, or a law that is not held to the rows."""
    finding = audit("corrected_from_p")
    assert (finding.verdict, finding.diagnosis) == (
        "violated",
        "resample from target: corrected from p instead of the residual",
    )
    assert finding.id.startswith("audit.process.verify/$ ")
    assert finding.replay == "exact"
    assert replay(**finding.recipe.arguments) == [finding]


@pytest.mark.parametrize(
    ("mode", "signature", "how"),
    [("own_noise", "verify", "statistical"), ("", "round", "exact")],
)
def test_a_correct_program_is_not_accused(mode: str, signature: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills rows asked for in a round that are not those after the tokens, a seed that differs on a second run, or a
    program with noise of its own that is said to replay exactly."""
    monkeypatch.setattr(plan, "RUNS", ENUMERATED)
    finding = audit(mode, signature, FEW)
    assert (finding.verdict, finding.replay) == ("consistent", how), finding.reason


@pytest.mark.parametrize(
    ("mode", "says"), [("dies", "exit code 1 before it answered: out of licences"), ("hangs", "no answer")]
)
def test_an_end_is_never_a_detection(mode: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a program that ends or hangs counted as violating the law, or hanging the audit."""
    if mode == "hangs":
        monkeypatch.setattr(campaign, "HANG_SECONDS", 0.5)
        monkeypatch.setattr(campaign, "SLICE_SECONDS", 0.5)
    finding = audit(mode)
    assert finding.verdict == "not tested"
    assert says in finding.reason


def test_what_is_no_answer_is_a_broken_contract() -> None:
    """Kills a line that is no answer crashes the auditor, or is skipped until one is."""
    finding = audit("talks")
    assert (finding.verdict, finding.diagnosis) == ("violated", BROKEN_CONTRACT)
    assert finding.witness is not None
    assert "loading the model" in finding.witness["what"]


def answers(script: str, calls: int) -> list[Any]:
    """What a shell script answers to calls of one row: tokens, or how it ended."""
    row, told = torch.ones(1, 2) / 2, []
    program = Program(f"{MARK}{shlex.join(['sh', '-c', script])}", "verify")
    with program.complaints:
        for _ in range(calls):
            try:
                told.append(program(row, row[:0], row[0, :0], torch.Generator()))
            except RuntimeError as error:
                told.append(str(error))
        if program.process is not None:
            program.process.communicate()
    return told


def test_further_fields_of_an_answer_are_no_breach() -> None:
    """Kills a program accused of another law because it also says how long it took."""
    assert answers('read -r line; echo \'{"ms": 3, "tokens": [1]}\'', 1) == [[1]]


def test_brackets_without_an_end_are_no_json() -> None:
    """Kills our parser's recursion taken for something that the program raised."""
    (told,) = answers("read -r line; head -c 200000 /dev/zero | tr '\\0' '['; echo", 1)
    assert "no JSON" in str(told)


def test_the_last_words_of_a_program_are_shown() -> None:
    """Kills the last line alone, which is the version of the interpreter where the error stands above it."""
    (told,) = answers("read -r line; echo RangeError: too wide >&2; echo v20 >&2; exit 3", 1)
    assert told == "the program ended with exit code 3 before it answered: RangeError: too wide v20"


def test_a_program_that_ended_is_started_anew() -> None:
    """Kills a program that does not live through one input, not judged on any later one."""
    first, ended, again = answers("read -r line; echo '{\"tokens\": [1]}'", 3)
    assert (first, again) == ([1], [1])
    assert "exit code 0" in ended


def test_a_program_that_is_not_there_is_one_clear_line() -> None:
    """Kills a traceback where a command is mistyped."""
    with pytest.raises(BadInput, match="No such file or directory: 'no-such-program'") as error:
        audit_kernel("$ no-such-program --fast", "verify")
    assert "\n" not in str(error.value)
