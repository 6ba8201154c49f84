"""The document "Building DSpark": its rule, its loop, its drafter. Its printed numbers: `test_dspark_figures.py`."""

import random
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
import sympy as sp
import torch
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.loop import begin, generate
from refengine.decoder.protocols import Pass, Rows, Turn
from refengine.decoder.rows import chain_rows
from refengine.decoder.targets.toy import ToyDrafter, ToyTarget
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.leviathan import leviathan as leviathan_rule
from refengine.exact.block import Block, Drafter, chain
from refengine.exact.chance import Chance
from refengine.exact.drafters import sampled_chain
from refengine.exact.law import law, losslessness, target_law, tv
from refengine.exact.loop import plain
from refengine.exact.row import Row, argmax, overlap, point, residual, row
from refengine.exact.rules.leviathan import leviathan
from refengine.selfcheck.documents.child import loaded
from refengine.selfcheck.documents.judges import GRID, Scripted, least_refusing
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

Tokens = tuple[int, ...]
P, Q = row([1, 1]), row([4, 1])


def test_worked_example() -> None:
    """p_d = (.8, .2), p_t = (.5, .5): .5 kept of A, .3 freed, all to B, .2 -> .5. Kills a leftover spread wider."""
    kept = [min(p, q) for p, q in zip(P, Q, strict=True)]
    assert kept == [Fraction(1, 2), Fraction(1, 5)]
    assert residual(P, Q) == (0, Fraction(3, 10))
    assert [k + r for k, r in zip(kept, residual(P, Q), strict=True)] == list(P)
    assert losslessness(lambda h: P, sampled_chain(lambda h: Q, 1), leviathan, (), 2) == 0


@pytest.mark.parametrize("seed", range(6))
def test_leftover_lives_on_under_drafted_tokens(seed: int) -> None:
    """(p_t - p_d)+ > 0 exactly where p_t > p_d; the rule never refuses a draft there, and of every other one just its
    excess p_d - p_t. Kills a residual from |p - q|, and a ratio below 1 for a token that was drafted too little.
    """
    source = random.Random(seed)
    p, q = (row([source.randint(0, 5) for _ in range(3)] + [1]) for _ in range(2))
    assert [x > 0 for x in residual(p, q)] == [a > b for a, b in zip(p, q, strict=True)]
    for x in (x for x in range(4) if q[x]):
        drafted = chain((x,), (q,), (("draft", 0),))
        refused = law(lambda chance, block=drafted: leviathan([p, p], block, chance).path).get((), Fraction(0))
        assert q[x] * refused == max(Fraction(0), q[x] - p[x])


def test_greedy_leftover_is_the_argmax() -> None:
    """One-hot rows: a wrong draft leaves the target's one-hot. Kills a greedy correction from the second choice."""
    for wrong in (1, 2):
        assert residual(point(0, 3), point(wrong, 3)) == point(0, 3)
    assert not any(residual(point(0, 3), point(0, 3)))  # a right draft is never refused


def test_clamped_draft_probability() -> None:
    """q(x) below 1e-8 is raised to 1e-8 before the ratio: with p = q a draft can be rejected, and nothing is left then.

    p = q = (5e-9, 1 - 5e-9): token 0 is kept with probability 1/2 instead of 1, and the leftover row is all zeros,
    which torch refuses to sample. Kills "the general rule".
    """
    p = torch.tensor([5e-9, 1 - 5e-9])
    ratio = p[0] / p[0].clamp_min(1e-8)
    assert abs(float(ratio) - 0.5) < 1e-6  # float32 has 24 bits
    leftover = (p - p).clamp_min(0.0)
    leftover = leftover / leftover.sum().clamp_min(1e-8)
    with pytest.raises(RuntimeError, match="sum"):
        torch.multinomial(leftover, 1)


def test_what_the_clamp_loses_adds_up_over_a_vocabulary() -> None:
    """q of 5e-9 on all but two of 151,936 tokens, p = q there: the printed function keeps each with 1/2, and what it
    refuses comes out as token 1. TV = 3.8e-4, a quarter of 1e-8 a token, which is the most that the clamp can take:
    min(p, q) - q p / 1e-8 <= x - x^2 / 1e-8 for the larger of both. Kills "off by at most 1e-8".
    """
    many, small, clamp = 151_934, 5e-9, 1e-8
    q = torch.tensor([0.5, 0.5 - many * small] + [small] * many, dtype=torch.float64)
    p = q + torch.tensor([-0.1, 0.1] + [0.0] * many, dtype=torch.float64)
    kept = least_refusing(loaded("dspark", []), p.repeat(2, 1), torch.tensor([7]), q[None], 0) / GRID
    assert kept == pytest.approx(0.5, abs=2 / GRID)
    assert ((p - q).clamp_min(0) > 0).nonzero().tolist() == [[1]]
    assert many * small * (1 - kept) == pytest.approx(3.8e-4, abs=1e-6)
    x = sp.symbols("x", positive=True)
    lost = x - x**2 / sp.Rational("1e-8")
    (most,) = sp.solve(sp.diff(lost, x), x)
    assert lost.subs(x, most) == sp.Rational("1e-8") / 4
    assert float(most) == pytest.approx(small)
    assert float(lost.subs(x, most)) == pytest.approx(clamp / 4)


def first_by_argmax(target: object, chance: Chance, length: int) -> Tokens:
    """The seed's loop: the first token is the argmax at every temperature, then rounds that are lossless."""
    first = argmax(target(()))  # type: ignore[operator]
    return (first, *plain(target, (first,), length - 1, chance))  # type: ignore[arg-type]


def test_first_token_is_always_greedy() -> None:
    """Temperature 1, P = (3/5, 2/5): the loop emits argmax P first, TV = 1 - max P = 2/5. Kills "lossless at any T"."""

    def target(prefix: Tokens) -> Row:
        return row([3, 2])

    emitted = law(lambda chance: first_by_argmax(target, chance, 2))
    assert tv(emitted, target_law(target, (), 2)) == Fraction(2, 5)


def rounds_until_stop(script: list[list[int]], stop: int, every_token: bool) -> list[int]:
    """Committed tokens when the stop token is looked for in the last token of a round, or in every token."""
    out: list[int] = []
    for tokens in script:
        for token in tokens:
            out.append(token)
            if every_token and token == stop:
                return out
        if tokens[-1] == stop:
            break
    return out


def test_stop_is_seen_in_the_bonus_only() -> None:
    """A stop token that is accepted inside a block does not stop the seed's loop. Kills a check of the bonus."""
    script, stop = [[4, 5, 9, 9, 7], [8, 9]], 9
    assert rounds_until_stop(script, stop, every_token=True) == [4, 5, 9]
    assert rounds_until_stop(script, stop, every_token=False) == [4, 5, 9, 9, 7, 8, 9]


def test_printed_run_went_past_its_end() -> None:
    """Plain greedy decoded 63 tokens after the first; DSpark had tau = 3.14 over 21 cycles. Only 66 tokens in 21 cycles
    round to 3.14, so it committed 67, three more than plain's 64. Kills "must reproduce it token for token"."""
    committed = [1 + n for n in range(200) if round(n / 21, 2) == 3.14]
    assert committed == [67]
    assert committed[0] - (63 + 1) == 3


def test_draft_cache_has_a_hole_after_full_acceptance() -> None:
    """The AR drafter writes keys for the anchor and gamma - 1 drafts. After all gamma are accepted it goes on at the
    bonus: the last draft's key is missing for good. Kills "both caches are cropped to the accepted length"."""
    gamma, start, written = 4, 10, set(range(10))
    for accepted in (gamma, 2):
        written |= set(range(start, start + gamma))  # anchor, then drafts 1 .. gamma - 1
        start += accepted + 1
        written = {position for position in written if position < start}  # crop
    assert set(range(start)) - written == {10 + gamma}


def confidence_cut(cut_sees: object, at_least_one: bool = True) -> Drafter:
    """Two drafts from Q, cut at the first position whose confidence is below 1/2; the seed keeps at least one."""

    def draft(prefix: Tokens, chance: Chance) -> Block:
        whole = sampled_chain(lambda h: Q, 2)(prefix, chance)
        below = [k for k in range(2) if cut_sees(whole.tokens, k)]  # type: ignore[operator]
        keep = max(int(at_least_one), below[0]) if below else 2
        return chain(whole.tokens[:keep], whole.q[:keep], whole.sites[:keep])

    return draft


def test_confidence_cut_is_lossless() -> None:
    """c_k comes from x_{k-1}, so cutting before x_k sees nothing of x_k. Kills a cut that looks one token further."""

    def target(prefix: Tokens) -> Row:
        return P if not prefix or prefix[-1] == 0 else row([1, 3])

    seen = confidence_cut(lambda tokens, k: k > 0 and tokens[k - 1] == 1)
    assert losslessness(target, seen, leviathan, (), 3) == 0
    itself = confidence_cut(lambda tokens, k: tokens[k] == 1, at_least_one=False)
    assert losslessness(target, itself, leviathan, (), 3) > 0


def test_greedy_agreement_says_nothing_about_the_law() -> None:
    """A rule that redraws from p instead of the residual: on greedy rows 64 of 64 tokens agree, its law is off by 1/4.

    Kills "agree on 64/64 <- exact = lossless".
    """
    from proofs.smt.defects import DEFECTS
    from proofs.smt.smallest import distance

    wrong = next(defect for defect in DEFECTS if defect.name == "resample from target")
    one_hot = [point(0, 2), point(1, 2)]
    for step in range(64):
        p, q = one_hot[step % 2], one_hot[step * 7 % 3 % 2]
        assert distance(wrong, p, q, p) == 0
    assert distance(wrong, row([1, 1]), row([0, 1]), row([0, 1])) == Fraction(1, 4)


def test_parallel_drafts_collide() -> None:
    """("of course", "no problem") with equal odds: independent slots propose a phrase that exists half of the time.

    Acceptance of slot 2 after slot 1 is 1/2, and 1 with the pair's own conditional (the Markov head). In "a x c" and
    "b x d" the third slot stays at 1/2: the token before it is the same.
    """
    half = row([1, 1])
    conditional = {0: row([1, 0]), 1: row([0, 1])}  # after "of" comes "course", after "no" comes "problem"
    assert sum((half[x] * overlap(conditional[x], half) for x in range(2)), Fraction(0)) == Fraction(1, 2)
    assert all(overlap(conditional[x], conditional[x]) == 1 for x in range(2))
    third = {(0, 2): row([1, 0]), (1, 2): row([0, 1])}  # by the two tokens before it
    after_x = row([sum(half[first] * third[first, 2][y] for first in range(2)) for y in range(2)])
    assert sum((half[x] * overlap(third[x, 2], after_x) for x in range(2)), Fraction(0)) == Fraction(1, 2)


def test_printed_probabilities_are_those_drawn_from() -> None:
    """Every token is drawn from the row that is handed on as its q, and the row after it has the bias of that token.

    Kills a q from before the Markov head, of the anchor's bias at every place, and at another temperature.
    """
    program: Any = loaded("dspark", [])
    program.torch = script = Scripted([])
    generator = torch.Generator().manual_seed(0)
    hidden, bias = torch.randn(2, 4, 8, generator=generator), torch.randn(8, 8, generator=generator)
    network, anchor = SimpleNamespace(lm_head=nn.Identity(), markov_bias=bias.__getitem__), torch.tensor([3, 5])
    tokens, q = program.DSparkDraft.draft_block(network, hidden, anchor, 0.7)
    before = torch.cat((anchor[:, None], tokens[:, :-1]), 1)
    assert len(script.rows) == 4
    assert all(map(torch.equal, script.rows, q.unbind(1)))
    assert torch.equal(q, ((hidden + bias[before]) / 0.7).softmax(-1))


NETWORKS = {  # the fixture's drafter -> its passes for a block, by the method that makes one
    "deepseek_mtp": "network.rows",  # one module, and what it puts out is fed to it again
    "deepseek_mtp2": "modules.*.rows",
    "parallel_heads": "heads",
    "dspark": "block",
    "dflash_drawn": "backbone.block",
}


def blocks_of(name: str, count: int) -> tuple[list[tuple[int, Any]], int]:
    """First token and second row of `count` sampled blocks after one text; and how often a network ran for each."""
    row, passes = ROWS[name], [0]
    target = load_target(FIXTURES / row.target, torch.float64)
    passed, found = begin(target, row.prompt[:-1], (drafter := row.load(target)).taps), []
    drafter.start(row.prompt[:-1], passed)
    *way, method = NETWORKS[name].split(".")
    owners: list[Any] = [drafter]
    for part in way:
        owners = list(owners[0]) if part == "*" else [getattr(owners[0], part)]
    for owner in owners:
        setattr(owner, method, counted(getattr(owner, method), passes))
    before = drafter.state()
    for seed in range(count):
        turn = Turn(row.prompt[:1], row.prompt, pipeline(temperature(1.0)), Philox(seed, torch.tensor([0])))
        block = drafter.propose(turn)
        drafter.restore(before)
        assert block.q is not None
        found.append((int(block.tokens[0, 0]), block.q[0, 1]))
    assert passes[0] % count == 0
    return found, passes[0] // count


def counted(run: Any, passes: list[int]) -> Any:
    def more(*given: Any, **named: Any) -> Any:
        passes[0] += 1
        return run(*given, **named)

    return more


@pytest.mark.parametrize(
    ("name", "passes", "told"),
    [
        *(("deepseek_mtp", 2, True), ("deepseek_mtp2", 2, True)),
        *(("parallel_heads", 1, False), ("dflash_drawn", 1, False), ("dspark", 1, True)),
    ],
)
def test_what_a_block_costs_and_whether_its_second_token_knows_its_first(name: str, passes: int, told: bool) -> None:
    """Two drafts of MTP modules are two passes, the second told the first; of parallel heads and of DFlash one, and a
    second row that is the same whatever was drawn first; of DSpark one pass, and a row that was told. Kills heads that
    look at drafts, a module that does not, and a backbone that runs once a token.
    """
    blocks, ran = blocks_of(name, 12)
    by_first = dict(blocks)
    assert len(by_first) > 1
    assert all(torch.equal(row, by_first[token]) for token, row in blocks)
    one, *others = by_first.values()
    assert {torch.equal(one, other) for other in others} == {not told}
    assert ran == passes


def test_names_that_match_prove_nothing() -> None:
    """Two modules with the same parameter names and shapes load each other's weights without a word and differ.

    Kills "missing and unexpected are empty, so our code matches their checkpoint exactly".
    """
    generator = torch.Generator().manual_seed(0)
    theirs, ours = nn.Linear(4, 4), nn.Linear(4, 4)
    missing, unexpected = ours.load_state_dict(theirs.state_dict())
    assert (missing, unexpected) == ([], [])
    x = torch.randn(3, 4, generator=generator)
    assert not torch.allclose(theirs(x), ours(x * 4**-0.5))  # the same names, another scale


def test_sixteen_bits_flip_near_ties_only() -> None:
    """A network of 512 tokens in bfloat16: scores of a pass over a block differ from those one by one, by a few percent
    of a score at most; an argmax flips somewhere, and only where two scores are closer than twice what the scores of
    rows without a flip move. Kills "identical in any precision", and a flip that is no near-tie.
    """
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=512, num_key_value_heads=2, **sizes, initializer_range=0.2))
    target, source = TransformersTarget(model.to(torch.bfloat16).eval()), random.Random(0)
    kept, flips, largest = [], [], 0.0
    for _ in range(12):
        words = tuple(source.randrange(512) for _ in range(24))
        whole = begin(target, words, ()).logits
        begin(target, words[:1], ())
        for i, token in enumerate(words[1:], 1):
            alone = target.run(chain_rows((token,), i, target.device)).logits[0]
            target.keep((0,))
            first, second = whole[i].topk(2).values.tolist()
            same = bool(alone.argmax() == whole[i].argmax())
            (kept if same else flips).append(float((alone - whole[i]).abs().max()) if same else first - second)
            largest = max(largest, abs(first))
    assert 0 < max(kept) < 0.05 * largest
    assert flips
    assert max(flips) <= 2 * max(kept)


def test_crop_takes_how_many_to_remove() -> None:
    """The seed's loops call crop(length to keep); the installed transformers refuses that and removes n for crop(-n).

    Kills "both caches are cropped back" taken for code that runs.
    """
    cache = DynamicCache()
    cache.update(torch.zeros(1, 1, 9, 2), torch.zeros(1, 1, 9, 2), 0)
    with pytest.raises(ValueError, match="positive"):
        cache.crop(5)
    cache.crop(-4)
    assert cache.get_seq_length() == 5


class Rowed(ToyTarget):
    """A target that counts the rows of its passes."""

    rows: tuple[int, ...] = ()

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        self.rows += (len(rows.tokens),)
        return super().run(rows, taps)


def test_a_pass_has_a_row_for_every_draft_whatever_is_accepted() -> None:
    """gamma + 1 rows a round: the anchor's and one a draft. Kills a pass that is counted by what it accepts."""
    target, coins = Rowed(5), Philox(3, torch.tensor([0]))
    result = generate(target, ToyDrafter(target, 3), leviathan_rule, pipeline(temperature(1.0)), (0, 1), 120, coins)
    assert target.rows[1:] == tuple(played.block.tokens.shape[1] + 1 for played in result.rounds)
    assert set(target.rows[1:-3]) == {4}
    assert {len(played.verdict.path) for played in result.rounds[:-3]} == {0, 1, 2, 3}
