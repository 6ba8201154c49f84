"""The sides of `checkpoint verify`: memory that is planned, prompts in the words of a template, names of the hub."""

import json
import resource
import shutil
from pathlib import Path

import pytest
import torch

from properties.helpers.checkpoints.hub import COMMIT, Hub, point_to, serving
from properties.helpers.command_line import run
from refengine.commands import memory
from refengine.commands.pair import Pair, Side
from refengine.commands.prompts import RANDOM, messages, prompts
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

TINY = FIXTURES / "tiny"


def test_the_plan_counts_what_the_files_hold_in_the_dtype_asked_for() -> None:
    """Kills a plan by the size on disk, a drafter that is forgotten, and one that is counted twice in its target."""
    stored = {kind: memory.weights(TINY / "target", kind) for kind in (torch.float64, torch.float32, torch.bfloat16)}
    assert stored[torch.float64] == 2 * stored[torch.float32] == 4 * stored[torch.bfloat16]
    size = (TINY / "target" / "model.safetensors").stat().st_size
    assert 0.8 * size < stored[torch.float32] < size
    drafter = memory.weights(TINY / "dspark", torch.float32)
    both = stored[torch.float32] + drafter
    assert memory.plan(TINY / "target", TINY / "dspark", torch.float32, both).fits
    tight = memory.plan(TINY / "target", TINY / "dspark", torch.float32, both - 1)
    assert not tight.fits
    assert tight.budget == stored[torch.float32] - 1
    assert memory.plan(TINY / "target", TINY / "target", torch.float32, stored[torch.float32]).fits
    assert memory.plan(TINY / "target", None, torch.float32, stored[torch.float32]).fits
    with pytest.raises(BadInput, match=r"dspark: .* MiB of weights, which stay, and .* MiB are free for them"):
        memory.plan(TINY / "target", TINY / "dspark", torch.float32, drafter)


@pytest.mark.parametrize("version", [1, 2])
def test_control_groups_above_count_and_files_they_cache_do_not(tmp_path: Path, version: int) -> None:
    """Kills a limit of a group above that is not seen, a group without one that is taken for zero, and a cache of files
    that is taken for memory in use."""
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    base = tmp_path if version == 2 else tmp_path / "memory"
    inner = base / "outer" / "inner"
    inner.mkdir(parents=True)
    for folder, most, used in ((base / "outer", "1000", "600"), (inner, "max" if version == 2 else "9000", "500")):
        (folder / names[0]).write_text(most)
        (folder / names[1]).write_text(used)
        (folder / "memory.stat").write_text("anon 1\ninactive_file 250\n")
    process = tmp_path / "cgroup"
    process.write_text("0::/outer/inner\n" if version == 2 else "9:cpu:/\n7:memory:/outer/inner\n")
    assert min(memory._groups(process, tmp_path)) == 1000 - 600 + 250
    assert memory._groups(tmp_path / "nothing", tmp_path) == []


def test_a_limit_of_the_process_counts() -> None:
    """Kills a plan that looks at the machine alone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    held = memory._held()[resource.RLIMIT_DATA]
    resource.setrlimit(resource.RLIMIT_DATA, (held + (64 << 20), hard))
    try:
        assert 0 < memory.available() <= 65 << 20
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def test_prompts_are_in_the_words_of_the_template(tmp_path: Path) -> None:
    """Kills a template that is not applied, and a kind of prompt that is lost."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    assert [kind for kind, _ in messages()] == ["math", "code", "chat"]
    plain = prompts(TINY / "target", 3, (1, 4))
    assert [(one.kind, len(one.tokens)) for one in plain] == [(RANDOM, 1), (RANDOM, 4)]
    words = {word: i for i, word in enumerate(["?", "<", "user", ">", "assistant", "Python", "trumpet", "train"])}
    raw = Tokenizer(models.WordLevel(words, unk_token="?"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="?")
    tokenizer.chat_template = "{% for m in messages %}< {{ m.role }} > {{ m.content }} {% endfor %}< assistant >"
    tokenizer.save_pretrained(tmp_path)
    asked = prompts(tmp_path, len(words), (1, 4))
    assert [one.kind for one in asked] == ["math", "code", "chat"]
    for one, word in zip(asked, ("train", "Python", "trumpet"), strict=True):
        assert one.tokens[:3] == (1, 2, 3)
        assert one.tokens[-3:] == (1, 4, 3)
        assert words[word] in one.tokens


def test_published_figures_are_those_of_the_pair() -> None:
    """Kills figures of another pair beside the measured ones, and figures that are made up where none are known."""
    plan = memory.Plan(0, 0, 0)

    def published(drafter: str, target: str) -> list[str]:
        return Pair(Side("", drafter, Path()), Side("", target, Path()), plan).published()

    assert any("GSM8K 6.11" in line for line in published("dspark_qwen3_4b_block7", "Qwen3-4B"))
    assert published("deepseek-ai/dspark_qwen3_4b_block7", "Qwen/Qwen3-4B") == published(
        "dspark_qwen3_4b_block7", "Qwen3-4B"
    )
    assert published("dspark_qwen3_4b_block7", "Qwen3-8B") == []
    assert published("fvliang/qwen4b-dart", "Qwen/Qwen3-4B") == ["published figures: unknown"]


def test_the_command_takes_names_of_the_hub_and_pins_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills a command that knows folders alone, and a report that would fetch other files again."""
    repositories = {f"someone/{name}": shutil.copytree(TINY / name, tmp_path / name) for name in ("target", "dspark")}
    with serving(Hub(repositories)) as hub:
        point_to(monkeypatch, hub.url, tmp_path / "cache")
        target = f"someone/target@{COMMIT}"
        assert run("checkpoint", "verify", "someone/dspark", "--target", target, "--json") == 0
    printed = capsys.readouterr()
    findings = json.loads(printed.out)
    assert {one["recipe"]["arguments"]["drafter"] for one in findings} == {f"someone/dspark@{COMMIT}"}
    assert {one["recipe"]["arguments"]["target"] for one in findings} == {target}
    assert f"someone/dspark@{COMMIT}: 2 files, model.safetensors sha256:" in printed.err
