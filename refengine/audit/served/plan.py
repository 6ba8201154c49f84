"""The plan of a suite: the claims that can be looked at of these two sides.

Whether a parameter or a law can be asked for is found out by the first look at the claim about it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from refengine.audit.served.ask import Ask, Choice, Failed, Gone, Refused
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.cells import FEW_TOKENS, LISTED_PROMPTS, Answered, Cell, Parity, Plain
from refengine.audit.served.claims.edge import MOST_WORDS, found_edge
from refengine.audit.served.claims.found_ids import found_ends, liveliest, there
from refengine.audit.served.claims.options import OPTIONS, SAMPLED, TOKENS, Options
from refengine.audit.served.claims.sampled import CHOICES, Sampled
from refengine.audit.served.claims.schedules.claims import schedules
from refengine.audit.served.claims.schedules.coins_in_company import OneBatch
from refengine.audit.served.claims.shared_rows import Rescored, SampledRows
from refengine.audit.served.claims.stops_sampled import StopsSampled
from refengine.audit.served.claims.takes import Takes
from refengine.audit.served.claims.together import LEAST, AllLaws, Together
from refengine.audit.served.sides import MOST_CHOICES, found_out

ENDING = "law/min_tokens", "chat/ends"  # what else is asked where texts end
EDGE = "state/context edge"
Wanted: TypeAlias = Callable[[str], bool]  # of the name of a claim


@dataclass
class Plan:
    """The cells that can be looked at, and what the servers do not do: name -> why. begun: names of those whose first
    look was made, to see whether both sides take it."""

    cells: list[Cell]
    lacking: dict[str, str]
    begun: set[str] = field(default_factory=set)
    only: str = ""  # how the names begin of claims that were asked for

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

    for name, said in zip(("on", "off"), bench.complaints(Ask((bench.prompt(0),), FEW_TOKENS)), strict=True):
        if said:
            raise Refused(f"the side with speculation {name} takes no plain request: {said}")
    takes = found_out(bench)
    if any(option.ends and wanted(f"parity/{option.name}") for option in OPTIONS) or any(map(wanted, ENDING)):
        bench.ends, bench.chat_ends = found_ends(bench, takes.chat)
    plan = Plan([Plain("greedy", bench.noise, takes.rows)], _ways_lacking(takes), only=only)
    plan.cells += _unanswered(bench, takes, wanted)
    if takes.rows:
        plan.cells += [Rescored(), SampledRows(bench.choices)]
    _try_options(plan, bench, takes, wanted)
    _try_laws(plan, bench, takes, wanted)
    if "stop" not in plan.lacking:
        plan.cells.append(StopsSampled([{}, *_grammar(plan)]))
    plan.cells += schedules(bench.noise, replace(takes, refused=frozenset(plan.lacking)))
    if bench.chat_ends:
        looks = max(4, 2 * len(bench.chat_ends))
        plan.cells.append(Plain("chat/ends", bench.noise, takes.rows, asked=ending_chat, wanted=looks))
    plan.cells += [OneBatch(choices) for choices in {1, bench.choices} if takes.together]
    if EDGE.startswith(only):  # it takes thirty requests to find
        _try_edge(plan, bench, takes)
    return plan


def ending_chat(bench: Bench, k: int) -> Ask:
    """By all ends together, and by each alone, in turn."""
    options = {**bench.logprobs, **bench.chat_ends[k % len(bench.chat_ends)]}
    return Ask((bench.prompt(k),), TOKENS, options=options, chat=True)


def _ways_lacking(takes: Takes) -> dict[str, str]:
    """Ways to ask that a side does not take -> why no claim asks so."""
    lacking = {} if takes.seed else {"seed": "refused: no request has one"}
    ways = {"chat": takes.chat, "stream": takes.stream}
    lacking |= {way: "not taken by both sides" for way, taken in ways.items() if not taken}
    rows = {} if takes.rows else {"logprobs": "rows of log probabilities are not reported by both sides"}
    return lacking | rows


def _unanswered(bench: Bench, takes: Takes, wanted: Wanted) -> list[Cell]:
    """The claims about what the side with speculation alone falls over."""
    untaken: dict[str, Options] = {}
    if not takes.rows:
        untaken["logprobs"] = {"logprobs": True}
    if not takes.choices:
        untaken["n"] = {"n": CHOICES[-1]}
    asked = [Answered(parameter, options) for parameter, options in untaken.items()]
    return [cell for cell in asked if wanted(cell.name) and cell.falls(bench)]


def _try_options(plan: Plan, bench: Bench, takes: Takes, wanted: Wanted) -> None:
    """Those that are taken, in the first dialect that is; streamed and in chat too."""
    for option in OPTIONS:
        if not wanted(f"parity/{option.name}") or (option.talks and not takes.chat):
            continue
        dialects = range(option.dialects)
        prompts = LISTED_PROMPTS if takes.lists and not option.talks else 1  # a list of prompts is no chat
        cells = [Parity(option, bench.noise, takes.rows, d, option.talks, prompts=prompts) for d in dialects]
        dialect = plan.tries(bench, option.name, cells)
        if dialect is not None and option.front:
            arms = [(option.talks, True)] * takes.stream + [(True, False)] * (takes.chat and not option.talks)
            plan.cells += [Parity(option, bench.noise, takes.rows, dialect, *arm) for arm in arms]


def _try_laws(plan: Plan, bench: Bench, takes: Takes, wanted: Wanted) -> None:
    """Each setting in the first form that is taken, in chat where it may be; then all of them together."""
    together = Together()
    for setting in SAMPLED:
        if not wanted(f"law/{setting.name}"):
            continue
        most = min(setting.choices, bench.law_choices)
        most = most if bench.noise.quiet else min(most, MOST_CHOICES)  # more show the rounding
        choices = next((n for n in takes.choices if n <= most), 1)
        in_lists = not takes.choices or not setting.seeded  # a seed might be that of each prompt, so none is sent
        prompts = next((k for k in takes.equal_prompts if in_lists and k * choices <= most), 1)
        apis = (True, False) if takes.chat and setting.talks else (False,)
        told = liveliest(bench, setting) if setting.lively else setting.forms
        forms = [replace(setting, options=options) for options in told]
        laws = [
            Sampled(form, choices, together.told, chat, 1 if chat else prompts)
            for chat in apis  # a list of prompts is no chat
            for form in forms
            if there(form.options, bench.vocabulary)
        ]
        plan.tries(bench, laws[0].name, laws)
    taken = [cell for cell in plan.cells if isinstance(cell, Sampled)]
    if len(taken) >= LEAST:
        plan.cells.append(AllLaws(taken, together))


def _grammar(plan: Plan) -> list[Options]:
    """That of words, as both sides take it: the first look at it has nothing else."""
    cells = (cell for cell in plan.cells if isinstance(cell, Parity) and cell.option.name == "regex")
    return [cell.option.made(Choice(""), 0)[cell.dialect] for cell in cells][:1]


def _try_edge(plan: Plan, bench: Bench, takes: Takes) -> None:
    """The longest prompts that fit, where a prompt can be too long."""
    if takes.together and (found := found_edge(bench)):
        edge = Plain(EDGE, bench.noise, takes.rows, asked=found.ask, cost=3, wanted=7, at_the_edge=True)
        plan.cells.append(edge)
    else:
        plan.lacking[EDGE] = f"a prompt of {MOST_WORDS} words is taken"
