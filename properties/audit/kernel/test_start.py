"""What an audit does before its first call: the auditing process imports no torch, and its fork server is not waited
for."""

import subprocess
import sys
from typing import Any

import pytest

from refengine.audit.kernel import exact_depth
from refengine.audit.kernel.audit import audit_kernel
from refengine.audit.kernel.plan import AGREEING_CALLS
from refengine.audit.sandbox import forkserver
from refengine.audit.sandbox.child import Child
from refengine.source_tree import FIXTURES


def test_the_auditing_process_imports_no_torch() -> None:
    """Kills: an import of torch on the auditor's side, which doubles the start of an audit."""
    found = "import importlib, sys\n"
    for audit in ("kernel.audit", "served.endpoint", "acceptance.audit", "trace"):
        found += f"importlib.import_module('refengine.audit.{audit}')\n"
        found += f"if 'torch' in sys.modules: sys.exit('{audit} imports torch')\n"
    done = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_server_that_was_started_ahead_is_the_one_that_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a second server beside the one that was started ahead, and a start that waits for its imports."""
    started = []

    class Counted(forkserver.Server):
        def __init__(self, preload: Any) -> None:
            started.append(preload)
            super().__init__(preload)

    monkeypatch.setattr(forkserver, "Server", Counted)
    preload = ("json", "refengine.evidence.alpha")
    forkserver.start_ahead(preload)
    forkserver.start_ahead(preload)
    assert started == [preload]
    with Child("refengine.audit.kernel.child.worker:make", preload=preload) as child:
        assert child.ask({"op": "pace"}, 60.0).value == 0.0
    assert started == [preload]


def test_few_calls_are_spent_beside_a_wrong_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: two thousand calls for each further law when one is wrong already, and too few before any is."""
    asked: list[int] = []
    ask = Child.ask

    def counted(self: Child, request: dict[str, Any], seconds: float) -> Any:
        if request["op"] == "run" and request["start"] == 0:
            asked.append(len(request["seeds"]))
        return ask(self, request, seconds)

    monkeypatch.setattr(Child, "ask", counted)
    (finding,) = audit_kernel("defective:residual_is_p", "verify", path=str(FIXTURES / "subjects"))
    assert finding.verdict == "violated"
    laws = [calls for calls in asked if calls >= exact_depth.CALLS_BESIDE_A_WRONG_LAW]
    assert AGREEING_CALLS in laws
    assert laws.count(exact_depth.CALLS_BESIDE_A_WRONG_LAW) >= 3
