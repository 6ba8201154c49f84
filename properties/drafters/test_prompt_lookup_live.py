"""Prompt lookup beside transformers' own class, on any text."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from properties.helpers.coins import COINS
from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.loop import nodes
from refengine.decoder.protocols import Turn
from refengine.engine.policy import pipeline, temperature

TEXTS = st.lists(st.integers(0, 1), min_size=1, max_size=8).map(tuple)  # two words, so that they come again at once


@settings(max_examples=100, deadline=None, derandomize=True)
@given(text=TEXTS, gamma=st.integers(1, 4), ngram=st.integers(1, 4), stop=st.sets(st.integers(0, 1), max_size=1))
def test_any_text_is_continued_as_by_transformers(
    text: tuple[int, ...], gamma: int, ngram: int, stop: set[int]
) -> None:
    """Kills a match that may not touch or overlap the pattern, one that is too far to the right, an n-gram that is not
    tried, a draft that is cut elsewhere."""
    ends = torch.tensor(sorted(stop)) if stop else None
    theirs = PromptLookupCandidateGenerator(ends, gamma, ngram, max_length=10**6)
    found = theirs.get_candidates(torch.tensor([text]))[0][0, len(text) :]
    ours = PromptLookup(gamma, ngram, stop).propose(Turn(text, text, pipeline(temperature(1.0)), COINS))
    assert nodes(ours)[0] == tuple(found.tolist())
