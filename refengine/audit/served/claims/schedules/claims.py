"""The claims in which a side is held to itself: seeds, independence, streams, and state that requests leave behind.

Each is done to both sides alike, so that a server whose numerics depend on its company accuses nobody: it must be the
side with speculation that differs from itself. What is asked is in `requests.py` and of which prompts in
`prompts.py`, what of the answers is a fault in `faults.py`.
"""

from functools import partial
from typing import Any

from refengine.audit.served.claims.cells import Cell, Plain
from refengine.audit.served.claims.options import HOT, JSON, PENALISED, PENALTIES, REPEATED, TOKENS, Options
from refengine.audit.served.claims.own import Own
from refengine.audit.served.claims.schedules import faults as fault
from refengine.audit.served.claims.schedules import prompts
from refengine.audit.served.claims.schedules import requests as asks
from refengine.audit.served.claims.schedules.coins_by_arm import BesideUnseeded, OneByOne
from refengine.audit.served.claims.schedules.coins_in_company import OneToken, OthersSeeds
from refengine.audit.served.claims.schedules.requests import Steps
from refengine.audit.served.claims.takes import Takes
from refengine.audit.served.claims.ties import ANY_REQUEST
from refengine.audit.served.noise import KNOWN_TIE_SHARE, Noise

COMPANIES = (2, 4, 8, 16)  # requests under way together
# Than their cost allows, so that the budget is enough for all.
FEWER_LOOKS = {"state/company of 4": 2, "state/after a grammar": 3}
FILTERED: Options = {"top_k": 20, "top_p": 0.99}  # no more than the schedules with filters need
SAME, ALONE = "The same request has the same answer", "An answer is the same"


def schedules(noise: Noise, takes: Takes) -> list[Cell]:
    """Every such cell that both sides can be asked about."""
    rows = takes.rows
    share: float | None = noise.asked_share()
    if rows:  # they tell ties; what else parts on the side without speculation is held against that side
        share = None if noise.parted else KNOWN_TIE_SHARE
    plain = partial(Plain, noise=noise, rows=rows)
    greedy = partial(Own, tie_share=share, asks=not rows)
    differ = fault.first_and_last_differ
    cells: list[Cell] = [
        greedy(name, claim, steps, differ, cost, wanted=FEWER_LOOKS.get(name, 0))
        for name, claim, steps, cost in repeated(takes)
    ]
    if takes.choices and takes.stream:
        whole = "The streamed choices of a request are the whole ones."
        steps = asks.streamed_greedy_choices(takes.options("stop"))
        cells.append(greedy("stream/greedy choices", whole, steps, fault.any_choice_differs, 4, wanted=2))
    cells += others_parameters(greedy, takes)
    if rows and takes.options(*PENALISED):  # those of answers without rows tell no tie: it is asked
        asked = f"{SAME} whether log probabilities are asked for or not."
        cells.append(Own("logprobs/asked", asked, asks.with_rows_and_without, differ, 4, noise.asked_share(), True))
    cells += seeds(noise, takes)
    cells += at_edges(plain, takes)
    cells += clients_that_left(greedy, plain, takes)
    if takes.together and takes.seed:
        begins = "With one seed equal requests begin in few ways in company."
        shows, besides = fault.begin_in_many_ways, fault.first_and_last_differ
        cells.append(Own("seed/under load", begins, asks.seed_in_company, shows, 26, besides=besides))
    if rows and takes.together and takes.options("echo"):
        reported = "An echoed prompt has the same log probabilities alone and beside another request."
        shows = fault.reported_otherwise
        cells.append(Own("state/echo in company", reported, asks.echoed_in_company, shows, 6, KNOWN_TIE_SHARE))
    if takes.options("response_format"):
        held = "What is sampled in JSON mode is JSON."
        cells.append(Own("response_format/sampled", held, asks.sampled_json, fault.no_json, 2))
    cells += choices(greedy, takes)
    if takes.lists:
        told = "A prompt of a list has the answer that it has alone."
        of_lists = [*([REPEATED] * takes.options(*REPEATED)), *([PENALTIES] * takes.options(*PENALISED)), {}]
        listed = asks.list_of_prompts(of_lists, takes.stream)
        cells.append(greedy("list of prompts", told, listed, fault.listed_differ, 8))
    if takes.chat:
        cells.append(plain("chat", chat=True, wanted=5))
        cells.append(plain("chat/turns", chat=True, turns=prompts.conversation, cost=5, wanted=4))
        cells.append(plain("chat/system", asked=asks.with_system, wanted=3))
        told = f"{ALONE} in chat after ones with a system message."
        cells.append(greedy("state/after a system message", told, asks.after_system, fault.last_ones_differ, 14))
    return cells


def repeated(takes: Takes) -> list[tuple[str, str, Steps, int]]:
    """(name, claim, requests, their number): at temperature 0 the first answer and the last are one."""
    last = asks.HEAVY if takes.options(*asks.HEAVY) else {}
    some = [PENALISED] * takes.options(*PENALISED)
    some += [{**PENALTIES, **REPEATED}] * takes.options(*PENALTIES, *REPEATED)
    a_b_a = asks.a_b_a(last, some, refused=takes.together)
    found: list[tuple[str, str, Steps, int]] = [
        ("repeat", f"{SAME} twice at temperature 0.", asks.repeat, 4),
        ("state/A-B-A", f"{ALONE} after other requests.", a_b_a, 8),
        ("state/full blocks", f"{SAME} when its whole prompt is in the cache, to a block's edge.", asks.full_blocks, 7),
    ]
    if takes.options(*PENALISED) and takes.options("stop"):
        stopped = f"{ALONE} after one with parameters that a stop ended."
        found.append(("state/after a stop", stopped, asks.after_stop, 7))
    if takes.stream:
        found.append(("stream", "A streamed answer is the whole one.", asks.stream, 4))
    if takes.stream and takes.chat:
        found.append(("chat/stream", "A streamed chat is the whole one.", asks.stream_chat, 4))
    if takes.options("response_format"):
        held = f"{ALONE} after one that a grammar held and ended."
        found.append(("state/after a grammar", held, asks.after_grammar, 6))
    if not takes.together:
        return found
    found.append(("state/short company", f"{ALONE} beside requests that end early.", asks.beside_short, 12))
    beside = f"{ALONE} alone and in company."
    longer = takes.long, ({"ignore_eos": True} if takes.options("ignore_eos") else {})
    found += [(f"state/company of {n}", beside, asks.company(n, longer), 2 * n + 2) for n in COMPANIES]
    itself = f"{ALONE} alone and while the same prompt is being answered."
    found.append(("state/beside itself", itself, asks.beside_itself, 6))
    if takes.options(*PENALISED):
        penalised = f"{ALONE} with penalties, alone and in company."
        found.append(("state/company, penalties", penalised, asks.penalised, 18))
    moved = "The temperature of a request does not move another's answer."
    return [*found, ("independence/temperature", moved, asks.hot_neighbours, 10)]


def others_parameters(greedy: partial[Own], takes: Takes) -> list[Cell]:
    cells: list[Cell] = []
    if takes.together and takes.options(*asks.HEAVY):
        moved = "Parameters of a request do not move another's answer."
        cells.append(greedy("independence", moved, asks.neighbours, fault.in_company_differ, 12))
    if takes.options(*FILTERED) and takes.options("stop"):
        free = "Any token comes after a request whose filter leaves one or two, and which a stop has ended."
        left, cost = asks.after_stopped_filter, 12
        cells.append(Own("independence/after a stop", free, left, fault.filter_left, cost, wanted=1))
    if takes.together and takes.options(*FILTERED):
        theirs = "The filters of a request are its own in company."
        cells.append(greedy("independence/filters", theirs, asks.among_filters, fault.filters_moved, 8))
    return cells


def seeds(noise: Noise, takes: Takes) -> list[Cell]:
    """And of the streamed choices of one request with a seed."""
    cells: list[Cell] = []
    differ = fault.first_and_last_differ
    quiet = not noise.parted  # else rounding moves what is sampled too, and a coin that is spent moves all after it
    if takes.seed:
        kinds: list[tuple[Options, bool]] = [({}, False)]
        kinds += [(PENALTIES, False)] * takes.options(*PENALISED) + [(FILTERED, False)] * takes.options(*FILTERED)
        kinds += [({}, True)] * takes.chat
        cells.append(Own("seed/same", f"{SAME} twice with the same seed.", asks.same_seed(kinds), differ, 4))
        cells.append(Own("seed/zero", f"{SAME} twice with the seed 0.", asks.seed_zero, differ, 4, wanted=2))
        cells.append(
            Own("seed/other", "Another seed has another answer.", asks.other_seed, fault.share_a_choice, 4, wanted=2)
        )
    if takes.seed and takes.together:
        free = "A request without a seed is independent beside one with a seed, and after it."
        cells.append(Own("seed/neighbour", free, asks.beside_seeded, fault.unseeded_alike, 20))
    if takes.seed and takes.options("stop"):
        free = "Requests without a seed are independent after one whose seed a stop has ended."
        cells.append(Own("seed/after a stop", free, asks.after_stopped_seed, fault.unseeded_alike, 8, wanted=3))
    if takes.seed and takes.together and (takes.options(*FILTERED) or takes.options(*asks.HEAVY)):
        one_token = OneToken(takes.options(*asks.HEAVY), takes.options(*FILTERED))
        cells += [OthersSeeds(one_token), BesideUnseeded(one_token)]
    if takes.seed and takes.together and takes.options(*asks.HEAVY) and takes.options(*FILTERED) and quiet:
        moved = "Parameters of a request do not move a sampled answer of another."
        cells.append(Own("independence/sampled", moved, asks.around_sampled, fault.parameters_move, 22))
    if takes.seed and takes.choices and takes.stream:
        whole = "The streamed choices of a request with a seed are the whole ones."
        steps = asks.streamed_choices(takes.options("stop"))
        cells.append(Own("stream/choices", whole, steps, differ, 4, wanted=2))
    free = "Requests without a seed are independent."
    return [*cells, Own("seed/none", free, asks.no_seed, fault.alike, 8, wanted=3), OneByOne()]


def at_edges(plain: partial[Plain], takes: Takes) -> list[Cell]:
    """Prompts and lengths at which a cache or a counter turns over: either side has the other's answer."""
    unending = {"ignore_eos": True} if takes.options("ignore_eos") else {}
    any_tokens, fresh = 4 * TOKENS, prompts.not_asked_yet
    cells: list[Cell] = [
        plain("state/long", tokens=takes.long, options=unending, wanted=6),
        plain(ANY_REQUEST, tokens=any_tokens, turns=fresh, options=unending),
        plain("state/short prompt", turns=prompts.one_word, wanted=4),
        plain("state/long prompt", turns=prompts.long_prompt, wanted=5),
        plain("state/shared prefix", turns=prompts.shared_prefix, wanted=6),
        plain("state/continued", asked=prompts.continued, cost=4, wanted=6),
    ]
    if takes.ids:
        cells.append(plain("greedy/token ids", asked=prompts.as_ids, wanted=3))
        cells.append(plain("state/one token apart", asked=prompts.one_token_apart, cost=4, wanted=3))
    if takes.options("echo") and takes.rows:
        echoed = {"echo": True}
        cells.append(plain("state/echoed prefix", turns=prompts.echoed_prompt, options=echoed, wanted=5))
    return cells


def clients_that_left(greedy: partial[Own], plain: partial[Plain], takes: Takes) -> list[Cell]:
    if not (takes.stream and takes.together):
        return []
    left = f"{ALONE} beside and after others whose client left in the middle."
    cells: list[Cell] = [greedy("state/hang-up", left, asks.hang_up, fault.any_differs, 22)]
    if takes.options(*PENALISED):
        left = f"{ALONE} with penalties, beside and after others that had them and whose client left."
        cells.append(greedy("state/hang-up, penalties", left, asks.hang_up_penalised, fault.any_differs, 22))
    name = "state/after a client left"
    penalised: list[dict[str, Any]] = [{"options": PENALISED}] if takes.options(*PENALISED) else []
    cells += [
        plain(name, turns=prompts.after_left(20_000, {}, *penalised), cost=4, wanted=2),
        plain(f"{name}, hot", turns=prompts.after_left(22_000, {"temperature": HOT}), cost=4, wanted=3),
    ]
    if takes.options(*JSON):
        held = prompts.after_left(24_000, {"options": JSON})
        cells.append(plain(f"{name}, a grammar's", turns=held, cost=4, wanted=2))
    return [*cells, plain(f"{name}, in the cache", turns=prompts.after_left_in_cache, cost=5, wanted=3)]


def choices(greedy: partial[Own], takes: Takes) -> list[Cell]:
    if not takes.choices:
        return []
    distinct, cold, equal = (
        "The n choices of a request are independent.",
        "The n choices at a low temperature are not all one.",
        "The n choices at temperature 0 are equal.",
    )
    kinds: list[Options] = [{}, *([PENALISED] * takes.options(*PENALISED))]
    return [
        Own("n/distinct", distinct, asks.choices(takes.lists), fault.choices_alike, 2),
        Own("n/cold", cold, asks.cold_choices, fault.all_alike, 2),
        greedy("n/greedy", equal, asks.greedy_choices(kinds), fault.choices_differ, 2),
    ]
