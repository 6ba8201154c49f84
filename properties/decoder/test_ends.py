"""Where a request ends, what it refuses, and what a snapshot restores: on toy networks."""

import itertools
from collections.abc import Sequence

import pytest
import torch

from properties.helpers.coins import COINS
from refengine.decoder import Stop, generate
from refengine.decoder.drafters.ngram import NGram
from refengine.decoder.loop import Session, plain
from refengine.decoder.protocols import Pass, Rows, Tokens
from refengine.decoder.targets.toy import ToyDrafter, ToyTarget
from refengine.engine.coins import Philox, Recorded
from refengine.engine.policy import grammar, greedy, pipeline, presence_penalty, temperature
from refengine.engine.rules.leviathan import leviathan
from refengine.engine.rules.point_mass import point_mass

SAMPLED = pipeline(temperature(0.8))


def toy() -> tuple[ToyTarget, ToyDrafter]:
    target = ToyTarget(5)
    return target, ToyDrafter(target, 3)


def test_a_stop_token_inside_an_accepted_block_ends_the_output_there() -> None:
    """Kills stop tokens looked for at the end of a round only, and tokens after the stop."""
    target, drafter = toy()
    ended_inside = 0
    for seed in range(6):
        coins = Philox(seed, torch.tensor([0]))
        whole = generate(target, drafter, leviathan, SAMPLED, (0, 1), 20, coins).tokens
        for token in sorted(set(whole)):
            stopped = generate(target, drafter, leviathan, SAMPLED, (0, 1), 20, coins, Stop(frozenset({token})))
            assert stopped.tokens == whole[: whole.index(token) + 1]
            last = stopped.rounds[-1] if stopped.rounds else None
            ended_inside += last is not None and len(last.emitted) < len(last.verdict.tokens)
    assert ended_inside


@pytest.mark.parametrize("limit", range(8))
def test_the_limit_is_exact(limit: int) -> None:
    """Kills an output that overshoots max_new_tokens by the rest of a block, and a limit of zero that emits one."""
    assert len(generate(*toy(), leviathan, SAMPLED, (0, 1), limit, COINS).tokens) == limit


def test_a_greedy_choice_takes_no_coin_and_no_row_that_is_none() -> None:
    """Kills a coin that is drawn where nothing is to be chosen, and a token of a row that no rule would judge."""
    target, policy = ToyTarget(5), pipeline(presence_penalty(1.0), greedy())
    by_rows = plain(target, lambda *about: policy(*about), (0, 1), 6, COINS)
    assert plain(target, policy, (0, 1), 6, Recorded({})) == by_rows
    target.head = torch.full_like(target.head, float("nan"))
    with pytest.raises(ValueError, match="holds NaN"):
        plain(target, policy, (0, 1), 6, COINS)


def test_a_stop_string_may_span_tokens_and_blocks() -> None:
    """Kills stop strings looked for in one token, one block, or the last so many tokens only."""
    whole = "".join(map(str, generate(*toy(), leviathan, SAMPLED, (0, 1), 20, COINS).tokens))
    for start, end in itertools.combinations(range(0, 20, 3), 2):
        string = whole[start:end]
        stop = Stop(strings=("none", string), decode=lambda tokens: "".join(map(str, tokens)))
        out = generate(*toy(), leviathan, SAMPLED, (0, 1), 20, COINS, stop).tokens
        assert "".join(map(str, out)) == whole[: whole.index(string) + len(string)]


def test_a_character_of_a_stop_string_may_take_several_tokens() -> None:
    """Kills a stop string that is looked for in as many tokens as it has characters."""

    def decode(tokens: Tokens) -> str:
        return "".join(chr(97 + 5 * one + two) for one, two in zip(tokens[::2], tokens[1::2], strict=False))

    whole = decode(generate(*toy(), leviathan, SAMPLED, (0, 1), 20, COINS).tokens)
    for start in range(len(whole) - 1):
        for string in (whole[start], whole[start : start + 2]):
            stop = Stop(strings=(string,), decode=decode)
            out = generate(*toy(), leviathan, SAMPLED, (0, 1), 20, COINS, stop).tokens
            assert len(out) == 2 * (whole.index(string) + len(string))


def test_bad_requests_are_named() -> None:
    """Kills a crash deep inside a network, or silence, where the request is at fault."""
    with pytest.raises(ValueError, match="prompt is empty"):
        generate(*toy(), leviathan, SAMPLED, (), 4, COINS)
    for token in (-1, 5, 9):
        with pytest.raises(ValueError, match=f"token {token} is outside the vocabulary of 5"):
            generate(*toy(), leviathan, SAMPLED, (0, token), 4, COINS)
    with pytest.raises(ValueError, match="stop strings need"):
        Stop(strings=("x",))
    target, drafter = toy()
    target.head = target.head * float("nan")
    with pytest.raises(ValueError, match="NaN"):
        generate(target, drafter, leviathan, SAMPLED, (0, 1), 4, COINS)
    session = Session(*toy(), leviathan, SAMPLED, 1)
    session.begin((0, 1), COINS)
    with pytest.raises(ValueError, match="has ended"):
        session.play(COINS)


def test_rows_that_turn_bad_after_the_first_token_are_named() -> None:
    """Kills rows of a block that reach a rule unseen: a rule compares with NaN and goes on."""
    target, drafter = toy()
    session = Session(target, drafter, lambda *_: pytest.fail("a rule was handed NaN"), SAMPLED, 4)
    session.begin((0, 1), COINS)
    target.head = torch.full_like(target.head, float("nan"))
    with pytest.raises(ValueError, match="NaN"):
        session.play(COINS)


def test_nothing_is_run_or_kept_after_the_last_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a pass past the end, which may be the one past the context, and logits of a whole prompt."""
    target, drafter = toy()
    ran, kept = list[Rows](), list[Sequence[int]]()

    def run(rows: Rows, taps: Sequence[int] = ()) -> Pass:
        ran.append(rows)
        return ToyTarget.run(target, rows, taps)

    def keep(rows: Sequence[int]) -> None:
        kept.append(rows)
        ToyTarget.keep(target, rows)

    monkeypatch.setattr(target, "run", run)
    monkeypatch.setattr(target, "keep", keep)
    assert len(plain(target, SAMPLED, (0, 1), 3, COINS)) == len(ran) == len(kept) == 3
    session = Session(target, drafter, leviathan, SAMPLED, 6)
    session.begin((0, 1), COINS)
    while not session.done:
        session.play(COINS)
    assert len(ran) == 3 + 1 + len(session.rounds)
    assert len(kept) == len(ran) - 1
    session.rebuild((0, 1), session.out)
    assert [ran[i].judged for i in (0, 3, -1)] == [1, 1, 1]


def test_what_is_accepted_after_a_stop_asks_nothing_of_the_policy() -> None:
    """Kills an error for a row that stands behind the end of the text, where the policy leaves nothing."""
    target = ToyTarget(5)
    ends = pipeline(grammar({0: {0: 1}, 1: {1: 2}, 2: {}}))
    for seed in range(20):
        coins = Philox(seed, torch.tensor([0]))
        session = Session(target, NGram(gamma=2, n=2), point_mass, ends, 6, Stop(frozenset({1})))
        session.begin((0, 1, 2, 4), coins)
        session.play(coins)
        assert session.done
        assert session.out == (0, 1)


def test_a_rebuilt_request_is_as_if_it_had_just_come_here() -> None:
    """Kills rounds, an output or an end that are left of what the session did before."""
    session = Session(*toy(), leviathan, SAMPLED, 6)
    session.begin((0, 1), COINS)
    while not session.done:
        session.play(COINS)
    session.rebuild((1, 0), session.out[:3])
    assert (session.prompt, session.out, session.rounds, session.done) == ((1, 0), session.out[:3], [], False)


def test_the_first_token_comes_from_the_law() -> None:
    """Kills an argmax as the first token of a sampled request."""
    firsts = {
        generate(*toy(), leviathan, SAMPLED, (0, 1), 1, Philox(seed, torch.tensor([0]))).tokens for seed in range(40)
    }
    assert len(firsts) > 1
