"""Requests of the running loop by the hundred thousand.

A decoder learns of chance only what its coins answer. So a request whose coins answer every question as those of an
earlier request did says what that one said, round by round, and is not decoded a second time: its answers are looked
up. Every history of answers that occurs is decoded by the loop itself, from the prompt on, with caches, rollback,
policy, stop and limit; one target and one drafter serve all requests, and nothing is put back between them.

That a request does not feel those before it is not taken on trust: every AGAIN-th is decoded whatever is known, and
must be asked what was asked the first time, at the same odds, and say the same. And all that is decoded is held to the
definitions on the same coins, which leave nothing to chance: `coin_by_coin.py`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import torch
from torch import Tensor

from refengine.decoder.loop import Played, Session, Stop
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Philox, Site
from refengine.exact.chance import ACCEPT_BITS, CHOOSE_BITS, choose_below
from refengine.exact.chance import Site as OneSite
from refengine.selfcheck.drafters.laws.cells import CELLS, POLICIES, plain_row, session, target_of
from refengine.selfcheck.drafters.laws.memo import content
from refengine.selfcheck.drafters.table import ROWS
from statistical_tests.coin_by_coin import ROUNDING, Exactly, check, check_rows, exactly, one_site

LENGTH, STOP = 6, 3  # the limit of a request, and the token that ends it
AGAIN = 16
SERVED = ("temperature-1", "mixed")  # policies, in turn: one without a memory on three tokens, one with, on two

Key: TypeAlias = tuple[str, Tokens, object]  # policy, output before a round, and the round's rows and block


# --- coins -----------------------------------------------------------------------------------------------------------


@dataclass
class Ahead:
    """The uniforms of many requests, made site by site for all at once: accept's, and choose's."""

    coins: Philox
    known: dict[OneSite, tuple[list[float], list[float]]] = field(default_factory=dict)

    def uniforms(self, site: OneSite) -> tuple[list[float], list[float]]:
        if site not in self.known:
            high, low, _, _ = self.coins._words(site)
            fine = (high << CHOOSE_BITS - 32) | (low >> 64 - CHOOSE_BITS)
            coarse = (high >> 32 - ACCEPT_BITS).double() * 2.0**-ACCEPT_BITS
            self.known[site] = coarse.tolist(), (fine.double() * 2.0**-CHOOSE_BITS).tolist()
        return self.known[site]


@dataclass
class Asked:
    """A question to the coins: `accept` at odds (num, den), or `choose` among weights."""

    accept: bool
    site: OneSite
    odds: tuple[float, ...]

    def same(self, other: object) -> bool:
        """Whether it is the same question, up to rounding of the odds."""
        return (
            isinstance(other, Asked)
            and (self.accept, self.site, len(self.odds)) == (other.accept, other.site, len(other.odds))
            and all(abs(a - b) <= ROUNDING for a, b in zip(self.odds, other.odds, strict=True))
        )


@dataclass
class OfOne:
    """Philox's coins of one request, lane `lane` of those made ahead, one number at a time: tensors of one element cost
    as much as the round that they decide. `heard`: what was asked so far, with the answers."""

    ahead: Ahead
    lane: int
    heard: list[tuple[Asked, int]] = field(default_factory=list)

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        return torch.tensor([bool(self._hear(Asked(True, one_site(site), (float(num), float(den)))))])

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        return torch.tensor([self._hear(Asked(False, one_site(site), tuple(weights[0].tolist())))])

    def _hear(self, asked: Asked) -> int:
        self.heard.append((asked, self.answer(asked)))
        return self.heard[-1][1]

    def answer(self, asked: Asked) -> int:
        coarse, fine = self.uniform(asked.site)
        if asked.accept:
            num, den = asked.odds
            return coarse * den < num
        return first_above(fine, list(asked.odds))

    def uniform(self, site: OneSite) -> tuple[float, float]:
        """Accept's, and choose's."""
        coarse, fine = self.ahead.uniforms(site)
        return coarse[self.lane], fine[self.lane]


def first_above(share: float, level: list[float]) -> int:
    """`engine.sums.first_above` of one row, in the same order of addition."""
    tree = []
    while len(level) > 1:
        level = level + [0.0] * (len(level) % 2)
        tree.append(level)
        level = [level[i] + level[i + 1] for i in range(0, len(level), 2)]
    (root,) = level
    bar, before, at = share * root, 0.0, 0
    for nodes in reversed(tree):
        left, right = nodes[2 * at : 2 * at + 2]
        at *= 2
        if bar >= before + left and right > 0:
            before, at = before + left, at + 1
    return at if root > 0 else -1


def coins_ahead(seed: int, count: int, at_once: int = 1024) -> Iterator[OfOne]:
    """The coins of requests 0, 1, 2, ..., in turn."""
    for first in range(0, count, at_once):
        ahead = Ahead(Philox(seed, torch.arange(first, min(first + at_once, count))))
        yield from (OfOne(ahead, lane) for lane in range(len(ahead.coins.requests)))


# --- requests --------------------------------------------------------------------------------------------------------


@dataclass
class Told:
    """What requests of one history of answers said: the output, and of each round its key and the tokens and accepted
    nodes of its verdict. `times`: how many requests."""

    out: Tokens
    rounds: list[tuple[Key, tuple[Tokens, Tokens]]]
    times: int = 0

    def same(self, other: object) -> bool:
        """Whether the same was said in the same rounds; their rows may differ by rounding."""
        if not isinstance(other, Told) or self.out != other.out or len(self.rounds) != len(other.rounds):
            return False
        return all(a == b for (_, a), (_, b) in zip(self.rounds, other.rounds, strict=True))


@dataclass
class Fork(Asked):
    """A question, and what follows each answer that was given."""

    after: "dict[int, Fork | Told]" = field(default_factory=dict)


@dataclass
class Requests:
    """All requests of a loop under one policy."""

    play: Session
    drafter: str
    policy: str
    prompt: Tokens
    by_coin: bool = True  # whether what is decoded is held to the definitions on the same coins
    begun: "dict[int, Fork | Told]" = field(default_factory=dict)  # under 0, the first question
    told: list[Told] = field(default_factory=list)
    rounds: dict[Key, Played] = field(default_factory=dict)
    exact: dict[Key, Exactly] = field(default_factory=dict)  # the same as their rule is defined on them
    decoded: int = 0  # tokens that the loop itself has emitted
    corrected: int = 0  # corrections among the rounds of every AGAIN-th request

    def serve(self, coins: OfOne, again: bool) -> None:
        """One request; it is decoded if its history is new, or `again`."""
        told = self._look_up(coins)
        if told is None or again:
            told = self._file(coins, self._decode(coins))
            self.corrected += again * sum(self.exact[key].is_corrected(path) for key, (_, path) in told.rounds)
        told.times += 1

    def _look_up(self, coins: OfOne) -> Told | None:
        here = self.begun.get(0)
        while isinstance(here, Fork):
            here = here.after.get(coins.answer(here))
        return here

    def _decode(self, coins: OfOne) -> Told:
        play = self.play
        play.policy, play.max_new_tokens, play.stop = POLICIES[self.policy], LENGTH, Stop(frozenset({STOP}))
        play.begin(self.prompt, coins)
        while not play.done:
            play.play(coins)
        self.decoded += len(play.out)
        rounds, before = [], len(play.out) - sum(len(played.emitted) for played in play.rounds)
        if self.by_coin:
            first = choose_below(*self._first(coins))
            assert play.out[:1] == (first,), f"by its coin, the first token is {first}, and the loop has {play.out[0]}"
        for played in play.rounds:
            block, out = played.block, play.out[:before]
            key = (self.policy, out, content((played.p, block.tokens, block.parents, block.q)))
            if key not in self.rounds:
                self.rounds[key], self.exact[key] = played, Exactly.of(played)
            if self.by_coin:
                check_rows(played, out, self.row_after)
                check(ROWS[self.drafter].rules[0], self.exact[key], played, coins, len(self.prompt) + before)
            rounds.append((key, (played.verdict.tokens, played.verdict.path)))
            before += len(played.emitted)
        return Told(play.out, rounds)

    def row_after(self, out: Tokens) -> tuple[float, ...]:
        return row_after(self.drafter, self.policy, out)

    def _first(self, coins: OfOne) -> tuple[Fraction, tuple[Fraction, ...]]:
        """The uniform and the row of a request's first token."""
        row = exactly(torch.tensor(self.row_after(()), dtype=torch.float64))
        return Fraction(coins.uniform(("emit", len(self.prompt)))[1]), row

    def _file(self, coins: OfOne, found: Told) -> Told:
        """Enter a decoded history; the one that is kept. Raises AssertionError where an earlier one differs."""
        here, answer = self.begun, 0
        for asked, said in coins.heard:
            known = here.setdefault(answer, Fork(asked.accept, asked.site, asked.odds))
            assert asked.same(known), f"a request feels earlier ones: it is asked {asked}, one like it was {known}"
            here, answer = known.after, said  # type: ignore[union-attr]  # what is the same is a question
        if answer not in here:
            here[answer] = found
            self.told.append(found)
        kept = here[answer]
        assert kept.same(found), f"a request feels earlier ones: it says {found.out}, and one like it {kept}"
        return kept  # type: ignore[return-value]


def row_after(drafter: str, policy: str, out: Tokens) -> tuple[float, ...]:
    """The target's row after an output, by one pass over the whole text."""
    return plain_row(target_of(drafter), policy, ROWS[drafter].prompt, out)


def tokens_of_a_request(row: Callable[[Tokens], tuple[float, ...]]) -> float:
    """The expected length of an output, by the target's law."""

    def longer(out: Tokens) -> float:
        if len(out) == LENGTH or out[-1:] == (STOP,):
            return 0.0
        return 1.0 + sum(mass * longer((*out, x)) for x, mass in enumerate(row(out)) if mass > 0)

    return longer(())


@torch.inference_mode()
def serve(
    drafter: str, tokens: int, loop: Session | None = None, again: int = AGAIN, by_coin: bool = True
) -> list[Requests]:
    """About so many tokens of a drafter, half the requests under each policy. How many requests there are is settled
    beforehand: one that is asked for because the others were short would not be a draw from the law."""
    rule = ROWS[drafter].rules[0]
    cell = CELLS[f"{drafter}/{rule}/{SERVED[0]}"]
    loop = loop or session(cell)
    served = [Requests(loop, drafter, policy, cell.prompt, by_coin) for policy in SERVED]
    each = sum(tokens_of_a_request(lambda out, policy=policy: row_after(drafter, policy, out)) for policy in SERVED)
    count = len(SERVED) * math.ceil(tokens / each)
    for number, coins in enumerate(coins_ahead(1000 + list(ROWS).index(drafter), count)):
        served[number % len(SERVED)].serve(coins, again=number // len(SERVED) % again == 0)
    return served
