"""The printed Medusa model and steps against plain greedy decoding, on the tiny networks. Runs in the child.

A step's model takes a `kv_cache`: it gets one that hands it on under the name that transformers has for it.
"""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from refengine.audit.sandbox.child import subject_code
from refengine.decoder.loop import plain
from refengine.selfcheck.documents.judges import COINS, GREEDY, Found, apart, tiny
from refengine.selfcheck.documents.judges_of_loops import PROMPTS, model

# --- MedusaModel and medusa_generate_step ----------------------------------------------------------------------------


def model_runs(program: ModuleType) -> Found:
    """On a causal language model of transformers: its base logits beside that model's own."""
    base, ids = model("target"), torch.tensor([PROMPTS[0]])
    medusa = program.MedusaModel(base, 2)
    try:
        with torch.no_grad(), subject_code():
            base_logits, _ = medusa(ids)
    except Exception as error:  # of the subject
        told = error.__cause__ or error
        return {"witness": {"model": type(base).__name__, "raised": f"{type(told).__name__}: {told}"}}
    with torch.no_grad():
        return apart(base_logits, base(ids).logits)


class Tree:
    """What the tree's step calls: base and head logits of new tokens after a cache, and logits of the tree's tokens."""

    def __call__(self, ids: Tensor, kv_cache: Any) -> tuple[Tensor, list[Tensor]]:
        hidden = model("target").model(ids, past_key_values=kv_cache)[0]
        _, drafter = tiny("heads/medusa")
        return model("target").lm_head(hidden), list(drafter.heads(hidden))

    def base_model(self, ids: Tensor, tree_attention_mask: Any, kv_cache: Any = None) -> Tensor:
        logits: Tensor = model("target")(ids, past_key_values=kv_cache).logits
        return logits


def tree_rows(program: ModuleType) -> Found:
    """The two functions that the document does not print, as plain as can be: a tree of one path, and all its rows."""
    program.__dict__["construct_tree"] = lambda *levels: torch.cat([level[:, :1] for level in levels], -1)
    program.__dict__["find_longest_accepted_path"] = lambda rows, tokens: (rows, tokens)
    for prompt in PROMPTS:
        given = torch.tensor([prompt])
        with torch.no_grad():
            with subject_code():
                rows, tokens = program.medusa_generate_step(Tree(), given, DynamicCache())
            due = model("target")(torch.cat([given, tokens], -1)).logits[:, len(prompt) :]
        if apart(rows, due)["witness"]:
            told = {"prompt": list(prompt), "tree": tokens[0].tolist()}
            likeliest = {"came": rows[0].argmax(-1).tolist(), "due": due[0].argmax(-1).tolist()}
            return {"witness": {**told, "likeliest after each node": likeliest}}
    return {"numbers": {"prompts": len(PROMPTS)}}


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


MEDUSA: dict[str, Callable[[ModuleType], Found]] = {
    "MedusaModel/runs": model_runs,
    "medusa_generate_step/text": tree_rows,
    "simple_medusa_step/tokens": step_tokens,
    "simple_medusa_step/passes": step_passes,
    "simple_medusa_step/cache": step_cache,
    "simple_medusa_step/batch": step_batch,
}
