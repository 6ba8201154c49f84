"""Ways through a block: the candidate that a token leads to, and the nodes that lead to a candidate."""

from refengine.exact.block import ROOT, Block


def child(block: Block, at: int, x: int) -> int | None:
    """The first candidate after node `at` that is token x."""
    return next((j for j in block.children(at) if block.tokens[j] == x), None)


def ancestry(block: Block, node: int) -> tuple[int, ...]:
    """The nodes from the first candidate down to `node`, that node included."""
    return () if node == ROOT else (*ancestry(block, block.parents[node]), node)
