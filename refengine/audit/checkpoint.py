"""`refengine checkpoint verify`: a drafter checkpoint of your own on the target it was made for.

Loading is already a check: every tensor placed, none left over, shapes from the config (`BadInput` otherwise). Then the
real loop runs on generated prompts: greedy output against plain decoding, where a divergence is called a *tie* or a
*defect* by comparing the top-2 margin with the measured noise, and the live state after every round against a
recompute from scratch.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from refengine.decode import DTYPES, judge
from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.law import difference
from refengine.decoder.loop import Session, begin, generate, plain
from refengine.decoder.protocols import Drafter, Target, Tokens
from refengine.decoder.rows import chain_rows
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.errors import BadInput
from refengine.report.finding import Finding, Quantity, Recipe

PROMPTS, PROMPT_LENGTH, NEW_TOKENS = 8, 6, 32


def verify_checkpoint(drafter: str, target: str, dtype: str = "float32", device: str = "cpu") -> list[Finding]:
    """The findings of one drafter on one target. Raises BadInput for a checkpoint that does not load."""
    if dtype not in DTYPES:
        raise BadInput(f"--dtype {dtype}: one of {', '.join(DTYPES)}")
    recipe = Recipe(
        function="refengine.audit.checkpoint:verify_checkpoint",
        arguments={"drafter": drafter, "target": target, "dtype": dtype, "device": device},
    )
    model = load_target(Path(target), DTYPES[dtype], device)
    findings = [greedy_finding(model, load_drafter(Path(drafter), model), recipe)]
    # Live state is compared in float64: float32 recomputes differ in the last bits without being wrong.
    exact = load_target(Path(target), torch.float64, device)
    findings.append(state_finding(exact, load_drafter(Path(drafter), exact), recipe))
    return findings


def prompts(vocabulary: int) -> Iterator[Tokens]:
    """Random token ids, the same on every machine."""
    rng = random.Random("checkpoint verify")
    for _ in range(PROMPTS):
        yield tuple(rng.randrange(vocabulary) for _ in range(PROMPT_LENGTH))


def greedy_finding(target: Target, drafter: Drafter, recipe: Recipe) -> Finding:
    """Greedy tokens against plain greedy decoding; a divergence inside the noise is a tie."""
    ties: list[str] = []
    defects: list[str] = []
    passes = emitted = 0
    policy, coins = pipeline(greedy()), Philox(0, torch.tensor([0], device=target.device))
    for prompt in prompts(target.vocabulary):
        result = generate(target, drafter, judge, policy, prompt, NEW_TOKENS, coins)
        expected = plain(target, policy, prompt, NEW_TOKENS, coins)
        passes, emitted = passes + len(result.rounds), emitted + sum(len(r.emitted) for r in result.rounds)
        if result.tokens != expected:
            at = next(i for i, (a, b) in enumerate(zip(result.tokens, expected, strict=True)) if a != b)
            margin, noise = margin_and_noise(target, prompt + expected[:at])
            line = f"prompt {list(prompt)}, token {at}: margin {margin:.2e}, noise {noise:.2e}"
            (ties if margin <= 2 * noise else defects).append(line)
    return Finding(
        id="checkpoint/greedy",
        subject="drafter checkpoint on its target",
        claim="Greedy output equals plain greedy decoding, but for ties within the measured noise.",
        source="Leviathan et al. 2023, section 2.3 with a one-hot target row",
        verdict="violated" if defects else "consistent",
        method=f"{PROMPTS} generated prompts, {NEW_TOKENS} tokens each",
        recipe=recipe,
        numbers={
            "ties": len(ties),
            "defects": len(defects),
            "tokens per pass": Quantity(value=emitted / passes if passes else 0.0, tolerance=0.05),
        },
        notes=[*(f"defect: {line}" for line in defects[:3]), *(f"tie: {line}" for line in ties[:3])],
    )


def margin_and_noise(target: Target, tokens: Tokens) -> tuple[float, float]:
    """The top-2 margin of the next row, and how far the row moves between one pass over all and one row at a time."""
    whole = begin(target, tokens, ()).logits[-1]
    begin(target, tokens[:-1], ())
    single = target.run(chain_rows(tokens[-1:], len(tokens) - 1, target.device)).logits[-1]
    top: Tensor = whole.topk(2).values
    return float(top[0] - top[1]), float((whole - single).abs().max())


def state_finding(target: Target, drafter: Drafter, recipe: Recipe) -> Finding:
    """Caches after every sampled round against a recompute from scratch, in float64."""
    policy, differing, compared = pipeline(temperature(1.0)), [], 0
    for request, prompt in enumerate(prompts(target.vocabulary)):
        coins = Philox(0, torch.tensor([request], device=target.device))
        session = Session(target, drafter, judge, policy, NEW_TOKENS)
        session.begin(prompt, coins)
        while not session.done:
            session.play(coins)
            if session.done:
                break
            live, out = dict(session.state()), session.out
            session.rebuild(prompt, out)
            compared += 1
            if where := difference(live, session.state()):
                differing.append(f"after {list(prompt + out)}: {where}")
            session.restore(prompt, out, live)
    return Finding(
        id="checkpoint/state",
        subject="drafter checkpoint on its target",
        claim="After every round all caches equal a recompute from scratch.",
        source="the loop's invariant (refengine.decoder.protocols)",
        verdict="violated" if differing else "consistent",
        method=f"{compared} rounds at temperature 1 in float64",
        recipe=recipe,
        numbers={"rounds compared": compared, "rounds that differ": len(differing)},
        notes=differing[:3],
    )
