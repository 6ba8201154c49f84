"""`refengine decode`: one request through the reference decoder, from folders and options to tokens and acceptance."""

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from refengine.decoder import Result, Stop, generate, load_drafter, load_target
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.drafters.schedule import Load
from refengine.decoder.loop import Rule
from refengine.decoder.protocols import Drafter, Tokens
from refengine.decoder.verify import fitting
from refengine.engine import policy as steps
from refengine.engine.coins import Philox
from refengine.errors import BadInput

RULES = ("leviathan", "block", "agreement", "point_mass", "iid_candidates", "without_replacement", "typical", "nucleus")


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    rule  None: the ratio rule where drafts are drawn, point_mass where not
    load  of DSpark's scheduler: the curve as ROWS:SECONDS pairs, commas between
    """

    target: Path
    drafter: Path
    prompt: str
    max_new_tokens: int = 64
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    rule: str | None = None
    gamma: int = 4
    seed: int = 0
    dtype: str = "float32"
    device: str = "cpu"
    ngram: Path | None = None
    load: str | None = None


def decode(request: Request) -> tuple[str, dict[str, Any]]:
    """The text (or the tokens, where the target has no tokenizer) and how it came about. Raises BadInput."""
    check(request)
    target = load_target(request.target, getattr(torch, request.dtype), request.device)
    drafter = load_drafter(request.drafter, target, gamma=request.gamma, ngram=request.ngram)
    if request.load is not None:
        drafter = scheduled(drafter, request.load)
    tokenizer = load_tokenizer(request.target)
    prompt = prompt_tokens(request.prompt, tokenizer, target.vocabulary)
    rule = rule_named(request.rule) if request.rule else fitting
    stop = Stop(frozenset(stop_tokens(request.target)))
    coins = Philox(request.seed, torch.tensor([0], device=target.device))
    result = generate(target, drafter, rule, policy(request), prompt, request.max_new_tokens, coins, stop)
    text = tokenizer.decode(result.tokens) if tokenizer else " ".join(map(str, result.tokens))
    return text, statistics(result)


def check(request: Request) -> None:
    """Options that no file can contradict."""
    if request.rule is not None and request.rule not in RULES:
        raise BadInput(f"--rule {request.rule}: one of {', '.join(RULES)}")
    if request.max_new_tokens < 1:
        raise BadInput(f"--max-new-tokens {request.max_new_tokens} is not positive")
    if request.temperature < 0:
        raise BadInput(f"--temperature {request.temperature} is negative")


def policy(request: Request) -> steps.Policy:
    """Temperature, then top-k, then top-p; temperature 0 is greedy."""
    try:
        chosen = [steps.temperature(request.temperature) if request.temperature else steps.greedy()]
        if request.top_k is not None:
            chosen.append(steps.top_k(request.top_k))
        if request.top_p is not None:
            chosen.append(steps.top_p(request.top_p))
    except ValueError as error:
        raise BadInput(str(error)) from None
    return steps.pipeline(*chosen)


def scheduled(drafter: Drafter, curve: str) -> DSpark:
    """The drafter under a load curve."""
    if not isinstance(drafter, DSpark):
        raise BadInput("--load is for DSpark: no other drafter has a scheduler")
    try:
        points = [point.split(":") for point in curve.split(",")]
        load = Load(tuple((int(rows), float(seconds)) for rows, seconds in points))
        return DSpark(drafter.shape, dict(drafter.w.tensors), load=load)
    except ValueError as error:
        raise BadInput(f"--load {curve}: {error}") from None


def rule_named(name: str) -> Rule:
    rule: Rule = getattr(importlib.import_module(f"refengine.engine.rules.{name}"), name)
    return rule


def load_tokenizer(folder: Path) -> Any:
    """The target's tokenizer, or None where the folder has none (tiny test models)."""
    if not (folder / "tokenizer_config.json").exists() and not (folder / "tokenizer.json").exists():
        return None
    from transformers import AutoTokenizer

    tokenizers: Any = AutoTokenizer
    return tokenizers.from_pretrained(folder, local_files_only=True)


def prompt_tokens(prompt: str, tokenizer: Any, vocabulary: int) -> Tokens:
    """Text through the tokenizer, or token ids where there is none."""
    if tokenizer is not None:
        return tuple(tokenizer(prompt)["input_ids"])
    try:
        tokens = tuple(int(part) for part in prompt.replace(",", " ").split())
    except ValueError:
        raise BadInput(f"this target has no tokenizer, so the prompt must be token ids, not {prompt!r}") from None
    if not tokens:
        raise BadInput("the prompt is empty")
    if bad := [token for token in tokens if not 0 <= token < vocabulary]:
        raise BadInput(f"prompt token {bad[0]} is outside the vocabulary of {vocabulary} tokens")
    return tokens


def stop_tokens(folder: Path) -> Sequence[int]:
    """eos_token_id of generation_config.json, else of config.json."""
    for name in ("generation_config.json", "config.json"):
        file = folder / name
        if file.exists():
            eos = json.loads(file.read_text()).get("eos_token_id")
            if eos is not None:
                return eos if isinstance(eos, list) else [eos]
    return ()


def statistics(result: Result) -> dict[str, Any]:
    """Tokens, target passes, and the mean number of tokens per pass (tau)."""
    drafted = sum(int((played.block.tokens >= 0).sum()) for played in result.rounds)
    accepted = sum(len(played.verdict.path) for played in result.rounds)
    emitted = sum(len(played.emitted) for played in result.rounds)
    return {
        "tokens": len(result.tokens),
        "rounds": len(result.rounds),
        "drafted": drafted,
        "accepted": accepted,
        "tokens per pass": round(emitted / len(result.rounds), 3) if result.rounds else None,
    }
