"""Kernels without a GPU: packages of the layout of vLLM and SGLang, honest and with a mistake, and what is absent."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import refengine.commands.audit_engine
from refengine.audit.adapters import TREE, interpreted, kernels
from refengine.audit.adapters.kernel_inputs import along, batch, filtered, trees
from refengine.cli import app
from refengine.commands.audit_engine import audit_engine

pytestmark = pytest.mark.on_record

pytest.importorskip("triton")
CALLS = 350  # enough for a total variation of a half, which is the least that an audit must see to say anything
FIRST = """
from vllm.config import Config
from vllm.logger import init_logger
from vllm.platforms import on_a_gpu
from vllm.triton_utils import tl, triton
import torch

logger = init_logger(__name__)

class Sampler(Config):
    def __init__(self, sampler: Config | None = None):
        on_a_gpu()

@triton.jit
def kernel(
    out_ptr, ends_ptr, draft_ptr, p_ptr, q_ptr, best_ptr, bonus_ptr, other_ptr, coin_ptr, greedy_ptr, longest,
    vocabulary
):
    lane = tl.program_id(0)
    start = tl.load(ends_ptr + lane - 1, mask=lane > 0, other=0)
    start = {start}
    count = tl.load(ends_ptr + lane) - start
    greedy = tl.load(greedy_ptr + lane)
    refused = False
    for i in range(count):
        if not refused:
            at = start + i
            token = tl.load(draft_ptr + at)
            if greedy:
                instead = tl.load(best_ptr + at)
                refused = token != instead
            else:
                instead = tl.load(other_ptr + at)
                p, q = tl.load(p_ptr + at * vocabulary + token), tl.load(q_ptr + at * vocabulary + token)
                refused = tl.load(coin_ptr + at) * q >= p
            tl.store(out_ptr + lane * (longest + 1) + i, instead if refused else token)
    if not refused:
        tl.store(out_ptr + lane * (longest + 1) + count, tl.load(bonus_ptr + lane))

def rejection_sample(draft, counts, longest, ends, q, logits, bonus, metadata):
    p, draft = logits.softmax(-1), draft.long()
    hot = torch.nn.functional.one_hot(draft, p.shape[-1]).float()
    q = hot if q is None else q
    left = (p - q).clamp(min=0)
    other = (left / torch.empty_like(left).exponential_()).argmax(-1).int()
    out = torch.full((len(counts), longest + 1), -1).int()
    kernel[(len(counts),)](
        out, ends, draft.int(), p, q, p.argmax(-1).int(), bonus.int(), other, torch.rand(len(draft)),
        metadata.temperature == 0, longest, p.shape[-1],
    )
    return out
"""
CHAIN = """
import torch

def chain_speculative_sampling_triton(
    predicts, accept_index, accept_token_num, candidates, retrive_index, retrive_next_token, retrive_next_sibling,
    uniform_samples, uniform_samples_for_final_sampling, target_probs, draft_probs, *rest, **more,
):
    lanes, slots = candidates.shape
    for b in range(lanes):
        kept = 0
        while kept < slots - 1:
            token = candidates[b, kept + 1]
            if not uniform_samples[b, kept] * draft_probs[b, kept, token] < target_probs[b, kept, token]:
                break
            predicts[retrive_index[b, kept]] = token
            kept += 1
        row = target_probs[b, kept].double()
        if kept < slots - 1:
            row = (row - {minus}).clamp(min=0)
        sums = row.cumsum(0)
        at = int((sums <= uniform_samples_for_final_sampling[b] * {total}).sum())
        predicts[retrive_index[b, kept]] = min(at, len(row) - 1)
        accept_index[b, : kept + 1] = retrive_index[b, : kept + 1]
        accept_token_num[b] = kept
"""
GREEDY = """
from sglang.srt.utils import is_cuda, is_xpu

assert is_xpu() and not is_cuda()

def verify_tree_greedy_func(predicts, index, accepted, candidates, places, following, sibling, best):
    for b in range(len(candidates)):
        node, kept = 0, 0
        while True:
            index[b, kept], predicts[places[b, node]] = places[b, node], best[b, node]
            child = following[b, node]
            while child >= 0 and candidates[b, child] != best[b, node]:
                child = {next}
            if child < 0:
                break
            node, kept = int(child), kept + 1
        accepted[b] = kept
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, dict[str, str]], str]:
    """(package, files) -> a Python under which such a package is installed; importing it as a whole ends Python."""

    monkeypatch.setattr(interpreted, "BATCHES", 40)
    monkeypatch.setattr(interpreted, "ROWS", 3)

    def install(package: str, files: dict[str, str]) -> str:
        site = tmp_path / "site"
        for name, text in {f"{package}/__init__.py": "import os; os._exit(9)", **files}.items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(text)
        (site / f"{package}-7.1.dist-info").mkdir()
        (site / f"{package}-7.1.dist-info" / "METADATA").write_text(f"Name: {package}\nVersion: 7.1\n")
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        return str(python)

    return install


def first(start: str) -> dict[str, str]:
    return {"vllm/v1/sample/rejection_sampler.py": FIRST.format(start=start)}


def chain(minus: str = "draft_probs[b, kept]", total: str = "sums[-1]") -> dict[str, str]:
    return {"sglang/kernels/ops/speculative/reject_sampling.py": CHAIN.format(minus=minus, total=total)}


def test_honest_kernels_hold_and_what_a_version_lacks_is_not_tested(installed: Callable[..., str]) -> None:
    """Kills an adapter that accuses a correct kernel, imports the whole package, or calls what it leaves out."""
    python = installed("vllm", first("start"))
    for way in ("first runner, draft rows", "first runner, no rows"):
        (finding,) = audit_engine("vllm_kernels", python, way, CALLS, only="lanes")
        assert (finding.verdict, finding.reason) == ("consistent", "")
        assert finding.subject == f"vllm 7.1, {way}"
    (there,) = audit_engine("vllm_kernels", python, "second runner, grammar", CALLS)
    assert there.verdict == "not tested"
    assert "this version of vllm has no vllm.v1.worker.gpu" in there.reason


def test_a_lane_that_reads_its_neighbours_drafts_is_found_alone(installed: Callable[..., str]) -> None:
    """Kills a claim about lanes that cannot fail, and a witness that is not reduced."""
    python = installed("vllm", first("tl.maximum(start, lane)"))
    (finding,) = audit_engine("vllm_kernels", python, "first runner, draft rows", CALLS, only="lanes")
    assert finding.verdict == "violated"
    assert finding.recipe.arguments["only"] == "lanes"
    assert finding.witness is not None
    assert len(finding.witness["lanes"]) <= 2


@pytest.mark.parametrize(("minus", "verdict"), [("draft_probs[b, kept]", "consistent"), ("0", "violated")])
def test_a_correction_from_the_whole_row_is_another_law(
    installed: Callable[..., str], minus: str, verdict: str
) -> None:
    """Kills an audit whose program is not the kernel that was named, or is not sampled enough to say anything."""
    python = installed("sglang", chain(minus=minus))
    (finding,) = audit_engine("sglang_kernels", python, "chain, block", CALLS, only="law")
    assert (finding.verdict, finding.reason) == (verdict, "")
    assert finding.recipe.arguments["way"] == "chain, block"


@pytest.mark.parametrize(("total", "verdict"), [("sums[-1]", "consistent"), ("(1 + 1e-6)", "violated")])
def test_a_coin_beyond_the_sum_of_a_row_shows(installed: Callable[..., str], total: str, verdict: str) -> None:
    """Kills an audit that never throws the last coin: the id at the end of the row comes out without mass."""
    python = installed("sglang", chain(total=total))
    (finding,) = audit_engine("sglang_kernels", python, "chain, block", CALLS, only="coins")
    assert finding.verdict == verdict
    if verdict == "violated":
        assert finding.magnitude is not None
        assert finding.magnitude.breaks_mask
        assert finding.witness is not None
        assert finding.witness["coins"] == "1 - 2^-24"


@pytest.mark.parametrize(("following", "verdict"), [("sibling[b, child]", "consistent"), ("-1", "violated")])
def test_a_tree_of_which_only_first_children_are_tried_is_found(
    installed: Callable[..., str], following: str, verdict: str
) -> None:
    """Kills a claim about trees that only walks chains, or that numbers siblings wrongly itself."""
    python = installed("sglang", {"sglang/kernels/ops/speculative/spec_tree.py": GREEDY.format(next=following)})
    (finding,) = audit_engine("sglang_kernels", python, TREE, CALLS)
    assert finding.verdict == verdict


@pytest.mark.parametrize("name", kernels())
def test_an_absent_package_is_not_tested_and_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a missing package that is a crash, a success, or no line of help."""
    adapter, entry = kernels()[name]
    gone = {name: (adapter, replace(entry, package="a-package-that-nobody-has"))}
    monkeypatch.setattr(refengine.commands.audit_engine, "kernels", lambda: gone)
    (finding,) = audit_engine(name, sys.executable)
    assert finding.verdict == "not tested"
    assert "is not installed" in finding.reason
    assert adapter.install in finding.reason


def test_the_command_line_knows_kernels_by_name() -> None:
    """Kills a list of engines beside that of kernels."""
    outcome = CliRunner().invoke(app, ["audit", "engine", "no-such-engine"])
    assert all(name in str(outcome.exception) for name in kernels())


def test_what_is_due_is_what_the_rows_say() -> None:
    """Kills lanes without drafts, without a refusal or at one temperature alone, and trees without a second child."""
    rng = np.random.default_rng(1)
    lanes = [lane for _ in range(50) for lane in batch(rng, mixed=True)]
    for lane in lanes:
        place = len(lane["due"]) - 1
        assert lane["due"] == np.array(lane["p"]).argmax(-1)[: place + 1].tolist()
        assert lane["due"][:place] == lane["draft"][:place]
        assert place == lane["count"] or lane["draft"][place] != lane["due"][place]
    assert {(lane["count"] > 0, len(lane["due"]) <= lane["count"], lane["greedy"]) for lane in lanes} == {
        (drafted, refused, greedy)
        for drafted in (0, 1)
        for refused in (0, 1)
        for greedy in (0, 1)
        if drafted >= refused
    }
    cases = [trees(rng) for _ in range(30)]
    emitted = [
        along(*lane) for case in cases for lane in zip(case["tokens"], case["parents"], case["best"], strict=True)
    ]
    assert {len(tokens) for tokens in emitted} >= {1, 2, 3, 4}
    rows = filtered(0, 600)
    assert (rows["p"][..., -1] == 0).all()
    assert (np.take_along_axis(rows["q"], rows["draft"][..., None], -1) > 0).all()
    assert np.abs(rows["p"].sum(-1) - 1).max() < 1e-5
