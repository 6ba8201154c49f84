"""Whether two texts at temperature 0 part at a tie: told by rows, or by the side without speculation at a temperature
that is nearly 0.

There a token that is m nats behind the likeliest comes with odds exp(-m / TEMPERATURE), so that among some choices a
near tie shows itself and a token that is a nat behind does not. It needs no rows, and the request keeps its parameters.

Then the claim about every plain request: none has another text with speculation where plain decoding was sure. A defect
that shows in one request of twenty stays below the share of ties that each claim allows, and a prompt here and there
proves nothing by itself. Where every token of plain decoding is the likeliest of its row, the rows decide, and a
parting that is many times farther from a tie than rounding was seen to reach is no accident of numerics: looks of all
claims are counted together, a prompt that strayed once no more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from refengine.audit.served.ask import STOPPED, Answer, Ask, Choice, Row
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.options import FILTERS
from refengine.audit.served.claims.scores import pieces
from refengine.audit.served.faults import stops
from refengine.audit.served.noise import NATS
from refengine.evidence.ties import tied as within

TEMPERATURE = 0.1  # a margin of 0.25 nats, two steps of bfloat16 at logits of 16 to 32, has odds of one in twelve
FRONT_END = ("logprobs", "echo", "stream_options")  # options that change no token
MEMORYLESS = ("ignore_eos", "logit_bias", "allowed_token_ids")  # that mean the same in the middle of a text
TRIES, SEEDS_APART = 4, 1000  # where no rows tell, and every choice has to come through the ties before
LEAST_CHOICES = 16  # that are asked for, in one request or in many
MOST_REQUESTS, AT_ONCE = 16, 2  # of a server that gives one choice a request
FORCED = 4  # tokens that are asked for after the text that both have in common
ANY_REQUEST = "state/any request"  # the claim that looks for what is far from any tie
# Options that move no row, or set a token apart; at temperature 0 filters do neither.
NEUTRAL = {*FRONT_END, *FILTERS, "n", "ignore_eos", "min_tokens", *STOPPED}


def parted(on: Answer, off: Answer) -> bool:
    return on.outcome() != off.outcome()


def tied(one: Answer, other: Answer, nats: float) -> bool:
    """Whether rows say of two answers that they part at a tie."""
    return ties(one.choices[0], other.choices[0], nats) is True


def ties(on: Choice, off: Choice, nats: float) -> bool | None:
    """Whether the first two tokens that differ are as close in the second row; None where no row says."""
    if on.tokens is None or off.tokens is None or not off.top:
        return None
    mine, theirs, row = _part(on, off)
    return mine in row and theirs in row and within(row[theirs] - row[mine], 0.0, nats)


def margin(on: Choice, off: Choice) -> float | None:
    """How many nats, at least, the second row prefers its own token by where they part; None where no row says."""
    mine, theirs, row = _part(on, off)
    return row[theirs] - row.get(mine, min(row.values())) if theirs in row else None


def _part(on: Choice, off: Choice) -> tuple[str, str, Row]:
    """The first two tokens that differ, and the second row there: {} where there is none."""
    tokens = enumerate(zip(on.tokens or (), off.tokens or (), strict=False))
    i, (mine, theirs) = next(((i, pair) for i, pair in tokens if pair[0] != pair[1]), (0, ("", "")))
    return mine, theirs, off.top[i] if mine != theirs and off.top and i < len(off.top) else {}


def asked_tie(bench: Bench, ask: Ask, on: Answer, off: Answer) -> bool:
    """Whether the side without speculation, nearly at temperature 0, goes on as the other did where they part; False
    where it gives one answer to all that ask. Raises Refused, Failed."""
    if bench.choices == 1 and not bench.samples:
        return False
    prompt = ask.turns[0] if ask.options.get("echo") else ""
    here, there = (pieces(said.text.removeprefix(prompt)) for said in (on, off))
    i = next((i for i, (x, y) in enumerate(zip(here, there, strict=False)) if x != y), min(len(here), len(there)))
    options = {name: value for name, value in ask.options.items() if name not in (*FRONT_END, "n")}
    temperature = TEMPERATURE * min(1.0, bench.noise.tie / NATS)
    warm = replace(ask, temperature=temperature, options={**options, **bench.several}, stream=False, seed=i)
    common = "".join(here[:i])
    # Behind the prompt, a text that lost its first blank makes another word of the last one.
    joins = not common or common[0].isspace()
    if joins and not options.keys() - set(MEMORYLESS) and not ask.chat and not ask.prompt_ids and len(ask.turns) == 1:
        warm = replace(warm, turns=(ask.turns[0] + common,), tokens=min(FORCED, max(1, ask.tokens - i)))
        here = here[i:]
        i = 0
    if i < len(here):
        reach = len("".join(here[:i])) + max(map(len, stops(ask)), default=0)  # from where no stop would have ended it
        while i + 1 < len(here) and len("".join(here[: i + 1])) < reach:
            i += 1
    for answer in _warm_answers(bench, warm, through=i > 0 and not bench.logprobs):
        said = [(pieces(choice.text), choice.finish) for choice in answer.choices]
        if i < len(here) and any(words[: i + 1] == here[: i + 1] for words, _ in said):
            return True
        if i == len(here) and (here, on.choices[0].finish) in said:
            return True
    return False


def _warm_answers(bench: Bench, warm: Ask, through: bool) -> Iterator[Answer]:
    """As many as it takes to have some choices. through: ties before this one take choices away, unless the text up to
    here is the prompt."""
    requests = min(MOST_REQUESTS, -(-LEAST_CHOICES // bench.choices) * (TRIES if through else 1))
    asks = [replace(warm, seed=(warm.seed or 0) + again * SEEDS_APART) for again in range(requests)]
    at_once = AT_ONCE if bench.choices == 1 and bench.together else 1
    for first in range(0, requests, at_once):
        yield from bench.without(asks[first : first + at_once])


def count_far(bench: Bench, ask: Ask, pairs: Sequence[tuple[Answer, Answer]], witness: dict[str, Any]) -> None:
    """One look: the pairs of answers to that request that parted, with speculation alone."""
    if not bench.noise.decides or ask.temperature or ask.options.keys() - NEUTRAL:
        return
    margins = [margin(one.choices[0], other.choices[0]) or 0.0 for one, other in pairs if parted(one, other)]
    bench.keep_far((*ask.turns, *map(str, ask.prompt_ids)), max(margins, default=0.0) > bench.noise.far, witness)
