"""The audit of transformers: what it finds, and that it finds what is planted."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("transformers")

import msgspec
import torch
import transformers.generation.candidate_generator as candidates
import transformers.generation.utils as generation

from refengine.audit.adapters.transformers import generate, generate_law, kernel_law
from refengine.audit.adapters.transformers import kernel as hf_kernel
from refengine.audit.adapters.transformers.generate_cells import CELLS
from refengine.audit.sandbox.child import Outcome
from refengine.report.canonical import canonical

pytestmark = pytest.mark.on_record

Tensor = torch.Tensor
SMALL = kernel_law.SIZES[:3]


# --- the kernel: one implementation of our own, one planted defect at a time ------------------------------------------


def kernel(
    accept: Callable[[Tensor, Tensor], Tensor] = lambda r, ratio: r < ratio,
    residual: Callable[[Tensor, Tensor], Tensor] = lambda p, q: (p - q).clamp(min=0),
    softmax: Callable[[Tensor], Tensor] = lambda logits: logits.softmax(-1),
    kept: Callable[[list[bool]], int] = lambda ok: [*ok, False].index(False),
    bonus: int = 0,
    count: int = 0,
    emit: Callable[[Tensor, Tensor], int] = lambda row, r: int(torch.multinomial(row, 1)),
) -> kernel_law.Verify:
    """Speculative sampling with transformers' signature; the defaults are right."""

    def verify(ids: Tensor, q_logits: Tensor, gamma: int, p_logits: Tensor) -> tuple[Tensor, Tensor]:
        drafted, p, q = ids[0, -gamma:], p_logits[0].softmax(-1), softmax(q_logits[0])
        at = torch.arange(gamma)
        r = torch.rand(gamma)
        n = kept([bool(ok) for ok in accept(r, p[at, drafted] / q[at, drafted])])
        row = p[n + bonus] if n == gamma else residual(p[n], q[n])
        last = emit(row / row.sum(), r[min(n, gamma - 1)])
        return torch.cat([drafted[:n], torch.tensor([last])])[None], torch.tensor(n + count)

    return verify


def coin_again(row: Tensor, r: Tensor) -> int:
    """The accept's uniform decides the correction too."""
    return int((r >= row.cumsum(0)[:-1]).sum())


def raises(*_: Any) -> Any:
    raise ArithmeticError("planted")


DEFECTS = {
    "residual is p": kernel(residual=lambda p, q: p),
    "residual is |p - q|": kernel(residual=lambda p, q: (p - q).abs()),
    "residual is (q - p)+": kernel(residual=lambda p, q: (q - p).clamp(min=0) + 1e-9),
    "residual clamped at 1e-3": kernel(residual=lambda p, q: (p - q).clamp(min=1e-3)),
    "q is not normalised": kernel(softmax=torch.exp),
    "q at temperature 1.02": kernel(softmax=lambda logits: (logits / 1.02).softmax(-1)),
    "accepts always": kernel(accept=lambda r, ratio: r >= 0),
    "never accepts": kernel(accept=lambda r, ratio: r < 0),
    "accepts by p alone": kernel(accept=lambda r, ratio: r < ratio * 0.5),
    "accepts 0.1 % too much": kernel(accept=lambda r, ratio: r < ratio * 1.001),
    "one coin for all": kernel(accept=lambda r, ratio: r[0] < ratio),
    "one coin for two uses": kernel(emit=coin_again),
    "bonus from the row before": kernel(bonus=-1),
    "keeps after a rejection": kernel(kept=lambda ok: sum(ok)),
    "greedy correction": kernel(emit=lambda row, r: int(row.argmax())),
}
OF_TWO_DRAFTS = ("one coin for all", "keeps after a rejection")  # one draft shows nothing of them


def measured_claims(verify: kernel_law.Verify, sizes: Sequence[tuple[int, int]] = SMALL) -> dict[str, str]:
    measured = kernel_law.measure(verify, sizes)
    return {claim: hf_kernel._finding(claim, "planted", "planted", measured).verdict for claim in hf_kernel.CLAIMS}


def test_the_strict_rule_is_consistent_in_every_claim() -> None:
    """Kills an audit that accuses a correct kernel."""
    assert set(measured_claims(kernel()).values()) == {"consistent"}


def test_the_inclusive_rule_breaks_the_mask_and_nothing_else() -> None:
    """Kills an audit that cannot see 2^-24, and one that calls it a wrong law."""
    assert measured_claims(kernel(accept=lambda r, ratio: r <= ratio)) == {
        "law": "consistent", "zero-mass": "violated", "count": "consistent"
    }  # fmt: skip


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_kernel_defect_is_found(name: str) -> None:
    """Kills tables on which this defect does not show."""
    sizes = kernel_law.SIZES[: 2 if name in OF_TWO_DRAFTS else 1]
    assert measured_claims(DEFECTS[name], sizes)["law"] == "violated"


def test_a_wrong_count_is_found() -> None:
    """Kills an audit that reads only the tokens: the count is what the caches are rolled back by."""
    assert measured_claims(kernel(count=1))["count"] == "violated"


@pytest.mark.parametrize(
    ("verify", "reason"),
    [
        (raises, "ArithmeticError: planted"),
        (kernel(residual=lambda p, q: p * float("nan")), "RuntimeError: probability tensor contains"),
        (kernel(accept=lambda r, ratio: torch.randn(len(r)) < ratio), "cannot be enumerated"),
    ],
)
def test_a_crash_a_nan_and_foreign_randomness_are_no_detection(verify: kernel_law.Verify, reason: str) -> None:
    """Kills an audit that reports a broken subject as a violated law."""
    finding = hf_kernel._finding("law", "planted", "planted", kernel_law.measure(verify, SMALL))
    assert (finding.verdict, reason in finding.reason) == ("not tested", True)


def test_transformers_kernel_accepts_a_token_of_probability_zero() -> None:
    """Kills an audit that misses what is there: r <= p/q. The witness replays; two calls, the same bytes."""
    findings = hf_kernel.audit_kernel_hf()
    assert [f.verdict for f in findings] == ["consistent", "violated", "consistent"]
    witness = findings[1].witness
    assert witness is not None
    assert kernel_law.replay(witness, hf_kernel.KERNEL) == tuple(witness["tokens"])
    assert any(row[x] == "0" for row, x in zip(witness["p"], witness["tokens"], strict=False))
    assert canonical(findings) == canonical(hf_kernel.audit_kernel_hf(**findings[1].recipe.arguments))


# --- generate(): the library itself, edited ---------------------------------------------------------------------------


def edited(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, old: str, new: str) -> None:
    """Plant a defect: the source of a function of the library with one exact text replaced."""
    source = inspect.cleandoc("\n" + inspect.getsource(getattr(owner, name)))
    assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times"
    space: dict[str, Any] = {}
    module = inspect.getmodule(getattr(owner, name))
    exec(compile(source.replace(old, new), name, "exec"), vars(module), space)
    monkeypatch.setattr(owner, name, space[name])


ASSISTED = (generation.GenerationMixin, "_assisted_decoding")
DRAFT = (candidates.AssistedCandidateGenerator, "_generate_candidates")
EDITS: dict[str, tuple[str, Any, str, str]] = {
    "rejected tokens stay in the cache": (
        "draft-model-defaults", ASSISTED, "crop = candidate_length - n_matches", "crop = 0"),
    "processors are not applied": (
        "draft-model/temperature", ASSISTED, "if len(logits_processor) > 0:", "if False:"),
    "history without the drafted tokens": (
        "draft-model/repetition-penalty", ASSISTED, "candidate_input_ids[:, : cur_len + i]", "input_ids"),
    "text after EOS": (
        "draft-model/eos", ASSISTED, "if eos_positions.numel() > 0:", "if False:"),
    "q at another temperature": (
        "draft-model-defaults", DRAFT, "torch.stack(assistant_output.scores, dim=1)",
        "0.5 * torch.stack(assistant_output.scores, dim=1)"),
    "one match too many": (
        "prompt-lookup", ASSISTED, "(candidate_new_tokens == selected_tokens[:, :-1])).cumsum(dim=-1) < 1",
        "(candidate_new_tokens == selected_tokens[:, :-1])).cumsum(dim=-1) < 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_a_planted_loop_defect_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a cell in which caches, histories, policies or stops do not matter."""
    cell, (owner, function), old, new = EDITS[name]
    edited(monkeypatch, owner, function, old, new)
    measured = generate_law.measure(CELLS[cell])
    assert measured.law is not None or measured.raised > 0


def test_different_tokenizers_are_found_with_a_witness_that_replays() -> None:
    """Kills an audit that misses the permuted q, that blames the models (same ones, ids in order), or is not stable."""
    names = ["two-tokenizers", "two-tokenizers-in-id-order", "prompt-lookup/stop-strings"]
    findings = {f.id.partition("/")[2]: f for f in generate.audit_generate_hf(names)}
    assert [findings[name].verdict for name in names] == ["violated", "consistent", "violated"]
    for name in ("two-tokenizers", "prompt-lookup/stop-strings"):
        witness = findings[name].witness
        assert witness is not None
        assert generate_law.replay(name, witness) == tuple(witness["tokens"])
    again = generate.audit_generate_hf(**findings["two-tokenizers"].recipe.arguments)
    assert canonical(again) == canonical([findings["two-tokenizers"]])


def test_the_strict_comparison_mends_the_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a mask claim that is violated whatever the library does."""
    assert generate_law.measure(CELLS["draft-model/top-k"]).mask is not None
    edited(monkeypatch, generation, "_speculative_sampling", "r_i <= probability_ratio", "r_i < probability_ratio")
    measured = generate_law.measure(CELLS["draft-model/top-k"])
    assert (measured.mask, measured.law, measured.outside) == (None, None, 0.0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"blocks": {1: 1.0}}, "no draft token was ever kept"),
        ({"effect": 0.0}, "the policy does not change the law"),
        ({"raised": 0.5, "raised_by": "OSError: gone"}, "OSError: gone"),
        ({"unmodelled": "numpy"}, "cannot be enumerated: numpy"),
    ],
)
def test_a_cell_that_shows_nothing_is_not_tested(change: dict[str, Any], reason: str) -> None:
    """Kills a pass that was never earned."""
    measured = msgspec.to_builtins(generate_law.Measured(**{"blocks": {2: 1.0}, **change}))
    (finding,) = generate._findings(CELLS["draft-model/top-k"], "transformers", Outcome("result", measured))
    assert (finding.verdict, reason in finding.reason) == ("not tested", True)


def test_a_hang_is_not_tested_and_an_unknown_cell_is_refused() -> None:
    """Kills a hang read as a verdict, and a misspelt cell that audits nothing."""
    (finding,) = generate._findings(CELLS["draft-model"], "transformers", Outcome("hang", message="no answer"))
    assert (finding.verdict, finding.reason) == ("not tested", "the subject hung: no answer")
    with pytest.raises(ValueError, match="unknown cell 'draft-modle'"):
        generate.audit_generate_hf(["draft-modle"])
