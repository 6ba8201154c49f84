"""Ways through a block."""

from refengine.exact.block import ROOT, Block


def ancestry(block: Block, node: int) -> tuple[int, ...]:
    """The nodes from the first candidate down to `node`, that node included."""
    return () if node == ROOT else (*ancestry(block, block.parents[node]), node)
