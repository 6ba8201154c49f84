"""The prompts of the claims of `claims.py`, and what is asked first so that a cache holds of them what it should.

The `k` of each is the number of the look, so that looks at one claim are at different prompts.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from time import sleep
from typing import Any

from refengine.audit.served.ask import Answer, Ask
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.options import TOKENS
from refengine.audit.served.claims.takes import LONG

PASSES = (128, 256, 512)  # tokens of a prompt that engines read at once, set low
PIECES = (40, 1)  # of an answer, before its client leaves: what it leaves behind lies far ahead, or near its prompt
SHORT = (1, 3)  # words of a prompt of which no cache holds a block
LEFT = 1000  # prompts of clients that left, at the most
NOTICED = 0.2  # seconds in which a server has seen that a client left
BLOCK = 16  # tokens of a cache's block, in most engines
BLOCKS = 96  # tokens that are some whole blocks, of nearly every size


def plain(bench: Bench, k: int) -> Ask:
    return Ask((bench.prompt(k),), TOKENS, options=bench.logprobs)


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


def continued(bench: Bench, k: int) -> Ask:
    """A prompt with the answer that was just given to it, so that a cache holds what was generated; and with more. Both
    are new to the cache. In turn it ends anywhere in a block; as a block does, or with the next one's first token; or
    right behind one, where nothing is read that would cover up what the block holds. At such an edge it is sent as ids
    where a server takes them: text may be cut into other tokens when it comes back. The answer is in turn that at
    temperature 0, and one that was sampled with speculation, of which more drafts were refused, as one of several
    choices where there are some."""
    first, at_the_edge = bench.fresh(3000 + k), k % 3 == 1
    tokens, goes_on = some_tokens(k) + BLOCK, at_the_edge or k % 6 == 3
    if at_the_edge:
        asked = bench.without([Ask((first,), 1)])[0].usage.get("prompt_tokens", 0)
        tokens += -(asked + tokens) % BLOCK + (k // 3 % 3 == 1)
    mine = Ask((first,), tokens, options={**bench.logprobs, **bench.ids})
    if k // 2 % 2:
        several = {"n": 2} if bench.choices > 1 else {}
        said = bench.each([replace(mine, temperature=1.0, seed=k, options={**mine.options, **several})])[0][0]
    else:
        said = bench.both(mine)[1]
    answer = said.choices[-1]
    kept = behind_a_block(said) if k % 3 == 2 else None
    text = "".join(answer.tokens[:kept]) if answer.tokens and kept else answer.text
    mine = replace(plain(bench, k), turns=(first + text + (" " + bench.prompt(k + 1)) * goes_on,))
    if k % 3 == 0 or not (bench.prompt_ids and answer.ids and answer.prompt_ids):
        return mine
    more = ids_of(bench, k + 1) if goes_on else ()
    return replace(mine, prompt_ids=(*answer.prompt_ids, *answer.ids[:kept], *more))


def behind_a_block(said: Answer) -> int | None:
    """How many tokens of an answer fill some blocks together with its prompt, and one more; None where nobody reports
    that."""
    choice = said.choices[-1]
    behind = 1 - said.usage.get("prompt_tokens", 0)
    ends = (i for i in range(len(choice.tokens or choice.ids or ()), 1, -1) if (i - behind) % BLOCK == 0)
    return next(ends, None) if said.usage else None


def as_ids(bench: Bench, k: int) -> Ask:
    """A prompt as the ids of its tokens, with those of its answer."""
    answer = bench.plain(k, TOKENS)[1].choices[0]
    return replace(plain(bench, k), prompt_ids=(*ids_of(bench, k), *(answer.ids or ())))


def one_token_apart(bench: Bench, k: int) -> Ask:
    """A prompt, as ids, right after another that has all of its tokens but one: in turn the last of a block, the first
    of the next, and one in the middle. A cache whose key leaves that token out takes the other's block for it."""
    ids = as_ids(bench, k).prompt_ids
    if len(ids) < 2:  # an answer that has none
        return plain(bench, k)
    place = BLOCKS + (-1, 0, -BLOCK // 2)[k % 3]
    end = (place // BLOCK + 1) * BLOCK + 1  # one token of the next block is read, which sees the one that differs
    other = [ids[0], *Random(f"one token apart {k}").choices(ids[1:], k=end - 1)]
    bench.both(replace(plain(bench, k), prompt_ids=tuple(other)))
    apart = next((token for token in ids[1:] if token != other[place]), ids[0])
    return replace(plain(bench, k), prompt_ids=(*other[:place], apart, *other[place + 1 :]))


def ids_of(bench: Bench, k: int) -> tuple[int, ...]:
    """Those of a prompt's tokens; () where nobody reports them."""
    return bench.plain(k, TOKENS)[1].choices[0].prompt_ids or ()


def after_left(first: int, *kinds: Mapping[str, Any]) -> Callable[[Bench, int], tuple[str, ...]]:
    """A short prompt that nobody asked, right after a client left in the middle of its answer to another, which had in
    turn something of its own that the next request may take over. first: the number of the first prompt. kinds: the
    fields of `Ask` that it had."""

    def turns(bench: Bench, k: int) -> tuple[str, ...]:
        words = SHORT[k // 2 % 2]
        leave(bench, replace(Ask((bench.fresh(first + k, words),), LONG[-1]), **kinds[k % len(kinds)]))
        return (bench.fresh(first + LEFT + k, words),)

    return turns


def after_left_in_cache(bench: Bench, k: int) -> tuple[str, ...]:
    """A prompt of some blocks whose first client left in the middle of the answer, so that what a cache holds of it is
    of a request that never ended: in turn the same prompt, one with the answer's beginning, and one that parts from
    it."""
    first = bench.fresh(5000 + k, 2 * BLOCK + 3 * k)
    mine = Ask((first,), some_tokens(k))
    leave(bench, replace(mine, tokens=LONG[-1]))
    if k % 3 == 0:
        return (first,)
    if k % 3 == 1:
        return (first + bench.without([mine])[0].text,)
    return (" ".join([*first.split(" ")[: BLOCK + 3 * k], bench.prompt(k + 1)]),)


def leave(bench: Bench, ask: Ask) -> None:
    """A server comes to know of it when it writes the next piece: what is asked at once may be asked before."""
    bench.each([replace(streamed(ask), hang_up=PIECES[-1])])
    sleep(NOTICED)


def conversation(bench: Bench, k: int) -> tuple[str, ...]:
    """Of two things that a user says, and in turn of three."""
    turns: tuple[str, ...] = (bench.fresh(4000 + k),)
    for more in range(1 + k % 2):
        said = answered(bench, Ask(turns, some_tokens(k), chat=True)).strip()
        turns = (*turns, said or turns[0], bench.prompt(k + 2 + more))
    return turns


def some_tokens(k: int) -> int:
    """Half a block to three blocks."""
    return BLOCK // 2 + 11 * k % (5 * BLOCK // 2)


def answered(bench: Bench, ask: Ask) -> str:
    """By the side without speculation; the other was asked too."""
    return bench.both(ask)[1].text


def streamed(ask: Ask) -> Ask:
    return replace(ask, stream=True)
