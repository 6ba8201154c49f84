"""Answers that show their steps and their text, held to a known law at every prefix at which a draft was judged.

A profile needs requests like its own; here the text says where each round began, so the chance of every draft is known:
the sum of min(p, q) of the rows after that prefix, or p of the drafter's argmax. Any requests at temperature 1
will do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refengine.audit.acceptance.sources import text_of
from refengine.audit.acceptance.sources.answers import inside, values
from refengine.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor

STEPS = ("per_step_accepted", "per_step_drafted")  # vLLM, `--per-request-spec-decode-metrics detailed`


@dataclass(frozen=True)
class Answer:
    """prompt, text: words. kept, drafted: tokens of each step."""

    prompt: str
    text: str
    stopped: bool
    kept: tuple[int, ...]
    drafted: tuple[int, ...]


@dataclass
class Judged:
    """The drafts at one position: whether each was kept, and the chance of that."""

    kept: list[bool] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)


def answers(files: Sequence[str]) -> list[Answer]:
    """Of files in which every answer has a prompt beside its steps; none where one has not."""
    found: list[Answer] = []
    for file in files:
        text = text_of(Path(file))
        if STEPS[0] not in text or '"prompt"' not in text:
            return []
        for value in values(text, file)[0]:
            steps = [part for part in inside(value) if all(isinstance(part.get(name), list) for name in STEPS)]
            choices = [part for part in inside(value) if isinstance(part.get("text"), str)]
            if len(steps) != 1 or len(choices) != 1 or not isinstance(value.get("prompt"), str):
                return []
            kept, drafted = (tuple(map(int, steps[0][name])) for name in STEPS)
            stopped = choices[0].get("finish_reason") == "stop"
            found.append(Answer(value["prompt"], choices[0]["text"], stopped, kept, drafted))
    return found


def judged(told: Sequence[Answer], folder: Path, drawn: bool) -> list[Judged]:
    """By position. Raises BadInput for words that the law does not have, and steps that do not make the text."""
    from refengine.audit.served.known.law import KnownLaw  # torch, which a profile does not need

    law, drafter = (KnownLaw.load(folder, part) for part in ("target", "drafter"))
    positions = [Judged() for _ in range(max(max(answer.drafted, default=0) for answer in told))]
    for number, answer in enumerate(told, 1):
        try:
            prompt, text = law.ids(answer.prompt), law.ids(answer.text)
        except KeyError as error:
            raise BadInput(f"answer {number} has the word {error}, which the exported model does not have") from None
        text += (law.end,) * answer.stopped
        if 1 + sum(answer.kept) + len(answer.kept) < len(text):
            raise BadInput(f"answer {number}: its steps emit fewer tokens than the {len(text)} of its text")
        chances = _chances(law.logits(prompt, [text])[0], drafter.logits(prompt, [text])[0], drawn)
        at = 1  # the first token comes of the prompt's own pass
        for kept, drafted in zip(answer.kept, answer.drafted, strict=True):
            for i in range(min(kept + 1, drafted, len(text) - at + 1)):
                positions[i].kept.append(i < kept)
                positions[i].chances.append(chances[at + i])
            at += kept + 1
    return positions


def _chances(p: "Tensor", q: "Tensor", drawn: bool) -> list[float]:
    """By length of the prefix."""
    p, q = p.softmax(-1), q.softmax(-1)
    kept: Any = p.minimum(q).sum(-1) if drawn else p.gather(-1, q.argmax(-1, keepdim=True)).squeeze(-1)
    return [min(1.0, float(chance)) for chance in kept]
