"""What is asked in the claims of `claims.py`: steps of requests, each step under way together.

The `k` of each is the number of the look, so that looks at one claim are at different prompts.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from refengine.audit.served.ask import Ask
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.options import NEVER_SAID, PENALISED, STRICT, TOKENS, Options
from refengine.audit.served.claims.schedules.prompts import BLOCK, PIECES, long_prompt, one_word, plain, streamed
from refengine.audit.served.claims.takes import LONG

SAMPLED_TOKENS = 24  # of a sampled completion: two that are equal are no accident
PLACES = 6  # requests under way together
EQUAL = 12  # of them, where all are one
STOPS = 3  # letters of which one comes soon
COLD = 2 * BLOCK + 5  # words of a prompt of which a cache will hold some blocks
CHILLY = 0.25  # a temperature that users ask for who want hardly any chance
NO_TEMPERATURE = -1.0
COOL, HOT = 0.02, 2.0  # temperatures: tokens that are 0.25 nats apart have odds of one in 270000 at the first
FILLING = "the "  # a word of one token
HEAVY = {"frequency_penalty": 2.0, "presence_penalty": 2.0, "logit_bias": {"5": 100.0}}  # of a neighbour
Steps: TypeAlias = Callable[[Bench, int], Sequence[Sequence[Ask]]]


def sampled(bench: Bench, k: int, seed: int | None, temperature: float = 1.0) -> Ask:
    return Ask((bench.prompt(k),), SAMPLED_TOKENS, temperature, seed=seed)


def repeat(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """A prompt that was not asked before: what a cache holds of it is the first answer's."""
    mine = replace(plain(bench, k), turns=(bench.fresh(k),))
    return [[mine], [mine]]


def whole_and_streamed(mine: Ask) -> Sequence[Sequence[Ask]]:
    return [[mine], [streamed(mine)]]


def stream(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    return whole_and_streamed(plain(bench, k))


def stream_chat(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    return whole_and_streamed(replace(plain(bench, k), chat=True))


def streamed_choices(stops: bool) -> Steps:
    """stops: in turn with some that only begin to come, for which a stream holds text back."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        begun = {"stop": [letter + NEVER_SAID for letter in soon(bench, k)]} if stops and k % 2 else {}
        return whole_and_streamed(replace(sampled(bench, k, 1000 + k), options={"n": 3, **begun}))

    return steps


def streamed_greedy_choices(stops: bool) -> Steps:
    """stops: in turn with one that comes, so that they say how they ended."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        mine = plain(bench, k)
        ended = {"stop": soon(bench, k)} if stops and k % 2 else {}
        return whole_and_streamed(replace(mine, options={**mine.options, "n": 3, **ended}))

    return steps


def same_seed(kinds: Sequence[tuple[Options, bool]]) -> Steps:
    """In turn with these parameters, and in chat: other code may toss the coins there. First the prompt is in no cache,
    and then it is. Now and then the seed is one that no signed number of 32 bits holds."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        options, chat = kinds[k % len(kinds)]
        seed = 1000 + k + (1 << 31) * (k % 3 == 2)
        mine = replace(sampled(bench, k, seed), turns=(bench.fresh(3000 + k, COLD),), options=options, chat=chat)
        return [[mine], [mine]]

    return steps


def seed_zero(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """The seed that reads as none where a test for one asks whether it is true."""
    return [[sampled(bench, k, 0)], [sampled(bench, k, 0)]]


def seed_in_company(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Alone, and then so many times at once that it is seen whether its seed decides; so long that all are under way
    together. Rows tell its tokens. In turn with one choice and with two, whose coins may be one another's."""
    several = {"n": 2} if k % 2 and bench.choices > 1 else {}
    mine = replace(sampled(bench, k, 1000 + k, HOT), tokens=4 * TOKENS, options={**bench.logprobs, **several})
    return [[mine], [mine] * EQUAL]


def other_seed(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """The next one, of which a choice may be another one's of the first, and at times one far away. So it is in vLLM
    with and without speculation."""
    two = {"n": 2} if bench.choices > 1 else {}
    seeds = 1000 + k, 5000 + k if k % 4 == 3 else 1001 + k
    return [[replace(sampled(bench, k, seed), options=two) for seed in seeds]]


def no_seed(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Two at once, then one after the other."""
    mine = sampled(bench, k, None)
    return [[mine, mine], [mine], [mine]]


def beside_seeded(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Five times: what a seed leaves behind is in later answers. The one with a seed comes first and stays, so that it
    is there when the other begins."""
    return [[replace(sampled(bench, k + 1, 1000 + k), tokens=4 * TOKENS), sampled(bench, k, None)]] * 5


def after_stopped_seed(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Each right after one with a seed that a stop has ended."""
    return [[stopped(bench, k + 1, 1000 + k, {})], [sampled(bench, k, None)]] * 2


def after_stopped_filter(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Each right after one with a filter of one or two tokens that a stop has ended. Hot: any token comes."""
    free = replace(sampled(bench, k, None, HOT), options=bench.logprobs)
    return [[stopped(bench, k + 1, None, {"top_k": 1 if k % 3 == 2 else 2})], [free]] * 3


def stopped(bench: Bench, k: int, seed: int | None, options: Options) -> Ask:
    return replace(sampled(bench, k, seed), options={"stop": soon(bench, k), **options})


def soon(bench: Bench, k: int) -> list[str]:
    """Letters of which one comes soon."""
    letters = Counter("".join(bench.plain(k, TOKENS)[1].text.split())).most_common(STOPS)
    return [letter for letter, _ in letters] or ["."]


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
    wished, own = 4 * BLOCK + (1, 0, 1, -1)[k % 4], bench.prompt(k)
    words = max(1, wished - len(own.split()))
    mine = replace(plain(bench, k), turns=(FILLING * words + own,))
    told = bench.without([replace(mine, tokens=1)])[0].usage.get("prompt_tokens", wished)
    mine = replace(mine, turns=(FILLING * max(1, words + wished - told) + own,))
    return [[mine], [mine], [mine]]


def a_b_a(theirs: Options, penalties: Sequence[Options], refused: bool) -> Steps:
    """theirs: of the last request before A is asked again, in turn. penalties: in turn A has these, and so many words
    that a cache holds some blocks of them. refused: in turn the last request asks for what no server should take."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        """B begins as A does, so that a cache of prefixes serves both, and goes on otherwise."""
        mine, held = plain(bench, k), penalties[k % len(penalties)] if penalties and k % 4 >= 2 else {}
        mine = replace(mine, turns=(bench.fresh(500 + k, COLD * bool(held)),), options={**mine.options, **held})
        words = mine.turns[0].split(" ")
        other = " ".join([*words[: max(1, len(words) - 1)], bench.prompt(k + 3)])
        last = replace(sampled(bench, k + 1, k), options=theirs if k % 2 else {})
        if refused and k % 4 == 3:
            last = replace(last, temperature=NO_TEMPERATURE, wrong=True)
        return [[mine], [replace(mine, turns=(other,))], [last], [mine]]

    return steps


def beside_short(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """The others end after one to four tokens, in the middle of a round."""
    mine = plain(bench, k)
    short = [replace(plain(bench, k + i), tokens=i) for i in range(1, 5)]
    return [[mine], [*short, mine]]


def company(n: int, longer: tuple[int, Options]) -> Steps:
    """longer: tokens and options of a long answer."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        """Where rows tell ties, sixteen of long answers, and eight of such in turn: some engines then put one off that
        was begun, and are so fast that short ones are hardly under way together."""
        short: tuple[int, Options] = TOKENS, {}
        long = {8: short if k % 2 else (4 * TOKENS, {}), 16: longer}
        tokens, more = long.get(n, short) if bench.logprobs else short
        asks = (plain(bench, k + i) for i in range(n))
        mine, *others = (replace(ask, tokens=tokens, options={**ask.options, **more}) for ask in asks)
        return [[mine], [*others, mine]]

    return steps


def beside_itself(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """While the same prompt is being answered: what is there of it is still written to. Some words longer each time."""
    mine = replace(plain(bench, k), turns=(bench.fresh(8000 + k, BLOCK // 2 + 5 * (k % 12)),))
    return [[mine], [replace(mine, tokens=4 * TOKENS), mine]]


def echoed_in_company(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """A prompt that is read in several passes while others go on."""
    words = long_prompt(bench, 3 * k)
    mine = replace(plain(bench, k), turns=words, tokens=1, options={**bench.logprobs, "echo": True})
    return [[mine], [replace(plain(bench, k), tokens=2 * TOKENS), mine]]


def sampled_json(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """Hot: what is likely is mostly allowed, whatever a grammar says."""
    options = {"response_format": {"type": "json_object"}, **bench.several}
    return [[replace(sampled(bench, k, None), temperature=2.0, tokens=TOKENS + TOKENS // 2, options=options)]]


def neighbours(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """As the first of those that are under way together, and as the last."""
    mine = plain(bench, k)
    heavy = [replace(mine, turns=(bench.prompt(k + i),), options={**mine.options, **HEAVY}) for i in range(1, 4)]
    return [[mine], [mine, *heavy, mine]]


def around_sampled(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """As the first and as the last of those under way: beside others, and beside such that have filters or bans."""
    mine = sampled(bench, k, 1000 + k)
    theirs: Sequence[Options] = ({"top_k": 1}, HEAVY, {"top_p": 0.1})
    others = [sampled(bench, k + i, 77 * k + i) for i in range(1, 4)]
    filtered = [replace(other, options=options) for other, options in zip(others, theirs, strict=True)]
    return [[mine], [mine, *others, mine], [mine, *filtered, mine]]


def hot_neighbours(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """In turn at temperature 0, and nearly there, beside high temperatures, to the end."""
    mine = replace(plain(bench, k), tokens=2 * TOKENS, temperature=(0.0, COOL)[k % 2], seed=k)
    hot = [replace(sampled(bench, k + i, None, HOT), tokens=mine.tokens) for i in range(1, 4)]
    return [[mine], [*hot, mine]]


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


def choices(lists: bool) -> Steps:
    """lists: in turn of a list of equal prompts."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        mine = sampled(bench, k, None)
        told = {"options": {"n": 2}, "more": mine.turns * 2} if lists and k % 2 else {"options": {"n": 3}}
        return [[replace(mine, **told)]]

    return steps


def list_of_prompts(kinds: Sequence[Options], streams: bool) -> Steps:
    """Each by itself, and then all in a list: in turn streamed, and with parameters that one may lend another."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        mine = plain(bench, k)
        each = [
            replace(mine, turns=(bench.prompt(k + i),), options={**mine.options, **kinds[k % len(kinds)]})
            for i in range(3)
        ]
        listed = replace(each[0], more=tuple(ask.turns[0] for ask in each[1:]), stream=streams and k % 2 == 1)
        return [each, [listed]]

    return steps


def greedy_choices(kinds: Sequence[Options]) -> Steps:
    """In turn with these parameters, of which a choice may have another's."""

    def steps(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
        return [[replace(plain(bench, k), options={**bench.logprobs, "n": 3, **kinds[k % len(kinds)]})]]

    return steps


def cold_choices(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """So cold that an engine might take it for 0, and so long that some choice goes another way."""
    return [[replace(sampled(bench, k, None, CHILLY), tokens=2 * TOKENS, options={"n": bench.choices})]]


def hang_up(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """A client that leaves another request in the middle, and this very one; this one beside them, and after them in
    so many places of the batch that one of theirs is among them."""
    return left_beside(bench, k, [plain(bench, i) for i in (k, k + 1, k + 2)], short=(k + 1) // 2 % 2 == 1)


def hang_up_penalised(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """With penalties: what was counted of a text that never ended."""
    return left_beside(bench, k, [with_penalties(bench, i) for i in (k, k + 1, k + 2)], short=(k + 1) // 2 % 2 == 0)


def left_beside(bench: Bench, k: int, asks: Sequence[Ask], short: bool) -> Sequence[Sequence[Ask]]:
    """short: prompts of one word, of which no cache holds a block that would put right what was left behind."""
    if short:
        asks = [replace(ask, turns=one_word(bench, k + i)) for i, ask in enumerate(asks)]
    mine = asks[0]
    left = [replace(streamed(ask), tokens=LONG[-1], hang_up=PIECES[k % 2]) for ask in asks]
    return [[mine], [*left, mine], [mine] * PLACES]


def with_system(bench: Bench, k: int) -> Ask:
    return replace(plain(bench, k), chat=True, system=bench.prompt(k + 1))


def after_system(bench: Bench, k: int) -> Sequence[Sequence[Ask]]:
    """A chat without a system message, before and after others with one and in as many places."""
    mine = replace(plain(bench, k), chat=True)
    return [[mine], [with_system(bench, k + i) for i in range(3)], [mine] * 3]
