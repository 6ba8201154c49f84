"""The printed loops against plain greedy decoding, on the tiny networks. Runs in the child.

Models are transformers' own classes over the fixtures' folders, which is what the programs were written for.
"""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from refengine.audit.sandbox.child import subject_code
from refengine.decoder.loop import Stop, plain
from refengine.selfcheck.documents.judges import COINS, GREEDY, Found, Scripted, printed_dspark, tiny
from refengine.source_tree import FIXTURES

PROMPTS = tuple((i % 8, (3 * i + 1) % 8, (i * i) % 8, 4) for i in range(24))
LIMIT, STOP = 18, 2


@cache
def model(name: str) -> Any:
    found: Any = AutoModelForCausalLM.from_pretrained(FIXTURES / "tiny" / name, dtype=torch.float32)
    return found.eval()


def run(program: ModuleType, name: str, prompt: tuple[int, ...], draft: str = "ar", **settings: Any) -> list[int]:
    """What a loop commits."""
    drafter = model(draft) if name == "spec_decode_ar" else printed_dspark(program)
    with subject_code():
        committed, _ = getattr(program, name)(model("target"), drafter, torch.tensor([prompt]), **settings)
    return list(committed)


def runs(program: ModuleType, name: str) -> Found:
    """A round or more of each prompt."""
    for prompt in PROMPTS[:3]:
        try:
            run(program, name, prompt, max_new=4)
        except Exception as error:  # of the subject
            said = str(error.__cause__ or error).splitlines()[0]
            return {"witness": {"prompt": list(prompt), "raised": f"{type(error.__cause__ or error).__name__}: {said}"}}
    return {"numbers": {"prompts": 3}}


def baseline(program: ModuleType) -> Found:
    """Every prompt, with a stop token, which the target writes first after some."""
    program.__dict__["STOP"] = {STOP}
    target, _ = tiny("tiny/dspark")
    for prompt in PROMPTS:
        wanted = plain(target, GREEDY, prompt, LIMIT, COINS, Stop(tokens=frozenset({STOP})))
        with subject_code():
            committed = program.greedy_ar(model("target"), torch.tensor([prompt]), max_new=LIMIT)
        if tuple(committed) != wanted:
            told = {"prompt": list(prompt), "limit": LIMIT, "stop": STOP}
            return {"witness": {**told, "committed": committed, "plain": list(wanted)}}
    return {"numbers": {"prompts": len(PROMPTS)}}


def same_as_greedy(program: ModuleType, name: str) -> Found:
    """Every prompt, with a stop token: the committed tokens are plain greedy decoding's, no more and no fewer."""
    program.__dict__["STOP"] = {STOP}
    target, _ = tiny("tiny/dspark")
    for prompt in PROMPTS:
        wanted = plain(target, GREEDY, prompt, LIMIT, COINS, Stop(tokens=frozenset({STOP})))
        if wanted[0] == STOP:
            continue  # the printed baseline does not look there either
        committed = run(program, name, prompt, max_new=LIMIT)
        if tuple(committed) != wanted:
            told = {"prompt": list(prompt), "limit": LIMIT, "stop": STOP}
            return {"witness": {**told, "committed": committed, "plain": list(wanted)}}
    return {"numbers": {"prompts": len(PROMPTS)}}


def first_token(program: ModuleType, name: str) -> Found:
    """The row that the first token is drawn from, at temperature 1; where nothing is drawn all mass is on one token."""
    worst: tuple[float, Found] = (0.0, {})
    for prompt in PROMPTS:
        script = Scripted([])
        program.__dict__["torch"] = script
        (committed,) = run(program, name, prompt, temperature=1.0, max_new=1)
        with torch.no_grad():
            p = model("target")(torch.tensor([prompt])).logits[0, -1].softmax(-1)
        found = script.rows[0][0] if script.rows else torch.eye(len(p))[committed]
        away = float((found - p).abs().sum() / 2)
        if away > max(1e-4, worst[0]):
            worst = away, {"prompt": list(prompt), "first token, whatever the seed": committed}
    tv, witness = worst
    return {"numbers": {"prompts": len(PROMPTS)}, "witness": witness, **({"tv": tv} if witness else {})}


def draft_cache(program: ModuleType) -> Found:
    """The target drafts for itself, so that blocks are kept whole: what the drafter's cache holds when it is called."""
    calls: list[tuple[int, int]] = []

    def draft(past_key_values: Any, position_ids: Tensor, **inputs: Any) -> Any:
        calls.append((past_key_values.get_seq_length(), int(position_ids[0, 0])))
        return model("target")(past_key_values=past_key_values, position_ids=position_ids, **inputs)

    with subject_code():
        program.spec_decode_ar(model("target"), draft, torch.tensor([PROMPTS[0]]), max_new=LIMIT)
    for number, (held, position) in enumerate(calls):
        if held != position:
            told = {"prompt": list(PROMPTS[0]), "call of the drafter": number}
            return {"witness": {**told, "position": position, "rows in its cache": held}}
    return {"numbers": {"calls": len(calls)}}


def _of(judge: Callable[[ModuleType, str], Found], name: str) -> Callable[[ModuleType], Found]:
    return lambda program: judge(program, name)


LOOPS: dict[str, Callable[[ModuleType], Found]] = {
    **{
        f"{name}/{promise}": _of(judge, name)
        for name in ("spec_decode_ar", "spec_decode_dspark")
        for promise, judge in (("runs", runs), ("greedy", same_as_greedy), ("first-token", first_token))
    },
    "greedy_ar/tokens": baseline,
    "spec_decode_ar/draft-cache": draft_cache,
}
