"""The model that `refengine fixtures export` wrote, for the test engine: Llama in numpy, read from the file."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from properties.helpers.served.model import Language

EPSILON, BASE = 1e-6, 10000.0  # of the norms; of the rotations


def exported(folder: Path) -> Language:
    """Served as the law says that it is; a draft is the drafter's."""
    told = json.loads((folder / "law.json").read_text())
    parts = {noisy: Llama(folder / part) for noisy, part in ((False, "target"), (True, "drafter"))}

    def logits(context: list[int], noise: float) -> list[float]:
        return parts[noise > 0].logits(tuple(context))

    return Language([f" {word}" for word in told["words"]], told["end"], logits, prompt_counts=True)


class Llama:
    """One attention head a layer."""

    def __init__(self, folder: Path) -> None:
        self.layers = json.loads((folder / "config.json").read_text())["num_hidden_layers"]
        self.weights = {n: w.astype(np.float64) for n, w in load_file(folder / "model.safetensors").items()}
        self.logits = cache(self._logits)

    def _logits(self, context: tuple[int, ...]) -> list[float]:
        w, n = self.weights, len(context)
        x = w["model.embed_tokens.weight"][list(context)]
        half = x.shape[1] // 2
        angle = np.arange(n)[:, None] * BASE ** (-np.arange(half) / half)
        cos, sin = np.tile(np.cos(angle), 2), np.tile(np.sin(angle), 2)
        hidden = np.triu(np.full((n, n), -np.inf), 1)

        def turned(y: Any) -> Any:
            return y * cos + np.concatenate([-y[:, half:], y[:, :half]], 1) * sin

        for i in range(self.layers):
            name = f"model.layers.{i}."
            y = _norm(x, w[name + "input_layernorm.weight"])
            query, key, value = (y @ w[f"{name}self_attn.{part}_proj.weight"].T for part in "qkv")
            score = turned(query) @ turned(key).T / np.sqrt(x.shape[1]) + hidden
            score = np.exp(score - score.max(1, keepdims=True))
            x = x + (score / score.sum(1, keepdims=True)) @ value @ w[name + "self_attn.o_proj.weight"].T
            y = _norm(x, w[name + "post_attention_layernorm.weight"])
            gate, up = (y @ w[f"{name}mlp.{part}_proj.weight"].T for part in ("gate", "up"))
            x = x + (gate / (1 + np.exp(-gate)) * up) @ w[name + "mlp.down_proj.weight"].T
        last: list[float] = (_norm(x[-1:], w["model.norm.weight"]) @ w["lm_head.weight"].T)[0].tolist()
        return last


def _norm(x: Any, weight: Any) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * weight
