"""Part A1, proposers: the rule is right, and the row that is handed over as q is not the one that was drawn from."""

from refengine.bugs.bug import Bug, Edit

DRAFTERS = "refengine.exact.drafters"
DRAW = "            tokens = (*tokens, chance.choose(rows[-1], sites[-1]))"

BUGS = (
    Bug(
        id="greedy-proposal-soft-q",
        title="the draft is an argmax, its softmax is handed over as q",
        source="huggingface/transformers PR #33534 (reverting #30778), #32867; jaymody/speculative-sampling #3, PR #4",
        part="A1",
        law_class="greedy proposal, soft q",
        edits=(
            Edit(
                DRAFTERS,
                DRAW,
                "            top = max(rows[-1])\n"
                "            tokens = (*tokens, chance.choose([int(w == top) for w in rows[-1]], sites[-1]))",
            ),
        ),
        check="rounds:contract",
    ),
    Bug(
        id="raw-row-as-q",
        title="drawn from the processed row, while the raw row is returned as q",
        source="huggingface/transformers #47932, PR #47961",
        part="A1",
        law_class="raw row as q",
        edits=(
            Edit(DRAFTERS, DRAW, "            tokens = (*tokens, chance.choose([w * w for w in rows[-1]], sites[-1]))"),
        ),
        check="rounds:contract",
    ),
    Bug(
        id="half-precision-draw",
        title="tokens are drawn from the bfloat16 softmax, the ratio uses the float32 one",
        source="deepseek-ai/DeepSpec #31, PR #30, PR #48",
        part="A1",
        law_class="half-precision draw",
        edits=(
            Edit(
                DRAFTERS,
                DRAW,
                "            tokens = (*tokens, chance.choose([round(w * 256) for w in rows[-1]], sites[-1]))",
            ),
        ),
        check="rounds:contract",
    ),
)
