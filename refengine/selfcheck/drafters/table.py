"""The table of drafters by checks: what every row passes, and which cells are not tested, with the reason."""

CHECKS = {
    "loads": "each tensor of the checkpoint is needed or implied by another, named when damaged, and matters",
    "agrees": "logits and drafts are those of independent code",
    "incremental": "after any accepts and rejects the state is that of a recompute",
    "q-contract": "draws have the law that is reported",
    "law": "the real loop's exact law is the target's",
    "greedy": "greedy output is plain greedy output, stops included",
    "acceptance": "acceptance is what p and q allow",
    "self-draft": "with p for q everything is accepted",
}
NO_WEIGHTS = "it has no weights to load"
NO_ROWS = "its candidates are not drawn from rows that could be made equal to the target's"
NOT_TESTED = {
    **{(drafter, "loads"): NO_WEIGHTS for drafter in ("prompt_lookup", "ngram", "lookahead")},
    **{
        (drafter, "self-draft"): NO_ROWS
        for drafter in ("prompt_lookup", "ngram", "lookahead", "medusa", "eagle2", "eagle3", "dart", "dflash")
    },
    ("dspark_scheduled", "agrees"): "the scheduler is not released: DeepSpec's code has the confidences alone",
    ("ngram", "agrees"): "the document that describes it has no code of its own to compare with",
}


def place(drafter: str, check: str) -> dict[str, dict[str, list[str]]]:
    """The table of a finding that says which cell it stands for."""
    return {"battery": {"row": [drafter], "check": [check]}}
