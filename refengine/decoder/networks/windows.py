"""Sliding layers: how far back a row of a round sees, in each release's own way of counting.

Text is plain: a row sees itself and the W - 1 rows before it. A round's rows stand behind the text, the anchor's first:

    EAGLE-3 (speculators 0.9.0)    all of a round count from the anchor, and see what they follow in the round
    P-EAGLE (speculators 0.9.0)    each slot counts from itself; those before it, and the anchor, are never hidden
    DFlash, DSpark (speculators)   W rows before the anchor, and the block
    DFlash (transformers)          |q - k| <= W, in the block too
    DFlash (z-lab, SpecForge)      each row counts from itself, W - 1 rows before it, and the block is causal

The first two are read off the masks of training, `models/eagle3/attention.py` (drafted rows are appended as diagonals,
so the first step's window stays) and `models/peagle/attention.py`. Their configs' W counts the row itself. An engine
whose kernels count every row from itself (vLLM's do; it was not run here) differs from EAGLE-3's law at the far end
alone, by a row a depth.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Window:
    """Which rows a sliding layer leaves in sight.

    before   how many rows before the one that a row counts from
    by_row   each counts from itself; otherwise all rows of a round count from its first
    causal   no row of a block sees a later one (a recurrence has its own causal mask)
    """

    before: int
    by_row: bool
    causal: bool = False

    def first(self, positions: Tensor, text: int) -> Tensor:
        """The oldest row that each row may see, [n]: rows 0 .. text - 1 are of the text, all others of the round."""
        return (positions if self.by_row else positions.clamp(max=text)) - self.before

    def within(self, sees: Tensor, positions: Tensor, text: int) -> Tensor:
        """Of what rows of a recurrence see, bool [n, m], what is in sight; a round hides none of its own rows."""
        rows = torch.arange(sees.shape[1], device=sees.device)
        return sees & (rows >= self.first(positions, text).clamp(max=text)[:, None])

    def block(self, start: int, length: int, device: torch.device) -> Tensor:
        """What the rows of a block at start, start + 1, ... see: bool [length, start + length], the context first."""
        keys = torch.arange(start + length, device=device)
        rows = keys[start:, None]
        seen = keys >= self.first(keys[start:], start)[:, None]
        if self.by_row:
            seen = seen & (keys <= rows + self.before)
        return seen & (keys <= rows) if self.causal else seen
