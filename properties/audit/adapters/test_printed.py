"""The programs that two documents print: what they keep of their promises, what they do not, and what mends it."""

from dataclasses import replace

import pytest

pytest.importorskip("transformers")

from refengine.audit.adapters.documents import printed
from refengine.audit.adapters.documents.printed import audit_printed
from refengine.audit.adapters.documents.promises import PROMISES
from refengine.evidence.naming import parts
from refengine.report.finding import Finding

pytestmark = pytest.mark.on_record


def findings(program: str) -> dict[str, Finding]:
    """By the promise; every violation has a witness, and a mend that was run or one that is described."""
    found = {finding.id.rpartition("/")[2]: finding for finding in audit_printed(program)}
    promises = {promise.name: promise for promise in PROMISES if promise.program == program}
    assert found.keys() == promises.keys()
    for name, finding in found.items():
        if finding.verdict == "violated":
            assert finding.witness
            told = "mended by: " if promises[name].missing else "; then nothing is found"
            assert any(told in note for note in finding.notes), finding.notes
    return found


def verdicts(program: str) -> dict[str, str]:
    return {name: finding.verdict for name, finding in findings(program).items()}


def test_the_printed_verifier() -> None:
    """Kills a verdict on the law that looks at no rare draft, and a clamp taken for a matter of rounding."""
    found = findings("verify")
    assert found["law"].verdict == "consistent"
    assert found["rare-drafts"].verdict == "violated"
    assert found["rare-drafts"].witness is not None
    assert "multinomial" in found["rare-drafts"].witness["what happens"]


def test_the_switch_of_the_printed_temperature() -> None:
    """Two equal logits: TV 1/2, exactly. Kills a small temperature taken for its limit."""
    found = findings("to_probs")["small-temperatures"]
    assert found.verdict == "violated"
    assert found.magnitude is not None
    assert found.magnitude.tv.value == 0.5


def test_the_printed_baseline() -> None:
    """Kills a baseline that is taken for greedy decoding unseen: it goes on after a stop token that comes first."""
    found = findings("greedy_ar")["tokens"]
    assert found.verdict == "violated"
    assert found.witness is not None
    assert found.witness["plain"] == [found.witness["stop"]] == found.witness["committed"][:1]


@pytest.mark.parametrize("program", ["spec_decode_ar", "spec_decode_dspark"])
def test_the_printed_loops(program: str) -> None:
    """Kills a loop that is judged by its tokens alone: what it does with its end, its first token and its caches."""
    found = findings(program)
    assert {finding.verdict for finding in found.values()} == {"violated"}
    assert found["runs"].witness is not None
    assert "crop" in found["runs"].witness["raised"]
    ended = found["greedy"].witness
    assert ended is not None
    assert ended["committed"][: len(ended["plain"])] == ended["plain"] != ended["committed"]
    assert found["first-token"].magnitude is not None
    assert found["first-token"].magnitude.tv.value > 0.2


def test_the_printed_cache_drafts_what_ours_does() -> None:
    """Kills a cache that was judged by its description."""
    found = findings("LookaheadCache")["drafts"]
    assert found.verdict == "consistent"
    assert found.numbers == {"texts": 500, "drafts compared": 1330}


def test_the_printed_medusa_step() -> None:
    """Kills a verdict on the first step alone: its cache, its passes and its batch are judged too."""
    found = findings("simple_medusa_step")
    assert {name: finding.verdict for name, finding in found.items()} == {
        "tokens": "consistent",
        "passes": "violated",
        "cache": "violated",
        "batch": "violated",
    }
    assert found["tokens"].numbers == {"steps": 24, "drafts accepted": 6}
    assert found["passes"].witness is not None
    assert found["passes"].witness["target passes"] == len(found["passes"].witness["tokens"]) == 2
    beside = found["batch"].witness
    assert beside is not None
    assert [len(line) for line in beside["alone"]] == [2, 1]
    assert [len(line) for line in beside["in one batch"]] == [1, 1]


def test_the_printed_model_and_its_tree() -> None:
    """Kills a program that is taken for one that runs, and a pass over a tree that is judged by its shape alone."""
    (model,), (tree,) = (findings(name).values() for name in ("MedusaModel", "medusa_generate_step"))
    assert model.witness is not None
    assert "last_hidden_state" in model.witness["raised"]
    assert tree.witness is not None
    rows = tree.witness["likeliest after each node"]
    assert len(rows["came"]) == len(rows["due"]) == 3
    assert model.verdict == tree.verdict == "violated"


def test_the_printed_networks_are_not_the_released_ones() -> None:
    """Kills a network that is judged by the shapes of its tensors."""
    assert verdicts("MedusaHead") == {"network": "violated"}
    assert verdicts("EAGLEDrafter") == {"network": "violated"}
    assert verdicts("DSparkDraft") == {"network": "consistent"}


@pytest.mark.parametrize(
    ("promise", "edit"),
    [
        ("verify/law", ("min(1.0, pt / pd)", "min(1.0, pd / pt)")),
        ("verify/law", ("(target_probs[n_acc] - draft_probs[n_acc]).clamp_min(0.0)", "target_probs[n_acc].clone()")),
        ("LookaheadCache/drafts", ("self.cache[key] = value", "self.cache.setdefault(key, value)")),
        ("DSparkDraft/network", ("logits = base[:, k, :] + (", "logits = base[:, k, :] - (")),
        ("DSparkDraft/network", ("ctx_kv = self.hidden_norm(self.fc(ctx_features))", "ctx_kv = self.fc(ctx_features)")),
        ("simple_medusa_step/tokens", ("if (t2_draft == t2_target).all():", "if True:")),
    ],
)
def test_a_judge_that_finds_nothing_would_find_this(
    promise: str, edit: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills a promise that no program could break."""
    (kept,) = (entry for entry in PROMISES if entry.id == promise)
    monkeypatch.setattr(printed, "PROMISES", [replace(kept, given=(edit,), missing="the text as printed")])
    assert [finding.verdict for finding in audit_printed(kept.program)] == ["violated"]


def test_a_mend_that_does_not_mend_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a mend that is printed and never run, and an edit of a text that does not have it."""
    (kept,) = (entry for entry in PROMISES if entry.id == "to_probs/small-temperatures")
    for edit, said in ((("logits.float()", "logits"), "does not hold"), (("no such text", ""), "0 times")):
        monkeypatch.setattr(printed, "PROMISES", [replace(kept, mend=(edit,))])
        (finding,) = audit_printed("to_probs")
        assert any(said in note for note in finding.notes)


def test_every_diagnosis_names_a_class() -> None:
    """Kills a class of defects that `refengine bugs` does not know."""
    from refengine.bugs.catalogue.classes import named

    said = [promise.diagnosis for promise in PROMISES if promise.diagnosis]
    assert said
    assert all(len(named(diagnosis)) == len(parts(diagnosis)) for diagnosis in said)
