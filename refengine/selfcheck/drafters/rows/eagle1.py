"""EAGLE-1, and EAGLE-2, which grows another tree with the same weights."""

from refengine.decoder.drafters.eagle_trees import DynamicTree, StaticTree
from refengine.selfcheck.drafters.laws.remembering import recurrence
from refengine.selfcheck.drafters.planted_bugs import RECURRENT, SIBLINGS
from refengine.selfcheck.drafters.row import NO_ROWS, Row

PROMPT, FOLDER = (5, 4, 0, 4, 0, 6, 3, 2), "eagle/eagle1"

ROWS = {
    "eagle1": Row(
        prompt=PROMPT,
        folder=FOLDER,
        options={"plan": StaticTree(((0,), (1,), (0, 0)))},
        rules=("without_replacement",),
        remembered=recurrence,
        plants=RECURRENT,
    ),
    "eagle2": Row(
        prompt=PROMPT,
        folder=FOLDER,
        options={"plan": DynamicTree(total=6, depth=2, top_k=2)},
        rules=("point_mass",),
        length=7,
        remembered=recurrence,
        plants=(*RECURRENT, SIBLINGS),
        not_tested=NO_ROWS,
    ),
}
