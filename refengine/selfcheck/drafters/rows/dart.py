"""DART."""

from refengine.selfcheck.drafters.laws.remembering import recurrence
from refengine.selfcheck.drafters.planted_bugs import RECURRENCE, RECURRENT, Plant, own
from refengine.selfcheck.drafters.row import NO_ROWS, Row
from refengine.source_edits.edit import Edit

SHIFTED_DRAFT = Edit(RECURRENCE, "self.kept + sees.sum(1) - 1", "self.kept + sees.sum(1)")

ROWS = {
    "dart": Row(
        prompt=(0, 5, 2, 5, 5, 4, 3, 4),
        folder="dart/drafter",
        options={"tree": {"top_k": 2, "beam": 2, "total": 6}},
        rules=("point_mass",),
        length=7,
        remembered=recurrence,
        plants=(
            *RECURRENT,
            Plant("draft-position-plus-one", "draft positions off by one", "drafter", SHIFTED_DRAFT, "rounds"),
            *own(
                "dart",
                (
                    "looks-back-without-the-anchor",
                    "look-up under another token",
                    "(draft), turn.prefix)",
                    "(draft), turn.prefix[:-1])",
                ),
                (
                    "every-level-after-the-anchor",
                    "steps not carried on",
                    "((*prefix, *path), tokens,",
                    "((*prefix, *path[:1]), tokens,",
                ),
            ),
        ),
        not_tested=NO_ROWS,
    )
}
