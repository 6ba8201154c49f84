"""What is wrong with one answer by itself: its metadata against its text, and its text against what was asked.

Each check returns True where the fault shows, False where it could have and does not, None where it does not apply.
Servers differ in their conventions, so a fault counts only as far as the same server without speculation is free of it
(belief.py).
"""

from collections.abc import Callable, Mapping
from math import exp, inf, isfinite, log
from typing import Any

from refengine.audit.served.ask import INCLUDED, LISTED, STOPPED, Answer, Ask, Choice, Row, listed
from refengine.audit.served.grammar import ungrammatical
from refengine.audit.served.noise import ROUNDING

FEW_ROWS = 4  # that are all alike by no accident
ENDERS = {*STOPPED, "response_format", "tools"}  # options by which a text ends before its length
TOP_ENTRIES = LISTED + 1  # of a row, with the token itself
TIE_NATS = 0.1  # a tie in half precision is closer
Check = Callable[[Ask, Answer], bool | None]


def faults(ask: Ask, answer: Answer) -> dict[str, bool]:
    """By the name of the fault, whether it shows; only what applies."""
    found = {name: check(ask, answer) for name, check in CHECKS.items()}
    return {name: shows for name, shows in found.items() if shows is not None}


def stops(ask: Ask) -> tuple[str, ...]:
    told = ask.options.get("stop") or ()
    return (told,) if isinstance(told, str) else tuple(told)


def limit(ask: Ask) -> int:
    """The most tokens of an answer, by whichever name."""
    return min(ask.tokens, int(ask.options.get("max_completion_tokens", ask.tokens)))


def _choices(test: Callable[[Ask, Choice], bool | None]) -> Check:
    """The check of one choice on all of them."""

    def check(ask: Ask, answer: Answer) -> bool | None:
        found = [shows for choice in answer.choices if (shows := test(ask, choice)) is not None]
        return any(found) if found else None

    return check


def _usage_differs(ask: Ask, answer: Answer) -> bool | None:
    told = answer.usage.get("completion_tokens")
    if told is None or any(choice.tokens is None for choice in answer.choices):
        return None
    return bool(told != sum(len(choice.tokens or ()) for choice in answer.choices))


def _no_usage(ask: Ask, answer: Answer) -> bool | None:
    """Of a stream only where it was asked for."""
    asked = not ask.stream or "stream_options" in ask.options
    return "completion_tokens" not in answer.usage if asked else None


def _total_differs(ask: Ask, answer: Answer) -> bool | None:
    parts = [answer.usage.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
    return None if None in parts else bool(parts[0] + parts[1] != parts[2])  # type: ignore[operator]


def _too_long(ask: Ask, answer: Answer) -> bool | None:
    told = answer.usage.get("completion_tokens")
    counts = [len(choice.tokens) for choice in answer.choices if choice.tokens is not None]
    if told is not None:
        counts.append(-(-int(told) // len(answer.choices)))
    return max(counts) > ask.tokens if counts else None


def _length_without_reason(ask: Ask, answer: Answer) -> bool | None:
    """It says that the length ended it although fewer tokens came."""
    if len(answer.choices) != 1 or answer.choices[0].finish is None:
        return None
    told = answer.usage.get("completion_tokens")
    count = told if told is not None else len(answer.choices[0].tokens or ()) or None
    return None if count is None else answer.choices[0].finish == "length" and bool(count < limit(ask))


def _stop_without_reason(ask: Ask, choice: Choice) -> bool | None:
    """It says that something ended it where the length did: the last token that may come is a part of the text."""
    if not choice.tokens or ENDERS & ask.options.keys() or ask.options.get("echo"):
        return None
    whole = choice.tokens[-1].strip() and choice.text.rstrip().endswith(choice.tokens[-1].strip())
    return choice.finish == "stop" and len(choice.tokens) == limit(ask) and bool(whole)


def _no_reason(ask: Ask, choice: Choice) -> bool:
    return choice.finish is None


def _wrong_count(ask: Ask, answer: Answer) -> bool:
    return len(answer.choices) != (1 + len(ask.more)) * int(ask.options.get("n", 1))


def _past_stop(ask: Ask, choice: Choice) -> bool | None:
    """The text holds a stop string that it should have ended before, or with."""
    text = choice.text[:-1] if ask.options.get(INCLUDED) else choice.text
    return any(stop in text for stop in stops(ask)) if stops(ask) else None


def _tokens_past_stop(ask: Ask, choice: Choice) -> bool | None:
    """Tokens are reported beyond the one that completed the stop string."""
    if not stops(ask) or not choice.tokens:
        return None
    before = "".join(choice.tokens[:-1])
    return any(stop in before for stop in stops(ask))


def _past_stop_token(ask: Ask, choice: Choice) -> bool | None:
    """A token that ends the text is reported before the last one: after a minimum, if there is one."""
    told, least = ask.options.get("stop_token_ids"), int(ask.options.get("min_tokens", 0))
    return any(one in told for one in choice.ids[least:-1]) if told and choice.ids is not None else None


def _ended_early(ask: Ask, choice: Choice) -> bool | None:
    """By itself: whether a stop waits for the minimum is a convention."""
    least = ask.options.get("min_tokens")
    if least is None or choice.tokens is None or STOPPED & ask.options.keys():
        return None
    return len(choice.tokens) < int(least)


def _ended_by_itself(ask: Ask, choice: Choice) -> bool | None:
    """Before its length, with nothing but the end of text to end it, which it was told to pass over."""
    if not ask.options.get("ignore_eos") or choice.tokens is None or ENDERS & ask.options.keys():
        return None
    return choice.finish == "stop" and len(choice.tokens) < ask.tokens


def _banned(ask: Ask, choice: Choice) -> bool | None:
    words = [f" {word.strip()} " for word in ask.options.get("bad_words", ())]
    text = f" {' '.join(choice.text.split())} "
    return any(word in text for word in words) if words else None


def _tokens_not_text(ask: Ask, choice: Choice) -> bool | None:
    if choice.tokens is None or stops(ask) or ask.options.get("echo"):
        return None
    return "".join("".join(choice.tokens).split()) != "".join(choice.text.split())


def _logprob_impossible(ask: Ask, choice: Choice) -> bool | None:
    if not choice.logprobs:
        return None
    return any(chance is not None and not (isfinite(chance) and chance <= ROUNDING) for chance in choice.logprobs)


def _not_in_row(ask: Ask, choice: Choice) -> bool | None:
    """A token whose log probability is not the one in its row, or that should be in its row and is not."""
    if not choice.logprobs or not choice.top or choice.tokens is None or len(choice.top) != len(choice.tokens):
        return None
    rows = zip(choice.tokens, choice.logprobs, choice.top, strict=True)
    return any(_misplaced(token, chance, row) for token, chance, row in rows if row and chance is not None)


def _misplaced(token: str, chance: float, row: Row) -> bool:
    return abs(row[token] - chance) > ROUNDING if token in row else chance > min(row.values()) + ROUNDING


def _missing_from_row(ask: Ask, choice: Choice) -> bool | None:
    """Most servers list the token itself beside the likeliest; where they do not, this shows on both sides."""
    if not choice.tokens or not choice.top or len(choice.top) != len(choice.tokens):
        return None
    return any(row and token not in row for token, row in zip(choice.tokens, choice.top, strict=True))


def _no_logprobs(ask: Ask, choice: Choice) -> bool | None:
    return None in (choice.logprobs, choice.top) if ask.options.get("logprobs") and choice.text else None


def _no_ids(ask: Ask, choice: Choice) -> bool | None:
    return choice.ids is None if ask.options.get("return_token_ids") and choice.text else None


def _uneven(ask: Ask, choice: Choice) -> bool | None:
    if not choice.tokens:
        return None
    return any(told is not None and len(told) != len(choice.tokens) for told in (choice.logprobs, choice.top))


def _short_row(ask: Ask, choice: Choice) -> bool | None:
    """Of a vocabulary of some tokens there is always another to list; the first token of an echo has no row."""
    rows = (choice.top or ())[1 if ask.options.get("echo") else 0 :]
    least = listed(ask.options.get("logprobs", True))
    return any(len(row) < least for row in rows) if rows else None


def _shared_rows(ask: Ask, answer: Answer) -> bool | None:
    """A choice that went on otherwise reports the very rows of the first one: after other tokens a row is another."""
    first, *others = answer.choices
    found = [told for other in others if (told := _same_rows(first, other)) is not None]
    return any(found) if found else None


def _same_rows(one: Choice, other: Choice) -> bool | None:
    """None where too few rows stand behind tokens that differ."""
    if not (one.tokens and one.top and other.tokens and other.top):
        return None
    length = min(map(len, (one.tokens, one.top, other.tokens, other.top)))
    parted = next((i for i in range(length) if one.tokens[i] != other.tokens[i]), length)
    rows = list(zip(one.top, other.top, strict=False))[parted + 1 : length]
    if len(rows) < FEW_ROWS:
        return None
    return all(mine and theirs and max(mine.values()) == max(theirs.values()) for mine, theirs in rows)


def _row_above_one(ask: Ask, choice: Choice) -> bool | None:
    rows = [row for row in choice.top or () if row]
    masses = [sum(exp(min(chance, 1.0)) for chance in row.values()) for row in rows]
    return max(masses) > 1 + ROUNDING * TOP_ENTRIES if masses else None


def _not_the_likeliest(ask: Ask, choice: Choice) -> bool | None:
    """At temperature 0, with nothing that moves the logits, a token below the top of its own row."""
    if ask.temperature > 0 or set(ask.options) - {"logprobs", "n", "stop"} or not choice.logprobs or not choice.top:
        return None
    return any(chance < max(row.values()) - TIE_NATS for chance, row in _chances(choice))


def _chances(choice: Choice) -> list[tuple[float, Row]]:
    """The log probability of each token that has one, and its row."""
    pairs = zip(choice.logprobs or (), choice.top or (), strict=False)
    return [(chance, row) for chance, row in pairs if row and chance is not None]


def _filtered_out(ask: Ask, choice: Choice) -> bool | None:
    """A sampled token that top_k or min_p leaves no chance, by its own row: whether that is the row before or after the
    temperature, and whichever of the two comes first. By top_p it cannot be told where a row is cut off."""
    if ask.temperature <= 0 or set(ask.options) - {"logprobs", "n", "top_k", "min_p"}:
        return None
    most, share, told = ask.options.get("top_k", 0), ask.options.get("min_p", 0.0), _chances(choice)
    if not told or not (0 < most < LISTED or share > 0):
        return None
    depth = log(share) * max(1.0, ask.temperature) if share > 0 else -inf
    return any(
        chance < max(row.values()) + depth - TIE_NATS
        or 0 < most <= sum(other > chance + TIE_NATS for other in row.values())
        for chance, row in told
    )


CHECKS: Mapping[str, Check] = {
    "usage is not the number of tokens": _usage_differs,
    "no usage": _no_usage,
    "usage does not add up": _total_differs,
    "more tokens than max_tokens": _too_long,
    "finish_reason says length before the length": _length_without_reason,
    "no finish_reason": _choices(_no_reason),
    "finish_reason is stop, and its length ended it": _choices(_stop_without_reason),
    "another number of choices than n": _wrong_count,
    "text holds a stop string": _choices(_past_stop),
    "tokens are reported past the stop string": _choices(_tokens_past_stop),
    "tokens are reported past the stop token": _choices(_past_stop_token),
    "fewer tokens than min_tokens": _choices(_ended_early),
    "it ended by itself with ignore_eos": _choices(_ended_by_itself),
    "a banned word is emitted": _choices(_banned),
    "a text is none that its grammar allows": _choices(ungrammatical),
    "the reported tokens are not the text": _choices(_tokens_not_text),
    "a log probability is above 0 or no number": _choices(_logprob_impossible),
    "a token's log probability is not that of its row": _choices(_not_in_row),
    "a token is missing from its row": _choices(_missing_from_row),
    "no log probabilities": _choices(_no_logprobs),
    "no token ids": _choices(_no_ids),
    "tokens, log probabilities and rows are not as many": _choices(_uneven),
    "a row lists fewer tokens than were asked for": _choices(_short_row),
    "a choice reports the rows of another": _shared_rows,
    "the probabilities of a row exceed 1": _choices(_row_above_one),
    "a greedy token is not the likeliest of its row": _choices(_not_the_likeliest),
    "a sampled token is one that a filter leaves no chance in its row": _choices(_filtered_out),
}


OF_THE_TEXT = (_past_stop, _past_stop_token, _ended_early, _banned, ungrammatical)


def contradicts(ask: Ask, answer: Answer) -> bool:
    """Whether a text is none that the request allows."""
    return any(test(ask, choice) for test in OF_THE_TEXT for choice in answer.choices)


MOST_SHOWN = 7  # choices besides the first


def shown(answer: Answer) -> dict[str, Any]:
    """An answer as a witness shows it."""
    choice, *others = answer.choices
    said = {"text": choice.text, "finish_reason": choice.finish, "usage": dict(answer.usage)}
    return said | ({"other choices": [[c.text, c.finish] for c in others[:MOST_SHOWN]]} if others else {})
