"""Prometheus text: counters of vLLM (`vllm:`) and of llama.cpp's server (`llamacpp:`), which have the same names.

    spec_decode_num_drafts_total                   rounds that drafted
    spec_decode_num_draft_tokens_total             tokens drafted
    spec_decode_num_accepted_tokens_total          tokens accepted, without the bonus
    spec_decode_num_accepted_tokens_per_pos_total  {position="i"}: rounds that accepted at least i + 1 tokens

vllm/v1/spec_decode/metrics.py; ggml-org/llama.cpp #26389. Series that differ in other labels than the model (engine,
slot, rank) are added up. SGLang exposes gauges of rates (`sglang:spec_accept_rate`), of which no number can be tested.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

from refengine.audit.acceptance.rounds import Rounds, Told
from refengine.audit.acceptance.sources import Source
from refengine.errors import BadInput

SAMPLE = re.compile(r"^(?:vllm|llamacpp):spec_decode_num_(\w+?)(_total)?(?:\{(.*)\})?\s+(\S+)(?:\s+\d+)?$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
DRAFTS, TOKENS, ACCEPTED, BY_POSITION = "drafts", "draft_tokens", "accepted_tokens", "accepted_tokens_per_pos"
Series: TypeAlias = dict[tuple[str, str], float]  # (name, labels) -> value


def series(text: str, where: str) -> Series:
    """Every sample of speculation. Raises BadInput for a line that is cut off."""
    found: Series = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not re.match(r"(vllm|llamacpp):spec_decode_num_", line):
            continue
        sample = SAMPLE.match(line.strip())
        try:
            if sample is None or (value := float(sample[4])) != value:
                raise ValueError
        except ValueError:
            raise BadInput(f"{where}, line {number} is no whole sample of a counter: {line[:80]!r}") from None
        found[sample[1], sample[3] or ""] = value
    return found


def since(text: str, before: str, where: str) -> str:
    """The text of what was counted in between. Raises BadInput where the server was started in between."""
    now, then = series(text, where), series(before, where)
    for (name, labels), value in then.items():
        later = now.get((name, labels))
        restarted = name.endswith("_created") and later != value
        if later is None or later < value or restarted:
            what = "is gone" if later is None else f"went from {value:.0f} to {later:.0f}"
            raise BadInput(
                f"{where}: {name}{{{labels}}} {what}, so the server was started again in between: leave --since away"
            )
    return "\n".join(
        f"vllm:spec_decode_num_{name}_total{{{labels}}} {value - then.get((name, labels), 0.0)}"
        for (name, labels), value in now.items()
        if not name.endswith("_created")
    )


def read(text: str, where: str) -> list[Told]:
    """One for each model."""
    sums: defaultdict[str, defaultdict[tuple[str, int], float]] = defaultdict(lambda: defaultdict(float))
    others: defaultdict[str, set[str]] = defaultdict(set)
    for (name, told), value in series(text, where).items():
        labels = dict(LABEL.findall(told))
        if not name.endswith("_created"):
            model = labels.pop("model_name", "")
            position = labels.pop("position", "0")
            if not position.isdigit():
                raise BadInput(f"{where}: {position!r} is no position of a draft")
            sums[model][name, int(position)] += value
            others[model].add(", ".join(f"{key} {label}" for key, label in sorted(labels.items())))
    return [_model(model, counted, others[model], where) for model, counted in sums.items()]


def _model(model: str, counted: Mapping[tuple[str, int], float], others: set[str], where: str) -> Told:
    for name in (TOKENS, ACCEPTED):
        if (name, 0) not in counted:
            raise BadInput(f"{where} has no spec_decode_num_{name}_total of the model {model!r}")
    positions = sorted(position for name, position in counted if name == BY_POSITION)
    if positions != list(range(len(positions))):
        missing = next(i for i, position in enumerate([*positions, -1]) if i != position)
        raise BadInput(f"{where} has counters of {len(positions)} positions, and none of position {missing}")
    kept = tuple(round(counted[BY_POSITION, position]) for position in positions)
    drafts = round(counted[DRAFTS, 0]) if (DRAFTS, 0) in counted else None
    rounds = Rounds(kept if drafts is not None else (), drafts, round(counted[TOKENS, 0]), round(counted[ACCEPTED, 0]))
    notes = [f"The sum of {len(others)} series: {'; '.join(sorted(others))}."] if len(others) > 1 else []
    twice = (sum(kept), rounds.accepted) if rounds.kept else None
    return Told(model, (rounds.check(where),), notes=tuple(notes), twice=twice)


def matches(text: str) -> bool:
    if re.search(r"^(vllm|llamacpp):spec_decode_num_", text, re.M):
        return True
    if re.search(r"^sglang:spec_accept_(rate|length)", text, re.M):
        raise BadInput(
            "SGLang's sglang:spec_accept_rate and _length are rates without counts, of which nothing can be tested:"
            " keep the answers of /generate, whose meta_info counts"
        )
    return False


SOURCE = Source("counters of Prometheus", matches, read, since)
