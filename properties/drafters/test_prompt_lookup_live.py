"""Prompt lookup beside transformers' own class, on every short text."""

import itertools

import pytest
import torch
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from properties.helpers.coins import COINS
from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.loop import nodes
from refengine.decoder.protocols import Turn
from refengine.engine.policy import pipeline, temperature

WORDS, LONGEST = (0, 1), 8  # two words, so that they come again at once


@pytest.mark.parametrize("stop", [set(), {0}, {1}, {0, 1}], ids=str)
def test_every_short_text_is_continued_as_by_transformers(stop: set[int]) -> None:
    """Kills a match that may not touch or overlap the pattern, one that is too far to the right, an n-gram that is not
    tried, a draft that is cut elsewhere."""
    ends, policy = torch.tensor(sorted(stop)) if stop else None, pipeline(temperature(1.0))
    for ngram, gamma, n in itertools.product((1, 2, 3, 4), (1, 2, 3, 4), range(1, LONGEST + 1)):
        theirs, ours = PromptLookupCandidateGenerator(ends, gamma, ngram, 10**6), PromptLookup(gamma, ngram, stop)
        for text in itertools.product(WORDS, repeat=n):
            found = theirs.get_candidates(torch.tensor([text]))[0][0, n:]
            drafted = nodes(ours.propose(Turn(text, text, policy, COINS)))[0]
            assert drafted == tuple(found.tolist()), (text, ngram, gamma)
