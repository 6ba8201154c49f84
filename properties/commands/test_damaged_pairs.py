"""`checkpoint verify` of pairs in which something is damaged or of another make: one line that names it."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from properties.helpers.checkpoints.damaged import damaged
from refengine.commands import verify_checkpoint
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

TARGET, DRAFTER = FIXTURES / "tiny" / "target", FIXTURES / "tiny" / "ar"
QUERY = "model.layers.0.self_attn.q_proj.weight"
SHARDS = 3
WORDS = ["?", "<", "user", ">", "assistant", "Python", "trumpet", "train"]
TEMPLATE = "{% for m in messages %}< {{ m.role }} > {{ m.content }} {% endfor %}< assistant >"


def sharded(folder: Path, change: Callable[[Path, dict[str, str]], object]) -> None:
    """A checkpoint of one file as three shards with an index, and something changed in it."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    places = {name: f"model-{i % SHARDS + 1:05}-of-{SHARDS:05}.safetensors" for i, name in enumerate(names)}
    for shard in set(places.values()):
        save_file({name: tensors[name] for name in names if places[name] == shard}, folder / shard, {"format": "pt"})
    change(folder, places)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def words(folder: Path, vocabulary: list[str], template: str = TEMPLATE) -> None:
    raw = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="?"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)


def twice(tensors: dict[str, Any]) -> None:
    for name in [name for name in tensors if ".layers.0." in name]:
        tensors[name.replace(".0.", ".7.")] = tensors[name].clone()


FIRST = "model-00001-of-00003.safetensors"
SHARDED: dict[str, tuple[Callable[[Path, dict[str, str]], object], str]] = {
    "a shard missing": (lambda f, p: (f / FIRST).unlink(), f"shard {FIRST} is missing"),
    "a wrong shard": (
        lambda f, p: p.update({min(p): p[max(p)]} | {QUERY: FIRST}),
        "is not in model-.*, where the index has it",
    ),
    "a shard twice": (lambda f, p: shutil.copy(f / p[QUERY], f / FIRST), f"is not in {FIRST}, where the index has it"),
    "a shard cut": (lambda f, p: (f / FIRST).write_bytes((f / FIRST).read_bytes()[:-9]), f"{FIRST}: truncated, or no"),
}
DAMAGE: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "transposed": (lambda t, c: t.update({QUERY: t[QUERY].T.contiguous()}), rf"tensor {QUERY} has shape \[32, 16\]"),
    "eight bits": (lambda t, c: t.update({QUERY: (9 * t[QUERY]).char()}), f"tensor {QUERY} has dtype I8, expected"),
    "a word more": (lambda t, c: c.update(vocab_size=9), r"lm_head.weight has shape \[8, 32\], the config asks for"),
    "another size": (lambda t, c: c.update(head_dim=4), "self_attn.* has shape .*, the config asks for"),
    "no head, untied": (lambda t, c: t.pop("lm_head.weight"), "tensor lm_head.weight is missing"),
    "a NaN": (lambda t, c: t[QUERY][0].fill_(float("nan")), f"tensor {QUERY} holds a NaN or an infinity"),
    "a layer twice": (lambda t, c: twice(t), "layers.7.* is in the file, and the config has no place for it"),
}


def refusal(drafter: Path, target: Path) -> str:
    with pytest.raises(BadInput) as caught:
        verify_checkpoint.verify(str(drafter), str(target))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("damage", SHARDED)
def test_shards_and_their_index_are_held_to_each_other(tmp_path: Path, damage: str) -> None:
    """Kills an index that nobody reads beyond the names of its files."""
    change, message = SHARDED[damage]
    folder = Path(shutil.copytree(TARGET, tmp_path / "target"))
    sharded(folder, change)
    assert re.search(message, refusal(DRAFTER, folder))


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_target_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a target that is read less strictly than its drafter."""
    change, message = DAMAGE[damage]
    assert re.search(message, refusal(DRAFTER, damaged(TARGET, tmp_path / "target", change)))


def test_words_of_another_vocabulary(tmp_path: Path) -> None:
    """Kills a tokenizer whose tokens the model does not have, a template that is none, and a pair that means different
    words by one token."""
    target, drafter = (
        Path(shutil.copytree(folder, tmp_path / folder.name)) for folder in (TARGET, FIXTURES / "tiny" / "ar")
    )
    words(target, [f"w{i}" for i in range(40)] + WORDS)
    assert f"{target}: its tokenizer does not fit: prompt token 4" in refusal(drafter, target)
    words(target, WORDS, "{% for m in %}")
    assert f"{target}: its tokenizer does not fit: the template" in refusal(drafter, target)
    words(target, WORDS)
    words(drafter, WORDS[::-1])
    assert "ar: token 0 is 'train', and '?' in the target's tokenizer: it was made" in refusal(drafter, target)
