"""State bugs to plant in the loop's parts, as edits of their source: the negative controls of the exact-law cells.

Those that several drafters share stand here, a drafter's own in its row.

A bug in the *target's* state changes which tokens come out. One in the *drafter's* state cannot, as long as it reports
the rows that it draws from: the rule corrects any q. It shows in how many tokens are drafted and accepted, which is why
a cell's law is over tokens and rounds together. The exception is a truncation that looks at what it drops.
"""

from dataclasses import dataclass, field
from typing import Literal

from refengine.source_edits.edit import Edit

TARGET, REMEMBERING = (f"refengine.decoder.targets.{name}" for name in ("transformers", "recurrent"))
RECURRENCE, BACKBONE = (f"refengine.decoder.networks.{name}" for name in ("feature_recurrence", "block_backbone"))


@dataclass(frozen=True)
class Plant:
    """One state bug.

    law_class  its class in `refengine bugs`
    part       of a session, whose state it is: the target, the drafter, or the model that the drafter holds
    edit       of the module of that part, or of something that it holds
    changes    "tokens": the law of the output moves; "rounds": only that of drafted and accepted counts does
    truncated  whether it needs a confidence threshold to show
    length     how many tokens a cell must compare for it to show: after a rejection 3, after a full acceptance 5
    """

    name: str
    law_class: str = field(repr=False)
    part: Literal["target", "drafter", "drafter.model"]
    edit: Edit
    changes: Literal["tokens", "rounds"]
    truncated: bool = False
    length: int = 3

    @property
    def diagnosis(self) -> str:
        """Its class in `refengine bugs`, and its name."""
        return f"{self.law_class}: {self.name}"


def own(drafter: str, *bugs: tuple[str, str, str, str]) -> tuple[Plant, ...]:
    """Bugs of a drafter's own file that move its rounds alone: name, class, edited text, the text instead."""
    module = f"refengine.decoder.drafters.{drafter}"
    return tuple(Plant(name, law, "drafter", Edit(module, old, new), "rounds") for name, law, old, new in bugs)


NO_CROP = Edit(
    TARGET,
    "        self.cache.keep(",
    "        rows = range(len(self.tentative))\n        self.cache.keep(",
)
# A shift of every position would be invisible (rotary embeddings are relative), so the prompt keeps its own.
SHIFTED = Edit(
    TARGET,
    "inputs = Inputs(rows.tokens, rows.positions,",
    "inputs = Inputs(rows.tokens, rows.positions + (self.kept > 0),",
)

# Of every target whose rows are rolled back by indexing.
TARGET_BUGS = (
    Plant("target-no-crop", "rejected rows stay", "target", NO_CROP, "tokens"),
    Plant("target-position-plus-one", "positions off by one", "target", SHIFTED, "tokens"),
)
# Of every drafter that recurs over features, whatever its weights and its candidates.
RECURRENT = (
    *TARGET_BUGS,
    Plant(
        "draft-rows-stay-in-the-cache",
        "rejected rows stay",
        "drafter",
        Edit(
            RECURRENCE,
            "        return self.plan(draft, turn)\n",
            "        block = self.plan(draft, turn)\n"
            "        self.cache, self.length = draft.cache, len(draft.cache[0][0])\n"
            "        return block\n",
        ),
        "rounds",
    ),
    Plant(
        "row-position-plus-one",
        "draft positions off by one",
        "drafter",
        Edit(RECURRENCE, "torch.arange(self.length,", "(self.length > 0) + torch.arange(self.length,"),
        "rounds",
    ),
    Plant(
        "stale-feature",
        "feature of another position",
        "drafter",
        Edit(
            RECURRENCE,
            "self._extend(kept.tokens, features[:-1])\n        self.feature = features[-1:]",
            "self._extend(kept.tokens, features[:-1])\n        self.feature = features[:1]",
        ),
        "rounds",
    ),
    Plant(
        "tokens-unshifted",
        "feature of another position",
        "drafter",
        Edit(RECURRENCE, "self._extend(kept.tokens, features[:-1])", "self._extend(kept.tokens, features[1:])"),
        "rounds",
    ),
)
# Of a target that remembers its states, because recurrent layers cannot be rolled back by indexing.
REMEMBERED = "self.past = self.after[len(rows) - 1] if rows else self.past\n"
MIXED = "{**self.after[len(rows) - 1], **{k: x for k, x in self.after[-1].items() if 'states' in k}}"
RECURRENT_TARGET = (
    Plant(
        "target-no-rollback",
        "rejected rows stay",
        "target",
        Edit(REMEMBERING, REMEMBERED, "self.past = self.after[-1] if rows else self.past\n"),
        "tokens",
    ),
    Plant(
        "recurrent-states-not-rolled-back",
        "rejected rows stay",
        "target",
        Edit(REMEMBERING, REMEMBERED, f"self.past = {MIXED} if rows else self.past\n"),
        "tokens",
    ),
    Plant(
        "target-state-of-the-anchor",
        "wrong rows kept",
        "target",
        Edit(REMEMBERING, REMEMBERED, "self.past = self.after[0] if rows else self.past\n"),
        "tokens",
        length=5,
    ),
    Plant(
        "target-position-plus-one",
        "positions off by one",
        "target",
        Edit(
            REMEMBERING,
            "rows.positions[i : i + size], past)",
            "rows.positions[i : i + size] + (self.kept > 0), past)",
        ),
        "tokens",
    ),
)
# Of every drafter on the block backbone.
BLOCKS = (
    *TARGET_BUGS,
    Plant(
        "block-rows-stay-in-the-context",
        "rejected rows stay",
        "drafter",
        Edit(
            BACKBONE,
            "    sees = window.block(",
            "    self.cache = (*self.cache[:i], (k, v), *self.cache[i + 1 :])\n            sees = window.block(",
        ),
        "rounds",
    ),
    Plant(
        "block-position-plus-one",
        "draft positions off by one",
        "drafter",
        Edit(BACKBONE, "device=device)\n        hidden = self", "device=device) + 1\n        hidden = self"),
        "rounds",
    ),
    Plant(
        "stale-tap",
        "feature of another position",
        "drafter",
        Edit(BACKBONE, "[kept.taps[j] for j in", "[kept.taps[j].roll(1, 0) for j in"),
        "rounds",
    ),
)
WINDOW = Plant(
    "window-forgotten",
    "window not enforced",
    "drafter",
    Edit(BACKBONE, "if window else None", "if False else None"),
    "rounds",
)
# A chain has no siblings, so that only a tree shows it.
SIBLINGS = Plant(
    "branches-see-each-other",
    "tree mask missing",
    "drafter",
    Edit(RECURRENCE, "(self.sees[above], _eye", "(self.sees[above] | True, _eye"),
    "rounds",
)
