"""Claims of the documents about training, and which variants of small drafters say so: the table of `over_seeds.py`.

The variants are trained by `benchmarks/training` and `benchmarks/fused_taps.py`. A claim is judged by the differences
that it speaks of, in the small world as it is; others are shown beside them.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """`more` less `less` in one measure, seed by seed. Judged: the claim says that it is above 0."""

    more: str
    less: str
    measure: str
    judged: bool = True


@dataclass(frozen=True)
class Effect:
    """A claim, and what of a run's variants says so.

    run  the key of the result: the file of `benchmarks/training` and its function that trains the variants
    """

    run: str
    claim: str
    source: str
    method: str
    differences: tuple[Difference, ...]


def overlaps(more: str, less: str, *judged: int) -> tuple[Difference, ...]:
    """By depth and in tokens per pass; judged at some depths, or where none is named in tokens per pass."""
    depths = tuple(Difference(more, less, f"overlap {depth}", depth in judged) for depth in (1, 2, 3))
    return (*depths, Difference(more, less, "tau", not judged))


EFFECTS: dict[str, Effect] = {
    "eagle1-inputs": Effect(
        "recurrences.eagle1_inputs",
        "Given features and the tokens that follow them, EAGLE-1 has more tokens per pass than given features and "
        "their own tokens, or features alone.",
        "EAGLE, section 4; EAGLE notes, lines 261-267",
        "EAGLE-1 under its own loss (SmoothL1 of the next feature, 0.1 soft cross-entropy) for each kind of input",
        tuple(
            difference
            for other in ("feature and unshifted token", "feature")
            for difference in overlaps("feature and shifted token", other)
        ),
    ),
    "features-or-tokens": Effect(
        "recurrences.eagle1_inputs",
        "Features alone say more to a drafter than tokens alone.",
        "EAGLE, section 1; EAGLE notes, why features?",
        "EAGLE-1 trained under its own loss, given one or the other",
        (
            *overlaps("feature", "token"),
            *(Difference("feature and shifted token", "token", x, judged=False) for x in ("overlap 1", "tau")),
        ),
    ),
    "training-time-test": Effect(
        "recurrences.training_time_test",
        "Training on its own outputs keeps EAGLE-3's acceptance from collapsing over the steps of a draft.",
        "EAGLE-3, section 3.2; EAGLE notes, lines 416-433",
        "EAGLE-3's loss on one depth; on three, fed with its own features beside the text's tokens (as released); and "
        "with tokens drawn from its own rows as well (as the document says), against the target's rows after them",
        (
            *overlaps("own features", "none", 2, 3),
            *overlaps("own features and tokens", "none", 2, 3),
            *(Difference("own features and tokens", "own features", f"overlap {d}", judged=False) for d in (1, 2, 3)),
            *(
                Difference("own features and tokens", "own features", f"overlap {d} after own tokens", judged=False)
                for d in (2, 3)
            ),
        ),
    ),
    "step-weights": Effect(
        "recurrences.step_weights",
        "FastMTP's weights of the steps favour the first drafted token: it overlaps more than after tuning with equal "
        "ones.",
        "FastMTP, Eq. 2; speculators' MTP page, lines 12-13",
        "Qwen's module trained on one step, then tuned on three with weights 0.51, 0.31, 0.18, and with equal ones",
        (
            *overlaps("FastMTP", "uniform", 1),
            *(Difference("FastMTP", "before", x, judged=False) for x in ("overlap 1", "overlap 3", "tau")),
            *(Difference("uniform", "before", x, judged=False) for x in ("overlap 1", "overlap 3", "tau")),
        ),
    ),
    "own-steps": Effect(
        "recurrences.step_weights",
        "A module of one depth drafts its third token better once it was tuned, for as many steps again, on three "
        "steps that are fed its own states.",
        "EAGLE notes, line 737",
        "as step-weights; FastMTP's weights against no tuning, trained on its first step alone",
        (
            Difference("FastMTP", "before", "overlap 3"),
            *(Difference("FastMTP", "before", x, judged=False) for x in ("overlap 1", "overlap 2", "tau")),
        ),
    ),
    "fine-tuning": Effect(
        "tuning.fine_tuning",
        "A native module that is tuned on texts of one domain has more tokens per pass there than before, and than "
        "one that is tuned as long on texts of two.",
        "speculators' MTP page, lines 2 and 8",
        "Qwen's module trained on one step on texts of two domains, which its target knows both; then tuned on three "
        "steps with weights 0.51, 0.31, 0.18, on as many texts of one of them, or of both",
        (
            Difference("one domain, at home", "before, at home", "tau"),
            Difference("one domain, at home", "both domains, at home", "tau"),
            Difference("both domains, at home", "before, at home", "tau", judged=False),
            Difference("one domain, elsewhere", "before, elsewhere", "tau", judged=False),
            Difference("one domain, elsewhere", "both domains, elsewhere", "tau", judged=False),
        ),
    ),
    "draft-attention": Effect(
        "recurrences.draft_attention",
        "Without attention between drafts the overlap falls faster along the draft than with it.",
        "Gemma 4 MTP document, line 173",
        "EAGLE-3 trained and run with drafts that attend to the text and to each other, or to the text alone",
        (
            Difference("the text alone", "each other", "fall"),
            *(Difference("each other", "the text alone", x, judged=False) for x in ("overlap 2", "overlap 3", "tau")),
        ),
    ),
    "domains": Effect(
        "recurrences.domains",
        "Training for one domain alone scores higher within that domain, and degrades outside it.",
        "Gemma 4 MTP document, line 214 (its table, line 212, puts it below general training within the domain too)",
        "EAGLE-3 trained on texts of one domain, or on as many of two, for the same target, which knows both",
        (
            Difference("one domain, at home", "one domain, elsewhere", "tau"),
            Difference("one domain, at home", "both domains, at home", "tau"),
            Difference("both domains, elsewhere", "one domain, elsewhere", "tau"),
        ),
    ),
    "medusa-heads": Effect(
        "heads.medusa_heads",
        "Medusa's heads, distilled from the outputs of a frozen target, overlap more with it at every depth.",
        "Medusa, section 2.2; Medusa, EAGLE and lookahead document, line 60",
        "heads as they start (copies of the target's own) and after Medusa's loss on texts of the target, which stays "
        "as it was, bit for bit",
        overlaps("after", "before", 1, 2, 3),
    ),
    "medusa-own-outputs": Effect(
        "heads.own_outputs",
        "Medusa's heads distilled from the target's own outputs have more tokens per pass than those trained on the "
        "text that the target learned from.",
        "Medusa, EAGLE and lookahead document, line 60; DSpark document, line 577",
        "Medusa's loss on 256 texts of the target, or on 256 of its language",
        overlaps("Medusa, own outputs", "Medusa, text"),
    ),
    "eagle-own-outputs": Effect(
        "heads.own_outputs",
        "EAGLE-1 trained on the target's own outputs has more tokens per pass than trained on the text that the target "
        "learned from.",
        "EAGLE notes, line 222",
        "EAGLE-1's loss, whose labels are the target's rows, on 256 texts of the target, or on 256 of its language",
        overlaps("EAGLE-1, own outputs", "EAGLE-1, text"),
    ),
    "warm-centroids": Effect(
        "heads.centroids",
        "Clusters and centroids by k-means of the frozen output embedding overlap more than clusters and centroids "
        "by chance.",
        "Gemma 4 MTP document, line 205",
        "Qwen's module, and Gemma 4's head that scores the tokens of two of six centroids, trained beside each other "
        "after the target; cold: clusters and centroids by chance; the gap: to scoring every token",
        (
            Difference("k-means, 100 steps", "cold, 100 steps", "overlap 1"),
            Difference("k-means, 400 steps", "cold, 400 steps", "overlap 1"),
            Difference("k-means, 400 steps", "clusters alone, 400 steps", "overlap 1", judged=False),
            Difference("k-means, 100 steps", "half, 100 steps", "share of the gap", judged=False),
            Difference("k-means, 400 steps", "half, 400 steps", "share of the gap", judged=False),
        ),
    ),
    "dspark-heads": Effect(
        "blocks.dspark_heads",
        "DSpark's two heads, trained anew on a frozen backbone from no bias at all, raise tau at temperature 1.",
        "DSpark document, section 8, lines 575-640",
        "a drafter trained whole, then its backbone frozen and its heads started anew (W2 = 0: a parallel block); 0.1 "
        "cross-entropy + 0.9 L1 + confidence; drafts drawn at temperature 1, where the document decodes greedily",
        (
            Difference("after", "before", "tau on texts learned from"),
            *(Difference("after", "before", x, judged=False) for x in ("tau", *(f"overlap {k}" for k in (1, 2, 3, 4)))),
            Difference("whole", "after", "tau", judged=False),
        ),
    ),
    "dynamic-trees": Effect(
        "lookups.trees",
        "EAGLE-2's dynamic tree has more tokens accepted than a fixed one of as many nodes.",
        "EAGLE-2; Medusa, EAGLE and lookahead document, line 124",
        "one EAGLE-1 checkpoint a seed; its release's tree of 25 nodes and 5 levels, the likeliest tokens at each "
        "place, and the 25 likeliest nodes of 5 levels; both judged by point masses, temperature 1",
        (Difference("dynamic", "fixed", "accepted"),),
    ),
    "dynamic-trees-20-50": Effect(
        "lookups.trees",
        "The dynamic tree has 20 to 50 % more tokens accepted than a fixed one.",
        "Medusa, EAGLE and lookahead document, line 124",
        "as dynamic-trees; the share by which the dynamic tree has more",
        (Difference("dynamic", "20%", "gain"), Difference("50%", "dynamic", "gain")),
    ),
    "lookups": Effect(
        "lookups.lookups",
        "Looking n-grams up has fewer tokens per pass than a trained drafter, and works best on repetitive text.",
        "Medusa, EAGLE and lookahead document, line 172",
        "the n-gram cache of the document, transformers' prompt lookup, and a chain of EAGLE-1, three drafts each, on "
        "plain texts of the target and on formulaic ones",
        (
            *(Difference(f"EAGLE-1, {kind}", f"n-gram cache, {kind}", "tau") for kind in ("plain", "formulaic")),
            Difference("n-gram cache, formulaic", "n-gram cache, plain", "tau"),
            *(
                Difference(f"EAGLE-1, {kind}", f"prompt lookup, {kind}", "tau", False)
                for kind in ("plain", "formulaic")
            ),
            Difference("prompt lookup, formulaic", "prompt lookup, plain", "tau", judged=False),
            Difference("EAGLE-1, formulaic", "EAGLE-1, plain", "tau", judged=False),
        ),
    ),
    "more-texts": Effect(
        "amounts.texts",
        "A drafter trained by EAGLE-3's loss has more tokens per pass the more texts it learns from.",
        "EAGLE-3, section 1; EAGLE notes, line 297",
        "EAGLE-1's network under EAGLE-3's loss on 16, 64 and 256 texts of the target, in equally many steps",
        (
            Difference("EAGLE-3's loss, 64 texts", "EAGLE-3's loss, 16 texts", "tau"),
            Difference("EAGLE-3's loss, 256 texts", "EAGLE-3's loss, 64 texts", "tau"),
        ),
    ),
    "feature-plateau": Effect(
        "amounts.texts",
        "A drafter trained by EAGLE-1's loss, which regresses features, gains less by more texts than one trained by "
        "EAGLE-3's.",
        "EAGLE-3, section 1; EAGLE notes, lines 273-279 and 383",
        "EAGLE-1's network under either loss; the gain in tokens per pass from 16 texts of the target to 256",
        (
            Difference("EAGLE-3's loss", "EAGLE-1's loss", "gain by more texts"),
            *(
                Difference(f"EAGLE-1's loss, {more} texts", f"EAGLE-1's loss, {less} texts", "tau", judged=False)
                for less, more in ((16, 64), (64, 256))
            ),
            Difference("EAGLE-3's loss, 256 texts", "EAGLE-1's loss, 256 texts", "tau", judged=False),
        ),
    ),
    "small-drafts": Effect(
        "amounts.sizes",
        "A small drafter gains more by features of three layers than a large one does.",
        "EAGLE notes, line 412",
        "EAGLE-3 with a feed-forward of 12 and of 192, each trained to read three layers, or the top one three times",
        (
            Difference("small", "large", "gain by fused features"),
            *(Difference(f"{size}, fused", f"{size}, top", "tau", judged=False) for size in ("small", "large")),
        ),
    ),
    "deepseek-loss": Effect(
        "joint.modules",
        "Training with DeepSeek's loss of prediction modules lowers the target's own next-token loss.",
        "DeepSeek-V3, section 2.2; EAGLE notes, lines 683-688",
        "targets trained from the start with lambda 0.3 and two modules, and with none; cross-entropy on other texts",
        (
            Difference("none", "chain", "next-word loss"),
            *(Difference("chain", "none", x, judged=False) for x in ("overlap 1", "overlap 2", "tau")),
        ),
    ),
    "joint-training": Effect(
        "afterwards.modules",
        "Modules that learn together with their target have more tokens per pass than modules that learn as long "
        "afterwards, with the target frozen.",
        "Gemma 4 MTP document, lines 196-205 (of an assistant that reads keys and values; here of modules that read "
        "the last hidden state)",
        "a chain of two modules under DeepSeek's loss, lambda 0.3, on the same sentences: with the target from the "
        "start, or after a target that learned alone; each measured on its own target's texts",
        (
            *(Difference("together", "afterwards", x, judged=False) for x in ("overlap 1", "overlap 2")),
            Difference("together", "afterwards", "tau"),
            Difference("together", "afterwards", "next-word loss", judged=False),
        ),
    ),
    "modest-lambda": Effect(
        "joint.modules",
        "A modest lambda spares the target: with ten times as much its own next-token loss is higher.",
        "EAGLE notes, lines 777-778",
        "targets trained from the start with lambda 0.3 and 3",
        (
            Difference("chain, large lambda", "chain", "next-word loss"),
            *(Difference("chain, large lambda", "chain", x, judged=False) for x in ("overlap 1", "overlap 2", "tau")),
        ),
    ),
    "sequential-heads": Effect(
        "joint.modules",
        "The token that a chain of modules drafts first is accepted more often than that of parallel heads.",
        "EAGLE notes, lines 738-740 and 769 (A_2, the peek token)",
        "targets trained from the start with two modules of the same sizes at lambda 0.3, each told the token before "
        "its own, or not",
        (*overlaps("chain", "parallel", 1)[:2], *overlaps("chain", "parallel", 1)[3:]),
    ),
}


# --- EAGLE-3's fused taps --------------------------------------------------------------------------------------------

FUSED_TAPS = "fused_taps"  # of `benchmarks/fused_taps.py`: forty drafters of four layers' features, half an hour
RIVALS = ("top", "wide", "low")
EFFECTS["fused-taps"] = Effect(
    FUSED_TAPS,
    "At equal numbers of parameters features of three layers overlap more than those of the top one.",
    "EAGLE-3, section 3.1",
    "for every language and seed one target of four layers and its drafters, trained alike, which read three layers "
    "(fused), the top or the lowest one three times, or the top one once and have a wider feed-forward; judged by the "
    "mean of three depths in every language",
    tuple(
        Difference(f"{language}, fused", f"{language}, {rival}", measure, (rival, measure) == ("top", "mean overlap"))
        for language in ("one stream", "two streams")
        for rival in RIVALS
        for measure in ("overlap 1", "overlap 2", "overlap 3", "mean overlap")
    ),
)
