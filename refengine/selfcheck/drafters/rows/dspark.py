"""DSpark: DeepSpec's with Qwen3 and Gemma 4 layers, its scheduler, and that of speculators."""

from dataclasses import replace

from refengine.decoder.drafters.dspark_schedule import Load
from refengine.selfcheck.drafters.planted_bugs import BLOCKS, WINDOW, Plant, own
from refengine.selfcheck.drafters.row import Row
from refengine.source_edits.edit import Edit

DSPARK = "refengine.decoder.drafters.dspark"
PROMPT = (2, 3, 2, 4, 5, 1, 4, 3)
# A pass over two rows takes as long as over one, a third row a fifth of that more. Whether a fourth pays lies between
# the confidences that two tokens give: a cut that looks past the token moves the law.
LOAD = Load(((1, 1.0), (2, 1.0), (3, 1.2), (4, 1.388)))
DRAWN = (
    "            if not chain.draw(spread(wide(base[k] + bias), self.targets, self.shape.vocab_size)):\n"
    "                break\n"
)
TAKEN_BACK = "                chain.path, chain.q = chain.path[:-1], chain.q[:-1]\n                break\n"
(STALE_CONFIDENCE,) = own(
    "dspark",
    (
        "stale-confidence",
        "feature of another position",
        "self.confidence(hidden[k], before)",
        "self.confidence(hidden[max(k - 1, 0)], before)",
    ),
)
LOOKS_PAST = Edit(
    DSPARK,
    DRAWN,
    f"{DRAWN}            later = float(self.confidence(hidden[k], self.before(chain.newest)))\n"
    f"            if self.cut is not None and not self.cut([*confidences, later]):\n{TAKEN_BACK}",
)
RETROSPECTIVE = Edit(
    DSPARK,
    DRAWN,
    f"{DRAWN}            later = float(self.confidence(hidden[k], self.before(chain.newest)))\n"
    f"            if 0 < later < self.threshold:\n{TAKEN_BACK}",
)
SLOT_BUGS = own(
    "dspark",
    (
        "reads-the-anchors-slot",
        "draft slots misaddressed",
        "            hidden = hidden[1:]\n",
        "            hidden = hidden[:-1]\n",
    ),
    ("forgets-the-anchors-slot", "draft cache has a hole", "            _, memory", "            _, _"),
)

ROWS = {
    "dspark": Row(
        prompt=(4, 5, 6),
        folder="tiny/dspark",
        threshold=0.64,  # between the confidences that two tokens give: a cut that looks at the token moves the law
        plants=(
            *BLOCKS,
            replace(STALE_CONFIDENCE, truncated=True),
            Plant(
                "retrospective-confidence",
                "value-dependent truncation",
                "drafter",
                RETROSPECTIVE,
                "tokens",
                truncated=True,
            ),
        ),
    ),
    "dspark_scheduled": Row(
        prompt=PROMPT,
        folder="tiny/dspark",
        options={"load": LOAD},
        plants=(
            *BLOCKS,
            STALE_CONFIDENCE,
            Plant("looks-past-the-token", "value-dependent truncation", "drafter", LOOKS_PAST, "tokens"),
        ),
        not_tested={"agrees": "the scheduler is not released: DeepSpec's code has the confidences alone"},
    ),
    "dspark_gemma4": Row((5, 4, 0, 4, 0, 6, 3, 2), BLOCKS, "variants/dspark_gemma4", target="gemma4/target"),
    "dspark_speculators": Row(PROMPT, (*BLOCKS, WINDOW, *SLOT_BUGS), "dspark/speculators"),
}
