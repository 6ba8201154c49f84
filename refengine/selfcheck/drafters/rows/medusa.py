"""Medusa."""

from refengine.selfcheck.drafters.planted_bugs import TARGET_BUGS, own
from refengine.selfcheck.drafters.row import NO_ROWS, Row

ROWS = {
    "medusa": Row(
        prompt=(0, 3, 5, 3, 0, 4, 1, 1),
        folder="heads/medusa",
        options={"tree": ((0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0))},
        rules=("point_mass",),
        lossy=("typical", "nucleus"),
        length=6,
        plants=(
            *TARGET_BUGS,
            *own(
                "medusa",
                (
                    "hidden-state-of-the-anchor",
                    "feature of another position",
                    "kept.taps[self.taps[0]][-1]",
                    "kept.taps[self.taps[0]][0]",
                ),
                (
                    "stale-hidden-state",
                    "feature of another position",
                    "self.hidden = kept.taps[self.taps[0]][-1]",
                    "pass",
                ),
                ("one-head-for-all-levels", "steps not carried on", "ranked[len(path) - 1]", "ranked[0]"),
            ),
        ),
        not_tested=NO_ROWS,
    )
}
