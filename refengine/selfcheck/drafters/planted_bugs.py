"""State bugs to plant in the loop's parts, as edits of their source: the negative controls of the exact-law cells.

A bug in the *target's* state changes which tokens come out. One in the *drafter's* state cannot, as long as it reports
the rows that it draws from: the rule corrects any q. It shows in how many tokens are drafted and accepted, which is why
a cell's law is over tokens and rounds together. The exception is a truncation that looks at what it drops.
"""

from dataclasses import dataclass, replace
from typing import Literal

from refengine.source_edits.edit import Edit

TARGET, BACKBONE = "refengine.decoder.targets.transformers", "refengine.decoder.networks.block_backbone"
AR, DSPARK, DFLASH = (f"refengine.decoder.drafters.{name}" for name in ("ar", "dspark", "dflash"))
LOOKUP, MEDUSA, NGRAM = (f"refengine.decoder.drafters.{name}" for name in ("prompt_lookup", "medusa", "ngram"))
LOOKAHEAD, PARALLEL = (f"refengine.decoder.drafters.{name}" for name in ("lookahead", "parallel_heads"))
RECURRENCE, REMEMBERING = "refengine.decoder.networks.feature_recurrence", "refengine.decoder.targets.recurrent"
DEEPSEEK = "refengine.decoder.drafters.deepseek_mtp"
GEMMA4, DART = (f"refengine.decoder.drafters.{name}" for name in ("gemma4_assistant", "dart"))


@dataclass(frozen=True)
class Plant:
    """One state bug.

    part       whose state: the target's, the model's that `ar` drafts with, or the drafter's own code
    edit       of the module of that part
    changes    "tokens": the law of the output moves; "rounds": only that of drafted and accepted counts does
    truncated  whether it needs a confidence threshold to show
    length     how many tokens a cell must compare for it to show: after a rejection 3, after a full acceptance 5
    """

    name: str
    part: Literal["target", "model", "drafter"]
    edit: Edit
    changes: Literal["tokens", "rounds"]
    truncated: bool = False
    length: int = 3


NO_CROP = Edit(
    TARGET,
    "        index = torch.tensor([*range(self.kept),",
    "        rows = range(len(self.tentative))\n        index = torch.tensor([*range(self.kept),",
)
# A shift of every position would be invisible (rotary embeddings are relative), so the prompt keeps its own.
SHIFTED = Edit(
    TARGET,
    "inputs = Inputs(rows.tokens, rows.positions,",
    "inputs = Inputs(rows.tokens, rows.positions + (self.kept > 0),",
)
SHIFTED_ROWS = "(old > 0) + torch.arange(old, old +"
NO_CATCHING_UP = Edit(
    DEEPSEEK, "torch.cat((self.waiting[depth], hidden)))", "hidden if depth else self.waiting[depth])"
)
ANCHOR_ALONE = Edit(PARALLEL, "(kept)\n\n    def state", "(kept.select([0]))\n\n    def state")
ANCHORS_HIDDEN = Edit(GEMMA4, "kept.taps[self.taps[0]][-1:]", "kept.taps[self.taps[0]][:1]")
NEVER_AGAIN = Edit(GEMMA4, "self.hidden = kept.taps[self.taps[0]][-1:]", "pass")
WINDOW_ROW_STAYS = Edit(
    LOOKAHEAD,
    "(rows).logits\n        self.target.keep(())",
    "(rows).logits\n        self.target.keep((0,))",
)

# Of every target whose rows are rolled back by indexing.
TARGET_BUGS = (
    Plant("target-no-crop", "target", NO_CROP, "tokens"),
    Plant("target-position-plus-one", "target", SHIFTED, "tokens"),
)
# Of every drafter that recurs over features, whatever its weights and its candidates.
RECURRENT = (
    *TARGET_BUGS,
    Plant(
        "draft-rows-stay-in-the-cache",
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
        "drafter",
        Edit(RECURRENCE, "torch.arange(self.length,", "(self.length > 0) + torch.arange(self.length,"),
        "rounds",
    ),
    Plant(
        "stale-feature",
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
        "target",
        Edit(REMEMBERING, REMEMBERED, "self.past = self.after[-1] if rows else self.past\n"),
        "tokens",
    ),
    Plant(
        "recurrent-states-not-rolled-back",
        "target",
        Edit(REMEMBERING, REMEMBERED, f"self.past = {MIXED} if rows else self.past\n"),
        "tokens",
    ),
    Plant(
        "target-state-of-the-anchor",
        "target",
        Edit(REMEMBERING, REMEMBERED, "self.past = self.after[0] if rows else self.past\n"),
        "tokens",
        length=5,
    ),
    Plant(
        "target-position-plus-one",
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
        "drafter",
        Edit(BACKBONE, " k, v = torch.cat((keys, k))", " self.cache[i] = k, v = torch.cat((keys, k))"),
        "rounds",
    ),
    Plant(
        "block-position-plus-one",
        "drafter",
        Edit(BACKBONE, "device=device)\n        hidden = self", "device=device) + 1\n        hidden = self"),
        "rounds",
    ),
    Plant(
        "stale-tap",
        "drafter",
        Edit(BACKBONE, "[kept.taps[j] for j in", "[kept.taps[j].roll(1, 0) for j in"),
        "rounds",
    ),
)
DFLASH_BLOCKS = (
    *BLOCKS,
    Plant("reads-the-anchors-slot", "drafter", Edit(DFLASH, "0 if self.shape.shifted else 1", "0"), "rounds"),
)
STALE_CONFIDENCE = Plant(
    "stale-confidence",
    "drafter",
    Edit(DSPARK, "self.confidence(hidden[k], before)", "self.confidence(hidden[max(k - 1, 0)], before)"),
    "rounds",
)
WINDOW = Plant("window-forgotten", "drafter", Edit(BACKBONE, "if window else None", "if False else None"), "rounds")
# A chain has no siblings, so that only a tree shows it.
SIBLINGS = Plant(
    "branches-see-each-other",
    "drafter",
    Edit(RECURRENCE, "(self.sees[above], _eye", "(self.sees[above] | True, _eye"),
    "rounds",
)

PLANTS: dict[str, tuple[Plant, ...]] = {
    "deepseek_mtp": RECURRENT,
    "deepseek_mtp2": (
        *TARGET_BUGS,
        Plant(
            "draft-rows-stay-in-the-cache",
            "drafter",
            Edit(DEEPSEEK, "hidden, _ = self._run(", "hidden, self.caches[depth] = self._run("),
            "rounds",
        ),
        Plant("row-position-plus-one", "drafter", Edit(DEEPSEEK, "torch.arange(old, old +", SHIFTED_ROWS), "rounds"),
        Plant("stale-waiting-row", "drafter", Edit(DEEPSEEK, "= hidden[-1:]", "= hidden[:1]"), "rounds"),
        Plant("one-cache-for-all", "drafter", Edit(DEEPSEEK, "self.caches[depth], l", "self.caches[0], l"), "rounds"),
        Plant("a-module-does-not-catch-up", "drafter", NO_CATCHING_UP, "rounds"),
    ),
    "dart": (
        *RECURRENT,
        Plant(
            "draft-position-plus-one",
            "drafter",
            Edit(RECURRENCE, "self.kept + sees.sum(1) - 1", "self.kept + sees.sum(1)"),
            "rounds",
        ),
        Plant(
            "looks-back-without-the-anchor",
            "drafter",
            Edit(DART, "(draft), turn.prefix)", "(draft), turn.prefix[:-1])"),
            "rounds",
        ),
        Plant(
            "every-level-after-the-anchor",
            "drafter",
            Edit(DART, "((*prefix, *path), tokens,", "((*prefix, *path[:1]), tokens,"),
            "rounds",
        ),
    ),
    "eagle1": RECURRENT,
    "eagle2": (*RECURRENT, SIBLINGS),
    "eagle3": (*RECURRENT, SIBLINGS),
    "eagle3_deepspec": RECURRENT,
    "eagle3_gemma4": RECURRENT,
    "eagle3_speculators": RECURRENT,
    "p_eagle": RECURRENT,
    "p_eagle_amazon": RECURRENT,
    "qwen_mtp": (*RECURRENT_TARGET, *(plant for plant in RECURRENT if plant.part == "drafter")),
    "ar": (
        *TARGET_BUGS,
        Plant("draft-no-crop", "model", NO_CROP, "rounds"),
        Plant("draft-position-plus-one", "model", SHIFTED, "rounds"),
        Plant(
            "wrong-row-after-full-acceptance",
            "drafter",
            Edit(AR, "chain_rows(self.drafted[-1:]", "chain_rows(self.drafted[:1]"),
            "rounds",
            length=5,
        ),
    ),
    "dflash": DFLASH_BLOCKS,
    "dflash_drawn": DFLASH_BLOCKS,
    "dflash_transformers": (*DFLASH_BLOCKS, WINDOW),
    "dflash_speculators": (*DFLASH_BLOCKS, WINDOW),
    "dflash_deepspec": BLOCKS,
    "dspark_gemma4": BLOCKS,
    "dspark_speculators": (
        *BLOCKS,
        WINDOW,
        Plant(
            "reads-the-anchors-slot",
            "drafter",
            Edit(DSPARK, "            hidden = hidden[1:]\n", "            hidden = hidden[:-1]\n"),
            "rounds",
        ),
        Plant(
            "forgets-the-anchors-slot",
            "drafter",
            Edit(DSPARK, "            _, memory", "            _, _"),
            "rounds",
        ),
    ),
    "dspark_scheduled": (
        *BLOCKS,
        STALE_CONFIDENCE,
        Plant(
            "looks-past-the-token",
            "drafter",
            Edit(
                DSPARK,
                "            path = (*path, turn.draw(q[-1], sites[-1]))\n",
                "            path = (*path, turn.draw(q[-1], sites[-1]))\n"
                "            later = float(self.confidence(hidden[k], self.before(path[-1])))\n"
                "            if self.cut is not None and not self.cut([*confidences, later]):\n"
                "                path, q, sites = path[:-1], q[:-1], sites[:-1]\n"
                "                break\n",
            ),
            "tokens",
        ),
    ),
    "dspark": (
        *BLOCKS,
        replace(STALE_CONFIDENCE, truncated=True),
        Plant(
            "retrospective-confidence",
            "drafter",
            Edit(
                DSPARK,
                "            path = (*path, turn.draw(q[-1], sites[-1]))\n",
                "            path = (*path, turn.draw(q[-1], sites[-1]))\n"
                "            if 0 < float(self.confidence(hidden[k], self.before(path[-1]))) < self.threshold:\n"
                "                path, q, sites = path[:-1], q[:-1], sites[:-1]\n"
                "                break\n",
            ),
            "tokens",
            truncated=True,
        ),
    ),
    "gemma4_assistant": (
        *TARGET_BUGS,
        Plant("rejected-keys-stay", "drafter", Edit(GEMMA4, "if self.stale_keys:", "if True:"), "rounds"),
        Plant("hidden-state-of-the-anchor", "drafter", ANCHORS_HIDDEN, "rounds"),
        Plant("stale-hidden-state", "drafter", NEVER_AGAIN, "rounds"),
        Plant("position-moves-on", "drafter", Edit(GEMMA4, "position, keys)\n", "position + depth, keys)\n"), "rounds"),
        Plant("position-plus-one", "drafter", Edit(GEMMA4, "tensor([length - 1]", "tensor([length]"), "rounds"),
        Plant("window-of-one-key-less", "drafter", Edit(GEMMA4, "[-(window + 1) :]", "[-window:]"), "rounds"),
        Plant("own-state-not-carried", "drafter", Edit(GEMMA4, "hidden, logits = step", "_, logits = step"), "rounds"),
    ),
    "prompt_lookup": (
        *TARGET_BUGS,
        Plant("looks-up-without-the-anchor", "drafter", Edit(LOOKUP, "(turn.prefix,", "(turn.prefix[:-1],"), "rounds"),
        Plant("looks-in-the-prompt-alone", "drafter", Edit(LOOKUP, "(turn.prefix,", "(turn.prompt,"), "rounds"),
    ),
    "lookahead": (
        *TARGET_BUGS,
        Plant("a-window-row-stays", "drafter", WINDOW_ROW_STAYS, "tokens"),
        Plant("filling-row-off-by-one", "drafter", Edit(LOOKAHEAD, "self.new[1:])", "self.new[:-1])"), "rounds"),
        Plant("filed-under-the-next-token", "drafter", Edit(LOOKAHEAD, "(keys[i],", "(self.rows[1][i],"), "rounds"),
        Plant("guesses-for-another-token", "drafter", Edit(LOOKAHEAD, "get(anchor,", "get(turn.prefix[-2],"), "rounds"),
    ),
    "parallel_heads": (
        *TARGET_BUGS,
        Plant("heads-look-from-the-anchor", "drafter", Edit(PARALLEL, "trunk[-1:]", "trunk[:1]"), "rounds"),
        Plant("accepted-rows-not-cached", "drafter", ANCHOR_ALONE, "rounds"),
        Plant("position-plus-one", "drafter", Edit(PARALLEL, "len(self.keys[0]) - 1]", "len(self.keys[0])]"), "rounds"),
        Plant("one-cache-for-all-heads", "drafter", Edit(PARALLEL, "q, self.keys[k], ", "q, self.keys[0], "), "rounds"),
    ),
    "medusa": (
        *TARGET_BUGS,
        Plant(
            "hidden-state-of-the-anchor",
            "drafter",
            Edit(MEDUSA, "kept.taps[self.taps[0]][-1]", "kept.taps[self.taps[0]][0]"),
            "rounds",
        ),
        Plant(
            "stale-hidden-state",
            "drafter",
            Edit(MEDUSA, "self.hidden = kept.taps[self.taps[0]][-1]", "pass"),
            "rounds",
        ),
        Plant("one-head-for-all-levels", "drafter", Edit(MEDUSA, "ranked[len(path) - 1]", "ranked[0]"), "rounds"),
    ),
    "ngram": (
        *TARGET_BUGS,
        Plant("learns-the-anchor-twice", "drafter", Edit(NGRAM, "kept.tokens[1:]", "kept.tokens"), "rounds"),
        Plant("forgets-accepted-tokens", "drafter", Edit(NGRAM, "kept.tokens[1:]", "kept.tokens[1:1]"), "rounds"),
    ),
}  # fmt: skip
