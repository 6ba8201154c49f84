"""The printed loops and the printed Medusa step against plain greedy decoding, on the tiny networks. Runs in the child.

Models are transformers' own classes over the fixtures' folders, which is what the programs were written for; the Medusa
step, whose model takes a `kv_cache`, gets one that hands it on under the name that transformers has for it.
"""

from collections.abc import Callable
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, DynamicCache

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


# --- simple_medusa_step ----------------------------------------------------------------------------------------------


class Model:
    """What the step calls: hidden states of new tokens after a cache, and a head; passes are counted."""

    def __init__(self) -> None:
        self.passes, self.lm_head = 0, model("target").lm_head

    def __call__(self, ids: Tensor, kv_cache: Any) -> Any:
        self.passes += 1
        return SimpleNamespace(last_hidden_state=model("target").model(ids, past_key_values=kv_cache)[0])


def head(hidden: Tensor) -> Tensor:
    """The first Medusa head of the fixture."""
    _, drafter = tiny("heads/medusa")
    logits: Tensor = drafter.heads(hidden)[0]
    return logits


def step(program: ModuleType, given: Tensor, kept: Any) -> tuple[list[list[int]], int]:
    """The tokens of every sequence of a batch (-1: none) and the number of target passes."""
    asked = Model()
    with torch.no_grad(), subject_code():
        tokens = program.simple_medusa_step(asked, head, given, kept)
    return [[x for x in line if x >= 0] for line in tokens.tolist()], asked.passes


def continued(prompt: tuple[int, ...], count: int) -> list[int]:
    target, _ = tiny("tiny/dspark")
    return list(plain(target, GREEDY, prompt, count, COINS))


def step_tokens(program: ModuleType) -> Found:
    """One step after every prompt, both outcomes among them."""
    lengths = []
    for prompt in PROMPTS:
        ((tokens,), _) = step(program, torch.tensor([prompt]), DynamicCache())
        lengths.append(len(tokens))
        if tokens != continued(prompt, len(tokens)):
            return {"witness": {"prompt": list(prompt), "tokens": tokens, "plain": continued(prompt, len(tokens))}}
    return {"numbers": {"steps": len(PROMPTS), "drafts accepted": sum(n > 1 for n in lengths)}}


def step_passes(program: ModuleType) -> Found:
    """The first prompt after which the draft is accepted."""
    for prompt in PROMPTS:
        ((tokens,), passes) = step(program, torch.tensor([prompt]), DynamicCache())
        if len(tokens) > 1 and len(tokens) <= passes:
            return {"witness": {"prompt": list(prompt), "tokens": tokens, "target passes": passes}}
    return {"numbers": {"prompts": len(PROMPTS)}}


def step_cache(program: ModuleType) -> Found:
    """Four steps after every prompt, each given the token that was emitted last."""
    for prompt in PROMPTS:
        kept, given = DynamicCache(), torch.tensor([prompt])
        out: list[int] = []
        for _ in range(4):
            ((tokens,), _) = step(program, given, kept)
            out, given = [*out, *tokens], torch.tensor([tokens[-1:]])
            rows = kept.get_seq_length() - len(prompt) - len(out) + 1
            if rows or out != continued(prompt, len(out)):
                told = {"prompt": list(prompt), "tokens": out, "plain": continued(prompt, len(out))}
                return {"witness": {**told, "rows in the cache beyond the text before the last token": rows}}
    return {"numbers": {"prompts": len(PROMPTS), "steps of each": 4}}


def step_batch(program: ModuleType) -> Found:
    """Two sequences of one length beside each other, and alone."""
    alone = {prompt: step(program, torch.tensor([prompt]), DynamicCache())[0][0] for prompt in PROMPTS}
    long, short = (next(p for p in PROMPTS if len(alone[p]) == count) for count in (2, 1))
    both, _ = step(program, torch.tensor([long, short]), DynamicCache())
    if both != [alone[long], alone[short]]:
        told = {"prompts": [list(long), list(short)], "alone": [alone[long], alone[short]]}
        return {"witness": {**told, "in one batch": both}}
    return {"numbers": {"sequences": 2}}


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
    "simple_medusa_step/tokens": step_tokens,
    "simple_medusa_step/passes": step_passes,
    "simple_medusa_step/cache": step_cache,
    "simple_medusa_step/batch": step_batch,
}
