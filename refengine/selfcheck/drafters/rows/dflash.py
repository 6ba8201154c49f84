"""DFlash: z-lab's, as released and drawn from its rows, that of transformers, of speculators and of DeepSpec."""

from refengine.selfcheck.drafters.planted_bugs import BLOCKS, WINDOW, own
from refengine.selfcheck.drafters.row import NO_ROWS, Row

PROMPT = (2, 3, 2, 4, 5, 1, 4, 3)
BUGS = (
    *BLOCKS,
    *own("dflash", ("reads-the-anchors-slot", "draft slots misaddressed", "0 if self.shape.shifted else 1", "0")),
)

ROWS = {
    "dflash": Row(
        prompt=(6, 3, 6, 3, 0, 2, 4, 3),
        folder="dflash/zlab",
        rules=("point_mass",),
        length=6,
        plants=BUGS,
        not_tested=NO_ROWS,
    ),
    "dflash_drawn": Row(PROMPT, BUGS, "dflash/zlab", {"greedy": False}),
    "dflash_transformers": Row(PROMPT, (*BUGS, WINDOW), "dflash/transformers"),
    "dflash_speculators": Row(PROMPT, (*BUGS, WINDOW), "dflash/speculators"),
    "dflash_deepspec": Row(PROMPT, BLOCKS, "dflash/deepspec"),
}
