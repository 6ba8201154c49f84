"""Part A6: modes that are lossy by design, metadata, and the field's false alarms, which must come out consistent."""

from refengine.source_edits.edit import Bug, Edit

LEVIATHAN, POINT_MASS = "refengine.exact.rules.leviathan", "refengine.exact.rules.point_mass"
ACCEPT = 'if not chance.accept(p[i][x], q[x], ("accept", i)):'


def lossy(name: str, title: str, source: str, odds: str, *more: Edit) -> Bug:
    """A mode that judges a draft by other odds than p(x) : q(x)."""
    return Bug(
        id=name,
        title=title,
        source=source,
        part="A6",
        law_class=f"lossy by design: {name}",
        edits=(Edit(LEVIATHAN, ACCEPT, f'if not chance.accept({odds}, ("accept", i)):'), *more),
        check="rounds:law",
    )


BUGS = (
    lossy(
        "typical-by-default",
        "a draft passes when the target finds it probable enough; no coin",
        "FasterDecoding/Medusa medusa_model.py:244-248; vllm-project/vllm #5131",
        "int(p[i][x] * 100 > 9), 1",
    ),
    lossy(
        "relaxed-acceptance",
        "a draft passes when its probability is within a margin of the best",
        "NVIDIA/TensorRT-LLM PR #3865",
        "int(p[i][x] * 2 >= max(p[i])), 1",
    ),
    lossy(
        "ensemble-weight",
        "drafts are judged by a mixture of target and assistant",
        "huggingface/transformers PR #45979",
        "p[i][x] + q[x], 2 * q[x]",
    ),
    lossy(
        "synthetic-acceptance",
        "a benchmark mode accepts at a fixed rate, and corrects from p where the residual is empty",
        "vllm-project/vllm #41035",
        "3, 4",
        Edit(LEVIATHAN, "residual(p[i], q), (", "residual(p[i], q) if p[i] != q else p[i], ("),
    ),
    lossy(
        "entropy-verify",
        "a lenience factor grows where the target is uncertain",
        "vllm-project/vllm-ascend #9047; youssofal/MTPLX PR #478",
        "p[i][x] * (2 if max(p[i]) * 2 < 1 else 1), q[x]",
    ),
    Bug(
        id="logprobs-of-another-row",
        title="the reported rows are those of another position",
        source="vllm-project/vllm #34497, #42592, PR #44727; sgl-project/sglang #14046, #18895",
        part="A6",
        law_class="metadata of another row",
        edits=(
            Edit(
                "refengine.decoder.loop",
                "Played(block, p, verdict, emitted)",
                "Played(block, p.roll(1, 0), verdict, emitted)",
            ),
        ),
        check="decoding:contract",
    ),
    Bug(
        id="point-mass-siblings",
        title="EAGLE judges deterministic siblings with q = 1 and removes the refused one: disputed in nine threads",
        source="SafeAILab/EAGLE #74, #93, #110, #171, #183, #221, #283, #289, #329; fvliang/DART dart_utils.py:265",
        part="A6",
        law_class="none",
        # The released form: p is renormalised after each removal, and the draft counts as drawn with probability 1.
        edits=(
            Edit(
                POINT_MASS,
                'if chance.accept(left[x], sum(left), ("accept", len(path), j)):',
                'if chance.accept(left[x], 1, ("accept", len(path), j)):',
            ),
            Edit(
                POINT_MASS,
                "left = without(left, x)",
                "left = tuple(w / sum(without(left, x)) for w in without(left, x))",
            ),
        ),
        expected="consistent",
        check="rounds:law",
    ),
    Bug(
        id="agreement-under-shared-noise",
        title="accept iff the draft equals the target's own sample, both drawn with the same noise: called biased",
        source="z-lab/dflash #74; ml-explore/mlx-swift-lm PR #459; rebutted in lablup/mlxcel #902, PR #992",
        part="A6",
        law_class="none",
        edits=(
            Edit(
                "refengine.exact.rules.agreement",
                'chance.choose(row_after(p, at), ("emit", len(path)))',
                'chance.choose(row_after(p, at), ("draft", len(path)))',
            ),
        ),
        expected="consistent",
        check="rounds:coins",
    ),
)

# What no edit of this package can express, with the reason.
NOT_EXPRESSED = (
    ("vllm-project/vllm #9423", "A3", "guided decoding crashes: a crash is an outcome of an audit and has no law"),
    ("vllm-project/vllm PR #56734", "A4", "needs several ranks and a shared block table"),
    (
        "vllm-project/vllm #47087, #53505, #56605; vllm-ascend #14686",
        "A4",
        "token loops whose cause the threads do not name",
    ),
    ("sgl-project/sglang PR #26329", "A4", "needs chunked prefill, which this decoder does not have"),
    (
        "huggingface/transformers #46741, #46937",
        "A4",
        "Mamba2's chunked prefill and LFM2's convolutions: no target with such layers is run here",
    ),
    (
        "vllm-project/vllm #17498, #31154; sgl-project/sglang #31071",
        "A5",
        "ranks that disagree: needs several processes",
    ),
    (
        "Blackwellboy/model-serving-minefield #99, #108, #98",
        "A6",
        "how a benchmark reads its own figures, not what is emitted",
    ),
    (
        "vllm-project/vllm #41758, #54506, #7627, #5313; transformers #39421",
        "A6",
        "kernels of different shapes: last bits, no edit",
    ),
    (
        "ggml-org/llama.cpp #25618, #23335, #23302, #27975",
        "A6",
        "mixes last-bit ties with a loss whose cause the thread does not name",
    ),
    ("Blackwellboy/model-serving-minefield #133", "A6", "a measured consequence; the thread names no cause"),
    (
        "vllm-project/vllm FLy (fly_window_size)",
        "A6",
        "a mode defined over a window of later tokens; its rule is not in the stored copy",
    ),
)
