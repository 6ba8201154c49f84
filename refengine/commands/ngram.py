"""`refengine checkpoint ngram`: DART's n-gram store counted from texts, in the released format.

As the released builder counts: every text is encoded as a whole, special tokens included, and ends with the end-of-text
token. No run of tokens reaches from one text into the next.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from refengine.commands.decode import load_tokenizer, prompt_tokens
from refengine.decoder.checkpoints.layouts.dart_ngrams import write_trie
from refengine.decoder.checkpoints.reading.config import Config, read_config
from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.decoder.protocols import Tokens
from refengine.errors import BadInput


def build(files: Sequence[Path], target: Path, out: Path, order: int = 3) -> Trie:
    """Count the texts of `files` in the tokens of the model in `target`, and write the store. Raises BadInput."""
    if not 1 <= order <= 4:
        raise BadInput(f"--order {order}: a store for DART has an order of 1 to 4")
    if out.suffix != ".trie":
        raise BadInput(f"{out}: the output's name must end in .trie")
    if out.exists():
        raise BadInput(f"{out} is there already: it is not overwritten")
    if not out.parent.is_dir():
        raise BadInput(f"{out.parent} is not a folder")
    store = Trie.of(encoded(files, target), order)
    write_trie(store, out)
    return store


def encoded(files: Sequence[Path], target: Path) -> Iterator[Tokens]:
    """Every text in the target's tokens; token ids stay what they are where it has no tokenizer."""
    tokenizer, config = load_tokenizer(target), read_config(target)
    inner = config.fields.get("text_config") or config.fields
    vocabulary = Config(config.path, inner).integer("vocab_size")
    end = () if tokenizer is None or tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)
    for file in files:
        for text in texts(file):
            try:
                yield (*prompt_tokens(text, tokenizer, vocabulary), *end)
            except BadInput as error:
                raise BadInput(f"{file}: {error}") from None


def texts(file: Path) -> Iterator[str]:
    """The lines of a file that are not blank; of a `.jsonl` file the field "text" of each."""
    if not file.is_file():
        raise BadInput(f"{file}: no such file")
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _text(f"{file}:{number}", line) if file.suffix == ".jsonl" else line.rstrip("\n")


def _text(where: str, line: str) -> str:
    try:
        held = json.loads(line)
    except ValueError:
        raise BadInput(f"{where}: not JSON") from None
    if not isinstance(held, dict) or not isinstance(held.get("text"), str):
        raise BadInput(f'{where}: no field "text" that is a string')
    return str(held["text"])
