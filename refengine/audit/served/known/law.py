"""The law of a served model that is computed here: a folder that `refengine fixtures export` wrote.

    FOLDER/target, FOLDER/drafter   transformers layout: config.json, model.safetensors, tokenizer.json
    FOLDER/law.json                 the words, the end, and how the law follows from them, in words

The network runs in double precision, the policy is that of `engine/policy.py`, in the order in which law.json says it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from refengine.engine import policy as steps
from refengine.errors import BadInput
from refengine.evidence.rows import Rows

Ids: TypeAlias = tuple[int, ...]
FILE, VERSION = "law.json", 1
EDGE = 0.02  # nats by which rounding may move a token at the edge of a filter, or to the top
LEAST_TEMPERATURE = 1e-6
FILTERS = ("min_p", "top_k", "top_p")


@dataclass(frozen=True)
class KnownLaw:
    """words: of the vocabulary, by id. end: the id that ends a text. model: of transformers, in double precision."""

    words: tuple[str, ...]
    end: int
    prompts: tuple[str, ...]
    model: Any

    @staticmethod
    def load(folder: Path, part: str = "target") -> "KnownLaw":
        """Raises BadInput."""
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging as bars

        try:
            told = json.loads((folder / FILE).read_text())
            if told["version"] != VERSION:
                raise BadInput(f"{folder / FILE} is of version {told['version']}, and this reads {VERSION}")
            told_bars: Any = bars
            told_bars.disable_progress_bar()
            model: Any = AutoModelForCausalLM.from_pretrained(folder / part, dtype=torch.float64, local_files_only=True)
            model.eval()
            return KnownLaw(tuple(told["words"]), told["end"], tuple(told["prompts"]), model)
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise BadInput(f"{folder} is no folder of `refengine fixtures export`: {error}") from None

    def ids(self, text: str) -> Ids:
        """Of the words of a text. Raises KeyError for a word that is none."""
        known = {word: i for i, word in enumerate(self.words)}
        return tuple(known[word] for word in text.split())

    def logits(self, prompt: Ids, texts: Sequence[Ids]) -> list[Tensor]:
        """Of every position of texts after a prompt, and of the one behind: [n + 1, V] each."""
        longest = max(map(len, texts))
        rows = [[*prompt, *text, *[0] * (longest - len(text))] for text in texts]
        with torch.inference_mode():
            out = self.model(torch.tensor(rows)).logits.double()
        return [row[len(prompt) - 1 : len(prompt) + len(text)] for row, text in zip(out, texts, strict=True)]

    def row(self, logits: Tensor, prompt: Ids, prefix: Ids, temperature: float, options: Mapping[str, Any]) -> Rows:
        """The law of the next token [V]: bans and biases, penalties, temperature, min-p, top-k, top-p."""
        policy = steps.pipeline(*self._steps(temperature, options, len(prefix)))
        return np.asarray(policy(logits, prompt, prefix).double().numpy())

    def settled(
        self, row: Rows, logits: Tensor, prompt: Ids, prefix: Ids, temperature: float, options: Mapping[str, Any]
    ) -> bool:
        """Whether a filter keeps the same tokens when the two at its edge move towards each other by rounding."""
        kept = row > 0
        if kept.all():
            return True
        plain = {name: value for name, value in options.items() if name not in FILTERS}
        before = self.row(logits, prompt, prefix, max(temperature, 1.0), plain)
        inside = int(np.where(kept, before, 2.0).argmin())
        outside = int(np.where(kept, -1.0, before).argmax())
        nudged = logits.clone()
        nudged[inside] -= EDGE
        nudged[outside] += EDGE
        return bool(((self.row(nudged, prompt, prefix, temperature, options) > 0) == kept).all())

    def _steps(self, temperature: float, options: Mapping[str, Any], emitted: int) -> list[steps.Step]:
        bias = {int(token): float(value) for token, value in (options.get("logit_bias") or {}).items()}
        if (allowed := options.get("allowed_token_ids")) is not None:
            bias |= {token: steps.BANNED for token in range(len(self.words)) if token not in allowed}
        if emitted < options.get("min_tokens", 0):
            bias[self.end] = steps.BANNED
        bad = [self.ids(word) for word in options.get("bad_words", ())]
        made = [steps.logit_bias(bias), steps.bad_words(bad)]
        made += [
            step(options[name])
            for name, step in (
                ("repetition_penalty", steps.repetition_penalty),
                ("frequency_penalty", steps.frequency_penalty),
                ("presence_penalty", steps.presence_penalty),
            )
            if name in options
        ]
        if temperature < LEAST_TEMPERATURE:
            return [*made, steps.greedy()]
        made.append(steps.temperature(temperature))
        filters = zip(FILTERS, (steps.min_p, steps.top_k, steps.top_p), strict=True)
        return [*made, *(step(options[name]) for name, step in filters if name in options)]
