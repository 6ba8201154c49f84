"""The document "Building DSpark": its rule, its loop, and what its printed numbers imply."""

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
import torch
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from refengine.decoder.loop import begin, generate
from refengine.decoder.protocols import Pass, Rows
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

Tokens = tuple[int, ...]
P, Q = row([1, 1]), row([4, 1])


def test_worked_example() -> None:
    """p_d = (.8, .2), p_t = (.5, .5): .5 kept of A, .3 freed, all to B, .2 -> .5. Kills a leftover spread wider."""
    kept = [min(p, q) for p, q in zip(P, Q, strict=True)]
    assert kept == [Fraction(1, 2), Fraction(1, 5)]
    assert residual(P, Q) == (0, Fraction(3, 10))
    assert [k + r for k, r in zip(kept, residual(P, Q), strict=True)] == list(P)
    assert losslessness(lambda h: P, sampled_chain(lambda h: Q, 1), leviathan, (), 2) == 0


def test_leftover_lives_on_under_drafted_tokens() -> None:
    """(p_t - p_d)+ > 0 exactly where p_t > p_d, and those are never rejected. Kills a residual from |p - q|."""
    p, q = row([5, 3, 2, 0]), row([2, 3, 4, 1])
    assert [x > 0 for x in residual(p, q)] == [a > b for a, b in zip(p, q, strict=True)] == [True, False, False, False]


def test_greedy_leftover_is_the_argmax() -> None:
    """One-hot rows: a wrong draft leaves the target's one-hot. Kills a greedy correction from the second choice."""
    for wrong in (1, 2):
        assert residual(point(0, 3), point(wrong, 3)) == point(0, 3)


def test_clamped_draft_probability() -> None:
    """q(x) below 1e-8 is raised to 1e-8 before the ratio: with p = q a draft can be rejected, and nothing is left then.

    p = q = (5e-9, 1 - 5e-9): token 0 is kept with probability 1/2 instead of 1, and the leftover row is all zeros,
    which torch refuses to sample. The law is off by at most 1e-8, the crash is real. Kills "the general rule".
    """
    p = torch.tensor([5e-9, 1 - 5e-9])
    ratio = p[0] / p[0].clamp_min(1e-8)
    assert abs(float(ratio) - 0.5) < 1e-6  # float32 has 24 bits
    leftover = (p - p).clamp_min(0.0)
    leftover = leftover / leftover.sum().clamp_min(1e-8)
    with pytest.raises(RuntimeError, match="sum"):
        torch.multinomial(leftover, 1)


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

    Acceptance of slot 2 after slot 1 is 1/2, and 1 with the pair's own conditional (the Markov head).
    """
    half = row([1, 1])
    conditional = {0: row([1, 0]), 1: row([0, 1])}  # after "of" comes "course", after "no" comes "problem"
    assert sum((half[x] * overlap(conditional[x], half) for x in range(2)), Fraction(0)) == Fraction(1, 2)
    assert all(overlap(conditional[x], conditional[x]) == 1 for x in range(2))


def test_low_rank_bias() -> None:
    """Rank 256 instead of V x V: 77.8M instead of 23.1G numbers at V = 151,936. Kills a factor of V forgotten."""
    vocabulary, rank = 151_936, 256
    assert (round(2 * vocabulary * rank / 1e6, 1), round(vocabulary**2 / 1e9, 1)) == (77.8, 23.1)


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


def rounds_to(printed: str, low: float, high: float) -> bool:
    """Some value in [low, high] is printed as `printed`."""
    digits = len(printed.partition(".")[2])
    half = 0.5 * 10**-digits
    return float(printed) - half <= high + 1e-12 and low - 1e-12 <= float(printed) + half


@pytest.mark.parametrize(
    ("proposed", "tau", "printed"),
    [("7.00", "4.27", "1.88"), ("5.92", "4.27", "1.62"), ("4.48", "4.11", "1.34"), ("2.67", "3.31", "1.11")],
)
def test_printed_costs(proposed: str, tau: str, printed: str) -> None:
    """(gamma + 1) / tau from the printed, rounded numbers. Kills a cost of gamma / tau."""
    low = (float(proposed) - 0.005 + 1) / (float(tau) + 0.005)
    high = (float(proposed) + 0.005 + 1) / (float(tau) - 0.005)
    assert rounds_to(printed, low, high)
    assert not rounds_to(printed, low - 1 / float(tau), high - 1 / float(tau))


def test_a_third_less() -> None:
    """1.88 -> 1.34 and 1.11: 29 and 41 % less, for 4 and 22 % of tau. Kills a saving of proposed lengths."""
    none, (tau, lower) = (1.88, 4.27), ((1.34, 4.11), (1.11, 3.31))
    assert [round(100 * (1 - x / none[0])) for x, _ in (tau, lower)] == [29, 41]
    assert [round(100 * (1 - y / none[1])) for _, y in (tau, lower)] == [4, 22]


def test_the_block_shrinks_faster_than_tau() -> None:
    """Shares of the unpruned block and of its tau at each printed threshold. Kills a sweep read column by column."""
    blocks, taus = (7.00, 5.92, 4.48, 2.67), (4.27, 4.27, 4.11, 3.31)
    assert all(block / blocks[0] < tau / taus[0] for block, tau in zip(blocks[1:], taus[1:], strict=True))


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


def test_printed_means_and_ratios() -> None:
    """Means of tau 2.59 and 4.54; speeds 0.85x, 3.66x; 63 tokens in 4.11 s = 15.3 per s. Kills a misprint."""
    assert round((2.30 + 3.06 + 2.40) / 3, 2) == 2.59
    assert round((3.25 + 6.40 + 3.96) / 3, 2) == 4.54
    assert rounds_to("0.85", 13.05 / 15.35, 13.15 / 15.25)
    assert rounds_to("3.66", 56.05 / 15.35, 56.15 / 15.25)
    assert round(63 / 4.11, 1) == 15.3


def test_printed_survival() -> None:
    """The running product of the printed confidences is the printed survival. Kills a product that skips a position."""
    confidences = ["1.0", "0.998", "1.0", "0.928", "0.775", "0.585", "0.406"]
    printed = ["1.0", "0.998", "0.998", "0.927", "0.718", "0.42", "0.171"]
    low = high = 1.0
    for confidence, survival in zip(confidences, printed, strict=True):
        low, high = low * (float(confidence) - 0.0005), high * min(1.0, float(confidence) + 0.0005)
        assert low - 0.0005 <= float(survival) <= high + 0.0005
    assert not low - 0.0005 <= float(printed[-2]) * 0.585 <= high + 0.0005


@pytest.mark.parametrize(
    ("loss", "ce", "l1", "bce"),
    [
        (2.097, 5.642, 0.959, 0.669),
        (1.330, 2.437, 0.688, 0.468),
        (1.210, 2.904, 0.759, 0.237),
        (1.219, 2.135, 0.740, 0.339),
        (1.494, 5.140, 0.933, 0.141),
        (1.071, 2.046, 0.710, 0.227),
    ],
)
def test_printed_losses(loss: float, ce: float, l1: float, bce: float) -> None:
    """0.1 CE + 0.9 L1 + BCE of the printed parts, each rounded to 3 digits. Kills weights that change places."""
    rounding = 0.0005 * (1 + 0.1 + 0.9 + 1) + 1e-12
    assert abs(0.1 * ce + 0.9 * l1 + bce - loss) <= rounding
    assert abs(0.9 * ce + 0.1 * l1 + bce - loss) > rounding


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
