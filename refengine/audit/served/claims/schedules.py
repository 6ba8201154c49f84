"""The claims in which a side is held to itself: seeds, independence, streams, and state that requests leave behind.

Each is done to both sides alike, so that a server whose numerics depend on its company accuses nobody: it must be the
side with speculation that differs from itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from refengine.audit.served.ask import Answer, Ask
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.cells import Cell, Own, Pairs, Plain, streamed
from refengine.audit.served.claims.far import ANY_REQUEST
from refengine.audit.served.claims.options import PENALISED, PENALTIES, STRICT, TOKENS, Options
from refengine.audit.served.claims.ties import parted, tied
from refengine.audit.served.noise import KNOWN_TIE_SHARE, Noise

LONG = (320, 160)  # tokens of a long completion: the first that both sides take
SAMPLED_TOKENS = 24  # of a sampled completion: two that are equal are no accident
COMPANIES = (2, 4, 8, 16)  # requests under way together
PASSES = (128, 256, 512)  # tokens of a prompt that engines read at once, set low
MANY = 9  # looks at one claim
BLOCK = 16  # tokens of a cache's block, in most engines
Steps: TypeAlias = Callable[[Bench, int], Sequence[Sequence[Ask]]]
CHILLY = 0.25  # a temperature that users ask for who want hardly any chance
COOL, HOT = 0.02, 2.0  # temperatures: tokens that are 0.25 nats apart have odds of one in 270000 at the first
FILLING = "the "  # a word of one token
FILTERED: Options = {"top_k": 20, "top_p": 0.99}  # no more than the schedules with filters need
HEAVY = {"frequency_penalty": 2.0, "presence_penalty": 2.0, "logit_bias": {"5": 100.0}}  # of a neighbour


def schedules(noise: Noise, rows: bool, extra: dict[str, bool], long: int = LONG[-1]) -> list[Cell]:
    """Every such cell. rows: whether ties can be told. extra: what some of them need, and whether both sides do it.
    long: tokens of a long completion."""
    share: float | None = noise.asked_share()
    if rows:  # they tell ties; what else parts on the side without speculation is held against that side
        share = None if noise.parted else KNOWN_TIE_SHARE
    quiet = not noise.parted  # else rounding moves what is sampled too, and a coin that is spent moves all after it
    differ = first_and_last_differ
    same, alone = "The same request has the same answer", "An answer is the same"
    greedy: list[tuple[str, str, Steps, int]] = [
        ("repeat", f"{same} twice at temperature 0.", repeat, 4),
        ("state/A-B-A", f"{alone} after other requests.", a_b_a, 8),
        ("state/full blocks", f"{same} when its whole prompt is in the cache, to a block's edge.", full_blocks, 7),
    ]
    if extra["penalties"] and extra["stop"]:
        greedy.append(("state/after a stop", f"{alone} after one with parameters that a stop ended.", after_stop, 7))
    if extra["stream"]:
        greedy.append(("stream", "A streamed answer is the whole one.", stream, 4))
    if extra["grammar"]:
        greedy.append(("state/after a grammar", f"{alone} after one that a grammar held and ended.", after_grammar, 6))
    if extra["together"]:
        greedy.append(("state/short company", f"{alone} beside requests that end early.", beside_short, 12))
        greedy += [
            (f"state/company of {n}", f"{alone} alone and in company.", company(n), 2 * n + 2) for n in COMPANIES
        ]
    if extra["together"] and extra["penalties"]:
        greedy.append(("state/company, penalties", f"{alone} with penalties, alone and in company.", penalised, 18))
    if extra["together"]:
        moved = "The temperature of a request does not move another's answer."
        greedy.append(("independence/temperature", moved, hot_neighbours, 10))
    cells: list[Cell] = [Own(name, claim, steps, differ, cost, share, not rows) for name, claim, steps, cost in greedy]
    if extra["together"] and extra["neighbour"]:
        moved = "Parameters of a request do not move another's answer."
        cells.append(Own("independence", moved, neighbours, in_company_differ, 12, share, not rows))
    if extra["together"] and extra["filters"]:
        theirs = "The filters of a request are its own in company."
        cells.append(Own("independence/filters", theirs, among_filters, filters_moved, 8, share, not rows))
    if rows and extra["penalties"]:  # those of answers without rows tell no tie: it is asked
        asked = f"{same} whether log probabilities are asked for or not."
        cells.append(Own("logprobs/asked", asked, with_rows_and_without, differ, 4, noise.asked_share(), True))
    if extra["seed"]:
        kinds: list[tuple[Options, bool]] = [({}, False)]
        kinds += [(PENALTIES, False)] * extra["penalties"] + [(FILTERED, False)] * extra["filters"]
        kinds += [({}, True)] * extra["chat"]
        cells.append(Own("seed/same", f"{same} twice with the same seed.", same_seed(kinds), differ, 4))
        cells.append(Own("seed/zero", f"{same} twice with the seed 0.", seed_zero, differ, 4))
        cells.append(Own("seed/other", "Another seed has another answer.", other_seed, alike, 4))
    if extra["seed"] and extra["together"]:
        free = "A request without a seed is independent beside one with a seed."
        cells.append(Own("seed/neighbour", free, beside_seeded, unseeded_alike, 8))
    if extra["seed"] and extra["together"] and extra["neighbour"] and extra["filters"] and quiet:
        moved = "Parameters of a request do not move a sampled answer of another."
        cells.append(Own("independence/sampled", moved, around_sampled, in_company_differ, 12))
    if extra["n"] and extra["stream"]:
        whole = "The streamed choices of a request that has one answer are the whole ones."
        cells.append(Own("stream/choices", whole, streamed_choices(extra["seed"]), differ, 4))
    unending = {"ignore_eos": True} if extra["ignore_eos"] else {}
    cells += [
        Own("seed/none", "Requests without a seed are independent.", no_seed, alike, 8),
        Plain("state/long", noise, rows, tokens=long, options=unending),
        Plain(ANY_REQUEST, noise, rows, tokens=4 * TOKENS, turns=not_asked_yet, options=unending, wanted=MANY),
        Plain("state/short prompt", noise, rows, turns=one_word, wanted=8),
        Plain("state/long prompt", noise, rows, turns=long_prompt, wanted=7),
        Plain("state/shared prefix", noise, rows, turns=shared_prefix),
        Plain("state/continued", noise, rows, turns=continued, cost=4, wanted=10),
    ]
    if extra["echo"] and rows:
        echoed = {"echo": True}
        cells.append(Plain("state/echoed prefix", noise, rows, turns=echoed_prompt, options=echoed, wanted=6))
    if extra["stream"] and extra["together"]:
        left = f"{alone} beside and after others whose client left in the middle."
        cells.append(Own("state/hang-up", left, hang_up, last_two_differ, 12, share, not rows))
        if extra["penalties"]:
            left = f"{alone} with penalties, beside and after others that had them and whose client left."
            cells.append(Own("state/hang-up, penalties", left, hang_up_penalised, last_two_differ, 12, share, not rows))
        cells.append(Plain("state/after a client left", noise, rows, turns=after_left, cost=5, wanted=7))
    if extra["together"] and extra["seed"]:
        under_load = f"{same} alone and in company with the same seed."
        cells.append(Own("seed/under load", under_load, seed_in_company, differ, 24))
    if extra["n"]:
        cells.append(Own("n/distinct", "The n choices of a request are independent.", choices, choices_alike, 2))
        cold = "The n choices at a low temperature are not all one."
        cells.append(Own("n/cold", cold, cold_choices, all_alike, 2))
        equal = "The n choices at temperature 0 are equal."
        cells.append(Own("n/greedy", equal, greedy_choices, choices_differ, 2, share, not rows))
    if extra["chat"]:
        cells.append(Plain("chat", noise, rows, chat=True))
        cells.append(Plain("chat/turns", noise, rows, chat=True, turns=conversation, cost=4, wanted=6))
    return cells


# --- what is asked ---------------------------------------------------------------------------------------------------


def plain(bench: Bench, k: int) -> Ask:
    return Ask((bench.prompt(k),), TOKENS, options=bench.logprobs)


def sampled(bench: Bench, k: int, seed: int | None, temperature: float = 1.0) -> Ask:
    return Ask((bench.prompt(k),), SAMPLED_TOKENS, temperature, seed=seed)


def repeat(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """A prompt that was not asked before: what a cache holds of it is the first answer's."""
    mine = replace(plain(bench, k), turns=(bench.fresh(k),))
    return [[mine], [mine]]


def stream(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    return [[plain(bench, k)], [streamed(plain(bench, k))]]


def streamed_choices(seeds: bool) -> Steps:
    """In turn with a seed, which a server may take and pass over, and at temperature 0."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        mine = sampled(bench, k, 1000 + k) if seeds and k % 2 else sampled(bench, k, None, 0.0)
        mine = replace(mine, options={"n": 3})
        return [[mine], [streamed(mine)]]

    return steps


def same_seed(kinds: Sequence[tuple[Options, bool]]) -> Steps:
    """In turn with these parameters, and in chat: other code may toss the coins there."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        options, chat = kinds[k % len(kinds)]
        mine = replace(sampled(bench, k, 1000 + k), options=options, chat=chat)
        return [[mine], [mine]]

    return steps


def seed_zero(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """The seed that reads as none where a test for one asks whether it is true."""
    return [[sampled(bench, k, 0)], [sampled(bench, k, 0)]]


def seed_in_company(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Beside five others or fifteen: some engines make room for so many by putting one off."""
    mine = sampled(bench, k, 1000 + k)
    return [[mine], [*(sampled(bench, k + i, 77 * k + i) for i in range(1, (16, 6)[k % 2])), mine]]


def other_seed(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    return [[sampled(bench, k, 1000 + k), sampled(bench, k, 5000 + k)]]


def no_seed(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Two at once, then one after the other."""
    mine = sampled(bench, k, None)
    return [[mine, mine], [mine], [mine]]


def beside_seeded(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    both = [sampled(bench, k, None), sampled(bench, k + 1, 1000 + k)]
    return [both, both]


def after_stop(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """What counts tokens begins anew, however the request before it ended."""
    mine = with_penalties(bench, k)
    words = bench.without([mine])[0].text.split()
    ended = replace(mine, options={**mine.options, "stop": words[len(words) // 2 :][:2] or ["."]})
    return [[mine], [ended], [mine]]


def after_grammar(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """What holds a text to a grammar is gone with it."""
    held = replace(plain(bench, k + 1), tokens=2 * TOKENS, options={"response_format": {"type": "json_object"}})
    return [[plain(bench, k)], [held], [plain(bench, k)]]


def penalised(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    mine = with_penalties(bench, k)
    return [[mine], [*(with_penalties(bench, k + i) for i in range(1, 8)), mine]]


def with_penalties(bench: Bench, k: int) -> Ask:
    mine = plain(bench, k)
    return replace(mine, options={**mine.options, **PENALISED})


def full_blocks(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Three times, a prompt that fills the blocks of a cache, or one token less or more: nothing of it is left to be
    computed but what the first token needs."""
    wished, own = 4 * BLOCK + (0, 1, 0, -1)[k % 4], bench.prompt(k)
    words = max(1, wished - len(own.split()))
    mine = replace(plain(bench, k), turns=(FILLING * words + own,))
    told = bench.without([replace(mine, tokens=1)])[0].usage.get("prompt_tokens", wished)
    mine = replace(mine, turns=(FILLING * max(1, words + wished - told) + own,))
    return [[mine], [mine], [mine]]


def a_b_a(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """B begins as A does, so that a cache of prefixes serves both, and goes on otherwise."""
    mine = replace(plain(bench, k), turns=(bench.fresh(500 + k),))
    words = mine.turns[0].split(" ")
    other = " ".join([*words[: max(1, len(words) - 1)], bench.prompt(k + 3)])
    return [[mine], [replace(mine, turns=(other,))], [sampled(bench, k + 1, k)], [mine]]


def beside_short(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """The others end after one to four tokens, in the middle of a round."""
    mine = plain(bench, k)
    short = [replace(plain(bench, k + i), tokens=i) for i in range(1, 5)]
    return [[mine], [*short, mine]]


def company(n: int) -> Steps:
    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        """Where rows tell ties, eight of long answers too: some engines then put one off that was begun."""
        tokens = 4 * TOKENS if n == 8 and bench.logprobs and k % 2 == 0 else TOKENS
        mine, *others = (replace(plain(bench, k + i), tokens=tokens) for i in range(n))
        return [[mine], [*others, mine]]

    return steps


def neighbours(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """As the first of those that are under way together, and as the last."""
    mine = plain(bench, k)
    heavy = [replace(mine, turns=(bench.prompt(k + i),), options={**mine.options, **HEAVY}) for i in range(1, 4)]
    return [[mine], [mine, *heavy, mine]]


def around_sampled(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """As the first and as the last of those under way: in turn beside such that have filters, bans or heavy ones."""
    mine = sampled(bench, k, 1000 + k)
    theirs: Options = ({"top_k": 1}, HEAVY, {"top_p": 0.1})[k % 3]
    others = [replace(sampled(bench, k + i, 77 * k + i), options=theirs) for i in range(1, 4)]
    return [[mine], [mine, *others, mine]]


def hot_neighbours(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """In turn at temperature 0, and nearly there, and sampled, beside high temperatures."""
    mine = replace(plain(bench, k), temperature=(0.0, COOL)[k % 2], seed=k)
    return [[mine], [*(sampled(bench, k + i, None, HOT) for i in range(1, 4)), mine]]


def among_filters(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """At temperature 0, and as a filter that leaves one token has it too, between others that every token may come
    of."""
    mine, name, free = plain(bench, k), ("top_k", "top_p")[k % 2], sampled(bench, k, None, HOT)
    strict = replace(mine, temperature=HOT, options={**mine.options, name: STRICT[name]}, seed=k)
    return [[mine], [free, strict, free]]


def with_rows_and_without(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Rows are made by other code in some engines, and most users ask for none. In turn with penalties."""
    mine, theirs = (plain(bench, k), {}) if k % 2 else (with_penalties(bench, k), PENALISED)
    return [[mine], [replace(mine, options=theirs)]]


def choices(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    return [[replace(sampled(bench, k, None), options={"n": 3})]]


def greedy_choices(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    return [[replace(plain(bench, k), options={**bench.logprobs, "n": 3})]]


def cold_choices(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """So cold that an engine might take it for 0, and so long that some choice goes another way."""
    return [[replace(sampled(bench, k, None, CHILLY), tokens=2 * TOKENS, options={"n": bench.choices})]]


def shared_prefix(bench: Bench, k: int) -> tuple[str, ...]:
    """Prompts that agree up to about the edge of a cache's block, one word more or less, and then part."""
    words = (bench.prompt(0) + " " + bench.prompt(1)).split(" ")
    length = BLOCK * (1 + k // 3 % 3) + k % 3 - 1
    return (" ".join([*(words * BLOCK)[:length], bench.prompt(k % len(bench.prompts))]),)


def echoed_prompt(bench: Bench, k: int) -> tuple[str, ...]:
    """In turn one that shares its beginning, and one that is read in several passes."""
    return long_prompt(bench, k // 2 + 100) if k % 2 else shared_prefix(bench, k // 2 * 2)


def not_asked_yet(bench: Bench, k: int) -> tuple[str, ...]:
    """For what shows in one request of twenty, whichever: some dozens of texts that are long enough to show it."""
    return (bench.fresh(2000 + k),)


def one_word(bench: Bench, k: int) -> tuple[str, ...]:
    """A prompt with hardly anything before the first token that is drafted."""
    words = sorted(set(" ".join(bench.prompts).split()))
    return (words[k * 7 % len(words)],)


def long_prompt(bench: Bench, k: int) -> tuple[str, ...]:
    """Some words more than engines read in one pass; what a context has no room for is refused."""
    return (bench.fresh(1000 + k, PASSES[k % len(PASSES)] + 5 + k),)


def hang_up(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """A client that leaves another request in the middle, and this very one; this one beside them and after them."""
    return left_beside([plain(bench, i) for i in (k, k + 1, k + 2)])


def hang_up_penalised(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """With penalties: what was counted of a text that never ended."""
    return left_beside([with_penalties(bench, i) for i in (k, k + 1, k + 2)])


def left_beside(asks: Sequence[Ask]) -> Sequence[Sequence[Ask]]:
    mine = asks[0]
    left = [replace(streamed(ask), tokens=LONG[-1], hang_up=True) for ask in asks]
    return [[mine], [*left, mine], [mine]]


def continued(bench: Bench, k: int) -> tuple[str, ...]:
    """A prompt with the answer that was just given to it, so that a cache holds what was generated; and with more. Both
    are new to the cache, and end anywhere in a block. The answer is in turn that at temperature 0, and one that was
    sampled with speculation, of which more drafts were refused, as one of several choices where there are some."""
    first, more = bench.fresh(3000 + k), (" " + bench.prompt(k + 1)) * (k % 2)
    mine = Ask((first,), some_tokens(k))
    if k // 2 % 2:
        warm = replace(mine, temperature=1.0, seed=k, options={"n": 2} if bench.choices > 1 else {})
        return (first + bench.each([warm])[0][0].choices[-1].text + more,)
    return (first + answered(bench, mine) + more,)


def after_left(bench: Bench, k: int) -> tuple[str, ...]:
    """A prompt of some blocks whose first client left in the middle of the answer, so that what a cache holds of it is
    of a request that never ended: in turn the same prompt, one with the answer's beginning, and one that parts from
    it."""
    first = bench.fresh(5000 + k, 2 * BLOCK + 3 * k)
    mine = Ask((first,), some_tokens(k))
    bench.each([replace(streamed(mine), tokens=LONG[-1], hang_up=True)])
    if k % 3 == 0:
        return (first,)
    if k % 3 == 1:
        return (first + bench.without([mine])[0].text,)
    return (" ".join([*first.split(" ")[: BLOCK + 3 * k], bench.prompt(k + 1)]),)


def conversation(bench: Bench, k: int) -> tuple[str, ...]:
    first = bench.fresh(4000 + k)
    return (first, answered(bench, Ask((first,), some_tokens(k), chat=True)).strip() or first, bench.prompt(k + 2))


def some_tokens(k: int) -> int:
    """Half a block to three blocks."""
    return BLOCK // 2 + 11 * k % (5 * BLOCK // 2)


def answered(bench: Bench, ask: Ask) -> str:
    """By the side without speculation; the other was asked too."""
    return bench.both(ask)[1].text


# --- what of one side's answers is a fault ---------------------------------------------------------------------------


def first_and_last_differ(answers: Sequence[Answer], nats: float) -> Pairs:
    """And do not part at a tie."""
    return differing(answers[-1:], answers[0], nats)


def differing(answers: Sequence[Answer], first: Answer, nats: float) -> Pairs:
    """Those that part from the first, and not at a tie."""
    return [(said, first) for said in answers if parted(said, first) and not tied(said, first, nats)]


def in_company_differ(answers: Sequence[Answer], nats: float) -> Pairs:
    """The first or the last of those that were under way together, of which there may be but one."""
    alone, *others = answers
    return differing([others[0], others[-1]], alone, nats)


def last_two_differ(answers: Sequence[Answer], nats: float) -> Pairs:
    """Of what was heard to the end: either from the first."""
    first, *others = [answer for answer in answers if answer.text or answer.choices[0].finish]
    return differing(others[-2:], first, nats)


def alike(answers: Sequence[Answer], nats: float) -> Pairs:
    """Two sampled answers that begin alike for half of their length; one of a few characters says nothing."""
    return [(a, b) for i, a in enumerate(answers) for b in answers[:i] if begin_alike(a.text, b.text)]


def unseeded_alike(answers: Sequence[Answer], nats: float) -> Pairs:
    """Those of the first of two in every step."""
    return alike(answers[::2], nats)


def filters_moved(answers: Sequence[Answer], nats: float) -> Pairs:
    """One that a filter leaves one token is not as at temperature 0."""
    return differing(answers[2:3], answers[0], nats) if len(answers) == 4 else []  # with fewer it is another's


def choices_alike(answers: Sequence[Answer], nats: float) -> Pairs:
    return alike(alone(answers[0]), nats)


def all_alike(answers: Sequence[Answer], nats: float) -> Pairs:
    """Every choice is the first one."""
    first, *others = alone(answers[0])
    return [(other, first) for other in others] if all(other.text == first.text for other in others) else []


def choices_differ(answers: Sequence[Answer], nats: float) -> Pairs:
    """Any other choice than the first, and not at a tie."""
    first, *others = alone(answers[0])
    return differing(others, first, nats)


def alone(answer: Answer) -> list[Answer]:
    """Its choices, each as an answer."""
    return [Answer((choice,)) for choice in answer.choices]


def begin_alike(a: str, b: str) -> bool:
    half = max(len(a), len(b)) // 2
    return half >= 4 and a[:half] == b[:half]
