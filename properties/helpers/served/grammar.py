"""The grammar of the test servers: JSON in words of its own, which stand behind the forty of the chain."""

from collections.abc import Sequence
from typing import Any

DIGITS = tuple("0123456789")
JSON = ("{", "}", "[", "]", ":", ",", '"a"', '"b"', *DIGITS)


def form_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of a request; None where it asks for no JSON."""
    if "tool_choice" in body:
        return dict(body["tools"][0]["function"]["parameters"])
    told = body.get("response_format") or {}
    if "json_schema" in told:
        return dict(told["json_schema"]["schema"])
    return {"type": "any"} if told.get("type") == "json_object" else None


def following(form: dict[str, Any], said: Sequence[str]) -> Sequence[str]:
    """The words that may come next, "" for the end; values are digits."""
    last = said[-1] if said else ""
    if form["type"] == "array":
        if last in DIGITS:
            return ("]",) if sum(word in DIGITS for word in said) == form["minItems"] else (",",)
        return {"": ("[",), "]": ("",)}.get(last, DIGITS)
    if last in DIGITS:
        return ("}",) if form["type"] == "object" else (",", "}")
    names = ('"a"',) if form["type"] == "object" else ('"a"', '"b"')
    return {"": ("{",), "{": names, ",": names, ":": DIGITS, "}": ("",)}.get(last, (":",))
