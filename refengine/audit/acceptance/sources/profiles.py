"""Profiles: `speculation_profile.json` of a draft checkpoint (NVIDIA/Model-Optimizer #2247).

A profile of a checkpoint has rates, and counts where it has acceptance_length_histogram: rounds by the tokens that they
emitted, the undrafted one included.
"""

import json
from typing import Any

from refengine.audit.acceptance.rounds import Told
from refengine.audit.acceptance.sources import Source
from refengine.audit.acceptance.sources.answers import by_length
from refengine.errors import BadInput

RATES, HISTOGRAM = "conditional_accept_rates", "acceptance_length_histogram"


def read(text: str, where: str) -> list[Told]:
    """Raises BadInput for a profile that was not measured, or has rates alone."""
    try:
        told: dict[str, Any] = json.loads(text)
        if told.get("measured") is False:
            raise BadInput(f"{where} is a stub: nothing was measured")
        if not told.get(HISTOGRAM):
            raise BadInput(f"{where} has rates without counts: it can be what is due (--golden), and cannot be audited")
        lengths = {int(length): int(rounds) for length, rounds in told[HISTOGRAM].items()}
        depth = int(told.get("num_speculative_tokens") or max(lengths) - 1)
        row = [lengths.get(accepted + 1, 0) for accepted in range(depth + 1)]
        if sum(row) != sum(lengths.values()):
            raise BadInput(f"{where}: its histogram has lengths that {depth} drafts cannot have")
        return [Told(str(told.get("target_model") or ""), (by_length({depth: row}).check(where),))]
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{where} is no speculation profile: {error}") from None


def matches(text: str) -> bool:
    return text.lstrip()[:1] == "{" and ('"schema_version"' in text or f'"{RATES}"' in text) and '"measured"' in text


SOURCE = Source("a speculation profile", matches, read)
