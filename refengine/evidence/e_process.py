"""Sequential evidence against the conditional null: given the history and the emitted prefix, the next token is ~ p.

An e-process is a product of likelihood ratios L(token) / p(token), each L chosen before its token is observed. Under
the null it is a supermartingale with mean at most 1, so it reaches 1/alpha with probability at most alpha, at whatever
moment one looks (Ville 1939; a mixture of e-processes is one: Ramdas, Gruenwald, Vovk, Shafer 2023, "Game-theoretic
statistics and safe anytime-valid inference"). It is a mixture of three kinds of component, none of which depends on the
current draft or length:

* listed   half of the prior: the law of each known defect (defect_laws.py), the most powerful bet there is against it,
           and the same defect when it strikes seldom; and one coin for a block (one_coin.py);
* tilts    an eighth: mass moved onto or off one kind of token, by five amounts each way, the same at every site;
* learners three eighths: Dirichlet-multinomials on few cells, for each feature of the history that could matter; once
           for defects that show on every input, and once for those that show at one site of one input.

The null of a float32 subject is not the point p but the ball of total variation BALL around it. A fixed bet R is
divided by 1 + BALL (max R - min R) >= E[R] under any law in the ball; a learner is measured against the likeliest law.
A token with p = 0 is outside every ball and ends the audit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from refengine.evidence.bets.defect_laws import alternatives, names
from refengine.evidence.bets.fixed_bets import BALL, SHARE_ALWAYS, SHARE_SELDOM, bets
from refengine.evidence.bets.learned_bets import Learner
from refengine.evidence.bets.one_coin import OneCoin
from refengine.evidence.bets.token_kinds import KINDS, cells, kinds
from refengine.evidence.naming import ONE_COIN, SELDOM
from refengine.evidence.rows import Rows, log_sum

TILTS = np.array([-3.0, -0.7, -0.2, -0.05, -0.01, 0.01, 0.05, 0.2, 0.7, 3.0])
DEFECTS = tuple(names())
EVERYWHERE, ALONE = "learned from ", "learned at one site from "
LISTED = (*DEFECTS, *(name + SELDOM for name in DEFECTS), ONE_COIN)
GROSS_NATS = 1.0  # a token, at its best site, that make a defect gross
FINE_WEIGHT = 2.0  # of the prior of a defect that is not gross
WIDE_COST = 2.0  # of a call with a wide vocabulary, in calls with few tokens
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Draws:
    """Emitted tokens, in order: site [n], token [n], and for each feature its state [n], -1 for none.

    copy [n]  which of several independent audits a token belongs to
    coin [n]  the bound below which the coin of the block would lie, had it only one, by the tokens kept so far
    """

    site: Ints
    token: Ints
    states: Mapping[str, Ints]
    copy: Ints | None = None
    coin: Rows | None = None


class CaseEvidence:
    """The evidence of one input: fixed rows, any number of draws.

    p, q    [lanes, gamma + 1 | gamma, contexts, V] float64
    copies  independent audits that are counted side by side: calibration runs many at once, an audit is one
    sizes   [V], where p and q are by cells: how many ids each cell has
    """

    def __init__(
        self,
        p: Rows,
        q: Rows,
        features: Mapping[str, int],
        ball: float = BALL,
        copies: int = 1,
        sizes: Ints | None = None,
    ) -> None:
        self.ball, vocabulary = ball, p.shape[-1]
        self.p = p.reshape(-1, vocabulary)
        drafted = np.concatenate([q, p[:, -1:]], axis=1)
        padded = drafted.reshape(-1, vocabulary)
        laws = alternatives(p, q, sizes)
        law = np.stack([laws[name].reshape(-1, vocabulary) for name in DEFECTS])
        placed = [bets(share * law + (1.0 - share) * self.p, self.p, ball) for share in (SHARE_ALWAYS, SHARE_SELDOM)]
        self.log_ratio = np.concatenate([log_ratio for log_ratio, _ in placed])
        self.growth = np.concatenate(
            [growth for _, growth in placed]
        )  # [listed, S], in nats a draw by the law of the bet
        self.one_coin = OneCoin(p, drafted, ball)
        self.growth = np.concatenate([self.growth, self.one_coin.growth()])
        self.most_growth = self.growth.max(1)
        if sizes is not None:
            self.growth /= WIDE_COST
        self.kind = kinds(self.p, padded).astype(float)
        self.learners = _learners(self.p, padded, p.shape[0], features, ball, copies)
        self.counts = np.zeros((copies, *self.p.shape))
        self.coin_wealth = np.zeros((copies, 1))
        self.log_wealth = np.zeros((copies, len(LISTED) + len(KINDS) * len(TILTS) + 2 * len(features)))

    def add(self, draws: Draws) -> None:
        """Count draws and bring `log_wealth` up to date: [copies, components], in the order of `components`."""
        copy = np.zeros_like(draws.site) if draws.copy is None else draws.copy
        index = (copy * len(self.p) + draws.site) * self.p.shape[1] + draws.token
        self.counts += np.bincount(index, minlength=self.counts.size).reshape(self.counts.shape)
        for name, learner in self.learners.items():
            learner.add(copy, draws.site, draws.token, draws.states[name])
        if draws.coin is not None:
            gained = self.one_coin.log_ratio(draws.site, draws.token, draws.coin)
            self.coin_wealth += np.bincount(copy, gained, len(self.counts))[:, None]
        tabled = self.counts.reshape(len(self.counts), -1) @ self.log_ratio.reshape(len(self.log_ratio), -1).T
        learned = np.array([learner.log_wealth() for learner in self.learners.values()])  # [features, 2, copies]
        everywhere, alone = learned.transpose(1, 2, 0)
        self.log_wealth = np.concatenate([tabled, self.coin_wealth, self._tilted(), everywhere, alone], axis=1)

    def reset(self) -> None:
        """Drop every draw, and keep the tables."""
        self.counts[:] = 0.0
        self.coin_wealth[:] = 0.0
        self.log_wealth = np.zeros_like(self.log_wealth)
        for learner in self.learners.values():
            learner.counts[:] = 0.0

    def impossible(self, draws: Draws) -> NDArray[np.bool_]:
        """Which draws have probability zero."""
        return np.asarray(self.p[draws.site, draws.token] <= 0.0)

    def _tilted(self) -> Rows:
        """log wealth of R(v) = exp(t [v in kind]) / E_p, [copies, kinds * tilts], from counts alone."""
        mass = (self.kind * self.p).sum(-1)
        split = (mass > 0) & (mass < 1)  # a whole or an empty kind makes no bet
        mean = 1.0 + mass[..., None] * np.expm1(TILTS)
        spread = self.ball * np.abs(np.expm1(TILTS)) / mean
        cost = split[..., None] * (np.log(mean) + np.log1p(spread))
        hits = np.einsum("ksv,csv->ck", self.kind * split[..., None], self.counts)
        paid = np.einsum("kst,cs->ckt", cost, self.counts.sum(2))
        return np.asarray(hits[..., None] * TILTS - paid).reshape(len(self.counts), -1)


def _learners(
    p: Rows, q: Rows, lanes: int, features: Mapping[str, int], ball: float, copies: int
) -> dict[str, Learner]:
    """Places of different lanes with equal rows are one class."""
    cell = cells(p, q)
    seen: dict[tuple[int, bytes, bytes], int] = {}
    within = len(p) // lanes
    group = np.array([seen.setdefault((s % within, p[s].tobytes(), q[s].tobytes()), len(seen)) for s in range(len(p))])
    return {name: Learner(p, cell, group, states, ball, copies) for name, states in features.items()}


@dataclass
class Evidence:
    """The whole e-process over many inputs. Wealth multiplies from one input to the next, but for the components that
    bet on one site of one input: theirs is the mean over inputs. All inputs are known before the first draw."""

    features: tuple[str, ...]
    alpha: float
    cases: dict[str, CaseEvidence] = field(default_factory=dict)

    def components(self) -> list[str]:
        tilts = [f"{kind} tilted by {tilt:+g}" for kind in KINDS for tilt in TILTS]
        learned = [*(EVERYWHERE + name for name in self.features), *(ALONE + name for name in self.features)]
        return [*LISTED, *tilts, *learned]

    def log_prior(self) -> Rows:
        """Half for the listed defects, most of it for those that always strike; the rest as in the heading. A gross
        defect has less, since a few tokens show it anyway."""
        always = np.ones(len(DEFECTS))
        if self.cases:
            most = np.max([case.most_growth[: len(DEFECTS)] for case in self.cases.values()], axis=0)
            always = np.where(most < GROSS_NATS, FINE_WEIGHT, 1.0)
        listed = [0.45 * always / always.sum(), np.full(len(DEFECTS), 0.04 / len(DEFECTS)), np.full(1, 0.01)]
        count = len(KINDS) * len(TILTS)
        rest = max(len(self.features) - 1, 1)
        learned = [
            np.full(1, 0.0625),
            np.full(len(self.features) - 1, 0.125 / rest),
        ]  # a third for the feature of the site itself
        return np.asarray(np.log(np.concatenate([*listed, np.full(count, 0.125 / count), *learned, *learned])))

    def log_wealths(self) -> Rows:
        """log prior + log wealth of every component: [copies, components]."""
        wealth = np.array([case.log_wealth for case in self.cases.values()])
        total = wealth.sum(0)
        alone = -len(self.features)
        total[:, alone:] = log_sum(wealth[:, :, alone:], 0) - np.log(len(wealth))
        return np.asarray(self.log_prior() + total)

    def log_evidence_of_copies(self) -> Rows:
        return np.asarray(log_sum(self.log_wealths(), 1))

    def log_evidence(self) -> float:
        """Of a single audit (copies = 1)."""
        return float(self.log_evidence_of_copies()[0])

    def rejects(self) -> bool:
        return bool(self.log_evidence() >= -np.log(self.alpha))

    def posterior(self) -> Rows:
        wealth = self.log_wealths()[0]
        return np.asarray(np.exp(wealth - log_sum(wealth, 0)))
