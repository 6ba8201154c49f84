"""Rotary position embedding: the angle by which each pair of a head turns, and the published ways of stretching it.

Scalings are those of transformers' `modeling_rope_utils`, which is what the released code runs. Angles are computed in
float32 for half precision and in float64 for float64.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from refengine.errors import BadInput


class Scaling(Protocol):
    """What a `rope_type` does to the frequencies theta^(-2 i / d) of the d / 2 pairs."""

    @property
    def magnitude(self) -> float:
        """The factor on cosine and sine."""
        ...

    def __call__(self, frequencies: Tensor, theta: float) -> Tensor: ...


@dataclass(frozen=True)
class Unscaled:
    magnitude: float = 1.0

    def __call__(self, frequencies: Tensor, theta: float) -> Tensor:
        return frequencies


@dataclass(frozen=True)
class Linear:
    """Position interpolation (Chen et al. 2023): every angle is divided."""

    factor: float
    magnitude: float = 1.0

    def __call__(self, frequencies: Tensor, theta: float) -> Tensor:
        return frequencies / self.factor


@dataclass(frozen=True)
class Llama3:
    """Llama 3.1: long waves are divided by `factor`, short ones stay, those between are blended.

    low, high  wave lengths over original / low are long, those under original / high short
    """

    factor: float
    low: float
    high: float
    original: float
    magnitude: float = 1.0

    def __call__(self, frequencies: Tensor, theta: float) -> Tensor:
        turns = self.original * frequencies / (2 * math.pi)  # of a pair over the original context
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return frequencies * (kept + (1 - kept) / self.factor)


@dataclass(frozen=True)
class Yarn:
    """YaRN (Peng et al. 2023): the same blend by the index of the pair, and a factor on cosine and sine."""

    factor: float
    original: float
    fast: float
    slow: float
    truncate: bool
    magnitude: float

    def __call__(self, frequencies: Tensor, theta: float) -> Tensor:
        pairs, width = len(frequencies), 2 * len(frequencies)

        def index(turns: float) -> float:
            """The (fractional) index of the pair that makes this many turns over the original context."""
            return width * math.log(self.original / (turns * 2 * math.pi)) / (2 * math.log(theta))

        low, high = index(self.fast), index(self.slow)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        places = torch.arange(pairs, dtype=frequencies.dtype, device=frequencies.device)
        divided = ((places - low) / (high - low or 0.001)).clamp(0, 1)
        return frequencies * (1 - divided + divided / self.factor)


@dataclass(frozen=True)
class Proportional:
    """Gemma 4: of all the pairs of a head the first `part` turn, as if they were all; the others stand still."""

    part: float
    factor: float = 1.0
    magnitude: float = 1.0

    def __call__(self, frequencies: Tensor, theta: float) -> Tensor:
        turning = int(self.part * 2 * len(frequencies) // 2)
        still = torch.arange(len(frequencies), device=frequencies.device) >= turning
        return frequencies.masked_fill(still, 0.0) / self.factor


@dataclass(frozen=True)
class Rope:
    """The rotary embedding of one attention.

    limit  positions from here on have no angles that are a function of the text (`dynamic`): there it raises BadInput
    """

    theta: float
    scaling: Scaling = Unscaled()
    limit: int | None = None

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """x [n, heads, d] at `positions` [n]: halves rotated against each other (NeoX style)."""
        cos, sin = (torch.cat((f, f), -1) for f in self._turns(x, positions))
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat((-right, left), -1) * sin

    def rotate_pairs(self, x: Tensor, positions: Tensor) -> Tensor:
        """The same rotation of neighbours (x0, x1), (x2, x3), ... against each other, as Meta and DeepSeek have it."""
        cos, sin = self._turns(x, positions)
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    def _turns(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine [n, 1, d / 2] of every angle, times the magnitude."""
        angles = self.angles(x, positions)
        cos, sin = ((f * self.scaling.magnitude).to(x.dtype)[:, None] for f in (angles.cos(), angles.sin()))
        return cos, sin

    def angles(self, x: Tensor, positions: Tensor) -> Tensor:
        """[n, d / 2]: that of pair i at position t is t times its frequency."""
        if self.limit is not None and bool((positions >= self.limit).any()):
            raise BadInput(
                f"the text goes past position {self.limit - 1} of a rotary embedding of type 'dynamic': from there on "
                "its angles depend on the longest text so far, and a cached key on when it was made"
            )
        width, dtype = x.shape[-1], torch.promote_types(x.dtype, torch.float32)
        exponents = torch.arange(0, width, 2, device=x.device).to(dtype) / width
        return positions[:, None].to(dtype) * self.scaling(1 / self.theta**exponents, self.theta)
