"""Answers of a server, as JSON or a line each: what they say of the request's own speculation, wherever it stands.

vLLM (docs/features/speculative_decoding/acceptance_metrics.md, `--per-request-spec-decode-metrics`):
    metrics.speculative_decoding: acceptance_histogram_by_draft_length {k: [rounds that accepted j of k]}, or
    acceptance_histogram [rounds that accepted j], num_draft_tokens
SGLang (meta_info of /generate): spec_accept_histogram or spec_correct_drafts_histogram, spec_draft_token_num or
    spec_num_proposed_drafts
llama.cpp, mlx-vlm (timings): draft_n, draft_n_accepted: tokens alone
"""

import json
from collections.abc import Iterator
from typing import Any

from refengine.audit.acceptance.rounds import Rounds, Told
from refengine.audit.acceptance.sources import Source
from refengine.errors import BadInput

BY_LENGTH, VLLM = "acceptance_histogram_by_draft_length", "acceptance_histogram"
SGLANG = ("spec_correct_drafts_histogram", "spec_accept_histogram")
SGLANG_TOKENS = ("spec_num_proposed_drafts", "spec_draft_token_num")
LLAMA = ("draft_n", "draft_n_accepted")


def read(text: str, where: str) -> list[Told]:
    """Raises BadInput for a line in the middle that is no JSON; a last one that is cut off is left out, and said."""
    told, notes = values(text, where)
    parts: dict[str, list[Rounds]] = {}
    for number, value in enumerate(told, 1):
        model = value.get("model", "") if isinstance(value, dict) else ""
        found = [_rounds(inside, f"{where}, answer {number}") for inside in inside(value)]
        parts.setdefault(str(model), []).extend(rounds for rounds in found if rounds is not None)
    return [Told(model, tuple(found), requests=True, notes=notes) for model, found in parts.items() if found]


def values(text: str, where: str) -> tuple[list[Any], tuple[str, ...]]:
    try:
        whole = json.loads(text)
        return (whole if isinstance(whole, list) else [whole]), ()
    except ValueError:
        pass
    values: list[Any] = []
    lines = [line for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            values.append(json.loads(line))
        except ValueError:
            if number < len(lines):
                raise BadInput(f"{where}, line {number} is no JSON: {line[:60]!r}") from None
            return values, (f"The last line of {where} is cut off, and left out.",)
    return values, ()


def inside(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a value, itself first."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from inside(part)


def _rounds(value: dict[str, Any], where: str) -> Rounds | None:
    """What an object tells; None where it tells nothing. Raises BadInput for what is no count."""
    try:
        if value.get(BY_LENGTH):
            return by_length({int(k): list(map(int, row)) for k, row in value[BY_LENGTH].items()}).check(where)
        names = [name for name in (VLLM, *SGLANG) if value.get(name)]
        if names:
            histogram = list(map(int, value[names[0]]))
            whole = by_length({len(histogram) - 1: histogram})
            drafted = [value[n] for n in ("num_draft_tokens", *SGLANG_TOKENS) if isinstance(value.get(n), int)]
            tokens = drafted[0] if drafted else whole.drafted
            if tokens > whole.drafted:  # a histogram that ends with what was reached, or a tree
                depth = -(-tokens // max(whole.count or 1, 1))
                whole = by_length({depth: histogram + [0] * (depth + 1 - len(histogram))})
            return Rounds(whole.kept, whole.count, tokens, whole.accepted).check(where)
        if all(isinstance(value.get(name), int) for name in LLAMA):
            return Rounds((), None, value["draft_n"], value["draft_n_accepted"]).check(where)
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{where}: what it says of speculation is no count: {error}") from None
    return None


def by_length(rows: dict[int, list[int]]) -> Rounds:
    """Of histograms: rows[k][j] rounds drafted k tokens and accepted j of them."""
    depth = max(rows)
    kept = tuple(sum(sum(row[i + 1 :]) for row in rows.values()) for i in range(depth))
    count = sum(sum(row) for k, row in rows.items() if k)
    return Rounds(kept, count, sum(k * sum(row) for k, row in rows.items()), sum(kept))


def matches(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[") and any(name in text for name in (VLLM, *SGLANG, LLAMA[1]))


SOURCE = Source("answers with their own metrics", matches, read)
