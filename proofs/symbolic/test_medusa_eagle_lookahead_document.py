"""The overview of Medusa, EAGLE and Lookahead: its formulas, parameter counts, tree and `simple_medusa_step`."""

from fractions import Fraction
from random import Random

import pytest
import torch
from torch import nn

from proofs.symbolic.speed import emitted, speedup
from refengine.exact.block import Block, Round
from refengine.exact.chance import Enumerate
from refengine.exact.drafters import fixed
from refengine.exact.law import losslessness, round_law
from refengine.exact.row import Row, argmax, point, row
from refengine.exact.rules.greedy import greedy

Tokens = tuple[int, ...]


def test_printed_speedup_is_impossible() -> None:
    """1 / (1 - a^(K+1)) / (1 - a) at a = 1/2, K = 1 is 8/3: more tokens than the K + 1 = 2 that a pass can emit."""
    a, k = Fraction(1, 2), 1
    assert 1 / (1 - a ** (k + 1)) / (1 - a) == Fraction(8, 3) > k + 1
    assert (1 - a ** (k + 1)) / (1 - a) == emitted([a] * k) == Fraction(3, 2)


def head_parameters(hidden: int, vocabulary: int) -> int:
    """Parameters of the seed's own head: two linear layers with bias, counted by torch."""
    with torch.device("meta"):
        layers = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, vocabulary))
    return sum(weight.numel() for weight in layers.parameters())


def test_parameters_per_head() -> None:
    """D = 4096, V = 128,000: the head has D^2 + DV + D + V = 541.2M, not 2 D^2 + DV = 557.8M, and neither is 530M.

    Four are 2.2B, where four of 530M are the printed 2.1B. With 128,256 or 131,072 tokens for "128K" it is more.
    """
    hidden, vocabulary = 4096, 128_000
    assert head_parameters(hidden, vocabulary) == hidden**2 + hidden * vocabulary + hidden + vocabulary == 541_197_312
    assert 2 * hidden**2 + hidden * vocabulary == 557_842_432
    assert all(head_parameters(hidden, size) > 1.02 * 530e6 for size in (vocabulary, 128_256, 131_072))
    assert [round(4 * head / 1e9, 1) for head in (head_parameters(hidden, vocabulary), 530e6)] == [2.2, 2.1]


def test_memory_table_is_of_another_model() -> None:
    """For Vicuna-33B (D = 6656, V = 32,000) 1, 2, 4 fp16 heads are 0.5, 1.0, 2.1 GB; the table: 1.1, 2.1, 4.2."""
    one, table = 2 * head_parameters(6656, 32_000) / 1e9, (1.1, 2.1, 4.2)
    assert [round(heads * one, 1) for heads in (1, 2, 4)] == [0.5, 1.0, 2.1]
    assert tuple(round(heads * 2 * 530e6 / 1e9, 1) for heads in (1, 2, 4)) == table  # of D = 4096, V = 128K


def test_four_heads_in_fp16() -> None:
    """The printed head at D = 4096, V = 128,000: four take 4.33 GB, 4.2 is four times 530M. Kills a sum unchecked."""
    four = 4 * 2 * head_parameters(4096, 128_000) / 1e9
    assert (round(four, 2), round(100 * (1 - four / 14))) == (4.33, 69)
    assert round(4 * 2 * 0.530, 1) == 4.2 != round(four, 1)


def test_saving_against_a_draft_model() -> None:
    """7B parameters in fp16 are 14 GB; 4.2 GB instead save 70 %. Kills a saving of another base."""
    assert (2 * 7, round(100 * (1 - 4.2 / 14))) == (14, 70)


TABLE = {"1 head": (1.8, 1.6), "2 heads": (2.3, 2.0), "4 heads": (2.7, 2.3), "draft": (2.5, 2.2)}  # tokens, speed-up


def test_the_table_prices_a_round() -> None:
    """Tokens per step over speed-up is a round's cost in plain passes: 1.125, 1.15, 1.174, 1.136, each above 1.

    Kills "verification is free" beside this table, and a cost read off without its rounding.
    """
    assert [round(tau / gain, 3) for tau, gain in TABLE.values()] == [1.125, 1.15, 1.174, 1.136]
    for tau, gain in TABLE.values():
        cost = Fraction(tau) / Fraction(gain)
        assert speedup(cost - 1, 1, Fraction(tau)) == Fraction(gain)  # L = (T_draft + T_verify) / tau
        assert (tau - 0.05) / (gain + 0.05) > 1


def test_a_speed_up_of_all_tokens_is_a_round_for_nothing() -> None:
    """The guide's 3.6x and 2.5x are the chart's tokens per step. At the price of a round in any row of the table, 1.125
    to 1.174, 3.6 tokens are 3.1 to 3.2x, and for the 2.5 of the draft model the table has 2.2x. Kills a speed-up read
    off tokens per step, and a range of some of the rows."""
    assert speedup(0, 1, Fraction(36, 10)) == Fraction(36, 10)
    prices = [tau / gain for tau, gain in TABLE.values()]
    assert (min(prices), round(max(prices), 3)) == (1.125, 1.174)
    assert {round(3.6 / price, 1) for price in prices} == {3.1, 3.2}
    assert TABLE["draft"] == (2.5, 2.2)


def test_the_table_says_what_its_note_says() -> None:
    """Four heads against the draft model: tokens, speed-up, memory. Kills a note that was written for another table."""
    assert all(ours >= theirs for ours, theirs in zip(TABLE["4 heads"], TABLE["draft"], strict=True))
    assert round(100 * (1 - 4.2 / 14)) == 70


BRANCH = (5, 3, 2)  # candidates per head


def dense_tree() -> Block:
    """Every combination of the heads' candidates, tokens numbered by rank."""
    tokens: list[int] = []
    parents: list[int] = []
    level = [-1]
    for width in BRANCH:
        below = []
        for parent in level:
            for token in range(width):
                below.append(len(tokens))
                tokens.append(token)
                parents.append(parent)
        level = below
    return Block(tuple(tokens), tuple(parents), (None,) * len(tokens), (None,) * len(tokens))


def test_tree_size() -> None:
    """30 sequences of length 3, as said, in 50 nodes."""
    tree = dense_tree()
    leaves = [j for j in range(len(tree.tokens)) if not tree.children(j)]
    assert (len(leaves), len(tree.tokens)) == (30, 50)
    assert all(len(tree.path(leaf)) == 3 for leaf in leaves)


@pytest.mark.parametrize("seed", range(60))
def test_the_longest_matching_path_is_accepted(seed: int) -> None:
    """Random trees of up to 12 nodes over 3 tokens, siblings all different as a head's top-k is: what is
    emitted is the greedy continuation, as far as a path of the tree follows it, and one token more. Kills a path that
    is shorter than another that matches, and one that does not match.
    """
    source = Random(seed)
    nodes: list[tuple[int, int]] = []  # parent, token
    for _ in range(source.randint(0, 12)):
        node = (source.randrange(-1, len(nodes)), source.randrange(3))
        nodes += [node] * (node not in nodes)
    undrawn = (None,) * len(nodes)
    tree = Block(tuple(token for _, token in nodes), tuple(parent for parent, _ in nodes), undrawn, undrawn)

    def following(text: Tokens) -> int:
        return Random(f"{seed} {text}").randrange(3)

    words = [tree.path(j) for j in range(-1, len(nodes))]
    text: Tokens = ()
    while text in words:
        text = (*text, following(text))
    assert greedy([point(following(word), 3) for word in words], tree, Enumerate()).tokens == text


def test_four_fifths_of_the_tree_cannot_be_accepted() -> None:
    """Level 1 is the base model's own top 5, and the base model's argmax is what is accepted: 40 of 50 nodes are dead.

    Every greedy target whose first choice is the first candidate, which it is by construction. Kills "top-k of the base
    logits" as a first level; Medusa's released code has one root there.
    """
    tree = dense_tree()
    reached = set()
    for second in range(5):
        for third in range(5):
            rows = [point((0, second, third, 0)[len(tree.path(j))], 5) for j in range(-1, len(tree.tokens))]
            reached |= set(greedy(rows, tree, Enumerate()).path)
    assert {tree.path(j)[0] for j in reached} == {0}
    assert (len(reached), len(tree.tokens) - 10) == (10, 40)


P1, AFTER = row([6, 4]), {0: row([7, 3]), 1: row([1, 1])}


def target(prefix: Tokens) -> Row:
    return AFTER[prefix[-1]] if prefix else P1


def simple_step(draft: int) -> object:
    """The seed's step as a rule: t1 = argmax p, then the draft for t2 iff it is the argmax there, else stop."""

    def rule(p: object, block: Block, chance: object) -> Round:
        t1 = argmax(P1)
        t2 = argmax(AFTER[t1])
        return Round((t1, draft), (0,)) if draft == t2 else Round((t1,), ())

    return rule


def test_simple_step_is_lossy_when_sampling() -> None:
    """It never draws: TV of the first token is 1 - max P = 2/5, whatever the head proposes. Exact for greedy only."""
    nothing = fixed(lambda prefix: ((), ()))
    for draft in (0, 1):
        assert losslessness(target, nothing, simple_step(draft), (), 1) == Fraction(2, 5)  # type: ignore[arg-type]

    def greedy_target(prefix: Tokens) -> Row:
        return point(argmax(target(prefix)), 2)

    for draft in (0, 1):
        assert losslessness(greedy_target, nothing, simple_step(draft), (), 2) == 0  # type: ignore[arg-type]


def test_simple_step_cannot_be_faster() -> None:
    """Two target passes per step, at most two tokens: tokens per pass = (1 + acceptance) / 2 <= 1, plain decoding's.

    And at a mismatch it throws the target's own second token away, which it has just computed.
    """
    passes = 2
    nothing = fixed(lambda prefix: ((), ()))
    lengths = {len(out) for draft in (0, 1) for out in round_law(target, nothing, simple_step(draft), ())}  # type: ignore
    assert lengths == {1, 2}
    assert max(lengths) / passes == 1.0
    assert round_law(target, nothing, simple_step(1), ()) == {(0,): 1}  # type: ignore[arg-type]
    assert argmax(AFTER[0]) == 0  # the token that was known and dropped


def following(token: int) -> int:
    """A deterministic target whose text repeats no token for 97 steps."""
    return (token * 5 + 1) % 97


def observed(text: list[int]) -> list[int]:
    """What a dictionary of observed 3-grams proposes after `text`."""
    seen = {tuple(text[i : i + 2]): text[i + 2] for i in range(len(text) - 2)}
    pair, drafts = tuple(text[-2:]), []
    while pair in seen:
        drafts.append(seen[pair])
        pair = (pair[1], drafts[-1])
    return drafts


def jacobi(last: int, window: list[int]) -> list[int]:
    """One lookahead step: every slot of the window is re-guessed from the guess before it, all at once."""
    return [following(token) for token in [last, *window[:-1]]]


def test_the_cache_is_not_lookahead() -> None:
    """Text without a repeated pair: the cache of observed n-grams never drafts; Jacobi's window gets tokens right that
    were never emitted, one more with every step. Kills the name, and "uses the model's own predictions".
    """
    text = [3]
    while len(text) < 20:
        text.append(following(text[-1]))
        assert observed(text) == []
    truth, window = [], [0] * 5
    for _ in range(5):
        truth.append(following(truth[-1] if truth else text[-1]))
    for steps in range(1, 6):
        window = jacobi(text[-1], window)
        assert window[:steps] == truth[:steps]
    assert not set(truth) & set(text)
