"""Prompt lookup."""

from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.selfcheck.drafters.planted_bugs import TARGET_BUGS, own
from refengine.selfcheck.drafters.row import NO_ROWS, NO_WEIGHTS, Row

ROWS = {
    "prompt_lookup": Row(
        prompt=(6, 4, 2, 4, 3, 2, 0, 2, 4, 3),
        read=lambda folder, target: PromptLookup(gamma=2, ngram=2, device=str(target.device)),
        rules=("point_mass",),
        length=6,
        plants=(
            *TARGET_BUGS,
            *own(
                "prompt_lookup",
                ("looks-up-without-the-anchor", "look-up under another token", "(turn.prefix,", "(turn.prefix[:-1],"),
                ("looks-in-the-prompt-alone", "look-up under another token", "(turn.prefix,", "(turn.prompt,"),
            ),
        ),
        not_tested={**NO_WEIGHTS, **NO_ROWS},
    )
}
