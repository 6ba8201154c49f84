"""Somebody's program held to the conformance vectors of `exact/vectors.py`: JSON lines in, tokens out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from refengine.audit.sandbox.command import run
from refengine.commands.vectors_release import check_rules, question
from refengine.errors import BadInput
from refengine.exact.vectors import vectors


@dataclass(frozen=True)
class Mismatch:
    """A vector that came out differently."""

    vector: dict[str, Any]
    answer: Any

    def __str__(self) -> str:
        asked = {key: self.vector[key] for key in ("p", "q", "tokens", "parents", "uniforms")}
        return f"{self.vector['id']}: expected {self.vector['emitted']}, got {self.answer} for {json.dumps(asked)}"


def run_command(command: Sequence[str], rules: Sequence[str], seconds: float = 60.0) -> tuple[int, list[Mismatch]]:
    """Feed every vector, one JSON line each, to `command`; it answers each with a JSON list of the emitted tokens.

    Returns (vectors run, mismatches). Raises BadInput when the program can't be started, dies, hangs or does not speak
    JSON: that is no mismatch.
    """
    check_rules(rules)
    chosen = [vector for vector in vectors() if not rules or vector["rule"] in rules]
    answers = ask(command, [json.dumps(question(vector)) for vector in chosen], seconds)
    wrong = [Mismatch(v, a) for v, a in zip(chosen, answers, strict=True) if a != v["emitted"]]
    return len(chosen), wrong


def ask(command: Sequence[str], lines: Sequence[str], seconds: float) -> list[Any]:
    """One answer per line from a program that is stopped after `seconds`, with whatever it started."""
    printed = run(command, "".join(f"{line}\n" for line in lines).encode(), seconds)
    answers = printed.decode(errors="replace").splitlines()
    if len(answers) != len(lines):
        raise BadInput(f"{command[0]!r} gave {len(answers)} lines for {len(lines)} vectors")
    return [_parsed(command[0], answer) for answer in answers]


def _parsed(program: str, answer: str) -> Any:
    try:
        return json.loads(answer)
    except (json.JSONDecodeError, RecursionError):
        raise BadInput(f"{program!r} answered something that is not JSON: {answer[:60]!r}") from None
