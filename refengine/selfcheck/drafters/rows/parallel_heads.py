"""Parallel heads."""

from refengine.selfcheck.drafters.planted_bugs import TARGET_BUGS, own
from refengine.selfcheck.drafters.row import Row

ROWS = {
    "parallel_heads": Row(
        prompt=(4, 3, 4, 0),
        folder="heads/parallel_heads",
        target="heads/parallel_heads",
        plants=(
            *TARGET_BUGS,
            *own(
                "parallel_heads",
                ("heads-look-from-the-anchor", "trunk[-1:]", "trunk[:1]"),
                ("accepted-rows-not-cached", "(kept)\n\n    def state", "(kept.select([0]))\n\n    def state"),
                ("position-plus-one", "len(self.keys[0]) - 1]", "len(self.keys[0])]"),
                ("one-cache-for-all-heads", "q, self.keys[k], ", "q, self.keys[0], "),
            ),
        ),
    )
}
