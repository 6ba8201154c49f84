"""Several requests at once: one pass of the target and one judgement for all of them, ragged in everything.

A request joins with its prompt, which is run in the pass in which the others' blocks are verified. Prompts, drafted
blocks and accepted paths differ in length from request to request. Each request has its own session (caches, positions,
drafter) and its own coins, so what it says does not depend on its company: in law always, and token for token given
equal coins, up to the rounding of a padded pass, which `BitwiseTarget` does not have.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad

from refengine.decoder.loop import Rule, Session, one_lane
from refengine.decoder.protocols import Tokens, Turn
from refengine.decoder.targets.together import run_together
from refengine.engine.block import NOTHING, ROOT, Block, Round
from refengine.engine.coins import Coins, Site


@dataclass
class Batch:
    """Requests in progress. All sessions have one drafter's `taps` and one rule; their targets share a model.

    joining  asked for, not yet run; live: in the middle of decoding. What has ended has left
    """

    joining: list[tuple[Session, Tokens, Coins]] = field(default_factory=list)
    live: list[tuple[Session, Coins]] = field(default_factory=list)

    def join(self, session: Session, prompt: Tokens, coins: Coins) -> None:
        """From the next step on. The session may have served another request before."""
        self.joining.append((session, prompt, coins))

    def leave(self, session: Session) -> None:
        """Now, whether it has ended or not; `session.out` is what it has said."""
        self.joining = [entry for entry in self.joining if entry[0] is not session]
        self.live = [entry for entry in self.live if entry[0] is not session]

    def step(self) -> None:
        """One pass: a round of every live request, and the prompt of everyone who joins."""
        proposed = [session.propose(coins) for session, coins in self.live]
        opened = [session.open(prompt) for session, prompt, _ in self.joining]
        sessions = [session for session, _ in self.live] + [session for session, *_ in self.joining]
        if not sessions:
            return
        asks = zip((s.target for s in sessions), (*(rows for *_, rows in proposed), *opened), strict=True)
        passes = run_together(list(asks), sessions[0].drafter.taps)
        blocks = [block for _, block, _ in proposed]
        rows = [s.weigh(block, passed) for (s, _), block, passed in zip(self.live, blocks, passes, strict=False)]
        if rows:
            verdicts = judged([s.rule for s, _ in self.live], rows, blocks, [turn for turn, *_ in proposed])
            for lane, (session, _) in enumerate(self.live):
                session.commit(blocks[lane], passes[lane], rows[lane], one_lane(lane_of(verdicts, lane)))
        for (session, _, coins), passed in zip(self.joining, passes[len(self.live) :], strict=True):
            session.begun(passed, coins)
        everyone = [*self.live, *((session, coins) for session, _, coins in self.joining)]
        self.live, self.joining = [entry for entry in everyone if not entry[0].done], []


def judged(rules: Sequence[Rule], rows: Sequence[Tensor], blocks: Sequence[Block], turns: Sequence[Turn]) -> Round:
    """All blocks under the rule that the sessions share, one lane each."""
    if any(rule is not rules[0] for rule in rules) or len({block.q is None for block in blocks}) != 1:
        raise ValueError("the requests of a batch have one rule and one kind of drafter")
    longest = max(block.tokens.shape[1] for block in blocks)
    p = torch.cat([pad(x[None], (0, 0, 0, longest + 1 - len(x))) for x in rows])
    return rules[0](p, beside(blocks, longest), PerLane([turn.coins for turn in turns]))


def beside(blocks: Sequence[Block], longest: int) -> Block:
    """One-lane blocks as the lanes of one, with room for `longest` nodes."""
    tokens, parents = (
        torch.cat([pad(x, (0, longest - x.shape[1]), value=nothing) for x in ids])
        for ids, nothing in (([b.tokens for b in blocks], NOTHING), ([b.parents for b in blocks], ROOT))
    )
    drawn = [pad(block.q, (0, 0, 0, longest - block.q.shape[1])) for block in blocks if block.q is not None]
    return Block(tokens, parents, torch.cat(drawn) if drawn else None)


def lane_of(verdicts: Round, lane: int) -> Round:
    return Round(*(x[lane : lane + 1] for x in (verdicts.tokens, verdicts.path, verdicts.length)))


@dataclass(frozen=True)
class PerLane:
    """Coins of B lanes, each with its own."""

    lanes: Sequence[Coins]

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        return torch.cat([c.accept(num[i : i + 1], den[i : i + 1], _of(site, i)) for i, c in enumerate(self.lanes)])

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        return torch.cat([c.choose(weights[i : i + 1], _of(site, i)) for i, c in enumerate(self.lanes)])


def _of(site: Site, lane: int) -> Site:
    return tuple(part[lane : lane + 1] if isinstance(part, Tensor) else part for part in site)
