"""Blocks of docs/auditing.md, campaigns.md, ci.md, drafters.md, reports.md, serving.md and tutorial.md that need what
is not here: an engine, a GPU, a container engine, an index of packages, hours. Each runs with a stand-in, which its
test names; what a stand-in hides is not tested.
"""

import inspect
import json
import os
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from properties.helpers.checkpoints.hub import Hub, point_to
from properties.helpers.checkpoints.hub import serving as serving_files
from properties.helpers.command_line import run
from properties.helpers.served.checkpoint import exported
from properties.helpers.served.engine import Engine
from properties.helpers.served.http import serving
from properties.house.test_blocks import blocks, script
from refengine.audit.kernel import at_length
from refengine.commands import verify_checkpoint
from refengine.commands.export_fixtures import export_fixtures
from refengine.selfcheck import tests_at_length
from refengine.source_tree import FIXTURES, ROOT


def block(page: str, holding: str) -> str:
    """The one block of a page that is run here and holds a text."""
    (text,) = [t for above, _, t in blocks(f"docs/{page}") if above.endswith(Path(__file__).name) and holding in t]
    return text


def commands(page: str, holding: str) -> list[list[str]]:
    """The words of each command of a block."""
    return [shlex.split(line, comments=True) for line in script(block(page, holding)).splitlines()]


def typed(page: str, holding: str, folder: Path, codes: tuple[int, ...] = (0,), **stubs: str) -> str:
    """Run a block by bash, each of `stubs` being a program that appends its words to `asked` and then runs that text.
    Returns `asked`. codes: those that it may end with."""
    programs = folder / "programs"
    programs.mkdir()
    for name, text in {"refengine": f'exec "{sys.executable}" -m refengine.cli "$@"', **stubs}.items():
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {folder}/asked\n{text}\n')
        (programs / name).chmod(0o755)
    env = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = ["bash", "-ec", script(block(page, holding))]
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=540, check=False)
    assert ended.returncode in codes, ended.stdout[-2000:] + ended.stderr[-2000:]
    return (folder / "asked").read_text()


# --- engines' kernels ------------------------------------------------------------------------------------------------

P = torch.tensor([[0.0, 1.0, 0.0], [0.25, 0.25, 0.5], [0.0, 0.0, 1.0]])
Q = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
CHOSEN = {(1, 0): [1, 0, 2], (0, 1): [1], (1, 2): [1, 2, 2]}  # what the ratio rule emits there, whatever its coins


def ratio_rule(p: Tensor, q: Tensor, draft: Tensor) -> list[int]:
    """Rejection sampling where p is above q or 0."""
    for i, x in enumerate(draft.tolist()):
        if p[i, x] == 0:
            return [*draft[:i].tolist(), int((p[i] - q[i]).clamp(min=0).argmax())]
    return [*draft.tolist(), int(p[-1].argmax())]


def as_vllm(
    draft: Tensor, counts: list[int], most: int, ends: Tensor, q: Tensor, logits: Tensor, bonus: Tensor, about: Any
) -> Tensor:
    """For vLLM's rejection_sample: packed drafts, rows as logits, a bonus token; -1 where nothing was emitted."""
    assert (draft.dtype, bonus.dtype, ends.tolist()) == (torch.int32, torch.int32, counts)
    assert about.all_random
    assert not about.all_greedy
    p = torch.cat([logits.softmax(-1), torch.nn.functional.one_hot(bonus[0].long(), logits.shape[1])])
    emitted = ratio_rule(p, q, draft)
    return torch.tensor([[*emitted, *[-1] * (most + 1 - len(emitted))]])


def as_sglang(emitted: Tensor, index: Tensor, accepted: Tensor, candidates: Tensor, places: Tensor, *more: Any) -> None:
    """For SGLang's chain_speculative_sampling_triton: a chain behind a root, answers in place."""
    _, _, coins, last, p, q, *_ = more
    assert candidates.shape == places.shape == coins.shape == (1, len(emitted))
    assert last.shape == (1,)
    tokens = ratio_rule(p[0], q[0], candidates[0, 1:])
    accepted[0] = len(tokens) - 1
    emitted[: len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
    index[0, : len(tokens)] = torch.arange(len(tokens), dtype=torch.int32)


@pytest.mark.parametrize(
    ("holding", "name", "kernel"),
    [("rejection_sample", "rejection_sample", as_vllm), ("SGLang", "chain_speculative_sampling_triton", as_sglang)],
)
def test_the_adapters_of_engines_kernels_pass_on_rows_and_drafts(holding: str, name: str, kernel: Any) -> None:
    """Stand-in: a function with the arguments of the engine's kernel. Kills an adapter that is no Python, that shifts
    the drafts by one, or that returns padding."""
    given = {"torch": torch, name: kernel}
    exec(block("auditing.md", holding), given)
    for draft, tokens in CHOSEN.items():
        answer = given["verify"](P, Q, torch.tensor(draft), torch.Generator())  # type: ignore[operator]
        assert [int(token) for token in answer] == tokens


# --- installations ---------------------------------------------------------------------------------------------------


def test_what_installs_names_the_wheel_that_the_build_makes(tmp_path: Path) -> None:
    """Stand-in: a pip that writes down what it is asked for. Kills a file of another version or another name."""
    asked = typed("tutorial.md", "pip install", tmp_path, pip="")
    assert f"pip install dist/refengine-{version('refengine')}-py3-none-any.whl" in asked
    assert asked.splitlines()[0].startswith("pip install torch --index-url https://")


def test_a_container_is_built_from_a_file_that_exists(tmp_path: Path) -> None:
    """Stand-in: a podman that writes down its words. Kills a path that is gone, and an image of another name."""
    build, started = typed("ci.md", "podman", tmp_path, podman="").splitlines()
    words = shlex.split(build)
    assert (ROOT / words[words.index("--file") + 1]).is_file()
    image = words[words.index("--tag") + 1]
    assert f"--network none --volume {tmp_path}:/work:Z {image} audit kernel my_sampler:verify" in started


def test_an_engine_under_another_python(tmp_path: Path) -> None:
    """Stand-in: a Python that makes an environment with this Python and a pip that installs nothing. Kills an option
    that is gone, and a traceback where the engine is absent."""
    made = f'ln -s {sys.executable} "$3/bin/python"; printf "#!/bin/sh\\n" > "$3/bin/pip"; chmod +x "$3/bin/pip"'
    typed("auditing.md", "other/bin/pip", tmp_path, (0, 1, 3), python=f'mkdir -p "$3/bin"; {made}')
    assert (tmp_path / "report.json").is_file()


# --- what takes hours, and folders of one's own ----------------------------------------------------------------------

SAMPLER = (
    "import torch\ndef verify(p, q, draft, generator):\n    return torch.multinomial(p[0], 1, generator=generator)\n"
)


def test_campaigns_are_started_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-in: 2000 draws for a billion, 512 calls to a block, and no test of length in one file of them. Kills an
    option that is gone, a journal that is not written, and a function that is right and found violated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(at_length, "BLOCK", 512)
    monkeypatch.setattr(tests_at_length, "FOLDER", "statistical_tests/test_budget.py")
    (tmp_path / "my_sampler.py").write_text(SAMPLER)
    codes = {}
    for words in commands("campaigns.md", "1000000000"):
        small = [word.replace("1000000000", "2000") for word in words[1:]]
        codes[words[2]] = run(*small, *(["no such test"] if words[2] == "length" else ["--workers", "1"]))
    assert codes == {"engine": 0, "kernel": 0, "length": 2}
    assert (tmp_path / "engine.journal").is_file()
    assert (tmp_path / "mine.journal").is_file()


def test_drafters_are_verified_and_decoded_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stand-ins: the tiny pair for folders, a hub of this process for names, a pickle of one tensor, ids for a text,
    one short prompt. Kills a command that is gone and an option that another command has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verify_checkpoint, "LENGTHS", (4,))
    monkeypatch.setattr(verify_checkpoint, "NEW_TOKENS", 12)
    torch.save({"0.weight": torch.ones(2, 2)}, "medusa_lm_head.pt")
    here = {"DRAFTER": str(FIXTURES / "tiny" / "dspark"), "TARGET": str(FIXTURES / "tiny" / "target")}
    here |= {"Once upon a time": "1 2 3", "org/name@revision": "org/drafter@main", "org/name": "org/target"}
    folders = {"org/drafter": Path(here["DRAFTER"]), "org/target": Path(here["TARGET"])}
    with serving_files(Hub(folders)) as hub:
        point_to(monkeypatch, hub.url, tmp_path / "cache")
        lines = commands("drafters.md", "checkpoint convert")
        assert len(lines) == 5
        for words in lines:
            assert run(*(here.get(word, word) for word in words[1:])) == 0, capsys.readouterr().err
    assert (tmp_path / "medusa_lm_head.safetensors").is_file()


def test_a_report_is_made_again_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-in: a report of one finding for a whole one. Kills a command that takes other words."""
    monkeypatch.chdir(tmp_path)
    rows = {"p": torch.tensor([[[0.0, 1.0]] * 2]), "q": torch.tensor([[[1.0, 0.0]]])}
    save_file({**rows, "draft": torch.tensor([[0]]), "emitted": torch.tensor([[0, 1]])}, "rounds.safetensors")
    assert run("audit", "trace", "rounds.safetensors", "--out", "report.json") == 1
    known = {"audit.kernel.hf/zero-at-zero": "audit.trace/rounds.safetensors"}
    for words in commands("reports.md", "refengine rerun"):
        assert run(*(known.get(word, word) for word in words[1:])) == 0


# --- servers ---------------------------------------------------------------------------------------------------------


def test_two_servers_are_started_beside_each_other(tmp_path: Path) -> None:
    """Stand-in: a vllm that writes down its words. Kills a configuration that is no JSON, and one port for
    two servers."""
    asked = typed("serving.md", "ngram", tmp_path, vllm="").splitlines()
    ports = {line.split("--port ")[1].split()[0] for line in asked}
    assert ports == {"8000", "8001"}
    (configured,) = [line.split("--speculative-config ")[1] for line in asked if "--speculative-config" in line]
    assert json.loads(configured)["num_speculative_tokens"] == 3


def test_a_server_of_the_tiny_model_is_audited_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stand-in: a server of this process, which decodes the exported pair, and 40 requests for 600. Kills an option
    that is gone, and folders that export and audit call otherwise."""
    monkeypatch.chdir(tmp_path)
    export, serve, audit = commands("serving.md", "--known tiny")
    assert run(*export[1:]) == 0
    assert Path(serve[2]).is_dir()
    export_fixtures(tmp_path / "again")
    assert {f.name for f in Path("again").iterdir()} == {f.name for f in Path(export[-1]).iterdir()}
    with serving(Engine(True, "", "", exported(Path("tiny")))) as on:
        here = {"http://localhost:8000/v1": on, "600": "40"}
        assert run(*(here.get(word, word) for word in audit[1:]), "--allow-untested") == 0


def test_the_signature_of_a_generate_function_is_the_one_that_is_called() -> None:
    """Kills a page whose function could not be called as the audit calls it."""
    given: dict[str, Any] = {}
    exec(block("serving.md", "def generate"), given)
    takes = inspect.signature(given["generate"])
    takes.bind("a prompt", 8, temperature=1.0, seed=0, top_k=3)
