"""What a pair is asked: messages of a user in the words of the target's own template, or tokens where it has none."""

import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from refengine.commands.decode import as_chat, load_tokenizer, prompt_tokens
from refengine.decoder.protocols import Tokens
from refengine.errors import BadInput

DATA = Path(__file__).with_suffix(".toml")
RANDOM = "random tokens"


@dataclass(frozen=True)
class Asked:
    """A prompt and its kind."""

    kind: str
    tokens: Tokens


def prompts(folder: Path, vocabulary: int, lengths: Sequence[int]) -> list[Asked]:
    """The messages of `prompts.toml`; of a target without a chat template one text of each length, uniform over the
    vocabulary. Both are fixed. Raises BadInput where template, tokenizer and vocabulary do not fit each other."""
    tokenizer = load_tokenizer(folder)
    if tokenizer is None or not getattr(tokenizer, "chat_template", None):
        source = random.Random(0)
        return [Asked(RANDOM, tuple(source.randrange(vocabulary) for _ in range(length))) for length in lengths]
    try:
        return [
            Asked(kind, prompt_tokens(as_chat(text, tokenizer), tokenizer, vocabulary, special=False))
            for kind, text in messages()
        ]
    except BadInput as error:
        raise BadInput(f"{folder}: its tokenizer does not fit: {str(error).removeprefix('--chat: ')}") from None


def messages() -> list[tuple[str, str]]:
    """Kind and text of each message."""
    return [(one["kind"], one["text"]) for one in tomllib.loads(DATA.read_text(encoding="utf-8"))["prompt"]]
