"""EAGLE-3: SafeAILab's with its tree, and the chains of DeepSpec (Qwen3, Gemma 4) and of speculators."""

from refengine.decoder.drafters.eagle_trees import Chain, DynamicTree
from refengine.selfcheck.drafters.laws.remembering import recurrence
from refengine.selfcheck.drafters.planted_bugs import RECURRENT, SIBLINGS
from refengine.selfcheck.drafters.row import NO_ROWS, Row

PROMPT = (5, 4, 0, 4, 0, 6, 3, 2)


def chain(folder: str, target: str = "tiny/target") -> Row:
    return Row(PROMPT, RECURRENT, folder, {"plan": Chain(2)}, target=target, remembered=recurrence)


ROWS = {
    "eagle3": Row(
        prompt=PROMPT,
        folder="eagle/eagle3",
        options={"plan": DynamicTree(total=6, depth=2, top_k=2)},
        rules=("point_mass",),
        length=7,
        remembered=recurrence,
        plants=(*RECURRENT, SIBLINGS),
        not_tested=NO_ROWS,
    ),
    "eagle3_deepspec": chain("eagle/eagle3_deepspec"),
    "eagle3_gemma4": chain("variants/eagle3_gemma4", "gemma4/target"),
    "eagle3_speculators": chain("variants/eagle3_speculators"),
}
