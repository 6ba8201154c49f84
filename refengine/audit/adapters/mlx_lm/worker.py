"""mlx-lm over the tiny pair. Runs under the engine's Python: `speak.py` says what is here."""

from pathlib import Path
from typing import Any

DRAFTED = 3


def convert(source: str, folder: str) -> None:
    from mlx_lm import convert as converted

    for part in ("target", "drafter"):
        converted(str(Path(source) / part), str(Path(folder) / part), dtype="float32")


def opened(folder: str) -> Any:
    import mlx.core as mx
    from mlx_lm import load
    from mlx_lm.generate import generate_step, speculative_generate_step
    from mlx_lm.sample_utils import make_logits_processors, make_sampler

    mx.set_default_device(mx.cpu)
    (target, tokenizer), (drafter, _) = (load(str(Path(folder) / part)) for part in ("target", "drafter"))

    def generate(
        way: str,
        prompt: list[int],
        tokens: int,
        temperature: float,
        seed: int,
        top_k: int = 0,
        top_p: float = 0.0,
        min_p: float = 0.0,
        repetition_penalty: float | None = None,
        presence_penalty: float | None = None,
        frequency_penalty: float | None = None,
        logit_bias: dict[str, float] | None = None,
    ) -> list[int]:
        bias = {int(token): float(value) for token, value in logit_bias.items()} if logit_bias else None
        policy: dict[str, Any] = {
            "max_tokens": tokens,
            "sampler": make_sampler(temp=temperature, top_p=top_p, min_p=min_p, top_k=top_k),
            "logits_processors": make_logits_processors(
                bias,
                repetition_penalty,
                presence_penalty=presence_penalty,
                frequency_penalty=frequency_penalty,
            ),
        }
        mx.random.seed(seed)
        ids = mx.array(prompt)
        steps = (
            speculative_generate_step(ids, target, drafter, num_draft_tokens=DRAFTED, **policy)
            if way
            else generate_step(ids, target, **policy)
        )
        out: list[int] = []
        for token, *_ in steps:
            out.append(int(token))
            if out[-1] in tokenizer.eos_token_ids:
                break
        return out

    return generate
