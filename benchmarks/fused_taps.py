"""Features of several layers against those of the top one alone, in two small languages: EAGLE-3's section 3.1.

    python benchmarks/fused_taps.py [--seeds 5]     resumes; 5 minutes a seed on one core

    one stream    the next word follows from the last two: what predicts it is all there is to know
    two streams   even and odd words are two such languages that know nothing of each other: the next word follows from
                  the one, the word after it from the other, of which the top layer, asked for the next, has no need

For every language and seed a Qwen3 of four layers learns the language, and drafters in DeepSpec's EAGLE-3 layout learn
that target over three roll-outs on their own outputs, each from the same random start but for `fc`:

    fused   hidden states 1, 2 and 3
    low     hidden state 1 three times
    top     hidden state 4, the one that the target's head reads, three times
    wide    hidden state 4 once, and as many more units in the feed-forward as make up for the smaller `fc`

All have the same number of parameters. Written down: the mean of sum min(p, q) by depth on texts that the target wrote.
"""

import argparse
import hashlib
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from refengine.decoder.checkpoints.layouts.eagle3 import table
from refengine.decoder.drafters.eagle3 import Eagle3, Shape
from refengine.decoder.networks.rope import Rope
from refengine.selfcheck.effects.over_seeds import FUSED_RECORD as RECORD

WORDS, HIDDEN, LAYERS, INNER, DEPTHS = 6, 24, 4, 24, 3
LENGTH, TARGET_STEPS, STEPS, DECAY = 20, 1200, 800, 0.8
TEXTS, BEGINNING = 64, 4  # texts that overlap is measured on, and words of each that any language starts with
STREAMS = {"one stream": 1, "two streams": 2}
VARIANTS = {  # taps, and the width of the feed-forward
    "fused": ((1, 2, 3), INNER),
    "low": ((1, 1, 1), INNER),
    "top": ((4, 4, 4), INNER),
    "wide": ((4,), INNER + 2 * HIDDEN * HIDDEN // (3 * HIDDEN)),
}


# --- languages -------------------------------------------------------------------------------------------------------


def source(streams: int, seed: int) -> Tensor:
    """Probabilities [streams, 6, 6, 6] of a word after the last two of its stream."""
    weights = torch.rand(streams, WORDS, WORDS, WORDS, generator=torch.Generator().manual_seed(seed)) ** 4 + 0.01
    return weights / weights.sum(-1, keepdim=True)


def speak(rows: Tensor, count: int, seed: int) -> Tensor:
    """Sentences [count, LENGTH]; each stream has words of its own."""
    generator, streams = torch.Generator().manual_seed(seed), len(rows)
    words = [torch.randint(WORDS, (count,), generator=generator) for _ in range(2 * streams)]
    while len(words) < LENGTH:
        after = rows[len(words) % streams, words[-2 * streams], words[-streams]]
        words.append(torch.multinomial(after, 1, generator=generator)[:, 0])
    return torch.stack([x + WORDS * (i % streams) for i, x in enumerate(words)], 1)


# --- the target ------------------------------------------------------------------------------------------------------


def train_target(rows: Tensor, seed: int) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=WORDS * len(rows), hidden_size=HIDDEN, intermediate_size=2 * HIDDEN, num_hidden_layers=LAYERS,
            num_attention_heads=2, num_key_value_heads=2, head_dim=8, max_position_embeddings=64,
            initializer_range=0.15, tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
        )
    )  # fmt: skip
    descend(
        list(model.parameters()),
        TARGET_STEPS,
        lambda step: model(input_ids=(words := speak(rows, 64, 100_000 * seed + step)), labels=words).loss,
    )
    return model.eval().requires_grad_(False)


def descend(parameters: list[Tensor], steps: int, loss: Any) -> None:
    """Adam under a one-cycle rate."""
    adam = torch.optim.Adam(parameters)
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, 5e-3, total_steps=steps)
    for step in range(steps):
        adam.zero_grad()
        loss(step).backward()
        adam.step()
        rate.step()


def written(model: Qwen3ForCausalLM, streams: int, seed: int) -> Tensor:
    """Texts [TEXTS, LENGTH] that the target wrote, drawn from its own rows."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(WORDS, (TEXTS, 1), generator=generator)
    while words.shape[1] < LENGTH:
        p = model(input_ids=words, use_cache=False).logits[:, -1].softmax(-1)
        words = torch.cat((words, torch.multinomial(p, 1, generator=generator)), 1)
    return words


# --- drafters --------------------------------------------------------------------------------------------------------


def train_drafter(variant: str, model: Qwen3ForCausalLM, rows: Tensor, seed: int) -> dict[str, Tensor]:
    shape = shape_of(variant, WORDS * len(rows))
    tensors = start(shape, model, seed)
    free = [x.requires_grad_() for name, x in tensors.items() if name not in ("embed_tokens.weight", "lm_head.weight")]

    def loss(step: int) -> Tensor:
        followed = rollout(Eagle3(shape, tensors), model, speak(rows, 8, 7_000_000 + 100_000 * seed + step))
        entropies = (-(p * logits.log_softmax(-1)).sum(-1).mean() for p, logits in followed)
        return torch.stack([DECAY**depth * x for depth, x in enumerate(entropies)]).sum()

    descend(free, STEPS, loss)
    return {name: x.detach() for name, x in tensors.items()}


def shape_of(variant: str, vocabulary: int) -> Shape:
    taps, inner = VARIANTS[variant]
    return Shape(
        vocab_size=vocabulary, draft_vocab_size=vocabulary, hidden_size=HIDDEN, target_hidden_size=HIDDEN,
        intermediate_size=inner, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
        rms_norm_eps=1e-6, rope=Rope(10000.0), first="layers.0", taps=taps, head_norms=True,
    )  # fmt: skip


def start(shape: Shape, model: Qwen3ForCausalLM, seed: int) -> dict[str, Tensor]:
    """Each tensor from a seed of its name; embeddings and head are the target's."""
    tensors = {}
    for name, size in table(shape, set()).items():
        generator = torch.Generator().manual_seed(
            seed * 2**32 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
        )
        scale = 0.2 if len(size) == 1 else size[-1] ** -0.5
        tensors[name] = torch.randn(size, generator=generator) * scale + float(name.endswith("norm.weight"))
    weights = model.state_dict()
    tensors["embed_tokens.weight"] = weights["model.embed_tokens.weight"].clone()
    tensors["lm_head.weight"] = weights["lm_head.weight"].clone()
    return tensors


def rollout(net: Eagle3, model: Qwen3ForCausalLM, words: Tensor) -> list[tuple[Tensor, Tensor]]:
    """At each depth the target's rows and the draft's logits, [count, n, V].

    From the second depth on the draft is fed with its own outputs. Sentences stand one after another in one pass, each
    seeing itself alone.
    """
    count, length = words.shape
    with torch.no_grad():
        passed = model(input_ids=words, output_hidden_states=True, use_cache=False)
    features = torch.cat([passed.hidden_states[j] for j in net.taps], -1)
    hidden, found = net.fused(features), []
    for depth in range(DEPTHS):
        n = length - 1 - depth
        tokens, positions = words[:, 1 + depth :].flatten(), torch.arange(n).repeat(count)
        sees = torch.block_diag(*[torch.ones(n, n).tril()] * count).bool()
        out, _ = net.rows(tokens, hidden[:, :n].flatten(0, 1), positions, net.empty(), sees)
        hidden = out.view(count, n, -1)
        found.append((passed.logits[:, 1 + depth :].softmax(-1), net.logits(out).view(count, n, -1)))
    return found


def overlaps(variant: str, model: Qwen3ForCausalLM, tensors: dict[str, Tensor], texts: Tensor) -> list[float]:
    """By depth, of rows after the words that begin a text."""
    followed = rollout(Eagle3(shape_of(variant, len(tensors["lm_head.weight"])), tensors), model, texts)
    return [round(float(torch.minimum(p, q.softmax(-1)).sum(-1)[:, BEGINNING:].mean()), 6) for p, q in followed]


# --- the run ---------------------------------------------------------------------------------------------------------


def one(language: str, seed: int) -> dict[str, Any]:
    """One target, and every variant of its drafter."""
    rows = source(STREAMS[language], seed)
    model = train_target(rows, seed)
    found: dict[str, Any] = {"overlap": {}, "parameters": {}}
    for variant in VARIANTS:
        tensors = train_drafter(variant, model, rows, seed)
        with torch.no_grad():
            found["overlap"][variant] = overlaps(variant, model, tensors, written(model, len(rows), seed))
        found["parameters"][variant] = sum(x.numel() for x in tensors.values())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    torch.set_num_threads(1)
    name = Path(__file__).stem
    results = dict((RECORD.fresh(name) or {}).get("languages", {}))
    for seed in range(1, parser.parse_args().seeds + 1):
        for language in STREAMS:
            runs = results.setdefault(language, {})
            if str(seed) not in runs:
                runs[str(seed)] = one(language, seed)
                RECORD.put(name, {"languages": results})
                print(language, seed, runs[str(seed)], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
