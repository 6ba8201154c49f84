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
                ("heads-look-from-the-anchor", "feature of another position", "trunk[-1:]", "trunk[:1]"),
                (
                    "accepted-rows-not-cached",
                    "draft cache has a hole",
                    "(kept)\n\n    def state",
                    "(kept.select([0]))\n\n    def state",
                ),
                ("position-plus-one", "draft positions off by one", "len(self.keys[0]) - 1]", "len(self.keys[0])]"),
                ("one-cache-for-all-heads", "draft slots misaddressed", "q, self.keys[k], ", "q, self.keys[0], "),
            ),
        ),
    )
}
