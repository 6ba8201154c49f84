"""Drafters without weights: prompt lookup against recordings of transformers, the n-gram cache against its text."""

import json
import runpy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from refengine.decoder import load_drafter
from refengine.decoder.drafters.ngram import NGram
from refengine.decoder.drafters.prompt_lookup import PromptLookup, continuation
from refengine.decoder.loop import Session, nodes, plain
from refengine.decoder.protocols import Turn
from refengine.decoder.rows import depth
from refengine.decoder.targets.toy import ToyTarget
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.engine.rules.point_mass import point_mass
from refengine.selfcheck.drafters.laws.exact_law import off_scratch
from refengine.source_tree import FIXTURES, GOLDEN

GOLDEN = GOLDEN / "hf_promptlookup_A"
SAMPLED = pipeline(temperature(1.0))
TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=12)


def turn(prefix: tuple[int, ...]) -> Turn:
    return Turn(prefix, prefix, SAMPLED, Philox(0, torch.tensor([0])))


@pytest.mark.peer("prompt_lookup")
@pytest.mark.parametrize("trace", range(6))
def test_prompt_lookup_drafts_what_transformers_drafted(trace: int) -> None:
    """Kills the latest match in place of the leftmost, a shorter n-gram first, and a draft that runs over the stop."""
    golden = load_file(GOLDEN / "golden.safetensors")
    config = json.loads((GOLDEN / "golden.json").read_text())["config"]
    ids = tuple(golden[f"trace.{trace}.ids"][0].tolist())
    stop = {int(golden[f"trace.{trace}.eos"])} - {-1}
    drafter = PromptLookup(config["n"], config["ngram"], stop)
    lengths, drafts = golden[f"trace.{trace}.prefix_len"].tolist(), golden[f"trace.{trace}.drafts"].tolist()
    last = len(golden[f"trace.{trace}.prompt"][0]) + 28
    for length, drafted in zip(lengths, drafts, strict=True):
        ours = nodes(drafter.propose(turn(ids[:length])))[0]
        if length + 1 == last:  # transformers drafts nothing where one token is left to emit
            ours = ()
        assert ours == tuple(x for x in drafted if x >= 0)


@pytest.mark.parametrize("name", ["prompt_lookup", "ngram", "lookahead"])
def test_drafters_without_files_are_loaded_by_name(name: str) -> None:
    """Kills a name that is taken for a missing folder, and a gamma that is not the depth of the drafts."""
    target, coins = ToyTarget(3), Philox(0, torch.tensor([0]))
    session = Session(target, load_drafter(name, target, gamma=3), point_mass, pipeline(greedy()), 40)
    session.begin((0, 1, 2, 0, 1), coins)
    while not session.done:
        session.play(coins)
    assert session.out == plain(target, pipeline(greedy()), (0, 1, 2, 0, 1), 40, coins)
    assert max(depth(played.block) for played in session.rounds) == 3


def test_bad_sizes_are_named() -> None:
    """Kills a drafter of no tokens that is built without a word."""
    for build in (PromptLookup, NGram):
        with pytest.raises(ValueError, match="at least"):
            build(0)


def observed(tokens: tuple[int, ...], n: int) -> dict[tuple[int, ...], int]:
    """The cache's definition: the last token that followed each n - 1 tokens."""
    return {tokens[i : i + n - 1]: tokens[i + n - 1] for i in range(len(tokens) - n + 1)}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(prefix=TOKENS, n=st.integers(2, 4))
def test_the_ngram_cache_predicts_from_all_that_was_observed(prefix: list[int], n: int) -> None:
    """Kills a cache that misses the anchor, keeps the first follower of a pair, or chains off its old tail."""
    tokens = tuple(prefix)
    drafter = NGram(5, n)
    drafter.start(tokens[:-1], None)  # type: ignore[arg-type]
    drafted = nodes(drafter.propose(turn(tokens)))[0]
    table, expected = observed(tokens, n), tokens
    while len(expected) < len(tokens) + 5 and len(expected) >= n - 1 and expected[1 - n :] in table:
        expected = (*expected, table[expected[1 - n :]])
    assert drafted == expected[len(tokens) :]


@pytest.mark.peer("ngram")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(prefix=TOKENS, n=st.integers(2, 4))
def test_the_cache_that_the_document_prints_drafts_the_same(prefix: list[int], n: int) -> None:
    """The class as printed in "Speculative Decoding v2". Kills another follower, another chain, another end of it."""
    printed = runpy.run_path(str(FIXTURES / "subjects" / "printed" / "medusa.py"))["LookaheadCache"](ngram_size=n)
    tokens, drafter = tuple(prefix), NGram(5, n)
    printed.update(prefix)
    drafter.start(tokens[:-1], None)  # type: ignore[arg-type]
    assert nodes(drafter.propose(turn(tokens)))[0] == tuple(printed.predict(prefix))


@pytest.mark.parametrize("drafter", [PromptLookup(3), NGram(3)], ids=["prompt_lookup", "ngram"])
def test_state_after_any_round_is_that_of_a_recompute(drafter: PromptLookup | NGram) -> None:
    """Kills a table that learns rejected drafts, misses accepted ones, or depends on where rounds ended."""
    accepted = rejected = 0
    for seed in range(4):
        coins = Philox(seed, torch.tensor([0]))
        session = Session(ToyTarget(3), drafter, point_mass, SAMPLED, 10**6)
        session.begin((0, 1, 0, 1, 2), coins)
        for _ in range(12):
            session.play(coins)
            played = session.rounds[-1]
            accepted += len(played.verdict.path)
            rejected += played.block.tokens.shape[1] - len(played.verdict.path)
            assert off_scratch(session) == ""
    assert min(accepted, rejected) > 10


def test_a_match_never_continues_into_nothing() -> None:
    """Kills a pattern that matches itself at the end of the prefix and then drafts nothing."""
    assert continuation((1, 2, 1), 2, 4) == (2, 1)
    assert continuation((1, 2, 3), 2, 4) == ()
    assert continuation((7,), 2, 4) == ()
    assert continuation((1, 2, 9, 1, 2, 8, 1, 2), 2, 2) == (9, 1)
