"""A separate draft model."""

from refengine.decoder.drafters.ar import AR
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.planted_bugs import NO_CROP, SHIFTED, TARGET_BUGS, Plant
from refengine.selfcheck.drafters.row import Row
from refengine.source_edits.edit import Edit

FOLDER = "tiny/ar"
LAST_DRAFT = Edit("refengine.decoder.drafters.ar", "chain_rows(self.drafted[-1:]", "chain_rows(self.drafted[:1]")

ROWS = {
    "ar": Row(
        prompt=(4, 3, 4, 0),
        folder=FOLDER,
        options={"gamma": 2},
        remembered=lambda drafter: AR(target_that_remembers(FOLDER), drafter.gamma),
        plants=(
            *TARGET_BUGS,
            Plant("draft-no-crop", "rejected rows stay", "drafter.model", NO_CROP, "rounds"),
            Plant("draft-position-plus-one", "draft positions off by one", "drafter.model", SHIFTED, "rounds"),
            Plant(
                "wrong-row-after-full-acceptance",
                "feature of another position",
                "drafter",
                LAST_DRAFT,
                "rounds",
                length=5,
            ),
        ),
    )
}
