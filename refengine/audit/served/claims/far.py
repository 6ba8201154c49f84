"""The claim about every plain request: none has another text with speculation where plain decoding was sure.

A defect that shows in one request of twenty stays below the share of ties that each claim allows, and a prompt here and
there proves nothing by itself. Rounding excuses a parting only where the two tokens are close. Where every token of
plain decoding is the likeliest of its row, the rows decide, and a parting that is many times farther from a tie than
rounding was seen to reach is no accident of numerics: looks of all claims are counted together, a prompt that strayed
once no more.
"""

from collections.abc import Sequence
from typing import Any

from refengine.audit.served.ask import Answer, Ask
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.options import FILTERS
from refengine.audit.served.claims.ties import FRONT_END, margin

ANY_REQUEST = "state/any request"  # the claim that looks for it
# Options that move no row, or set a token apart; at temperature 0 filters do neither.
NEUTRAL = {*FRONT_END, *FILTERS, "n", "ignore_eos", "min_tokens", "stop", "stop_token_ids"}


def count_far(bench: Bench, ask: Ask, pairs: Sequence[tuple[Answer, Answer]], witness: dict[str, Any]) -> None:
    """One look: the pairs of answers to that request that parted, with speculation alone."""
    if not bench.noise.decides or ask.temperature or ask.options.keys() - NEUTRAL:
        return
    margins = [margin(one.choices[0], other.choices[0]) or 0.0 for one, other in pairs]
    bench.keep_far(ask.turns, max(margins, default=0.0) > bench.noise.far, witness)
