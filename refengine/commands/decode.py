"""`refengine decode`: one request through the reference decoder, from folders and options to tokens and acceptance."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from refengine.commands.decode_figures import figures, play
from refengine.commands.decode_request import Request, check
from refengine.decoder import Stop, load_drafter, load_target
from refengine.decoder.checkpoints.reading.causal_lm import reason
from refengine.decoder.checkpoints.reading.config import read_config
from refengine.decoder.drafters.dspark_schedule import Load
from refengine.decoder.loop import Rule, Session, fits
from refengine.decoder.protocols import Target, Tokens
from refengine.engine import policy as steps
from refengine.engine.block import Block, Round
from refengine.engine.coins import Coins
from refengine.engine.kernels import CompiledPhilox, compiled, kernels
from refengine.engine.rules import RULES
from refengine.errors import BadInput
from refengine.exact.rules import RULES as CARDS


def decode(request: Request) -> tuple[str, dict[str, Any]]:
    """The text (or the tokens, where the target has no tokenizer) and how it came about. Raises BadInput."""
    check(request)
    target = load_target(request.target, getattr(torch, request.dtype), request.device, request.slots)
    options = {"gamma": request.gamma, "ngram": request.ngram, "load": curve(request.load), "markov": request.markov}
    drafter = load_drafter(request.drafter, target, **options)
    tokenizer = load_tokenizer(request.target)
    text = as_chat(request.prompt, tokenizer) if request.chat else request.prompt
    prompt = prompt_tokens(text, tokenizer, target.vocabulary, special=not request.chat)
    rule = rule_named(request.rule) if request.rule else compiled_fitting
    stop = Stop(frozenset(stop_tokens(request.target)))
    if request.slots is not None and len(prompt) + request.max_new_tokens > request.slots:
        raise BadInput(f"prompt and new tokens are {len(prompt) + request.max_new_tokens}, and --slots {request.slots}")
    coins = CompiledPhilox(request.seed, torch.tensor([0], device=target.device))
    session = Session(target, drafter, rule, policy(request), request.max_new_tokens, stop)
    kernels(target.device.type)  # what compiles them is imported before the clock starts
    try:
        clock = play(session, prompt, coins)
    except IndexError as error:
        raise too_long(target, len(prompt) + request.max_new_tokens, error) from error
    text = tokenizer.decode(session.out) if tokenizer else " ".join(map(str, session.out))
    return text, figures(session, clock)


def too_long(target: Target, tokens: int, error: IndexError) -> Exception:
    """The refusal of a text beyond the positions that a target (GPT-2, OPT) has learned; else the error as it is."""
    positions = target.lends.positions() if target.lends else None
    if positions is None or tokens <= positions:
        return error
    return BadInput(f"prompt and new tokens are {tokens}, drafts not counted, and the target has {positions} positions")


# What an option of the request does to the logits, in the order in which it is done.
STEPS: dict[str, Callable[[Any], steps.Step]] = {
    "repetition_penalty": steps.repetition_penalty,
    "presence_penalty": steps.presence_penalty,
    "frequency_penalty": steps.frequency_penalty,
    "temperature": lambda given: steps.temperature(given) if given else steps.greedy(),
    "top_k": steps.top_k,
    "top_p": steps.top_p,
    "min_p": steps.min_p,
}


def policy(request: Request) -> steps.Policy:
    """The steps that were asked for, in the order of STEPS; temperature 0 is greedy. Raises BadInput."""
    given = {name: getattr(request, name) for name in STEPS}
    try:
        chosen = [STEPS[name](value) for name, value in given.items() if value is not None]
    except ValueError as error:
        raise BadInput(str(error)) from None
    return steps.pipeline(*chosen)


def curve(said: str | None) -> Load | None:
    """A load curve of DSpark's scheduler."""
    if said is None:
        return None
    try:
        points = [point.split(":") for point in said.split(",")]
        load = Load(tuple((int(rows), float(seconds)) for rows, seconds in points))
    except ValueError as error:
        raise BadInput(f"--load {said}: {error}") from None
    if (seconds := load.seconds(1)) <= 0:  # the smallest pass there is lies on the line of the first two points
        raise BadInput(f"--load {said}: a pass of one row would take {seconds:g} seconds; measure one of few rows")
    return load


def rule_named(name: str) -> Rule:
    """The rule, which says in one line that a drafter's candidates are not what it is for."""

    def held(p: Tensor, block: Block, coins: Coins) -> Round:
        if block.q is None and CARDS[name].drawn:
            raise BadInput(f"--rule {name} weighs what was drawn, and this drafter draws nothing: use point_mass")
        return compiled(RULES[name])(p, block, coins)

    return held


def compiled_fitting(p: Tensor, block: Block, coins: Coins) -> Round:
    """`loop.fitting`, compiled where it can be."""
    return compiled(fits(block))(p, block, coins)


def load_tokenizer(folder: Path) -> Any:
    """The target's tokenizer, or None where the folder has none (tiny test models)."""
    if not (folder / "tokenizer_config.json").exists() and not (folder / "tokenizer.json").exists():
        return None
    from transformers import AutoTokenizer

    tokenizers: Any = AutoTokenizer
    try:
        return tokenizers.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # transformers raises whatever its parts raise
        raise BadInput(f"{folder}: transformers cannot load its tokenizer: {reason(error)}") from error


def as_chat(prompt: str, tokenizer: Any) -> str:
    """The prompt as the one message of a user, in the words of the tokenizer's template. Raises BadInput.

    A template that knows a mode of thinking (Qwen3's) leaves it out: so DSpark was trained, and so it was measured. To
    another template the name says nothing.
    """
    if tokenizer is None or not getattr(tokenizer, "chat_template", None):
        raise BadInput("--chat: the target's folder has no tokenizer with a chat template")
    message = [{"role": "user", "content": prompt}]
    how = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
    try:
        text: str = tokenizer.apply_chat_template(message, **how)
    except Exception as error:  # a template is a program: it raises what it likes
        raise BadInput(f"--chat: the template of the target's tokenizer: {reason(error)}") from error
    return text


def prompt_tokens(prompt: str, tokenizer: Any, vocabulary: int, special: bool = True) -> Tokens:
    """Text through the tokenizer, or token ids where there is none. special: with the tokens that begin every text."""
    try:
        if tokenizer is None:
            ids = prompt.replace(",", " ").split()
        else:
            ids = tokenizer(prompt, add_special_tokens=special)["input_ids"]
        tokens = tuple(int(part) for part in ids)
    except ValueError:
        raise BadInput(f"this target has no tokenizer, so the prompt must be token ids, not {prompt!r}") from None
    if not tokens:
        raise BadInput("the prompt is empty")
    if bad := [token for token in tokens if not 0 <= token < vocabulary]:
        raise BadInput(f"prompt token {bad[0]} is outside the vocabulary of {vocabulary} tokens")
    return tokens


def stop_tokens(folder: Path) -> Sequence[int]:
    """eos_token_id of generation_config.json, else of config.json or the text part of it. Raises BadInput."""
    for name in ("generation_config.json", "config.json"):
        if not (folder / name).is_file():
            continue
        config = read_config(folder, name)
        for fields in (config.fields, config.object("text_config").fields):
            if (eos := fields.get("eos_token_id")) is not None:
                tokens = eos if isinstance(eos, list) else [eos]
                if any(type(token) is not int for token in tokens):
                    config.refuse(f"eos_token_id is {eos!r}, expected a token or a list of them")
                return tokens
    return ()
