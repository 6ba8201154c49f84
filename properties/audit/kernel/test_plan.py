"""Budgets are counts: what an audit says does not depend on how busy the machine is, and a slow call is no hang."""

from pathlib import Path
from typing import Any

import pytest

from refengine.audit.kernel import audit as stages
from refengine.audit.kernel import campaign
from refengine.audit.kernel import plan as plans
from refengine.audit.kernel.audit import Audited, audited, further
from refengine.audit.kernel.plan import CALLS, NO_LIMIT_SECONDS, RUNS, SECONDS, limit, plan
from refengine.audit.kernel.request import Request
from refengine.audit.sandbox.child import Child
from refengine.source_tree import FIXTURES

pytestmark = pytest.mark.on_record

SUBJECTS = str(FIXTURES / "subjects")
SLOW = 0.5  # seconds a call

BEATING = """
import time
from refengine.audit.sandbox.child import alive

def make():
    def handle(request):
        for _ in range(8):
            if request == "alive":
                alive()
            time.sleep(0.25)
        return request
    return handle
"""


def audit(subject: str, signature: str = "verify", **options: Any) -> Audited:
    return audited(Request(f"correct:{subject}", signature, SUBJECTS, **options))


def test_a_step_has_the_time_and_not_the_request(tmp_path: Path) -> None:
    """Kills a slow function that is called hung because many of its calls are asked for at once."""
    (tmp_path / "beating.py").write_text(BEATING)
    for request, kind in (("alive", "result"), ("silent", "hang")):
        with Child("beating:make", str(tmp_path)) as child:
            assert child.ask(request, 1.5).kind == kind


def test_a_quick_function_is_planned_by_counts_alone() -> None:
    """Kills a plan that is smaller on a busy machine: ten times as slow is still quick."""
    for pace in (0.0, 3e-4, 3e-3):
        assert plan("verify", pace, None, None).whole
        assert plan("verify", pace, None, None).calls == CALLS["verify"]


def test_a_slow_function_gets_what_fits_and_a_little_load_changes_nothing() -> None:
    """Kills a plan that outlasts the time, one that leaves most of it, and one that moves with every measurement."""
    planned = plan("verify", SLOW, None, None)
    spent = SLOW * (planned.calls + planned.runs + 5 * (planned.agreeing + 2 * planned.reordered))
    assert SECONDS / 4 < spent < 0.7 * SECONDS
    assert not planned.whole
    for pace in (0.45, 0.55, 0.58):
        assert plan("verify", pace, None, None) == planned


def test_calls_that_are_asked_for_are_made() -> None:
    """Kills a number of calls that the clock cuts, and a recommended number that is not enough by itself."""
    assert plan("verify", SLOW, None, 4000).calls == 4000
    assert plan("verify", SLOW, None, 2000).runs == 2000
    assert plan("verify", 0.0, None, 10).runs == RUNS
    assert (limit(None, None), limit(None, 9), limit(20.0, 9)) == (SECONDS, NO_LIMIT_SECONDS, 20.0)


@pytest.mark.parametrize(("subject", "laws"), [("leviathan", 5), ("python_random", 0)])
def test_a_slow_function_gets_a_verdict(subject: str, laws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a correct function of half a second a call that is not tested, or said to hold without its depth."""
    monkeypatch.setattr(stages, "plan", lambda signature, pace, *limits: plan(signature, SLOW, *limits))
    found = audit(subject)
    assert found.finding.verdict == "consistent", found.finding.reason
    assert found.finding.numbers["exact laws"] == laws
    assert ("the exact laws of 5 of 5 small inputs" in found.finding.method) == bool(laws)
    assert "sampled calls" in found.finding.method
    assert found.finding.replay == "statistical", "another machine would plan otherwise"
    assert "--calls" in found.advice


def test_a_busy_machine_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a verdict, a depth or a witness that depends on how many calls come back in a slice of time."""
    monkeypatch.setattr(plans, "AGREEING_CALLS", 200)
    quick = [audit("leviathan", calls=300).finding, audit("batch", "verify_batch", calls=100).finding]
    monkeypatch.setattr(campaign, "SLICE_SECONDS", 0.0)  # every call is a slice of its own
    assert [audit("leviathan", calls=300).finding, audit("batch", "verify_batch", calls=100).finding] == quick


@pytest.mark.parametrize(("name", "others"), [("raises", "nothing wrong"), ("raises_once", "nothing wrong")])
def test_nothing_is_said_of_inputs_that_were_not_answered(name: str, others: str) -> None:
    """Kills "consistent on the others" where no other input was ever answered."""
    found = audited(Request(f"defective:{name}", path=SUBJECTS, calls=200)).finding
    assert found.verdict == "not tested"
    assert "consistent" not in found.reason
    assert name != "raises" or others not in found.reason


@pytest.mark.parametrize(
    ("calls", "least", "seconds", "says"),
    [
        (1000, 0.4, 3.0, "--calls 4000 for a TV of 0.2, about 12 s here"),
        (256, 0.75, 128.0, "--calls 580 for a TV of 0.5, about 5 minutes here"),
        (50_000, 0.05, 3000.0, "--calls 320000 for a TV of 0.02, about 5 hours here"),
        (10**6, 0.01, 60.0, ""),
    ],
)
def test_what_gets_further_is_said_with_its_time(calls: int, least: float, seconds: float, says: str) -> None:
    """Kills advice to give more without how much: the least TV falls with the root of the calls."""
    assert further(calls, least, seconds) == says
