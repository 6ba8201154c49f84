"""What the two sides take, found out by asking once for each, and how far an honest pair would part here."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from refengine.audit.served.ask import Answer, Ask, Failed, Gone, Refused, Seedless
from refengine.audit.served.belief import Partings
from refengine.audit.served.bench import FAR_SHARE, Bench
from refengine.audit.served.claims.cells import FEW_TOKENS
from refengine.audit.served.claims.compare import logprobs_apart
from refengine.audit.served.claims.found_ids import shown_tokens
from refengine.audit.served.claims.options import TOKENS, Options
from refengine.audit.served.claims.sampled import CHOICES
from refengine.audit.served.claims.schedules.prompts import as_ids
from refengine.audit.served.claims.takes import LONG, Takes
from refengine.audit.served.claims.ties import FORCED, TEMPERATURE, asked_tie, parted, tied
from refengine.audit.served.noise import CLOSE, NOISE_PROMPTS, ROUNDING, Noise

NOISE_COMPANY = 5  # prompts that are asked together, to see what company does to a text
DIGITS, EXACT = 6, 1e-9  # behind the point that are told apart in print; what a printed number may miss its digits by
MOST_CHOICES = 16  # of requests whose answers are longer than a few tokens
WARM = 4  # prompts, at half of which a server that honours a temperature near 0 begins as at 0
IDS: Options = {"return_token_ids": True}
STREAM_USAGE: Options = {"stream_options": {"include_usage": True}}


def found_out(bench: Bench) -> Takes:
    """Asks both sides; the bench learns what its requests may have from here on. Raises Gone."""
    first = Ask((bench.prompt(0),), FEW_TOKENS)
    seed = _seeds(bench)
    bench.logprobs, rows = _reports(bench)
    if rows:  # else a tie may have spelt one text in other tokens
        bench.alike = {name: Partings(FAR_SHARE) for name in bench.alike}
    stream = bench.accepts(replace(first, options=STREAM_USAGE, stream=True))
    bench.stream_usage = STREAM_USAGE if stream else {}
    stream = stream or bench.accepts(replace(first, stream=True))
    chat = bench.accepts(replace(first, chat=True))
    choices = tuple(n for n in CHOICES if _gives(bench, n))
    bench.choices = max((n for n in choices if n <= MOST_CHOICES), default=1)
    bench.samples = not choices and _samples(bench)
    listed = _answers(bench, replace(first, options=IDS))
    bench.ids = IDS if listed and all(answer.choices[0].ids for answer in listed) else {}
    bench.noise = measured(bench)
    bench.vocabulary = max(bench.vocabulary, shown_tokens([*chain(*bench.plain_answers.values()), *listed]))
    bench.prompt_ids = bool(bench.ids) and bench.accepts(replace(as_ids(bench, 0), tokens=FEW_TOKENS))
    most = max(choices, default=1)
    equal = [k for k in CHOICES if k * most <= CHOICES[0]] if choices or _refuses(bench) else []
    return Takes(
        rows,
        seed,
        chat,
        stream,
        choices,
        equal_prompts=tuple(k for k in equal if _gives(bench, most, prompts=k)),
        lists=bool(choices) and bench.accepts(replace(first, more=(bench.prompt(1),))),
        ids=bench.prompt_ids,
        together=bench.together,
        long=next((n for n in LONG if bench.accepts(replace(first, tokens=n))), LONG[-1]),
    )


def _seeds(bench: Bench) -> bool:
    """Whether both sides take a seed; where one does not, none is sent from here on."""
    ask = Ask((bench.prompt(0),), FEW_TOKENS, 1.0)
    if not bench.accepts(ask) or bench.accepts(replace(ask, seed=1)):
        return True
    bench.on, bench.off = Seedless(bench.on), Seedless(bench.off)
    return False


def _gives(bench: Bench, choices: int, prompts: int = 1) -> bool:
    """Some servers take `n` and answer with one choice; and some have one answer for all equal prompts of a list."""
    ask = Ask((bench.prompt(0),), FEW_TOKENS, 1.0, {"n": choices}, seed=1)
    if prompts > 1:
        ask = replace(ask, options=ask.options if choices > 1 else {}, seed=None, more=ask.turns * (prompts - 1))
    said = _answers(bench, ask)
    texts = [[choice.text for choice in answer.choices] for answer in said]
    whole = bool(said) and all(len(told) == choices * prompts for told in texts)
    return whole and (prompts == 1 or all(told != told[:choices] * prompts for told in texts))


def _refuses(bench: Bench) -> bool:
    """Whether both sides say that they take no `n`. One that passes it over may read its requests as little as mlx-lm's
    0.32.2, where a list of prompts ends the thread that all later ones need."""
    asked = Ask((bench.prompt(0),), FEW_TOKENS, 1.0, {"n": CHOICES[-1]}, seed=1)
    return all(isinstance(said, Refused) for said in bench.complaints(asked))


def _samples(bench: Bench) -> bool:
    """Whether without speculation another seed has another answer at temperature 1, as far as two tell, and hardly any
    where ties are asked about: what leaves the temperature out would excuse everything."""
    few = [Ask((bench.prompt(k),), FORCED, TEMPERATURE, seed=k) for k in range(WARM)]
    try:
        one, other = bench.without([Ask((bench.prompt(0),), TOKENS, 1.0, seed=seed) for seed in (1, 2)])
        greedy = [bench.plain(k, TOKENS)[1].text.startswith(said.text) for k, said in enumerate(bench.without(few))]
    except Gone:
        raise
    except (Refused, Failed):
        return False
    return one.text != other.text and 2 * sum(greedy) >= WARM


def _answers(bench: Bench, ask: Ask) -> list[Answer]:
    """Of both sides; none where one does not take it. Raises Gone."""
    try:
        return [side[0] for side in bench.each([ask])]
    except Gone:
        raise
    except (Refused, Failed):
        return []


def _reports(bench: Bench) -> tuple[Options, bool]:
    """(the option that asks for log probabilities, whether both sides then report tokens with their rows)."""
    wish = {"logprobs": True}
    answers = [answer.choices[0] for answer in _answers(bench, Ask((bench.prompt(0),), FEW_TOKENS, options=wish))]
    rows = all(said.tokens and said.logprobs and max(map(len, said.top or ()), default=0) > 1 for said in answers)
    rows = rows and bool(answers)
    return (wish, True) if rows else ({}, False)  # a row of one token tells no tie


def measured(bench: Bench) -> Noise:
    """The side without speculation beside itself: every prompt alone, then some together; and rows side by side.
    Where rows say of the sides that they part at a tie, that is noise too."""
    parted, tied_sides, apart = 0, 0, 0.0
    sides, margins, decides = [], [], True
    for first in range(0, NOISE_PROMPTS, NOISE_COMPANY):
        numbers = range(first, first + NOISE_COMPANY)
        alone = [bench.plain(k, TOKENS)[1] for k in numbers]
        again = bench.without([Ask((bench.prompt(k),), TOKENS, options=bench.logprobs) for k in numbers])
        for one, other in zip(alone, again, strict=True):
            parted += one.outcome() != other.outcome()
            apart = max(apart, logprobs_apart(one.choices[0], other.choices[0]) or 0.0)
        for k in numbers:
            on, off = (side.choices[0] for side in bench.plain(k, TOKENS))
            sides.append(logprobs_apart(on, off) or 0.0)
            tied_sides += part_at_a_tie(bench, k)
            rows = [sorted(row.values())[-2:] for row in off.top or () if len(row) > 1]
            margins += [likeliest - second for second, likeliest in rows]
            decides &= all(
                row.get(x) == max(row.values()) for x, row in zip(off.tokens or (), off.top or (), strict=False)
            )
    close = sum(margin < CLOSE for margin in margins)
    near = sorted(sides)[9 * len(sides) // 10]
    asked, parted = bench.choices > 1 or bench.samples, max(parted, tied_sides)
    step = printed(chance for said in bench.plain_answers.values() for chance in said[1].choices[0].logprobs or ())
    return Noise(NOISE_PROMPTS, parted, apart, len(margins), close, near, step, asked, decides and bool(margins))


def printed(chances: Iterable[float | None]) -> float:
    """The step in which log probabilities are printed: the largest power of ten of which they all are multiples."""
    told = [chance for chance in chances if chance]
    steps = [10.0**-digits for digits in range(1, DIGITS) if all(abs(x - round(x, digits)) < EXACT for x in told)]
    return max(steps, default=10.0**-DIGITS) if told else ROUNDING


def part_at_a_tie(bench: Bench, k: int) -> bool:
    """What the sides say to that prompt: told by rows, or by asking."""
    on, off = bench.plain(k, TOKENS)
    if bench.logprobs:
        return tied(on, off, Noise().nats)
    several = bench.choices > 1  # one at a time they would take a tenth of the budget here
    return several and parted(on, off) and asked_tie(bench, Ask((bench.prompt(k),), TOKENS), on, off)
