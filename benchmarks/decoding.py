"""The reference decoder beside transformers' own generation, with the same models, in one run.

    python benchmarks/decoding.py [--size fixtures|tiny|large] [--tokens 64] [--turns 5] [--out benchmarks/results/...]

Both sides decode the same prompt greedily in float32. They take turns, and a ratio is the median over the turns of
tokens per second of processor time, with its smallest and largest: so it also holds on a machine that does other work.
Weights are random: the speed does not depend on what a text says. For each side also tokens per pass of the target and
milliseconds per pass, drafting and judging included.

    tiny, large    a target, and its first layers as its draft model, so that a part of the drafts is accepted:
                   plain; `ar` with 4 drafts a round against assisted generation with as many; `prompt_lookup` against
                   assisted generation with prompt_lookup_num_tokens
    fixtures       every drafter of the table on its own tiny checkpoint against plain generation of the same target
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from refengine.commands.decode import compiled_fitting
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.drafters.ar import AR
from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.loop import generate, plain
from refengine.decoder.protocols import Drafter, Target, Tokens
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.kernels import CompiledPhilox
from refengine.engine.policy import greedy, pipeline
from refengine.report.report import environment
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

Call: TypeAlias = Callable[[], Sequence[int]]

GAMMA = 4
SIZES = {  # layers, layers of the draft model, width, vocabulary: 0.2 and 106 million parameters
    "tiny": (2, 1, 64, 1000),
    "large": (6, 1, 768, 32000),
}
FIXTURE_PROMPT = 4  # tokens, all below the smallest vocabulary


@dataclass(frozen=True)
class Pair:
    """Two ways to make the same tokens with one target: its tokens, and how often it is asked for a pass."""

    name: str
    target: Any
    ours: Call
    theirs: Call


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


def ours(target: Target, drafter: Callable[[Any], Drafter] | None, prompt: Tokens, tokens: int) -> Call:
    """Greedy decoding by the reference decoder."""
    policy, coins = pipeline(greedy()), CompiledPhilox(0, torch.tensor([0]))
    if drafter is None:
        return lambda: plain(target, policy, prompt, tokens, coins)
    made = drafter(target)
    return lambda: generate(target, made, compiled_fitting, policy, prompt, tokens, coins).tokens


def theirs(model: Any, prompt: Tokens, tokens: int, **options: Any) -> Call:
    """Greedy decoding by transformers."""
    given = torch.tensor([prompt])
    model.generation_config.eos_token_id = model.generation_config.bos_token_id = None
    return lambda: model.generate(
        given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=tokens, min_new_tokens=tokens,
        **options,
    )[0, len(prompt) :].tolist()  # fmt: skip


def pairs(size: str, tokens: int) -> Iterator[Pair]:
    """Every way of decoding, ours beside theirs."""
    target, draft = models(size)
    prompt = tuple(int(x) for x in torch.randint(3, 400, (24,))) * 2
    settings: Any = draft.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = GAMMA, "constant"
    settings.assistant_confidence_threshold = 0.0
    ways: dict[str, tuple[Any, dict[str, Any]]] = {
        "plain": (None, {}),
        "draft model": (lambda _: AR(TransformersTarget(draft), GAMMA), {"assistant_model": draft}),
        "lookup": (lambda _: PromptLookup(GAMMA), {"prompt_lookup_num_tokens": GAMMA}),
    }
    for name, (drafter, options) in ways.items():
        mine = ours(TransformersTarget(target), drafter, prompt, tokens)
        yield Pair(name, target, mine, theirs(target, prompt, tokens, **options))


def drafters(tokens: int) -> Iterator[Pair]:
    """Every drafter of the table, beside plain generation of its target."""
    for name, row in ROWS.items():
        target: Any = load_target(FIXTURES / row.target, torch.float32)
        prompt = row.prompt[:FIXTURE_PROMPT]
        made = ours(target, row.load, prompt, tokens)
        yield Pair(name, target.model, made, theirs(target.model, prompt, tokens))


def passes(pair: Pair, call: Call) -> int:
    """How many passes of the target a call makes, the prompt's included."""
    count = []
    handle = pair.target.register_forward_pre_hook(lambda *_: count.append(1))
    call()
    handle.remove()
    return len(count)


def measured(pair: Pair, tokens: int, turns: int) -> dict[str, Any]:
    """Both sides' figures, and the ratio of tokens per second over the turns."""
    same = list(pair.ours()) == list(pair.theirs())  # and both are warm
    sides = {"refengine": pair.ours, "transformers": pair.theirs}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, call in sides.items():
            begun = time.process_time()
            call()
            seconds[name].append(time.process_time() - begun)
    ratios = [b / a for a, b in zip(*seconds.values(), strict=True)]
    found: dict[str, Any] = {"same tokens": same}
    for name, call in sides.items():
        median, rounds = statistics.median(seconds[name]), passes(pair, call)
        found[name] = {
            "tokens per second": round(tokens / median, 1),
            "tokens per pass": round(tokens / rounds, 2),
            "milliseconds per pass": round(1e3 * median / rounds, 3),
        }
    spread = {"ratio": statistics.median(ratios), "smallest": min(ratios), "largest": max(ratios)}
    return found | {name: round(value, 2) for name, value in spread.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Decoding beside transformers' own.")
    parser.add_argument(
        "--size", choices=(*SIZES, "fixtures"), action="append", help="of the models (default: every size)"
    )
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    logging.set_verbosity_error()
    figures: dict[str, Any] = {
        "environment": environment(), "tokens": given.tokens, "turns": given.turns, "threads": given.threads,
        "clock": "processor time, sides in turn", "processes waiting": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    for size in given.size or (*SIZES, "fixtures"):
        for pair in drafters(given.tokens) if size == "fixtures" else pairs(size, given.tokens):
            figures[f"{size}: {pair.name}"] = found = measured(pair, given.tokens, given.turns)
            print(f"{size}: {pair.name}: {json.dumps(found)}", flush=True)
    if given.out:
        given.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
