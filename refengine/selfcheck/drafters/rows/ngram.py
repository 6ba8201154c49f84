"""An n-gram cache."""

from refengine.decoder.drafters.ngram import NGram
from refengine.selfcheck.drafters.planted_bugs import TARGET_BUGS, own
from refengine.selfcheck.drafters.row import NO_ROWS, NO_WEIGHTS, Row

ROWS = {
    "ngram": Row(
        prompt=(6, 4, 2, 4, 3, 2, 0, 2, 4, 3),
        read=lambda folder, target: NGram(gamma=2, n=3, device=str(target.device)),
        rules=("point_mass",),
        length=6,
        plants=(
            *TARGET_BUGS,
            *own(
                "ngram",
                ("learns-the-anchor-twice", "look-up under another token", "kept.tokens[1:]", "kept.tokens"),
                ("forgets-accepted-tokens", "draft cache has a hole", "kept.tokens[1:]", "kept.tokens[1:1]"),
            ),
        ),
        not_tested={**NO_WEIGHTS, **NO_ROWS},
    )
}
