"""Part A4: caches, positions, recurrent state, masks. What the next round reads is not what was kept.

Where the drafter's own state is wrong the output stays lossless, as long as it reports the rows it draws from: such a
defect costs acceptance, and only a comparison of state with a recompute sees it.
"""

from refengine.source_edits.edit import Bug, Edit

TARGET, ROWS = "refengine.decoder.targets.transformers", "refengine.decoder.rows"
IN_PLACE = "refengine.decoder.targets.in_place"
LOOP, AR = "refengine.decoder.loop", "refengine.decoder.drafters.ar"
KEEP = "self.target.keep(kept)"

BUGS = (
    Bug(
        id="window-not-enforced",
        title="sliding-window layers silently see rows beyond their window once it is reached",
        source="huggingface/transformers PR #48280 (regression from #47447); ml-explore/mlx-lm #1914",
        part="A4",
        law_class="window not enforced",
        edits=(Edit(TARGET, "sliding = _additive(sees & near, dtype)", "sliding = _additive(sees, dtype)"),),
        check="network:passes",
    ),
    Bug(
        id="cache-cropped-by-copy",
        title="the crop works on a copy: the live cache keeps the rejected rows",
        source="huggingface/transformers #30312",
        part="A4",
        law_class="rejected rows stay",
        edits=(Edit(IN_PLACE, "                layer.cut(end)", "                _ = layer.keys[:, :, :end]"),),
        check="network:passes",
    ),
    Bug(
        id="trim-is-a-no-op",
        title="trimming does nothing on this kind of cache: every drafted row stays",
        source="ml-explore/mlx-lm #846, PR #1109; #1423, #1427",
        part="A4",
        law_class="rejected rows stay",
        edits=(Edit(LOOP, KEEP, "self.target.keep(range(len(p)))"),),
        check="decoding:law",
    ),
    Bug(
        id="rewinds-too-far",
        title="the draft cache is rewound further than the rejected tokens",
        source="lablup/mlxcel #994; ml-explore/mlx-lm #1528",
        part="A4",
        law_class="draft cache rewound too far",
        edits=(Edit(AR, "self.model.keep(range(accepted + 1))", "self.model.keep(range(accepted))"),),
        check="decoding:state",
    ),
    Bug(
        id="feature-of-rejected-token",
        title="the drafter keeps the activation of a rejected token",
        source="vllm-project/vllm PR #50272",
        part="A4",
        law_class="feature of a rejected token",
        edits=(
            Edit(LOOP, "self.drafter.commit(verdict, passed.select(kept))", "self.drafter.commit(verdict, passed)"),
        ),
        check="decoding:state",
    ),
    Bug(
        id="slots-off-by-one",
        title="rows of a chunk are mapped to slots one further",
        source="vllm-project/vllm PR #36580",
        part="A4",
        law_class="positions off by one",
        edits=(
            Edit(
                ROWS,
                "torch.arange(start, start + len(tokens), device=device)",
                "torch.arange(start, start + len(tokens), device=device) + (start > 0)",
            ),
        ),
        check="network:passes",
    ),
    Bug(
        id="draft-positions-off-by-one",
        title="the draft runs at rotary positions 8, 9 instead of 7, 8",
        source="sgl-project/sglang PR #25015",
        part="A4",
        law_class="draft positions off by one",
        edits=(
            Edit(
                AR,
                "chain_rows((chain.newest,), self.length + depth, self.model.device)",
                "chain_rows((chain.newest,), self.length + depth + 1, self.model.device)",
            ),
        ),
        check="decoding:state",
    ),
    Bug(
        id="draft-slots-misaddressed",
        title="the drafter addresses the wrong slots of its cache; visible only as a drop in acceptance",
        source="vllm-project/vllm #54498, PR #54519",
        part="A4",
        law_class="draft slots misaddressed",
        edits=(Edit(AR, "self.model.keep(range(accepted + 1))", "self.model.keep(range(accepted, -1, -1))"),),
        check="decoding:state",
    ),
    Bug(
        id="slots-assumed-contiguous",
        title="the accepted path is taken to lie in consecutive slots, which holds for chains and not for trees",
        source="huggingface/text-generation-inference PR #2711, #2997",
        part="A4",
        law_class="wrong rows kept",
        edits=(
            Edit(
                LOOP, "kept = (0, *(node + 1 for node in verdict.path))", "kept = tuple(range(len(verdict.path) + 1))"
            ),
        ),
        check="decoding:law",
    ),
    Bug(
        id="no-rollback-of-state",
        title="rejected tokens are never taken out of the state",
        source="ggml-org/llama.cpp PR #20075; ekryski/mlx-swift-lm #218; vllm-project/tpu-inference PR #3178",
        part="A4",
        law_class="rejected rows stay",
        edits=(
            Edit(
                TARGET,
                "        self.cache.keep(",
                "        rows = range(len(self.tentative))\n        self.cache.keep(",
            ),
        ),
        check="network:passes",
    ),
    Bug(
        id="reset-instead-of-rollback",
        title="a rejection resets the cache length instead of rolling it back",
        source="paiml/aprender PR #2014",
        part="A4",
        law_class="cache reset",
        edits=(Edit(LOOP, KEEP, "self.target.keep(kept) if len(kept) == len(p) else self.target.reset()"),),
        check="decoding:law",
    ),
    Bug(
        id="tree-mask-missing",
        title="the tree's attention parameters are missing: a node does not see its ancestors",
        source="NVIDIA/TensorRT-LLM PR #5146, #11300",
        part="A4",
        law_class="tree mask missing",
        edits=(Edit(ROWS, "        visible[row] |= visible[above]\n", ""),),
        check="network:passes",
    ),
    Bug(
        id="token-doubled-at-boundary",
        title="the token at the boundary of acceptance is written twice",
        source="kekzl/imp #667",
        part="A4",
        law_class="token duplicated",
        edits=(
            Edit(
                LOOP,
                "emitted = self._emit(verdict.tokens)",
                "emitted = self._emit((*verdict.tokens, verdict.tokens[-1]))",
            ),
        ),
        check="decoding:law",
    ),
    Bug(
        id="cache-off-by-one",
        title="the verify pass starts one position late, seen because a draft equal to the target was not kept whole",
        source="ml-explore/mlx-examples PR #149",
        part="A4",
        law_class="positions off by one",
        edits=(
            Edit(
                LOOP,
                "tree_rows(prefix[-1], tokens, parents, len(prefix) - 1,",
                "tree_rows(prefix[-1], tokens, parents, len(prefix),",
            ),
        ),
        check="decoding:law",
    ),
    Bug(
        id="bonus-row-never-drafted",
        title="after full acceptance the draft model never runs its last token, and its cache has a hole",
        source="vllm-project/vllm PR #3951",
        part="A4",
        law_class="draft cache has a hole",
        edits=(
            Edit(AR, "        if accepted == self.gamma:", "        if accepted > self.gamma:"),
            Edit(AR, "self.model.keep(range(accepted + 1))", "self.model.keep(range(min(accepted + 1, self.gamma)))"),
        ),
        check="decoding:state",
    ),
)
