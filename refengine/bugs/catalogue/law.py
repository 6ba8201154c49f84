"""Part A1: the acceptance or residual law itself is wrong. Greedy tests are blind to almost all of these."""

from refengine.bugs.bug import Bug, Edit

LEVIATHAN = "refengine.exact.rules.leviathan"
ACCEPT = 'if not chance.accept(p[i][x], q[x], ("accept", i)):'
CORRECT = 'correction = chance.choose(residual(p[i], q), ("emit", i))'
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
        check="chances:boundaries",
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
)
