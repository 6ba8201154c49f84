"""Every check by name, with its claim. Nothing is imported here: a check is loaded where the edited source is.

Checks with a smallest witness are functions of this package; the others are the quick test files of the core.
"""

CHECKS = {
    "rounds:law": "a round emits the target's law",
    "rounds:coins": "a round emits the target's law when equal sites share one coin",
    "rounds:odds": "no rule asks for impossible odds",
    "rounds:acceptance": "a rule keeps as many drafts as its closed form says",
    "rounds:shape": "a round emits a path of the block and one token more",
    "rounds:sites": "no coin of a round is used twice, and each stands where it belongs",
    "rounds:contract": "every draft is drawn from the row reported as q",
    "loops:law": "the loop emits the target's law, stop tokens and limits included",
    "loops:coins": "the loop emits the target's law when equal sites share one coin",
    "loops:sites": "no coin of a decode is used twice, and each stands where it belongs",
    "twins:law": "enumerated, a batched rule is the exact one, decision by decision",
    "twins:edges": "at every edge of every decision a batched rule gives the definition's tokens",
    "twins:company": "a lane comes out alike alone and in any batch",
    "numerics:precise": "on rows that float32 products cannot hold, a batched rule has the exact law within 2^-40",
    "numerics:edges": "no underflow, no empty choice, defaults and thresholds as stated; chain rules refuse trees",
    "large:rules": "on long chains, large trees and many lanes a batched rule gives the definition's tokens",
    "large:vocabulary": "a token of a large vocabulary is chosen where integers say",
    "decoding:law": "the real loop emits the target's law, every row recomputed from scratch",
    "decoding:coins": "the real loop emits the target's law when equal sites share one coin",
    "decoding:state": "after every round all live state equals a recompute from scratch",
    "decoding:contract": "every draft of the real loop is drawn from its reported q and judged by the target's rows",
    "decoding:long": "over 60 tokens every row and all live state equal a recompute from scratch",
    "network:passes": "cached, rolled-back and tree passes give the logits of one pass without a cache",
    "network:refusals": "models that cannot be rolled back are refused",
} | {
    f"pytest:properties/{file}": claim
    for file, claim in {
        "exact_and_engine/test_exact_chance.py": "decisions are strict at every boundary, whoever makes them",
        "exact_and_engine/test_exact_rows.py": "rows, blocks and laws are right by hand, and bad ones are refused",
        "exact_and_engine/test_exact_drafters.py": "drafters draft what they are asked for, and cut where they say",
        "exact_and_engine/test_exact_by_hand.py": "rules decide as a person computes, the lossy modes included",
        "exact_and_engine/test_policy.py": "policies of both texts give the rows that a person computes",
        "exact_and_engine/test_coins.py": "batched decisions are strict, in float64, each with its own uniform",
        "exact_and_engine/test_engine_rows.py": "batched rows are right by hand, and bad ones are refused by name",
        "decoder/test_ends.py": "a request ends at its limit, stop token or stop string; bad requests are refused",
    }.items()
}
