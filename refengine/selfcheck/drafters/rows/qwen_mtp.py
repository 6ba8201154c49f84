"""Qwen's module, behind a target with recurrent layers."""

from refengine.decoder.drafters.eagle_trees import Chain
from refengine.selfcheck.drafters.laws.remembering import recurrence
from refengine.selfcheck.drafters.planted_bugs import RECURRENT, RECURRENT_TARGET
from refengine.selfcheck.drafters.row import Row

ROWS = {
    "qwen_mtp": Row(
        prompt=(5, 4, 0, 4, 0, 6, 3, 2),
        folder="qwen_mtp/speculators",
        target="qwen_mtp/target",
        options={"plan": Chain(2)},
        remembered=recurrence,
        plants=(*RECURRENT_TARGET, *(plant for plant in RECURRENT if plant.part == "drafter")),
    )
}
