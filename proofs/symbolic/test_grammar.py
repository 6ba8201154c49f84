"""A grammar applied token by token against the model conditioned on the grammar: two laws, exactly."""

from fractions import Fraction

from refengine.exact.drafters import sampled_chain
from refengine.exact.law import losslessness, target_law, tv
from refengine.exact.policy import grammar
from refengine.exact.row import Row, normalised, row
from refengine.exact.rules.leviathan import leviathan

Tokens = tuple[int, ...]
AFTER = {(): row([1, 1]), (0,): row([1, 9]), (1,): row([1, 1])}
ALLOWED = grammar({0: {0: 1, 1: 2}, 1: {0: 1}, 2: {0: 2, 1: 2}})  # after token 0 token 0 alone; after token 1 either


def model(prefix: Tokens) -> Row:
    return AFTER[prefix[:1]]


def masked(prefix: Tokens) -> Row:
    return normalised(ALLOWED(model(prefix), (), prefix))


def test_a_local_mask_is_not_conditioning() -> None:
    """The first token: 1/2 masked row by row, 1/11 given the grammar. Speculation keeps the masked law faithfully.

    Kills "constrained decoding samples from the model given the grammar", and a loss blamed on speculation.
    """
    joint = {words: mass for words, mass in target_law(model, (), 2).items() if words != (0, 1)}
    conditioned = {words: mass / sum(joint.values()) for words, mass in joint.items()}
    step_by_step = target_law(masked, (), 2)
    first = [sum((m for w, m in law.items() if w[0] == 0), Fraction(0)) for law in (step_by_step, conditioned)]
    assert first == [Fraction(1, 2), Fraction(1, 11)]
    assert tv(step_by_step, conditioned) == Fraction(9, 22)
    assert losslessness(masked, sampled_chain(masked, 2), leviathan, (), 2) == 0
    assert losslessness(masked, sampled_chain(lambda prefix: row([1, 3]), 2), leviathan, (), 2) == 0
