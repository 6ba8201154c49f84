"""Lines of servers' logs. A line that is cut off is left out, and said.

vLLM, every ten seconds (vllm/v1/spec_decode/metrics.py):
    SpecDecoding metrics: ... Accepted: 25 tokens, Drafted: 28 tokens, Per-position acceptance rate: 0.929, 0.857, ...
llama.cpp, at the end of a request (ggml-org/llama.cpp #24536; older ones have no rates):
    draft acceptance = 0.64 (167 accepted / 259 generated), mean acceptance length = 2.92, acceptance rate per position
    = (0.805, 0.632, 0.483)

Rates have three decimals, so counts are whole numbers that have these rates and add up to the accepted tokens.
SGLang logs rates without counts (`accept len: 2.36, accept rate: 0.19`): nothing can be tested of them.
"""

import re
from math import ceil, floor

from refengine.audit.acceptance.rounds import Rounds, Told
from refengine.audit.acceptance.sources import Source
from refengine.errors import BadInput

VLLM = re.compile(
    r"SpecDecoding metrics:.*?Accepted: (\d+) tokens, Drafted: (\d+) tokens"
    r"(?:, Per-position acceptance rate: ([\d., ]+), Avg)?"
)
LLAMA = re.compile(
    r"draft acceptance(?: rate)? = +[\d.]+ \( *(\d+) accepted / +(\d+) generated\)"
    r"(?:, mean acceptance length = +[\d.]+, acceptance rate per position = \(([\d., ]*)\))?"
)
BEGUN = re.compile(r"SpecDecoding metrics:|slot .*draft acceptance(?: rate)? =")
SGLANG = re.compile(r"accept len: [\d.]+, accept rate: [\d.]+")
ROUNDING = 0.00051  # of a rate of three decimals


def read(text: str, where: str) -> list[Told]:
    """One model: logs do not name it."""
    parts, notes = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if found := VLLM.search(line) or LLAMA.search(line):
            rates = tuple(float(rate) for rate in (found[3] or "").split(",") if rate.strip())
            rounds = counts(rates, int(found[1]), int(found[2]))
            if rounds is None:
                raise BadInput(f"{where}, line {number}: no whole numbers have these rates and {found[1]} as their sum")
            parts.append(rounds.check(f"{where}, line {number}"))
        elif BEGUN.search(line):
            notes.append(f"Line {number} of {where} is cut off, and left out.")
    if not parts:
        raise BadInput(
            f"{where} has no whole line with counts of drafts"
            + (": SGLang's accept len and rate are none; keep the answers of /generate" if SGLANG.search(text) else "")
        )
    return [Told("", tuple(parts), requests=bool(LLAMA.search(text)), notes=tuple(notes))]


def counts(rates: tuple[float, ...], accepted: int, drafted: int) -> Rounds | None:
    """The fewest rounds that drafted so many tokens and can have these rates and so many accepted tokens; tokens alone
    where there are no rates. Of thousands of rounds the counts are right to within the rounding of the rates."""
    if not rates or not drafted:
        return Rounds((), None, drafted, accepted)
    fewest = max(-(-drafted // len(rates)), int(accepted / sum(rate + ROUNDING for rate in rates)))
    for count in range(fewest, drafted + 1):
        least = [ceil(max(0.0, rate - ROUNDING) * count) for rate in rates]
        most = [min(count, floor((rate + ROUNDING) * count)) for rate in rates]
        kept = [min(max(round(rate * count), low), high) for rate, low, high in zip(rates, least, most, strict=True)]
        left = accepted - sum(kept)
        if all(low <= high for low, high in zip(least, most, strict=True)) and sum(least) <= accepted <= sum(most):
            for i in range(len(rates)) if left > 0 else reversed(range(len(rates))):
                moved = min(max(left, least[i] - kept[i]), most[i] - kept[i])
                kept[i], left = kept[i] + moved, left - moved
            return Rounds(tuple(kept), count, drafted, accepted)
    return None


def matches(text: str) -> bool:
    return bool(BEGUN.search(text) or LLAMA.search(text) or SGLANG.search(text))


SOURCE = Source("lines of a server's log", matches, read)
