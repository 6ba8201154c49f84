"""How far an honest server's numerics move its greedy text: the side without speculation, alone and in company.

The order of additions depends on what a request is computed with, so two likely tokens that are close may change
places, and from there on the text is another. Verification of a block is one more such shape. What the side without
speculation does to itself in company is therefore allowed to the side with it, with a floor for servers whose plain
decoding is exact.
"""

from dataclasses import dataclass

from refengine.evidence.distance import share_at_most
from refengine.evidence.ties import MARGIN, allowed

TIE_SHARE = 0.2  # of prompts at which an honest pair may part within UNIT tokens, each by a tie, whatever was measured
SAMPLED_TIE_SHARE = 0.1  # the same, where the other side is asked whether it is a tie (ties.py)
UNTOLD_TIES = 0.25  # of the ties that were measured: asked, the other side does not come to them again
KNOWN_TIE_SHARE = 0.02  # the same, where the rows are reported and say of every parting whether it is a tie
UNIT = 32  # tokens, of which that is the share
NOISE_PROMPTS = 20  # at the side without speculation: none that parts puts the bound below at about TIE_SHARE
DOUBT = 0.01  # that the share is larger than its bound
NATS = 0.25  # by which two passes may report a token apart: two steps of bfloat16 at logits of 16 to 32
QUIET_NATS = 0.05  # the margin of a tie, where nothing was seen to be rounded otherwise: a fifth of that
QUIET_ROWS_NATS = 0.005  # by which such passes may report a token apart: five times what was not seen
QUIET_SHARE = 0.005  # of prompts whose rows may be apart by more than NATS, where none was by more than ROUNDING
FAR_FACTOR = 2.0  # times the least or the measured margin of a tie
ROUNDING = 1e-3  # nats, to which log probabilities may be printed, where it is not known
CLOSE = 0.5  # nats: a margin below which the density of margins is taken to be even


@dataclass(frozen=True)
class Noise:
    """looks at prompts, parted of them; apart: the largest distance of a token's log probabilities, in nats.

    tokens, close   positions of plain decoding whose rows are known, and those with a margin below CLOSE
    sides_apart     the distance of the sides' log probabilities of one token, at nine prompts of ten
    printed         the step in which log probabilities are printed, in nats
    """

    looks: int = 0
    parted: int = 0
    apart: float = 0.0
    tokens: int = 0
    close: int = 0
    sides_apart: float = 0.0
    printed: float = ROUNDING
    asked: bool = False  # whether it can be asked about a parting
    decides: bool = False  # rows are reported, and every token of plain decoding is the likeliest of its own

    def tie_share(self, tokens: int = UNIT) -> float:
        """Of completions of so many tokens, position for position alike."""
        share = max(self._floor(), self._measured())
        return float(min(0.99, 1 - (1 - min(share, 0.999)) ** max(1.0, tokens / UNIT)))

    def _measured(self) -> float:
        """Of UNIT tokens: the bound of Clopper and Pearson (1934), 0 where none parted."""
        return share_at_most(self.parted, self.looks, 1 - DOUBT) if self.parted else 0.0

    def asked_share(self, tokens: int = UNIT) -> float:
        """The same, where a parting is asked about."""
        if not self.asked:
            return self.tie_share(tokens)
        share = max(min(SAMPLED_TIE_SHARE, self._floor()), UNTOLD_TIES * self._measured())
        return float(1 - (1 - share) ** max(1.0, tokens / UNIT))

    def _floor(self) -> float:
        """Of UNIT tokens, whatever parted."""
        if not self.tokens:
            return TIE_SHARE
        density = (self.close + 1) / (self.tokens + 1) / CLOSE
        near = MARGIN * max(self.printed, self.apart, self.sides_apart)
        return min(TIE_SHARE, max(KNOWN_TIE_SHARE, 1 - (1 - min(1.0, density * near)) ** UNIT))

    @property
    def even(self) -> bool:
        """Rows, where they are reported, are the same with speculation and without."""
        return max(self.apart, self.sides_apart) <= ROUNDING

    @property
    def quiet(self) -> bool:
        """Nothing was seen to be rounded otherwise with speculation than without."""
        return self.even and not self.parted

    @property
    def rows_share(self) -> float:
        """Of completions: whose reported log probabilities may be apart by more than `nats`."""
        return QUIET_SHARE if self.even else TIE_SHARE

    @property
    def nats(self) -> float:
        """The least distance of two log probabilities that is more than noise, and the margin of a parting that is."""
        return allowed(self.apart, NATS)

    @property
    def rows_nats(self) -> float:
        """By how much a token may be reported apart by the two sides."""
        return QUIET_ROWS_NATS if self.tokens and self.even else self.nats

    @property
    def tie(self) -> float:
        """The margin up to which a parting of two requests under way with a few others is a tie."""
        return QUIET_NATS if self.tokens and self.quiet else self.nats

    @property
    def far(self) -> float:
        """The margin, in nats, behind which no parting is rounding: many times what the sides were seen to be apart."""
        return FAR_FACTOR * allowed(max(self.apart, self.sides_apart), NATS)
