"""A scheduler and a worker that decode requests of one text by speculation.

The scheduler sends batches; the worker runs them in order, and what it gives comes back later. Two batches may be under
way. `ahead` (asynchronous scheduling): a request is scheduled again before its output is back, as if every draft of the
pass under way were kept, and the worker puts right what was not. Draft ids stay on the worker: the scheduler has
placeholders for them, which the worker can fill in for a request of the batch before. Without `ahead` a request waits.

All requests have one text, so full blocks of keys and values go by their place in it into the prefix cache, as R where
they were computed from the text and as W where a draft that was refused is in them. A request's own slots are counted
as far as they are right: behind these stand refused drafts, or nothing.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias


class Sizes(NamedTuple):
    """Of a model. prompts, lengths: tokens at first and in the end, by request; budget: tokens of a batch."""

    prompts: tuple[int, ...] = (1, 1)
    lengths: tuple[int, ...] = (4, 4)
    gamma: int = 2
    block: int = 2
    budget: int = 4
    ahead: bool = True


class Request(NamedTuple):
    """What the scheduler believes of a request, then what the worker has of it."""

    known: int  # tokens of its text that the scheduler has
    running: bool = False
    computed: int = 0  # tokens whose keys and values are taken to be there, those of passes under way included
    drafts: int = 0  # that the next pass can verify
    flying: int = 0  # passes under way
    stale: int = 0  # of outputs to come, those of before a preemption
    good: int = 0  # slots from the first on that were computed from the text
    right: int = 0  # how many of the drafts on the worker, from the first on, are the text
    refused: int = 0  # drafts of the last pass
    warm: bool = False  # it was in the batch before


class Row(NamedTuple):
    """A request of a batch: `fresh` tokens from `start` on, then drafts."""

    request: int
    start: int
    fresh: int
    drafts: int
    known: int  # tokens that the scheduler had
    early: bool  # scheduled before the output of the pass before was back
    gone: bool = False  # preempted since, or done


class Out(NamedTuple):
    """What comes back: a token at position `at` behind so many drafts that were kept."""

    request: int
    at: int
    drafts: int
    kept: int


class State(NamedTuple):
    requests: tuple[Request, ...]
    batches: tuple[tuple[Row, ...], ...] = ()
    outputs: tuple[tuple[Out, ...], ...] = ()
    cache: str = ""  # by block


FIELDS = {  # of what happens, by its word, for each request that it happens to
    "admit": ("request", "cached"),
    "schedule": ("request", "start", "fresh", "drafts"),
    "execute": ("request", "kept"),
    "deliver": ("request", "known"),
    "preempt": ("request",),
}
Event: TypeAlias = tuple[Any, ...]  # a word, then a tuple of its fields for each request


class Broken(Exception):
    """An invariant, by its name, and how it is broken."""

    def __init__(self, invariant: str, how: str) -> None:
        super().__init__(f"{invariant}: {how}")
        self.invariant = invariant


def first(sizes: Sizes) -> State:
    return State(tuple(map(Request, sizes.prompts)))


def steps(state: State, sizes: Sizes) -> Iterator[tuple[Event, State]]:
    """Everything that can happen. Raises Broken where it may not."""
    for i, q in enumerate(state.requests):
        if q.known == sizes.lengths[i]:
            continue
        if not q.running:
            yield from admitted(state, i, sizes)
        elif q.computed:
            yield ("preempt", (i,)), preempted(state, i)
    if len(state.batches) + len(state.outputs) < 2:
        yield from scheduled(state, sizes)
    if state.batches:
        yield from executed(state, sizes)
    if state.outputs:
        after = delivered(state, sizes)
        yield ("deliver", *((out.request, after.requests[out.request].known) for out in state.outputs[0])), after


def admitted(state: State, i: int, sizes: Sizes) -> Iterator[tuple[Event, State]]:
    """As much of what stands in the prefix cache as has not been evicted is not computed again, but for the last token,
    whose row is needed."""
    q = state.requests[i]
    for hit in range(min(len(state.cache), (q.known - 1) // sizes.block) + 1):
        good = (state.cache[:hit] + "W").index("W") * sizes.block
        after = q._replace(running=True, computed=hit * sizes.block, good=good)
        yield ("admit", (i, hit * sizes.block)), changed(state, i, after)


def preempted(state: State, i: int) -> State:
    q = state.requests[i]
    gone = Request(q.known, drafts=0, stale=q.stale)
    gone = gone._replace(stale=q.stale + q.flying)
    return left(state, i, gone)


def left(state: State, i: int, q: Request) -> State:
    """A request that gives its slots away: what passes under way write for it, nobody reads."""
    batches = tuple(tuple(row._replace(gone=row.gone or row.request == i) for row in rows) for rows in state.batches)
    return changed(state._replace(batches=batches), i, q)


def scheduled(state: State, sizes: Sizes) -> Iterator[tuple[Event, State]]:
    """Any of the requests that can go on; the budget cuts drafts, and a request whose tokens it cannot hold waits."""
    able = [i for i, q in enumerate(state.requests) if q.running and q.known < sizes.lengths[i] and may(q, sizes)]
    for count in range(1, len(able) + 1):
        for chosen in combinations(able, count):
            rows, requests, left = [], list(state.requests), sizes.budget
            for i in chosen:
                q = requests[i]
                fresh = 1 if q.flying else q.known - q.computed
                drafts = min(q.drafts, left - fresh)
                rows.append(Row(i, q.computed, fresh, drafts, q.known, sizes.ahead and q.flying > 0))
                left -= fresh + drafts
                requests[i] = q._replace(computed=q.computed + fresh + drafts, drafts=sizes.gamma, flying=q.flying + 1)
            if left < 0 or any(row.drafts < 0 for row in rows):
                continue
            for i in set(range(len(requests))) - set(chosen):
                requests[i] = requests[i]._replace(drafts=0)
            event = ("schedule", *((row.request, row.start, row.fresh, row.drafts) for row in rows))
            yield event, state._replace(requests=tuple(requests), batches=(*state.batches, tuple(rows)))


def may(q: Request, sizes: Sizes) -> bool:
    """Whether a request may be scheduled, with the passes that are under way."""
    return q.flying == 0 or (sizes.ahead and q.flying == 1)


def executed(state: State, sizes: Sizes) -> Iterator[tuple[Event, State]]:
    """The oldest batch runs. How many of the next drafts are right is left open."""
    batch, *later = state.batches
    requests, outputs = [q._replace(warm=False) for q in state.requests], list[Out]()
    for row in batch:
        q = state.requests[row.request]
        if row.gone:
            outputs.append(Out(row.request, row.start + row.fresh, row.drafts, 0))
            continue
        start = row.start - (q.refused if row.early else 0)
        check_inputs(q, row, start, sizes)
        if start > q.good:
            raise Broken("slots", f"request {row.request} attends to {start} slots, of which {q.good} hold its text")
        drafts = verified(row.drafts, q.right)
        if any(verified(row.drafts, right) != drafts for right in range(sizes.gamma + 1)):
            raise Broken("blind", f"how many drafts of request {row.request} are verified depends on what they are")
        kept = min(drafts, q.right)
        outputs.append(Out(row.request, start + row.fresh, drafts, kept))
        requests[row.request] = q._replace(good=start + row.fresh + kept, refused=drafts - kept, warm=True)
    event = ("execute", *((out.request, out.kept) for out in outputs))
    for rights in choices([q.warm for q in requests], sizes.gamma):
        after = tuple(q._replace(right=right) for q, right in zip(requests, rights, strict=True))
        yield event, State(after, tuple(later), (*state.outputs, tuple(outputs)), state.cache)


def check_inputs(q: Request, row: Row, start: int, sizes: Sizes) -> None:
    """Raises Broken for a pass whose tokens the worker does not have."""
    if start + row.fresh > row.known and not (row.early and q.warm):
        raise Broken("inputs", f"request {row.request} runs position {start}, whose token has not been sent")
    if row.drafts and sizes.ahead and not q.warm:
        raise Broken("inputs", f"request {row.request} runs {row.drafts} placeholders, which nothing has filled in")


def verified(drafts: int, right: int) -> int:
    """How many drafts a pass verifies. right: how many of them the target would keep, which nobody knows yet."""
    return drafts


def delivered(state: State, sizes: Sizes) -> State:
    """The oldest output comes back."""
    batch, *later = state.outputs
    state = state._replace(outputs=tuple(later))
    for out in batch:
        q = state.requests[out.request]
        if q.stale:
            state = changed(state, out.request, q._replace(stale=q.stale - 1))
            continue
        length = sizes.lengths[out.request]
        if q.known == length:
            continue
        at, known = q.known, q.known + out.kept + 1
        known = min(known, length)
        computed = q.computed - (out.drafts - out.kept)
        q = q._replace(known=known, computed=computed, flying=q.flying - 1)
        if known > length:
            raise Broken("end", f"request {out.request} has {known} tokens, and ends at {length}")
        if known == length:
            state = left(state, out.request, Request(known))
            continue
        if out.at != at or (not q.flying and q.computed != known - 1):
            how = (
                f"{q.computed} tokens are taken to be computed of {known}; the output is of position {out.at}, not {at}"
            )
            raise Broken("belief", f"request {out.request}: {how}")
        settled = q.known - 1
        for block in range(len(state.cache), settled // sizes.block):
            state = state._replace(cache=state.cache + ("R" if (block + 1) * sizes.block <= q.good else "W"))
        state = changed(state, out.request, q)
    return state


def changed(state: State, i: int, q: Request) -> State:
    return state._replace(requests=(*state.requests[:i], q, *state.requests[i + 1 :]))


def choices(open_: list[bool], most: int) -> Iterator[tuple[int, ...]]:
    """Every number from 0 to most where it is open, and 0 elsewhere."""
    if not open_:
        yield ()
        return
    for rest in choices(open_[1:], most):
        for number in range(most + 1) if open_[0] else (0,):
            yield (number, *rest)
