"""Whether a text is one that the grammar of its request allows, or begins one: of the grammars that we ask for."""

import json
import re
from collections.abc import Mapping
from typing import Any

from refengine.audit.served.ask import Ask, Choice

WORDS = "[a-z]+( [a-z]+)*"
GBNF = 'root ::= [a-z]+ (" " [a-z]+)*'  # the same, in llama.cpp's notation
BEGUN_WORDS = re.compile("([a-z]+( [a-z]+)* ?)?")
# Each ends what may be open where a JSON text was cut: a string, an escape in it, a word, a number.
TAILS = ("", '"', 'n"', *(f'{"0" * i}"' for i in range(1, 5)), "0")
WORD_TAILS = tuple(word[i:] for word in ("true", "false", "null") for i in range(1, len(word)))
STOPPED = {"stop", "stop_token_ids"}  # options by which a text ends in the middle of what a grammar allows


def ungrammatical(ask: Ask, choice: Choice) -> bool | None:
    """Whether no text that the request allows is this one, or where it was cut goes on from it. None without a grammar
    that is known here."""
    told: Mapping[str, Any] = ask.options
    ended = choice.finish == "stop" and not STOPPED & told.keys()
    if {"response_format", "guided_json", "json_schema"} & told.keys():
        return not (is_json(choice.text) if ended else begins_json(choice.text))
    if WORDS in (told.get("guided_regex"), told.get("regex")) or told.get("grammar") == GBNF:
        text = choice.text.lstrip()
        return not (re.fullmatch(WORDS, text) if ended and text else BEGUN_WORDS.fullmatch(text))
    return None


def is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except ValueError:
        return False
    return True


def begins_json(text: str) -> bool:
    """Whether some text that goes on from this one is JSON: what is open is closed, and then nothing but more of it is
    missed."""
    return any(_lacks_more(text + tail) for tail in (*TAILS, *WORD_TAILS))


def _lacks_more(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        return error.pos >= len(text.rstrip())
    return True
