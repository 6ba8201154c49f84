"""What `refengine decode` is asked for, and what is wrong with it. Nothing here imports torch."""

import math
from dataclasses import dataclass
from pathlib import Path

from refengine.errors import BadInput
from refengine.exact.rules import RULES

MOST = 1e30  # of a penalty: with a logit it is still a number of float32


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    rule  None: the ratio rule where drafts are drawn, point_mass where not
    load  of DSpark's scheduler: the curve as ROWS:SECONDS pairs, commas between
    slots  given: bitwise decoding of texts of up to so many tokens, drafts included
    markov  False: DSpark's Markov head is switched off; None: as the checkpoint has it
    chat  the prompt is a user's message, put into words by the template of the target's tokenizer
    """

    target: Path
    drafter: Path
    prompt: str
    max_new_tokens: int = 64
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    rule: str | None = None
    gamma: int | None = None
    seed: int = 0
    dtype: str = "float32"
    device: str = "cpu"
    ngram: Path | None = None
    load: str | None = None
    slots: int | None = None
    chat: bool = False
    markov: bool | None = None


def check(request: Request) -> None:
    """Options that no file can contradict. Raises BadInput."""
    if request.rule is not None and request.rule not in RULES:
        raise BadInput(f"--rule {request.rule}: one of {', '.join(RULES)}")
    if request.rule is not None and RULES[request.rule].law == "argmax" and request.temperature:
        raise BadInput(f"--rule {request.rule} emits the argmax at any temperature: give --temperature 0")
    if request.max_new_tokens < 1:
        raise BadInput(f"--max-new-tokens {request.max_new_tokens} is not positive")
    if request.slots is not None and request.slots < 1:
        raise BadInput(f"--slots {request.slots} is not positive")
    if not 0 <= request.temperature < math.inf:
        raise BadInput(f"--temperature {request.temperature} is negative or not finite; 0 is greedy")
    if request.top_k is not None and not 1 <= request.top_k < 1 << 31:
        raise BadInput(f"--top-k {request.top_k}: one token at least is kept, and fewer than 2^31")
    if request.top_p is not None and not 0 < request.top_p <= 1:
        raise BadInput(f"--top-p {request.top_p} is not a share of the mass: above 0, at most 1")
    if request.min_p is not None and not 0 <= request.min_p <= 1:
        raise BadInput(f"--min-p {request.min_p} is not a share of the heaviest token's probability: 0 to 1")
    if request.repetition_penalty is not None and not 1 / MOST < request.repetition_penalty < MOST:
        raise BadInput(
            f"--repetition-penalty {request.repetition_penalty} is not positive and finite; 1 changes nothing"
        )
    for name in ("presence_penalty", "frequency_penalty"):
        if not abs(getattr(request, name) or 0.0) < MOST:
            raise BadInput(f"--{name.replace('_', '-')} {getattr(request, name)} is not finite; 0 changes nothing")
    if request.gamma is not None and request.gamma < 1:
        raise BadInput(f"{request.gamma} drafted tokens a round: there must be one")
    if not 0 <= request.seed < 1 << 64:
        raise BadInput(f"--seed {request.seed} is outside 0 .. 2^64 - 1")
