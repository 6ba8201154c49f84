"""Laws of whole requests on tables, token for token: where they end, what company does to them, what is refused.

They stand in `every.py` beside the others; each draws its coins from `Philox`, which are the same alone and in company.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

from properties.helpers.table_decoder import TableDrafter, TableTarget, logits
from refengine import strategies
from refengine.decoder.batch import Batch
from refengine.decoder.loop import Played, Session, Stop, generate, nodes, plain
from refengine.decoder.protocols import Tokens, Verdict
from refengine.decoder.rows import point_block
from refengine.engine.block import ROOT
from refengine.engine.coins import Coins, Philox
from refengine.engine.policy import NothingLeft, Policy, Step, greedy, pipeline
from refengine.engine.rules import RULES as ENGINE
from refengine.exact.rules import RULES
from refengine.strategies import World

SIZE = 3
NEVER = Stop()
STARTS = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=2).map(tuple)


# --- where a policy leaves nothing -----------------------------------------------------------------------------------


def tokens_before(end: NothingLeft) -> int:
    """How many tokens had been emitted when nothing was left, as the message says."""
    return int(str(end).split()[-2])


def said(decode: Callable[[int], Tokens], length: int) -> tuple[Tokens, bool]:
    """What a decode of so many tokens says, and whether the policy then left none; said again, up to there."""
    try:
        return decode(length), False
    except NothingLeft as end:
        return decode(tokens_before(end)), True


class Ending(Session):
    """A session that ends where a policy leaves nothing: with one token more, which no vocabulary of its size has."""

    def begin(self, prompt: Tokens, coins: Coins) -> None:
        self._or_end(lambda: super(Ending, self).begin(prompt, coins))

    def play(self, coins: Coins) -> None:
        self._or_end(lambda: super(Ending, self).play(coins))

    def _or_end(self, step: Callable[[], None]) -> None:
        try:
            step()
        except NothingLeft as end:
            self.out, self.done = (*self.out[: tokens_before(end)], self.target.vocabulary), True
            none = point_block((), (), self.target.device)
            self.rounds.append(Played(none, torch.empty(0), Verdict((), ()), ()))


def logarithms(policy: Policy) -> Step:
    """The row of a policy as logits again, for one more step."""
    return lambda before, prompt, out: policy(before, prompt, out).log()


def judged_by(rule: str, policy: Policy) -> Policy:
    """The policy under which a rule promises plain decoding."""
    return policy if RULES[rule].law == "target" else pipeline(logarithms(policy), greedy())


def living(policy: Policy) -> Policy:
    """The policy, with a uniform row where it leaves nothing."""

    def row(before: torch.Tensor, prompt: Tokens, out: Tokens) -> torch.Tensor:
        try:
            return policy(before, prompt, out)
        except NothingLeft:
            return torch.full_like(before, 1 / len(before))

    return row


# --- requests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """A decode by a rule.

    joins   before which step of a batch it comes
    leaves  before which step it goes: while it waits, while it runs, when it has ended, or without having come
    before  a prompt that its session has served until then
    """

    world: World
    rule: str
    policy: strategies.Policy
    prompt: Tokens
    length: int
    seed: int
    joins: int = 0
    leaves: int = 99
    before: Tokens = ()

    @property
    def coins(self) -> Philox:
        return Philox(self.seed, torch.tensor([self.seed // 2]))

    def session(self, stop: Stop = NEVER, policy: Policy | None = None) -> Session:
        parts = TableTarget(self.world.target, SIZE), TableDrafter(self.world, SIZE)
        policy = judged_by(self.rule, self.policy.engine) if policy is None else policy
        return Session(*parts, ENGINE[self.rule], policy, self.length, stop)

    def said(self, stop: Stop = NEVER) -> tuple[Tokens, bool]:
        """By the loop, alone."""
        one = self.session()

        def decode(length: int) -> Tokens:
            found = generate(one.target, one.drafter, one.rule, one.policy, self.prompt, length, self.coins, stop)
            out = found.tokens[:1]
            for played in found.rounds:
                self.rows_are_the_policys(played, out)
                assert played.emitted == played.verdict.tokens[: len(played.emitted)]
                out += played.emitted
            assert found.tokens == out
            return found.tokens

        return said(decode, self.length)

    def rows_are_the_policys(self, played: Played, out: Tokens) -> None:
        """Of a round after `out`: those that judge, uniform where nothing is left, and those that were drawn from."""
        policy, paths = judged_by(self.rule, self.policy.engine), dict[int, Tokens]({ROOT: ()})
        for node, (token, parent) in enumerate(zip(*nodes(played.block), strict=True)):
            paths[node] = (*paths[parent], token)
            if played.block.q is not None:
                drawn_from = logits(self.world.draft_row(self.prompt + out + paths[parent]))
                assert torch.equal(played.block.q[0, node], policy(drawn_from, self.prompt, out + paths[parent]))
        for row, path in zip(played.p, paths.values(), strict=True):
            wanted = living(policy)(logits(self.world.target(self.prompt + out + path)), self.prompt, out + path)
            assert float((row - wanted).abs().max()) < 1e-12

    def plain(self, stop: Stop = NEVER) -> tuple[Tokens, bool]:
        one = self.session()
        return said(lambda length: plain(one.target, one.policy, self.prompt, length, self.coins, stop), self.length)

    def in_steps(self, policy: Policy) -> Iterator[Tokens]:
        """What it has said after every step of its own, alone; for ever after its end."""
        one = self.session(policy=policy)
        one.begin(self.prompt, self.coins)
        while True:
            yield one.out
            if not one.done:
                one.play(self.coins)


def requests(rule: str, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[Request]:
    return st.builds(
        Request,
        strategies.worlds(RULES[rule].shape, RULES[rule].drawn, SIZE),
        st.just(rule),
        strategies.policies(SIZE, most=2),
        STARTS,
        st.sampled_from((2, 8, 5, 3, 1, 0, -1)),
        st.integers(0, 99),
        **more,
    )


LOSSLESS = st.sampled_from([card.name for card in RULES.values() if card.lossless])
ANY = LOSSLESS.flatmap(cache(requests))
LONG = ANY.map(lambda one: replace(one, length=max(6, one.length)))  # shorter where a policy leaves nothing
MOVES = {"joins": st.integers(0, 3), "leaves": st.just(99) | st.integers(0, 5), "before": st.just(()) | STARTS}
COMPANIES = LOSSLESS.flatmap(cache(lambda rule: st.lists(requests(rule, **MOVES), min_size=2, max_size=3)))


Spelling = tuple[tuple[bytes, ...], str]  # what the tokens stand for, and its encoding
# Letters that tokens share, several of one, none; and letters of two tokens each.
SPELLINGS = (((b"a", b"ba", b""), "utf-8"), ((b"a", b"b", b"c"), "utf-16-le"))


def a_decode_ends_where_its_text_does(one: Request, spelling: Spelling, data: st.DataObject) -> None:
    """After the first token that is a stop token, or whose text completes a stop string, of any length: an unstopped
    decode with the same coins says the rest, or finds that nothing is left."""

    def text_of(tokens: Tokens) -> str:
        spelled, encoding = spelling
        return b"".join(spelled[token] for token in tokens).decode(encoding, errors="replace")

    whole, nothing = one.said()
    assert nothing or len(whole) == max(0, one.length)
    text = text_of(whole)
    start = data.draw(st.integers(0, len(text)), label="where a stop string begins in the text")
    string = text[start : start + data.draw(st.integers(1, 4), label="its length")]
    other = data.draw(st.sampled_from(("", "c", "bb", "ab")), label="another stop string")
    stops = data.draw(st.frozensets(st.integers(0, SIZE - 1), max_size=2), label="stop tokens")
    strings = tuple(s for s in (other, string) if s)
    ends = [
        n for n in range(1, len(whole) + 1) if whole[n - 1] in stops or any(s in text_of(whole[:n]) for s in strings)
    ]
    assert one.said(Stop(stops, strings, text_of)) == ((whole[: ends[0]], False) if ends else (whole, nothing))


def coin_for_coin_a_decode_is_plain(one: Request, stop: frozenset[int], drafts: bool) -> None:
    """Where tokens are the target's own draws, and where nothing is drafted, the same coins say the same tokens, end
    in the same place, and find that nothing is left after the same ones."""
    if not (drafts and one.rule in ("agreement", "greedy")):
        one = replace(one, world=replace(one.world, where=(), given=((), ())))
    assert one.said(Stop(stop)) == one.plain(Stop(stop))


def requests_say_in_company_what_they_say_alone(company: list[Request]) -> None:
    """Each with its own coins, in one batch, ragged in everything: prompts, blocks, paths, when they come, end and are
    taken out. Who has left says nothing more, and is there no longer."""
    together, policies = Batch(), [living(one.policy.engine) for one in company]
    sessions = [one.session(policy=policy) for one, policy in zip(company, policies, strict=True)]
    alone = [one.in_steps(policy) for one, policy in zip(company, policies, strict=True)]
    for one, session in zip(company, sessions, strict=True):
        if one.before:
            session.begin(one.before, one.coins)
            if not session.done:
                session.play(one.coins)
    expected, there = [session.out for session in sessions], set[int]()
    for now in range(5 + max(one.length for one in company)):
        for i, one in enumerate(company):
            if one.joins == now:
                together.join(sessions[i], one.prompt, one.coins)
                there.add(i)
            if one.leaves == now:
                together.leave(sessions[i])
                there.discard(i)
        together.step()
        for i in there:
            expected[i] = next(alone[i])
        assert [session.out for session in sessions] == expected
        assert all(sum((r.emitted for r in s.rounds), s.out[:1]) == s.out for s in sessions)
        there = {i for i in there if len(expected[i]) < company[i].length}
        assert {id(session) for session, _ in together.live} == {id(sessions[i]) for i in there}
        assert not together.joining


def what_no_decode_can_serve_is_refused(one: Request, other: Request, token: int) -> None:
    """A prompt that is none, by the loop, without speculation and in company; a round after the end; a company of
    requests that are judged in different ways."""
    policy, session = living(one.policy.engine), one.session(policy=living(one.policy.engine))
    for prompt in ((), (*one.prompt, token), (token, *one.prompt)):
        joined = Batch()
        joined.join(session, prompt, one.coins)
        for served in (
            lambda prompt=prompt: session.begin(prompt, one.coins),
            lambda prompt=prompt: plain(session.target, policy, prompt, one.length, one.coins),
            joined.step,
        ):
            with pytest.raises(ValueError, match="prompt"):
                served()
    session.begin(one.prompt, one.coins)
    while not session.done:
        session.play(one.coins)
    with pytest.raises(ValueError, match="has ended"):
        session.play(one.coins)
    with pytest.raises(ValueError, match="stop strings need"):
        Stop(strings=("a",))
    pair = [replace(each, length=3) for each in (one, other)]
    if RULES[one.rule].rule is RULES[other.rule].rule:
        return
    mixed = Batch()
    for each in pair:
        mixed.join(each.session(policy=living(each.policy.engine)), each.prompt, each.coins)
    mixed.step()
    with pytest.raises(ValueError, match="one rule and one kind"):
        mixed.step()
