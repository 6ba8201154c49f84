"""`refengine checkpoint ngram`: a store counted from files of text."""

import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from refengine.commands.ngram import build
from refengine.decoder.checkpoints.layouts.dart_ngrams import read_trie
from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

TARGET = FIXTURES / "tiny" / "target"  # without a tokenizer


def assert_same(a: Trie, b: Trie) -> None:
    assert a.order == b.order
    for field in ("tokens", "parents", "counts"):
        assert np.array_equal(getattr(a, field), getattr(b, field))


def test_token_ids_where_there_is_no_tokenizer(tmp_path: Path) -> None:
    """Kills a blank line that is a text, a run that reaches into the next line, an order that is not passed on."""
    (tmp_path / "a.txt").write_text("1 2 3 1 2\n\n3, 1, 2\n")
    build([tmp_path / "a.txt"], TARGET, tmp_path / "full.trie", order=2)
    assert_same(read_trie(tmp_path / "full.trie"), Trie.of([[1, 2, 3, 1, 2], [3, 1, 2]], order=2))


def test_a_text_is_encoded_whole_and_ends(tmp_path: Path) -> None:
    """Kills a text without its end, and a file of JSON lines that is read as text."""
    words = {"<end>": 0, "the": 1, "cat": 2, "sat": 3}
    plain = Tokenizer(models.WordLevel(words, unk_token="<end>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<end>").save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 4}))
    (tmp_path / "a.jsonl").write_text('{"text": "the cat\\nsat"}\n{"text": "the cat"}\n')
    (tmp_path / "b.txt").write_text("sat sat\n")
    build([tmp_path / "a.jsonl", tmp_path / "b.txt"], tmp_path, tmp_path / "full.trie")
    assert_same(read_trie(tmp_path / "full.trie"), Trie.of([[1, 2, 3, 0], [1, 2, 0], [3, 3, 0]], order=3))


@pytest.mark.parametrize(
    ("name", "content", "out", "order", "message"),
    [
        ("a.txt", "1 9\n", "full.trie", 3, "prompt token 9 is outside the vocabulary of 8 tokens"),
        ("a.txt", "one two\n", "full.trie", 3, "must be token ids, not 'one two'"),
        ("a.jsonl", '{"text": "1"}\nnothing\n', "full.trie", 3, "a.jsonl:2: not JSON"),
        ("a.jsonl", '{"words": "1"}\n', "full.trie", 3, 'a.jsonl:1: no field "text"'),
        ("a.txt", "1 2\n", "full.bin", 3, "the output's name must end in .trie"),
        ("a.txt", "1 2\n", "a/full.trie", 3, "is not a folder"),
        ("a.txt", "1 2\n", "full.trie", 5, "--order 5: a store for DART has an order of 1 to 4"),
        ("b.txt", "1 2\n", "full.trie", 3, "a.txt: no such file"),
    ],
)
def test_what_cannot_be_counted_is_named(
    tmp_path: Path, name: str, content: str, out: str, order: int, message: str
) -> None:
    """Kills a store that is written of half a text, or over another one."""
    (tmp_path / name).write_text(content)
    file = tmp_path / ("a.txt" if name == "b.txt" else name)
    with pytest.raises(BadInput, match=message) as raised:
        build([file], TARGET, tmp_path / out, order)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / out).exists()


def test_a_store_is_not_overwritten(tmp_path: Path) -> None:
    """Kills a second run that replaces what a drafter was tuned with."""
    (tmp_path / "a.txt").write_text("1 2\n")
    build([tmp_path / "a.txt"], TARGET, tmp_path / "full.trie")
    with pytest.raises(BadInput, match="is there already"):
        build([tmp_path / "a.txt"], TARGET, tmp_path / "full.trie")
