"""Part A1: the acceptance or residual law itself is wrong. Greedy tests are blind to almost all of these."""

from refengine.source_edits.edit import Bug, Edit

LEVIATHAN = "refengine.exact.rules.leviathan"
ACCEPT = 'if not chance.accept(p[i][x], q[x], ("accept", i)):'
CORRECT = 'correction = chance.choose(residual(p[i], q), ("emit", i))'
COINS = "refengine.engine.coins"
WITHOUT = "refengine.exact.rules.without_replacement"

BUGS = (
    Bug(
        id="accepts-always",
        title="the number of matches is computed wrongly, and every draft is accepted",
        source="huggingface/transformers PR #28508",
        part="A1",
        law_class="accepts always",
        edits=(Edit(LEVIATHAN, ACCEPT, 'if not chance.accept(q[x], q[x], ("accept", i)):'),),
        check="rounds:law",
    ),
    Bug(
        id="row-slip",
        title="the target's logits are sliced one position too late, so a draft is judged by its successor's row",
        source="NVIDIA/TensorRT-LLM PR #15098",
        part="A1",
        law_class="row slip",
        edits=(Edit(LEVIATHAN, ACCEPT, 'if not chance.accept(p[i + 1][x], q[x], ("accept", i)):'),),
        check="rounds:law",
    ),
    Bug(
        id="one-hot-residual",
        title="the residual takes draft mass out at the drafted token only, although the whole row was proposed",
        source="xLLM-AI/xllm PR #2175",
        part="A1",
        law_class="one-hot residual",
        edits=(
            Edit(
                LEVIATHAN,
                CORRECT,
                "only = tuple(qx if t == x else qx * 0 for t, qx in enumerate(q))\n"
                '            correction = chance.choose(residual(p[i], only), ("emit", i))',
            ),
        ),
        check="rounds:law",
    ),
    Bug(
        id="resample-from-target",
        title="a rejected position is drawn again from p instead of the residual",
        source="ShopeeLLM/Spec-RL #14",
        part="A1",
        law_class="resample from target",
        edits=(Edit(LEVIATHAN, CORRECT, 'correction = chance.choose(p[i], ("emit", i))'),),
        check="rounds:law",
    ),
    Bug(
        id="one-coin-for-two-uses",
        title="the coin that refused the draft also draws the correction",
        source="sgl-project/sglang PR #7231, PR #7207",
        part="A1",
        law_class="one coin for two uses",
        edits=(Edit(LEVIATHAN, CORRECT, 'correction = chance.choose(residual(p[i], q), ("accept", i))'),),
        check="rounds:coins",
    ),
    Bug(
        id="first-draft-unverified",
        title="the first draft token is committed without being judged",
        source="ohdearquant/lattice #243",
        part="A1",
        law_class="first draft unverified",
        edits=(Edit(LEVIATHAN, ACCEPT, 'if i > 0 and not chance.accept(p[i][x], q[x], ("accept", i)):'),),
        check="rounds:law",
    ),
    Bug(
        id="accepts-zero-mass",
        title="accept compares with <=, so a token of probability zero passes when the coin is exactly 0",
        source="sgl-project/sglang #35771, PR #35798; transformers 5.23.0 generation/utils.py:4465",
        part="A1",
        law_class="zero at zero",
        edits=(Edit("refengine.exact.chance", "return bool(u * den < num)", "return bool(u * den <= num)"),),
        check="pytest:properties/exact_and_engine/test_exact_chance.py",
    ),
    Bug(
        id="siblings-not-renormalised",
        title="a sibling is judged by the q of the first draw, not by q renormalised over what was left",
        source="SafeAILab/EAGLE PR #47, #50 (the non-greedy path; the root cause is not in the stored thread)",
        part="A1",
        law_class="siblings not renormalised",
        edits=(Edit(WITHOUT, "        q = normalised(q)\n", ""),),
        check="rounds:law",
    ),
    Bug(
        id="rejected-token-stays",
        title="the refused draft token stays in the output, before its correction (claimed and disputed in the thread)",
        source="lucidrains/speculative-decoding #3",
        part="A1",
        law_class="rejected token stays",
        edits=(
            Edit(
                LEVIATHAN,
                "return Round((*block.tokens[:i], correction)",
                "return Round((*block.tokens[: i + 1], correction)",
            ),
        ),
        check="rounds:law",
    ),
    Bug(
        id="value-dependent-truncation",
        title="a sampled token is dropped because its own probability is low, and the position is drawn from p",
        source="predicted: llama.cpp p_min (PR #27694), confidence scheduling (vllm-project/vllm #47808, #52228)",
        part="A1",
        law_class="value-dependent truncation",
        edits=(
            Edit(
                "refengine.exact.rules.truncation",
                "        tokens = (*tokens, chance.choose(rows[-1], site))\n",
                "        x = chance.choose(rows[-1], site)\n"
                "        if rows[-1][x] < Fraction(1, 3):\n"
                "            return chain(tokens, rows[:-1], sites[:-1])\n"
                "        tokens = (*tokens, x)\n",
            ),
        ),
        check="rounds:law",
    ),
    Bug(
        id="accepts-always-at-zero",
        title="a port replaced a missing 64-bit random load by the constant u = 0",
        source="vllm-project/vllm-ascend #13730, PR #13766, PR #13470",
        part="A1",
        law_class="accepts always",
        edits=(Edit(COINS, "(word >> 32 - ACCEPT_BITS).double() * 2.0**-ACCEPT_BITS", "word.double() * 0.0"),),
        check="pytest:properties/exact_and_engine/test_coins.py",
    ),
    Bug(
        id="accepts-zero-mass-batched",
        title="draw <= acceptance, found in review together with an unseedable path",
        source="NVIDIA-NeMo/Automodel PR #3166",
        part="A1",
        law_class="zero at zero",
        edits=(Edit(COINS, "return u * den.double() < num.double()", "return u * den.double() <= num.double()"),),
        check="pytest:properties/exact_and_engine/test_coins.py",
    ),
    Bug(
        id="empty-residual",
        title="a residual of zero mass is not caught (NaN <= 0 is False), and the choice among nothing fails",
        source="youssofal/MTPLX #82",
        part="A1",
        law_class="empty residual",
        edits=(Edit("refengine.engine.row", "return torch.where(total(rest)[:, None] > 0, rest, p)", "return rest"),),
        check="pytest:properties/exact_and_engine/test_engine_rows.py",
    ),
    Bug(
        id="rows-of-another-lane",
        title="where some sequences of the batch are skipped, rows are scored for the wrong sequence",
        source="vllm-project/vllm PR #3951",
        part="A1",
        law_class="rows of another lane",
        edits=(
            Edit(
                "refengine.engine.row",
                "rows[torch.arange(rows.shape[0], device=rows.device), place]",
                "rows[torch.arange(rows.shape[0], device=rows.device), place.sort().values]",
            ),
        ),
        check="twins:company",
    ),
    Bug(
        id="greedy-sentinel-moved",
        title="the marker of a greedy request moved and the sampler tests the old one: greedy lanes are sampled",
        source="vllm-project/vllm PR #27077; vllm-project/vllm-ascend #5417, #5423",
        part="A1",
        law_class="greedy is sampled",
        edits=(Edit("refengine.engine.policy", "best = logits.argmax(-1, keepdim=True)", "return logits"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
)
