"""Part A1, proposers: the rule is right, and the row that is handed over as q is not the one that was drawn from."""

from refengine.source_edits.edit import Bug, Edit

DRAFTERS = "refengine.exact.drafters"
AR, DSPARK = (f"refengine.decoder.drafters.{name}" for name in ("ar", "dspark"))
AR_DRAWS = "            if not chain.draw(self.model.run(rows).logits[-1]):\n                break\n"
DSPARK_DRAWS = (
    "            if not chain.draw(spread(wide(base[k] + bias), self.targets, self.shape.vocab_size)):\n"
    "                break\n"
)
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
    Bug(
        id="argmax-draft-full-softmax",
        title="an argmax draft model hands over its full softmax, and tokens come out that the target does not support",
        source="alibaba/rtp-llm PR #1311",
        part="A1",
        law_class="greedy proposal, soft q",
        edits=(
            Edit(AR, AR_DRAWS, f"{AR_DRAWS}            chain.path = (*chain.path[:-1], int(chain.q[-1].argmax()))\n"),
        ),
        check="decoding:law",
    ),
    Bug(
        id="argmax-slot-raw-logits",
        title="a single-position multi-token drafter drafts by argmax and returns raw logits as q (live in 5.23.0)",
        source="transformers 5.23.0 candidate_generator.py, SinglePositionMultiTokenCandidateGenerator",
        part="A1",
        law_class="greedy proposal, soft q",
        edits=(
            Edit(
                DSPARK,
                DSPARK_DRAWS,
                f"{DSPARK_DRAWS}            chain.path = (*chain.path[:-1], int(base[k].argmax()))\n",
            ),
        ),
        check="decoding:law",
    ),
    Bug(
        id="draft-ids-not-mapped",
        title="without the draft-to-target map draft ids are read as target ids: lossless, acceptance collapses",
        source="NVIDIA-NeMo/Automodel PR #2447; verl-project/verl-SpeCo PR #66; lablup/mlxcel #994",
        part="A4",
        law_class="draft ids not mapped",
        edits=(
            Edit(
                DRAFTERS,
                "            rows.append(draft_row(prefix + tokens))",
                "            rows.append(draft_row(prefix + tokens)[::-1])",
            ),
        ),
        check="rounds:contract",
    ),
)
