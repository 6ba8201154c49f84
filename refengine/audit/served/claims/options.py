"""The sampling parameters of a served request, each asked for so that what it does is decided by the logits alone.

At temperature 0, and where a filter leaves one token, a completion has one right answer: speculation on and off must
give the same text, so that a dozen prompts say what a thousand samples would. Engines name some parameters differently;
the first name that the side without speculation takes is used.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from refengine.audit.served.ask import INCLUDED, Choice
from refengine.audit.served.grammar import MARKED, WORDS

Options: TypeAlias = dict[str, Any]
Made: TypeAlias = Callable[[Choice, int], tuple[Options, ...]]  # (plain answer to it, prompt) -> one per dialect

TOKENS = 32  # of a completion: some rounds of every drafter, and the borders between them
STOP_CHARACTERS = 5  # of a stop string: longer than most tokens, so that it crosses from one to the next
NEVER_SAID = "\N{PILCROW SIGN}"
LONG_STOP = 24  # characters of one that no block of a few tokens holds


@dataclass(frozen=True)
class Option:
    """made: the options of the request of that number, in every dialect; () where the prompt gives nothing to ask."""

    name: str
    made: Made
    temperature: float = 0.0
    tokens: int = TOKENS
    extreme: bool = False  # leaves one token at every position: at temperature 1 what temperature 0 gives
    talks: bool = False  # belongs to chat alone
    ends: bool = False  # about texts that end by themselves: a bias makes them, where one is found
    front: bool = True  # asked in chat and streamed too: what a front end forgets, it forgets at every strength

    @property
    def dialects(self) -> int:
        return len(self.made(Choice("a b c d e f g h", "length"), 0))


def several_filters(plain: Choice, number: int) -> tuple[Options, ...]:
    """Together: one of them, another one from prompt to prompt, leaves one token, and the others nearly all."""
    dialects = (FILTERS, FILTERS[:2])
    strict = [names[number % len(names)] for names in dialects]
    return tuple(
        {name: (STRICT if name == only else LOOSE)[name] for name in names}
        for names, only in zip(dialects, strict, strict=True)
    )


def left_alone(made: Made) -> Made:
    """These options, and a filter that leaves one token: what is sampled, by other code than at temperature 0, is then
    decided by the options, and far from temperature 1 it is another one where the order of steps is another. Two
    filters come in turn where both are taken: each may be wrong beside these options alone."""
    filters = ({"top_k": 1}, {"top_p": 1e-4}, {"min_p": 1.0})

    def of(plain: Choice, number: int) -> tuple[Options, ...]:
        in_turn = (filters[number % 2], *filters[1:])
        return tuple({**options, **told} for options in made(plain, number) for told in in_turn)

    return of


def fixed(*dialects: Options) -> Made:
    """The same options for every prompt."""
    return lambda plain, number: dialects


def in_turn(*dialects: Sequence[Options]) -> Made:
    """Of each dialect one value after another: what is right of one may be wrong of another."""
    return lambda plain, number: tuple(values[number % len(values)] for values in dialects)


def valued(name: str, *values: float) -> list[Options]:
    return [{name: value} for value in values]


def stop(plain: Choice, number: int) -> tuple[Options, ...]:
    """A piece of what would be said, from a place that moves with the prompt; in turn in a list and by itself."""
    made = _stop(plain.text, number)
    return tuple({"stop": piece} for options in made for piece in options["stop"]) if number % 4 == 2 else made


def _stop(text: str, number: int) -> tuple[Options, ...]:
    over_several = 3 * STOP_CHARACTERS
    length = over_several if number % 2 and len(text) > 2 * over_several else STOP_CHARACTERS
    start = 4 + number * 7 % max(1, len(text) - length - 4)
    piece = text[start : start + length]
    return ({"stop": [piece]},) if len(piece.strip()) >= 2 else ()


def stop_at_once(plain: Choice, number: int) -> tuple[Options, ...]:
    """What is said first: the token that comes of the prompt, before any round, ends the text or helps to."""
    piece = plain.text[: 2 + number % STOP_CHARACTERS].rstrip()
    return ({"stop": [piece]},) if piece.strip() else ()


def several_stops(plain: Choice, number: int) -> tuple[Options, ...]:
    """A long piece, and before it in the list a short one over its end, which the next token makes whole."""
    start = number * 5 % max(1, len(plain.text) - LONG_STOP - STOP_CHARACTERS)
    end = start + LONG_STOP
    told = [plain.text[end - 2 : end - 2 + STOP_CHARACTERS], plain.text[start:end]]
    stops = [piece for piece in told if piece.strip()]
    return ({"stop": stops},) if stops else ()


def stop_not_reached(plain: Choice, number: int) -> tuple[Options, ...]:
    """A stop that the end of the answer begins and nothing finishes: what is held back for it has to be said."""
    return ({"stop": [plain.text[-2 - number % STOP_CHARACTERS :] + NEVER_SAID]},) if plain.text.strip() else ()


def stop_at_the_limit(plain: Choice, number: int) -> tuple[Options, ...]:
    """A stop that the last token which may come makes whole."""
    return _stop_near_the_limit(plain, number, 0)


def stop_before_the_limit(plain: Choice, number: int) -> tuple[Options, ...]:
    """In turn one that the last token which may come makes whole, and one that leaves up to three: it, and not the
    length, ends the text."""
    left = number % 2 * (1 + number // 2 % 3)
    return tuple({**told, "max_tokens": told["max_tokens"] + left} for told in stop_at_the_limit(plain, number))


def stop_behind_the_limit(plain: Choice, number: int) -> tuple[Options, ...]:
    """A stop that a token or two behind the last one would make whole, perhaps in the same round: the length ends the
    text. So it does where the text would then end by itself, of which the end may be reported as a token or not."""
    length = len(plain.tokens or plain.text.split())
    if plain.finish == "stop" and length > 2 and number % 2:
        return ({"max_tokens": length + 1 - number // 2 % 3},)
    return _stop_near_the_limit(plain, number, 1 + number % 2)


def _stop_near_the_limit(plain: Choice, number: int, behind: int) -> tuple[Options, ...]:
    tokens = plain.tokens or re.findall(r"\s*\S+", plain.text)
    count = 2 + behind + number * 5 % max(1, len(tokens) - 2 - behind)
    piece = "".join(tokens[:count])[-STOP_CHARACTERS:]
    return ({"stop": [piece], "max_tokens": count - behind},) if len(piece.strip()) >= 2 else ()


def stop_after_minimum(plain: Choice, number: int) -> tuple[Options, ...]:
    """In turn a stop that comes early, beside a minimum that is longer, and one that comes as the minimum is reached or
    some tokens later."""
    if number % 2:
        return tuple(
            {"stop": told["stop"], "min_tokens": max(1, told["max_tokens"] - number // 2 % 4)}
            for told in stop_at_the_limit(plain, number)
        )
    made = _stop(plain.text[:20], number)
    return ({**made[0], "min_tokens": TOKENS // 2},) if made else ()


def minimum(plain: Choice, number: int) -> tuple[Options, ...]:
    """Of an answer that ends by itself: a minimum that it reaches as it ends or in the tokens before, which changes
    nothing, and now and then one beyond. There may be no such answer: of the others one is asked."""
    length = len(plain.tokens or plain.text.split())
    if plain.finish != "stop" or length < 2:
        return () if number else ({"min_tokens": TOKENS // 2},)
    return ({"min_tokens": min(TOKENS, max(1, length - number % 4 if number % 8 < 7 else length + 4))},)


def bad_word(plain: Choice, number: int) -> tuple[Options, ...]:
    """A word that would be said, and in turn a phrase of two, of which the first may be said."""
    words, count = plain.text.split(), 1 + number % 2
    first = number * 3 % max(1, len(words) - 1)
    return ({"bad_words": [" ".join(words[first : first + count])]},) if words else ()


def few_tokens(plain: Choice, number: int) -> tuple[Options, ...]:
    return ({"max_tokens": 1 + number % 17},)


def few_completion_tokens(plain: Choice, number: int) -> tuple[Options, ...]:
    """Beside a longer limit under the older name, for servers that do not know this one."""
    return ({"max_completion_tokens": 1 + number % 17},)


def schema(told: Options) -> Made:
    wrapped = {"type": "json_schema", "json_schema": {"name": "a", "schema": told}}
    return fixed({"guided_json": told}, {"response_format": wrapped}, {"json_schema": told})


def bias(value: float) -> Made:
    """On some ids, moving with the prompt; small ones, which every vocabulary has."""

    def made(plain: Choice, number: int) -> tuple[Options, ...]:
        return ({"logit_bias": {str(i): value for i in some_ids(number, 4)}},)

    return made


def slight_bias(plain: Choice, number: int) -> tuple[Options, ...]:
    """In turn by about as much as tokens are apart, so that twice as much and none are other texts: for a hundred ids
    that there are, and against those that would be said; and for small ids, which is all where ids are not reported."""
    if number % 2 or not plain.ids:
        return bias(4.0)(plain, number)
    most, said = max(plain.ids), sorted({*plain.ids})[:100]
    wished = dict.fromkeys(range(number % 3, most, max(3, most // 100)), 1.0)
    told = wished | {i: -(2.0 ** (k % 4 - 2)) for k, i in enumerate(said)}
    return ({"logit_bias": {str(i): value for i, value in told.items()}},)


def some_ids(number: int, count: int) -> list[int]:
    return [(3 + number * 5 + i) % 24 for i in range(count)]


def alone(ids: Iterable[int]) -> Options:
    """So that no other id comes."""
    return {"logit_bias": dict.fromkeys(map(str, ids), 100.0)}


def stop_token(plain: Choice, number: int) -> tuple[Options, ...]:
    """In turn a token that would be said, where ids are reported, and some that alone can come, of which two end the
    text: no drafter proposes these."""
    if plain.ids and number % 3:
        said = [*dict.fromkeys(plain.ids)]  # one that has come before would end the text there
        return ({"stop_token_ids": [said[7 * (2 * (number // 3) + number % 3 - 1) % len(said)]]},)
    ids = some_ids(number, 8)
    return ({**alone(ids), "stop_token_ids": ids[2:4]},)


def stop_token_after_minimum(plain: Choice, number: int) -> tuple[Options, ...]:
    """After a few tokens, of which none may end the text, soon one does. Where ids are reported, every other time a
    token that would be said before, in the middle of what drafters propose. Else half of the ids that alone can come,
    or in turn one of the first ids, of which the end of a text is one in most vocabularies; of these every other time
    the first token that may be it is the last that may come."""
    if plain.ids:
        number, said = number // 2, plain.ids if number % 2 else ()
        if len(said) > (least := 2 + number % 7):
            place = least + number * 5 % (len(said) - least)
            return ({"stop_token_ids": [said[place]], "min_tokens": min(TOKENS, place + least)},)
    least, ids = 2 + number // 2 % 7, some_ids(number, 8)
    if number % 2:
        return ({**alone(ids), "min_tokens": least, "stop_token_ids": ids[::2]},)
    limit = {} if number % 4 else {"max_tokens": least + 1}
    return ({**alone(FIRST_IDS), "min_tokens": least, **limit},)


def stop_included(plain: Choice, number: int) -> tuple[Options, ...]:
    """A stop that the text is to end with."""
    return tuple({**told, INCLUDED: True} for told in stop(plain, number))


FIRST_IDS = range(4)  # unknown, beginning, end, padding
FILTERS = ("top_k", "top_p", "min_p")
LOOSE: Options = {"top_k": 20, "top_p": 0.99, "min_p": 1e-3}
STRICT: Options = {"top_k": 1, "top_p": 1e-4, "min_p": 1.0}  # each leaves one token
HOT = 2.5  # a temperature at which what is added after it counts two and a half times
FEW_WORDS: Options = alone(range(3, 15))  # that come again and again
PENALTIES: Options = {"frequency_penalty": 0.7, "presence_penalty": 0.7}
PENALISED: Options = {**PENALTIES, **FEW_WORDS}
REPEATED: Options = {"repetition_penalty": 1.5}
penalised = in_turn(*([told, {**told, **REPEATED}] for told in (PENALISED, PENALTIES)))
ALLOWED: Options = {"allowed_token_ids": list(range(2, 24, 3))}
WORDS_ALONE, MARKED_LETTERS = (  # the same grammar, in the words of several engines
    ({"guided_regex": words.regex}, {"regex": words.regex}, {"grammar": words.gbnf}) for words in (WORDS, MARKED)
)
JSON: Options = {"response_format": {"type": "json_object"}}
JSON_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
NUMBERS = {"type": "integer", "minimum": 0, "maximum": 9}
JSON_LIST = {"type": "array", "items": NUMBERS, "minItems": TOKENS, "maxItems": TOKENS}
TOOL = {"type": "function", "function": {"name": "note", "parameters": JSON_SCHEMA}}
CALLED = {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "note"}}}
OPTIONS: tuple[Option, ...] = (
    Option("max_tokens", few_tokens),
    Option("max_completion_tokens", few_completion_tokens, talks=True, front=False),
    Option("frequency_penalty", in_turn(valued("frequency_penalty", 0.7, 2.0, -1.0))),
    Option("presence_penalty", in_turn(valued("presence_penalty", 1.5, 0.5, -1.0))),
    Option("repetition_penalty", in_turn(*(valued(n, 1.5, 1.1) for n in ("repetition_penalty", "repeat_penalty")))),
    Option("penalties, long", fixed({**PENALTIES, "ignore_eos": True}, PENALTIES), tokens=4 * TOKENS, front=False),
    Option("logit_bias", slight_bias),
    Option("logit_bias, strong", bias(100.0), front=False),
    Option("logit_bias, against", bias(-100.0), front=False),
    Option("allowed_token_ids", fixed(ALLOWED)),
    Option("bad_words", bad_word),
    Option("stop", stop),
    Option("stop, at once", stop_at_once),
    Option("stop, long and several", several_stops, front=False),
    Option("stop, not reached", stop_not_reached),
    Option("stop, at the limit", stop_before_the_limit, front=False),
    Option(INCLUDED, stop_included, front=False),
    Option("stop, behind the limit", stop_behind_the_limit, ends=True, front=False),
    Option("stop_token_ids", stop_token),
    Option("ignore_eos", fixed({"ignore_eos": True}), ends=True),
    Option("min_tokens", minimum, ends=True),
    Option("min_tokens and stop", stop_after_minimum, front=False),
    Option("min_tokens and ends", stop_token_after_minimum, front=False),
    Option("top_k", fixed({"top_k": 1}), 1.0, extreme=True),
    Option("top_p", fixed({"top_p": 1e-4}), 1.0, extreme=True),
    Option("min_p", fixed({"min_p": 1.0}), 1.0, extreme=True),
    Option("top_k, top_p and min_p", several_filters, 1.0, tokens=3 * TOKENS, extreme=True, front=False),
    Option("penalties and bias, hot", left_alone(penalised), HOT, extreme=True, front=False),
    Option("logit_bias, hot", left_alone(slight_bias), HOT, extreme=True, front=False),
    Option("allowed_token_ids, hot", left_alone(fixed(ALLOWED)), HOT, extreme=True, front=False),
    Option("bad_words, hot", left_alone(bad_word), HOT, extreme=True, front=False),
    Option("response_format, hot", left_alone(fixed(JSON)), HOT, tokens=2 * TOKENS, extreme=True, front=False),
    Option("echo", fixed({"echo": True})),
    Option("response_format", fixed(JSON), tokens=2 * TOKENS),
    Option("json_schema", schema(JSON_SCHEMA)),
    Option("tool_choice", fixed(CALLED), tokens=2 * TOKENS, talks=True),
    Option("json_schema, long", schema(JSON_LIST), tokens=3 * TOKENS, front=False),
    Option("regex", in_turn(*([words, {**words, **PENALTIES}] for words in WORDS_ALONE))),  # penalties beside a grammar
)


def biased_to(*tokens: int) -> Options:
    """Hardly any other token comes."""
    return {"logit_bias": {str(token): 100.0 for token in tokens}}


@dataclass(frozen=True)
class Setting:
    """Where the law itself is asked for. tokens: of a completion; choices: the most of a request; seeded: a request has
    a seed, where servers take one; also: what may be asked too, where servers take it; either: what is asked, in the
    words that servers take; lively: of these the one first whose answers differ most; by_prompt: what is asked instead
    at one prompt after another; talks: in chat, where both sides have one; ends: with a bias by which texts end;
    company: requests that are under way together."""

    name: str
    temperature: float
    options: Options
    tokens: int = 16
    choices: int = 16
    seeded: bool = True
    also: tuple[Options, ...] = ()
    either: tuple[Options, ...] = ()
    lively: bool = False
    by_prompt: tuple[Options, ...] = ({},)
    talks: bool = False
    ends: bool = False
    company: int = 1

    @property
    def forms(self) -> tuple[Options, ...]:
        """What its requests ask: the first of these that both sides take, and of which they give several texts."""
        return self.either or (*(self.options | more for more in self.also), self.options)


# As users ask; beside a `top_k` of few tokens these would cut nothing off.
WIDE, WIDER = ({"top_p": p, "top_k": None} for p in (0.9, 0.95))
TWO_IDS = (300, 301), (70, 71), (3, 4)  # the first tokens of many vocabularies are marks without a text
SAMPLED: tuple[Setting, ...] = (
    # As most requests are: many engines sample them by other code. Few tokens and many choices, here and in the next
    # two: after the same prefix a small part of the mass that is moved is seen, which no score sums up.
    Setting("temperature 1", 1.0, {}, tokens=6, choices=64, seeded=False),
    # As most chats are: engines render a chat, and begin its answer, by other code.
    Setting("temperature 0.7", 0.7, {}, tokens=6, choices=64, talks=True),
    Setting("top_k", 1.0, {"top_k": 3}, tokens=6, choices=64, by_prompt=(*valued("top_k", 3, 50, 3, 40, 3),)),
    # Not 1: which is applied first is then seen, of temperature and filter, and of two filters.
    Setting("top_p", 1.4, {"top_p": 0.6}, 6, 64, also=({"top_k": 8},), by_prompt=({}, WIDE, {}, WIDER, WIDE)),
    Setting("min_p", 1.7, {"min_p": 0.2}, by_prompt=(*valued("min_p", 0.2, 0.05, 0.2, 0.05, 0.1),)),
    # The text is nearly its coins. The first tokens of many vocabularies are marks without a text.
    Setting("logit_bias to two", 2.0, {}, 12, 64, either=tuple(biased_to(*two) for two in TWO_IDS), lively=True),
    Setting("penalties", 0.5, {"frequency_penalty": 0.5, "presence_penalty": 1.0}),  # for the same reason
    # A draft's rows are masked as the target's are.
    Setting("a grammar", 1.0, {}, either=(*MARKED_LETTERS, *WORDS_ALONE)),
    Setting("min_tokens", 1.7, {"min_tokens": 12}, tokens=24, ends=True),  # so many that some rounds end before it
    Setting("long", 1.0, {}, tokens=96, choices=16, also=({"ignore_eos": True},), company=4),  # as every benchmark asks
)
