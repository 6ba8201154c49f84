"""Lookahead decoding."""

from refengine.decoder.drafters.lookahead import Lookahead
from refengine.selfcheck.drafters.planted_bugs import TARGET_BUGS, Plant, own
from refengine.selfcheck.drafters.row import NO_ROWS, NO_WEIGHTS, Row
from refengine.source_edits.edit import Edit

WINDOW_ROW_STAYS = Edit(
    "refengine.decoder.drafters.lookahead",
    "(rows).logits\n        self.target.keep(())",
    "(rows).logits\n        self.target.keep((0,))",
)

ROWS = {
    "lookahead": Row(
        prompt=(6, 4, 2, 4, 3, 2, 0, 2, 4, 3),
        read=lambda folder, target: Lookahead(target, level=4, window=3, guesses=3, from_prompt=True),
        rules=("point_mass",),
        rounds=4,  # the window is not full before the second
        length=7,
        plants=(
            *TARGET_BUGS,
            Plant("a-window-row-stays", "rejected rows stay", "drafter", WINDOW_ROW_STAYS, "tokens"),
            *own(
                "lookahead",
                ("filling-row-off-by-one", "look-up under another token", "self.new[1:])", "self.new[:-1])"),
                ("filed-under-the-next-token", "look-up under another token", "(keys[i],", "(self.rows[1][i],"),
                ("guesses-for-another-token", "look-up under another token", "get(anchor,", "get(turn.prefix[-2],"),
            ),
        ),
        not_tested={**NO_WEIGHTS, **NO_ROWS},
    )
}
