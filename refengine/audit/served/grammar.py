"""Whether a text is one that the grammar of its request allows, or begins one: of the grammars that we ask for."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from refengine.audit.served.ask import STOPPED, Ask, Choice


class Words(NamedTuple):
    """A language that every engine's grammars have: as a regular expression, what begins one of its texts, and in the
    notation of llama.cpp."""

    regex: str
    begun: str
    gbnf: str


WORDS = Words("[a-z]+( [a-z]+)*", "([a-z]+( [a-z]+)* ?)?", 'root ::= [a-z]+ (" " [a-z]+)*')
# What may come next is decided by the letter before it: a grammar that has read another token lets something wrong out.
MARKED = Words("([a-m]|[n-z][0-9])+", "([a-m]|[n-z][0-9])*[n-z]?", "root ::= ([a-m] | [n-z] [0-9])+")
# Each ends what may be open where a JSON text was cut: a string, an escape in it, a word, a number.
TAILS = ("", '"', 'n"', *(f'{"0" * i}"' for i in range(1, 5)), "0")
WORD_TAILS = tuple(word[i:] for word in ("true", "false", "null") for i in range(1, len(word)))


def ungrammatical(ask: Ask, choice: Choice) -> bool | None:
    """Whether no text that the request allows is this one, or where it was cut goes on from it. None without a grammar
    that is known here."""
    told: Mapping[str, Any] = ask.options
    ended = choice.finish == "stop" and not STOPPED & told.keys()
    if told.get("response_format") == {"type": "json_object"}:
        return wrong_json(choice.text, ended)
    for words in (WORDS, MARKED):
        if words.regex in (told.get("guided_regex"), told.get("regex")) or told.get("grammar") == words.gbnf:
            text = choice.text.lstrip()
            return not re.fullmatch(words.regex if ended and text else words.begun, text)
    return None


def wrong_json(text: str, ended: bool) -> bool:
    """Whether a text that ended is no JSON, or one that was cut begins none."""
    return not (is_json(text) if ended else begins_json(text))


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
