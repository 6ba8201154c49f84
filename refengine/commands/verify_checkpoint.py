"""`refengine checkpoint verify`: a released drafter, read strictly and held to what can be held without its fixtures.

The networks may be large and the vocabulary whole, so no law is enumerated. What is checked: greedy decoding equals
plain decoding, in the ordinary mode up to ties and in the bitwise mode bit for bit; the live state after every round
equals a recompute from scratch; and acceptance is as p and q promise.
"""

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.loop import Played, Session, begin, fitting, generate, plain
from refengine.decoder.protocols import Drafter, State, Target, Tokens
from refengine.decoder.rows import chain_rows
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.evidence.alpha import ALPHA
from refengine.report.finding import Finding, Quantity, Recipe
from refengine.selfcheck.drafters.bits import Heard, Listened
from refengine.selfcheck.drafters.exact_law import off_scratch

LENGTHS, NEW_TOKENS = (1, 4, 9, 16), 48
SLOTS = 128  # more than the longest text and any draft after it


def verify(
    drafter: str,
    target: str,
    dtype: str = "float32",
    device: str = "cpu",
    gamma: int | None = None,
    ngram: str | None = None,
) -> list[Finding]:
    """Findings about the drafter in one folder, drafting for the target in another. Raises BadInput."""
    store = Path(ngram) if ngram else None
    judge = load_target(target, getattr(torch, dtype), device)
    drafting = load_drafter(drafter, judge, gamma=gamma, ngram=store)
    exact = load_target(target, getattr(torch, dtype), device, slots=SLOTS)
    beside = load_drafter(drafter, exact, gamma=gamma, ngram=store)
    arguments = {"drafter": drafter, "target": target, "dtype": dtype, "device": device}
    options = {"gamma": gamma, "ngram": ngram}
    common = {
        "subject": f"{Path(drafter).name} drafting for {Path(target).name}, {dtype} on {device}",
        "source": "Leviathan et al. 2023, Theorem 3.5 and section 3.1",
        "recipe": Recipe(
            function=f"{__name__}:verify",
            arguments=arguments | {name: value for name, value in options.items() if value is not None},
        ),
        "role": "subject",
    }
    found = [check(judge, drafting, common) for check in (greedy_equality, state_equality, acceptance)]
    return [*found, bitwise_equality(exact, beside, common)]


def prompts(target: Target) -> Iterator[Tokens]:
    """Fixed prompts of several lengths, uniform over the vocabulary."""
    source = random.Random(0)
    for length in LENGTHS:
        yield tuple(source.randrange(target.vocabulary) for _ in range(length))


def greedy_equality(target: Target, drafter: Drafter, common: dict[str, Any]) -> Finding:
    """The first token that differs is a tie where the top-2 margin is within measured noise, else a defect."""
    policy, coins, heard = pipeline(greedy()), _coins(target), Heard()
    judge, equal, ties, witness = Listened(target, heard), 0, 0, None
    for prompt in prompts(target):
        wanted = plain(judge, policy, prompt, NEW_TOKENS, coins)
        ours = generate(judge, drafter, fitting, policy, prompt, NEW_TOKENS, coins).tokens
        if ours == wanted:
            equal += 1
            continue
        at = next(i for i, (a, b) in enumerate(zip(ours, wanted, strict=True)) if a != b)
        margin, noise = _margin_and_noise(target, prompt + wanted[:at])
        # Rows of the verify pass and of single-token decoding are each off by at most about the noise.
        if margin <= 2 * noise:
            ties += 1
        else:
            witness = {"prompt": prompt, "plain": wanted, "speculative": ours, "margin": margin, "noise": noise}
    return Finding(
        id="checkpoint/greedy",
        claim="Greedy output equals plain greedy decoding token for token; what differs is a tie.",
        verdict="violated" if witness else "consistent",
        method=f"{len(LENGTHS)} prompts, {NEW_TOKENS} tokens each; margin set against the noise between two passes",
        numbers={
            "prompts": len(LENGTHS),
            "outputs with equal tokens": equal,
            "ties": ties,
            "rows compared": heard.compared,
            "rows with equal bits": heard.compared - len(heard.differing),
        },
        witness=witness,
        **common,
    )


def bitwise_equality(target: Target, drafter: Drafter, common: dict[str, Any]) -> Finding:
    """In the bitwise mode nothing is excused: neither a token nor a bit of the logits."""
    policy, coins, heard, witness = pipeline(greedy()), _coins(target), Heard(), None
    judge = Listened(target, heard)
    for prompt in prompts(target):
        wanted = plain(judge, policy, prompt, NEW_TOKENS, coins)
        ours = generate(judge, drafter, fitting, policy, prompt, NEW_TOKENS, coins).tokens
        if ours != wanted or heard.differing:
            witness = {"prompt": prompt, "plain": wanted, "speculative": ours, "bits differ after": heard.differing[:3]}
            break
    return Finding(
        id="checkpoint/bitwise",
        claim="In the bitwise mode greedy output and the logits of every row are those of plain decoding, bit for bit.",
        verdict="violated" if witness else "consistent",
        method=f"{len(LENGTHS)} prompts, {NEW_TOKENS} tokens each; every text that was run twice has one row of logits",
        numbers={"prompts": len(LENGTHS), "rows compared": heard.compared, "lanes": getattr(target, "lanes", 1)},
        witness=witness,
        **common,
    )


def state_equality(target: Target, drafter: Drafter, common: dict[str, Any]) -> Finding:
    """Live state after every sampled round against a recompute, within 10^4 roundings of the largest entry."""
    compared, witness = 0, None
    for prompt, session in _sampled(target, drafter):
        while not session.done and not witness:
            session.play(_coins(target))
            if session.done:
                break
            scale = _largest(session.state()) * torch.finfo(target.dtype).eps
            compared += 1
            if differs := off_scratch(session, 1e4 * scale):
                witness = {"prompt": prompt, "out": session.out, "differs": differs}
    return Finding(
        id="checkpoint/state",
        claim="After any accepts and rejects the caches hold what a recompute from scratch holds.",
        verdict="violated" if witness else "consistent",
        method="every entry of the live state, after every round of sampled decoding at temperature 1",
        numbers={"states compared": compared},
        witness=witness,
        **common,
    )


def acceptance(target: Target, drafter: Drafter, common: dict[str, Any]) -> Finding:
    """Accepted minus the sum of min(p, q) is a martingale over the judged drafts, steps in an interval of length 1."""
    judged, accepted, expected = 0, 0, 0.0
    for _, session in _sampled(target, drafter):
        while not session.done:
            session.play(_coins(target))
            for kept, overlap in judgements(session.rounds[-1]):
                judged, accepted, expected = judged + 1, accepted + kept, expected + overlap
    bound = math.sqrt(judged * math.log(2 / ALPHA) / 2)  # Azuma-Hoeffding
    off = abs(accepted - expected) > bound
    return Finding(
        id="checkpoint/acceptance",
        claim="Drafts are accepted as often as the overlap of p and q says.",
        verdict="not tested" if not judged else "violated" if off else "consistent",
        reason="" if judged else "no chain was drafted: the acceptance of a tree is not a sum over its nodes",
        method=f"Azuma-Hoeffding at alpha {ALPHA}: off by at most {bound:.1f} of {judged} judged drafts",
        numbers={"judged": judged, "accepted": accepted, "expected": Quantity(value=expected, tolerance=1e-3)},
        witness={"accepted": accepted, "expected": expected, "judged": judged} if off else None,
        **common,
    )


def judgements(played: Played) -> Iterator[tuple[bool, float]]:
    """Of a chain: every draft that was judged, whether it was kept, and the probability of keeping one at its place."""
    block = played.block
    count = block.tokens.shape[1]
    if not torch.equal(block.parents[0].cpu(), torch.arange(-1, count - 1)):
        return
    for i in range(min(count, len(played.verdict.path) + 1)):
        if block.q is None:
            overlap = float(played.p[i, block.tokens[0, i]])
        else:
            overlap = float(torch.minimum(played.p[i], block.q[0, i]).sum())
        yield i < len(played.verdict.path), overlap


def _sampled(target: Target, drafter: Drafter) -> Iterator[tuple[Tokens, Session]]:
    for prompt in prompts(target):
        session = Session(target, drafter, fitting, pipeline(temperature(1.0)), NEW_TOKENS)
        session.begin(prompt, _coins(target))
        yield prompt, session


def _coins(target: Target) -> Philox:
    return Philox(0, torch.tensor([0], device=target.device))


def _margin_and_noise(target: Target, tokens: Tokens) -> tuple[float, float]:
    """Top-2 margin of the last row, and how far the row moves between one pass and one pass per token."""
    whole = begin(target, tokens, ()).logits[-1]
    one_by_one = begin(target, tokens[:1], ()).logits[-1]
    for i, token in enumerate(tokens[1:], 1):
        one_by_one = target.run(chain_rows((token,), i, target.device)).logits[-1]
        target.keep((0,))
    top = whole.topk(2).values
    return float(top[0] - top[1]), float((whole - one_by_one).abs().max())


def _largest(state: State) -> float:
    return max(float(x.abs().max()) for x in state.values() if isinstance(x, Tensor) and x.numel())
