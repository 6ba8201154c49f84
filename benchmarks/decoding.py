"""Tokens per second of the reference decoder beside transformers' own generation, with the same models, in one run.

    python benchmarks/decoding.py [--size tiny|large] [--tokens 64] [--out benchmarks/results/decoding_cpu.json]

Both sides decode the same prompt greedily in float32; the draft model is the target's first layers, so that a part of
its drafts is accepted. They take turns, and a ratio is the median over the turns, with its smallest and largest.
Weights are random: the speed does not depend on what a text says, and the acceptance is the same on both sides.

    plain          no drafter
    draft model    `ar` with 4 drafts a round against assisted generation with as many
    lookup         `prompt_lookup` against assisted generation with prompt_lookup_num_tokens
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from refengine.commands.decode import compiled_fitting
from refengine.decoder.drafters.ar import AR
from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.loop import generate, plain
from refengine.decoder.protocols import Drafter
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.kernels import CompiledPhilox
from refengine.engine.policy import greedy, pipeline
from refengine.report.report import environment

GAMMA, TURNS = 4, 5
SIZES = {  # layers, layers of the draft model, width, vocabulary: 0.2 and 58 million parameters
    "tiny": (2, 1, 64, 1000),
    "large": (8, 1, 512, 32000),
}


@dataclass(frozen=True)
class Pair:
    """Two ways to make the same tokens."""

    name: str
    ours: Callable[[], Sequence[int]]
    theirs: Callable[[], Sequence[int]]


def models(size: str) -> tuple[LlamaForCausalLM, LlamaForCausalLM]:
    """A target with random weights, and its first layers as a draft model."""
    layers, few, width, vocabulary = SIZES[size]
    torch.manual_seed(0)

    def made(count: int) -> LlamaForCausalLM:
        config = LlamaConfig(
            vocab_size=vocabulary, hidden_size=width, intermediate_size=4 * width, num_hidden_layers=count,
            num_attention_heads=8, max_position_embeddings=2048, bos_token_id=None, eos_token_id=None,
        )  # fmt: skip
        return LlamaForCausalLM(config).eval()

    target, draft = made(layers), made(few)
    known = target.state_dict()
    draft.load_state_dict({name: known[name] for name in draft.state_dict()})
    return target, draft


def pairs(size: str, tokens: int) -> list[Pair]:
    """Every way of decoding, ours beside theirs."""
    target, draft = models(size)
    prompt = tuple(int(x) for x in torch.randint(3, 400, (24,))) * 2
    policy, coins = pipeline(greedy()), CompiledPhilox(0, torch.tensor([0]))

    def ours(drafter: Callable[[], Drafter] | None) -> Callable[[], Sequence[int]]:
        own = TransformersTarget(target)
        if drafter is None:
            return lambda: plain(own, policy, prompt, tokens, coins)
        made = drafter()
        return lambda: generate(own, made, compiled_fitting, policy, prompt, tokens, coins).tokens

    def theirs(**options: Any) -> Callable[[], Sequence[int]]:
        given = torch.tensor([prompt])
        generating: Any = target
        return lambda: generating.generate(
            given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=tokens, min_new_tokens=tokens,
            **options,
        )[0, len(prompt) :].tolist()  # fmt: skip

    settings: Any = draft.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = GAMMA, "constant"
    settings.assistant_confidence_threshold = 0.0
    return [
        Pair("plain", ours(None), theirs()),
        Pair("draft model", ours(lambda: AR(TransformersTarget(draft), GAMMA)), theirs(assistant_model=draft)),
        Pair("lookup", ours(lambda: PromptLookup(GAMMA)), theirs(prompt_lookup_num_tokens=GAMMA)),
    ]


def measured(pair: Pair, tokens: int) -> dict[str, Any]:
    """Tokens per second of both sides, and the ratio over the turns."""
    same = list(pair.ours()) == list(pair.theirs())  # and both are warm
    speeds: dict[str, list[float]] = {"refengine": [], "transformers": []}
    for _ in range(TURNS):
        for name, call in (("refengine", pair.ours), ("transformers", pair.theirs)):
            begun = time.perf_counter()
            call()
            speeds[name].append(tokens / (time.perf_counter() - begun))
    ratios = [a / b for a, b in zip(*speeds.values(), strict=True)]
    medians = {name: round(statistics.median(found), 1) for name, found in speeds.items()}
    spread = {"ratio": statistics.median(ratios), "smallest": min(ratios), "largest": max(ratios)}
    return {"same tokens": same, "tokens per second": medians, **{k: round(v, 2) for k, v in spread.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description="Decoding beside transformers' own.")
    parser.add_argument("--size", choices=SIZES, action="append", help="of the models (default: every size)")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    logging.set_verbosity_error()
    figures: dict[str, Any] = {"environment": environment(), "tokens": given.tokens, "threads": given.threads}
    for size in given.size or SIZES:
        for pair in pairs(size, given.tokens):
            figures[f"{size}: {pair.name}"] = found = measured(pair, given.tokens)
            print(f"{size}: {pair.name}: {json.dumps(found)}", flush=True)
    if given.out:
        given.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
