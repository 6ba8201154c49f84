"""The plan of a suite: what the two sides take is found out, as far as it can be by the claims' own first looks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from refengine.audit.served.ask import Answer, Ask, Failed, Gone, Refused, Seedless
from refengine.audit.served.belief import Partings
from refengine.audit.served.bench import FAR_SHARE, Bench
from refengine.audit.served.claims.cells import Answered, Cell, Parity, Plain, logprobs_apart
from refengine.audit.served.claims.edge import MOST_WORDS, found_edge
from refengine.audit.served.claims.ends import found_ends, shown_tokens, there
from refengine.audit.served.claims.options import OPTIONS, PENALISED, SAMPLED, TOKENS, Options
from refengine.audit.served.claims.sampled import CHOICES, Sampled
from refengine.audit.served.claims.schedules.claims import schedules
from refengine.audit.served.claims.schedules.coins_in_company import OneBatch
from refengine.audit.served.claims.schedules.prompts import LONG, as_ids
from refengine.audit.served.claims.schedules.requests import HEAVY
from refengine.audit.served.claims.shared_rows import Rescored, SampledRows
from refengine.audit.served.claims.ties import FORCED, TEMPERATURE, asked_tie, parted, tied
from refengine.audit.served.claims.together import LEAST, AllLaws, Together
from refengine.audit.served.noise import CLOSE, NOISE_PROMPTS, ROUNDING, Noise

NOISE_COMPANY = 5  # prompts that are asked together, to see what company does to a text
DIGITS, EXACT = 6, 1e-9  # behind the point that are told apart in print; what a printed number may miss its digits by
ENDING = "law/min_tokens", "chat/ends"  # what else is asked where texts end
MOST_CHOICES = 16  # of requests whose answers are longer than a few tokens
WARM = 4  # prompts, at half of which a server that honours a temperature near 0 begins as at 0
NEEDED = {  # options that schedules need
    "neighbour": {*HEAVY},
    "ignore_eos": {"ignore_eos"},
    "penalties": {*PENALISED},
    "repetition": {"repetition_penalty"},
    "stop": {"stop"},
    "filters": {"top_k", "top_p"},
    "grammar": {"response_format"},
    "echo": {"echo"},
}
IDS: Options = {"return_token_ids": True}
STREAM_USAGE: Options = {"stream_options": {"include_usage": True}}


@dataclass
class Plan:
    """The cells that can be looked at, and what the servers do not do: name -> why. begun: names of those whose first
    look was made, to see whether both sides take it."""

    cells: list[Cell]
    lacking: dict[str, str]
    begun: set[str] = field(default_factory=set)

    def tries(self, bench: Bench, name: str, cells: Sequence[Parity | Sampled]) -> int | None:
        """Takes up the first of these that both sides take, with its first look: its number. None where there is none:
        it is lacking under that name. Raises Gone."""
        said = "refused by the side without speculation"
        for number, cell in enumerate(cells):
            try:
                cell.unit(bench, 0)
                if isinstance(cell, Sampled) and cell.one_text() and cell is not cells[-1]:
                    continue
                self.begun.add(cell.name)
            except Gone:
                raise
            except (Refused, Failed):
                on, off = bench.complaints(cell.asked(bench))
                falls = isinstance(on, Failed) and not off  # that is no refusal, and is looked at again
                if (on or off) and not falls:  # else it was about a tie that was asked
                    said = said if off else f"refused with speculation, taken without: {on}"
                    continue
            self.cells.append(cell)
            return number
        self.lacking[name] = said
        return None


def planned(bench: Bench, only: str = "") -> Plan:
    """Asks either side once for what it takes. only: how the names begin of claims that will be looked at; parameters
    and laws of others are not asked for. Raises Gone, and Refused where not even a plain request is taken."""

    def wanted(name: str) -> bool:
        return name.startswith(only) or only.startswith(name)

    for name, said in zip(("on", "off"), bench.complaints(Ask((bench.prompt(0),), 4)), strict=True):
        if said:
            raise Refused(f"the side with speculation {name} takes no plain request: {said}")
    seeds = _seeds(bench)
    bench.logprobs, rows = _reports(bench)
    if rows:  # else a tie may have spelt one text in other tokens
        bench.usage = Partings(FAR_SHARE)
    if streams := bench.accepts(Ask((bench.prompt(0),), 4, options=STREAM_USAGE, stream=True)):
        bench.stream_usage = STREAM_USAGE
    streams = streams or bench.accepts(Ask((bench.prompt(0),), 4, stream=True))
    chat = bench.accepts(Ask((bench.prompt(0),), 4, chat=True))
    several = [n for n in CHOICES if _gives(bench, n)]
    bench.choices = max((n for n in several if n <= MOST_CHOICES), default=1)
    bench.samples = not several and _samples(bench)
    listed = _answers(bench, Ask((bench.prompt(0),), 4, options=IDS))
    bench.ids = IDS if listed and all(answer.choices[0].ids for answer in listed) else {}
    bench.noise = measured(bench)
    bench.vocabulary = max(bench.vocabulary, shown_tokens([*chain(*bench.plain_answers.values()), *listed]))
    if any(option.ends and wanted(f"parity/{option.name}") for option in OPTIONS) or any(map(wanted, ENDING)):
        bench.ends, bench.chat_ends = found_ends(bench, chat)
    lists = [n for n in CHOICES if _gives(bench, n, listed=True)] if not several and _refuses(bench) else []
    plan = Plan([Plain("greedy", bench.noise, rows)], {} if seeds else {"seed": "refused: no request has one"})
    plan.lacking |= {
        way: "not taken by both sides" for way, taken in (("chat", chat), ("stream", streams)) if not taken
    }
    untaken: dict[str, Options] = {}
    if not rows:
        untaken["logprobs"] = {"logprobs": True}
    if not several:
        untaken["n"] = {"n": CHOICES[-1]}
    asked = [Answered(parameter, options) for parameter, options in untaken.items()]
    plan.cells += [cell for cell in asked if wanted(cell.name) and cell.falls(bench)]
    if rows:
        plan.cells += [Rescored(), SampledRows(bench.choices)]
    else:
        plan.lacking["logprobs"] = "rows of log probabilities are not reported by both sides"
    for option in OPTIONS:
        if not wanted(f"parity/{option.name}") or (option.talks and not chat):
            continue
        cells = [Parity(option, bench.noise, rows, dialect, option.talks) for dialect in range(option.dialects)]
        dialect = plan.tries(bench, option.name, cells)
        if dialect is not None and option.front:
            arms = [*([(option.talks, True)] * streams), *([(True, False)] * (chat and not option.talks))]
            plan.cells += [Parity(option, bench.noise, rows, dialect, in_chat, stream) for in_chat, stream in arms]
    together = Together()
    for setting in SAMPLED:
        if not wanted(f"law/{setting.name}"):
            continue
        choices = next((n for n in several or lists if n <= setting.choices), 1)
        apis = (True, False) if chat and setting.talks else (False,)
        forms = [replace(setting, options=options) for options in setting.forms]
        counts = [1 if in_chat and lists else choices for in_chat in apis]  # a list of prompts is no chat
        laws = [
            Sampled(form, count, together.told, in_chat, bool(lists) and not in_chat)
            for in_chat, count in zip(apis, counts, strict=True)
            for form in forms
            if there(form.options, bench.vocabulary)
        ]
        plan.tries(bench, laws[0].name, laws)
    taken = [cell for cell in plan.cells if isinstance(cell, Sampled)]
    if len(taken) >= LEAST:
        plan.cells.append(AllLaws(taken, together))
    extra = {"stream": streams, "chat": chat, "together": bench.together, "seed": seeds, "n": bool(several)}
    bench.prompt_ids = bool(bench.ids) and bench.accepts(replace(as_ids(bench, 0), tokens=4))
    extra["ids"] = bench.prompt_ids
    extra["lists"] = bool(several) and bench.accepts(Ask((bench.prompt(0),), 4, more=(bench.prompt(1),)))
    extra |= {name: not needed & plan.lacking.keys() for name, needed in NEEDED.items()}
    long = next((n for n in LONG if bench.accepts(Ask((bench.prompt(0),), n))), LONG[-1])
    plan.cells += schedules(bench.noise, rows, extra, long)
    if bench.chat_ends:
        plan.cells.append(Plain("chat/ends", bench.noise, rows, chat=True, options=dict(bench.chat_ends), wanted=4))
    plan.cells += [OneBatch(choices) for choices in {1, bench.choices} if bench.together]
    edge = "state/context edge"
    if edge.startswith(only):  # it takes thirty requests to find
        if bench.together and (found := found_edge(bench)):
            plan.cells.append(Plain(edge, bench.noise, rows, asked=found.ask, cost=3, wanted=8, at_the_edge=True))
        else:
            plan.lacking[edge] = f"a prompt of {MOST_WORDS} words is taken"
    return plan


def _seeds(bench: Bench) -> bool:
    """Whether both sides take a seed; where one does not, none is sent from here on."""
    ask = Ask((bench.prompt(0),), 4, 1.0)
    if not bench.accepts(ask) or bench.accepts(replace(ask, seed=1)):
        return True
    bench.on, bench.off = Seedless(bench.on), Seedless(bench.off)
    return False


def _gives(bench: Bench, choices: int, listed: bool = False) -> bool:
    """Some servers take `n` and answer with one choice; and some have one answer for all equal prompts of a list."""
    ask = Ask((bench.prompt(0),), 4, 1.0, {"n": choices}, seed=1)
    if listed:
        ask = replace(ask, options={}, seed=None, more=ask.turns * (choices - 1))
    said = _answers(bench, ask)
    texts = [{choice.text for choice in answer.choices} for answer in said]
    return bool(said) and all(len(a.choices) == choices for a in said) and not (listed and min(map(len, texts)) == 1)


def _refuses(bench: Bench) -> bool:
    """Whether both sides say that they take no `n`. One that passes it over may read its requests as little as mlx-lm's
    0.32.2, where a list of prompts ends the thread that all later ones need."""
    asked = Ask((bench.prompt(0),), 4, 1.0, {"n": CHOICES[-1]}, seed=1)
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
    answers = [answer.choices[0] for answer in _answers(bench, Ask((bench.prompt(0),), 4, options=wish))]
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
