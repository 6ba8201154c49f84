"""`audit kernel` on subjects that are not ours: each defect is found and replays, no correct one is accused."""

from dataclasses import replace
from time import monotonic
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel import audit as kernel
from refengine.audit.kernel import campaign, plan, witness
from refengine.audit.kernel.audit import audit_kernel
from refengine.audit.kernel.campaign import End
from refengine.audit.kernel.replay import Replay, replay
from refengine.audit.kernel.request import Request
from refengine.evidence.naming import BOUNDARY, BROKEN_CONTRACT, DEPENDENT_ROWS
from refengine.report.finding import Finding, Recipe
from refengine.report.rerun import compare, recipe_function
from refengine.source_tree import FIXTURES

SUBJECTS = str(FIXTURES / "subjects")
FEW = 3000  # calls on a subject that is expected to be consistent: enough for a test
ENUMERATED = 600  # runs for the laws of one that is: five laws take 300, one that rejects in a loop has no end


pytestmark = [pytest.mark.on_record, pytest.mark.usefixtures("fewer_calls_beside_a_law")]


def audit(subject: str, signature: str = "verify", calls: int | None = None) -> Finding:
    (finding,) = audit_kernel(subject, signature, path=SUBJECTS, seconds=300, calls=calls)
    return finding


@pytest.mark.parametrize(
    ("name", "signature", "diagnosis"),
    [
        ("residual_is_p", "verify", "resample from target: corrected from p instead of the residual"),
        ("half_precision", "verify", "half precision: the residual is rounded to float16"),
        ("half_precision_race", "verify", "no known class fits; it shows"),
        ("far_ids_kept", "verify", ""),
        ("inclusive", "verify", BOUNDARY),
        ("one_coin", "verify", "positions share coins: one coin decides the whole block"),
        ("slips_late", "verify", ""),
        ("slips_first", "verify", ""),
        ("numpy_off_by_one", "verify", "ids off by one: corrected one id too high"),
        ("shared_noise", "verify_batch", DEPENDENT_ROWS),
        ("swaps_rows", "verify_batch", ""),
        ("greedy_proposer", "round", "drafted by argmax"),
    ],
)
def test_a_defect_is_found_named_and_replays(name: str, signature: str, diagnosis: str) -> None:
    """Kills an instrument that misses its defect, names another, or reports what cannot be made again."""
    finding = audit(f"defective:{name}", signature)
    assert finding.verdict == "violated"
    assert diagnosis in finding.diagnosis
    assert replay(**finding.recipe.arguments) == [finding]
    if name == "far_ids_kept":  # the witness is in ids of the vocabulary, not in cells of it
        assert finding.witness is not None
        assert max(finding.witness["tokens"]) > 65_535


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("leviathan", "verify"),
        ("block", "verify"),
        ("point_mass", "verify"),
        ("python_random", "verify"),
        ("buffered", "verify"),
        ("alias", "verify"),
        ("by_rejection", "verify"),
        ("batch", "verify_batch"),
        ("lockstep", "verify_batch"),
        ("shared_noise_agreement", "round"),
    ],
)
def test_a_correct_subject_is_not_accused(name: str, signature: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a test that conditions on the draft, the coming length or one way of drawing."""
    monkeypatch.setattr(plan, "RUNS", ENUMERATED)
    finding = audit(f"correct:{name}", signature, FEW)
    assert finding.verdict == "consistent"
    assert msgspec.json.decode(msgspec.json.encode(finding), type=Finding) == finding  # --json prints it


def test_a_law_that_does_not_come_back_is_looked_for_by_sampling() -> None:
    """Kills rows kept from one call to the next, seen in the enumerated law and not in a fresh process: consistent."""
    finding = audit("defective:stale_proposals", "round")
    assert finding.verdict == "violated"


REQUEST = Request("m:f", "verify", None, 0, 1e-6, 50.0, None)
TRIED: Any = SimpleNamespace(calls=40, cases={item.name: SimpleNamespace(case=item) for item in cases()[:1]})
END = End("impossible", "token 7 has p = 0", cases()[0].name, call=3)


def test_a_witness_comes_back_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a run that was wrong once and right when asked again is given as the witness."""
    answers = iter(["violated", "consistent", "violated", "violated"])

    def replayed(asked: Replay) -> Finding:
        found = witness.unrepeated(REQUEST, TRIED, END, asked.calls, "", [])
        return msgspec.structs.replace(found, verdict=next(answers), replay="exact", numbers={"start": asked.start})

    monkeypatch.setattr(witness, "diagnose", lambda campaign: "")
    monkeypatch.setattr(witness, "made_again", replayed)
    finding = witness.smallest(REQUEST, TRIED, END, monotonic() + 60, [])
    assert finding.numbers == {"start": 0}, "the second attempt starts at the first call"


def test_a_slow_subject_is_tried_twice_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a report that never comes, because every try of a witness takes thousands of calls of some seconds."""
    tried: list[tuple[int, int, int]] = []

    def replayed(asked: Replay) -> Finding:
        tried.append((asked.case.lanes, asked.calls, asked.fresh))
        return msgspec.structs.replace(witness.unrepeated(REQUEST, TRIED, END, 40, "", []), verdict="consistent")

    sizes = [(witness.CutCase("kept", 1, lanes), calls) for lanes, calls in ((1, 9000), (2, 9000), (4, 50))]
    monkeypatch.setattr(witness, "diagnose", lambda campaign: "")
    monkeypatch.setattr(witness, "candidates", lambda campaign: sizes)
    monkeypatch.setattr(witness, "made_again", replayed)
    finding = witness.smallest(REQUEST, TRIED, replace(END, kind="rejected"), monotonic() + 60, [], most=100)
    assert tried == [(1, 100, 100), (4, 50, 100)]
    assert finding.verdict == "violated"


def test_an_audit_that_is_its_own_witness_is_asked_for_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a finding that took several inputs, whose re-run finds a smaller witness and is said to differ."""
    stored = witness.unrepeated(REQUEST, TRIED, END, 40, "", [])
    again = recipe_function(stored.recipe)
    for verdict, differing in (("violated", 0), ("consistent", 1)):
        smaller = Recipe(function="refengine.audit.kernel.replay:replay", arguments={"kind": "call"})
        found = msgspec.structs.replace(stored, verdict=verdict, recipe=smaller, replay="exact")
        monkeypatch.setattr(kernel, "audit_kernel", lambda found=found, **_: [found])
        assert len(compare(stored, *again(**stored.recipe.arguments))) == differing


def test_a_boundary_does_not_read_like_a_gross_error() -> None:
    """Kills 2^-24 of a forbidden token reported without its size, or not at all.

    The size is that mass alone, a lower bound: what else the law is off by is the subject's own rounding.
    """
    magnitude = audit("defective:inclusive").magnitude
    assert magnitude is not None
    assert not magnitude.exact
    assert magnitude.breaks_mask
    assert 0 < magnitude.tv.value < 1e-6


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raises", "no kernel for this shape"),
        ("hangs", "no answer within"),
        ("raises_once", "an illegal memory access"),
        ("hangs_late", "no answer within"),
    ],
)
def test_a_crash_is_never_a_detection(name: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a subject that raises or hangs counted as violating the law."""
    if name.startswith("hangs"):  # the others must not be cut short on a machine that is busy
        monkeypatch.setattr(campaign, "HANG_SECONDS", 0.5)
        monkeypatch.setattr(campaign, "SLICE_SECONDS", 0.5)
    finding = audit(f"defective:{name}", calls=FEW)
    assert finding.verdict == "not tested"
    assert says in finding.reason


@pytest.mark.parametrize(("name", "says"), [("outside", "outside the vocabulary"), ("nan", "NaN")])
def test_an_answer_that_is_no_tokens_is_a_broken_contract(name: str, says: str) -> None:
    """Kills garbage in the answer crashes the auditor, or is taken for evidence about the law."""
    finding = audit(f"defective:{name}")
    assert (finding.verdict, finding.diagnosis) == ("violated", BROKEN_CONTRACT)
    assert finding.witness is not None
    assert says in finding.witness["what"]


@pytest.mark.parametrize(
    ("subject", "signature", "says"),
    [
        ("defective", "verify", "MODULE:FUNCTION"),
        ("defective:missing", "verify", "missing"),
        ("no_such_module:f", "verify", "no_such_module"),
        ("defective:one_coin", "verified", "unknown signature"),
    ],
)
def test_a_wrong_name_is_one_clear_line(subject: str, signature: str, says: str) -> None:
    """Kills a traceback, or an audit of nothing, where a name is mistyped."""
    with pytest.raises(ValueError, match=says) as error:
        audit_kernel(subject, signature, path=SUBJECTS)
    assert "\n" not in str(error.value)
