"""The decodes that the loop is checked on: toy networks in float64, every kind of drafter, two tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from refengine.decoder.checkpoints.layouts.dspark import table
from refengine.decoder.drafters.ar import AR
from refengine.decoder.drafters.dspark import DSpark, Shape
from refengine.decoder.loop import Rule, Session, Stop
from refengine.decoder.networks.rope import Rope
from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.decoder.targets.toy import ToyDrafter, ToyTarget
from refengine.engine import policy
from refengine.engine.block import Block
from refengine.engine.coins import Branching
from refengine.engine.rules.block import block
from refengine.engine.rules.leviathan import leviathan
from refengine.engine.rules.point_mass import point_mass
from refengine.source_edits.imports import touched


@dataclass(frozen=True)
class Setting:
    """One decode. Two tokens; histories of at most `limit` tokens."""

    name: str
    drafter: Callable[[ToyTarget], Any]
    rule: Rule
    steps: tuple[policy.Step, ...]
    prompt: tuple[int, ...]
    limit: int
    stop: tuple[int, ...] = ()
    drafts: str = AR.__module__

    def play(self, chance: Any, before_round: Callable[[Session], None] = lambda session: None) -> Session:
        """A whole decode, its coins decided by `chance`."""
        coins = Branching(chance)
        session = self.session()
        session.begin(self.prompt, coins)
        while not session.done:
            before_round(session)
            session.play(coins)
        return session

    def session(self) -> Session:
        target = ToyTarget(2, seed=3)
        stop = Stop(frozenset(self.stop))
        return Session(target, self.drafter(target), self.rule, policy.pipeline(*self.steps), self.limit, stop)


def ar(gamma: int) -> Callable[[ToyTarget], Any]:
    return lambda target: AR(ToyTarget(2, seed=5, decay=0.7), gamma)


class FixedTree:
    """Both tokens as siblings, each with one child, the second sibling's first: nothing is drawn, nothing is kept."""

    taps: tuple[int, ...] = ()

    def start(self, tokens: Tokens, passed: Pass) -> None: ...

    def propose(self, turn: Turn) -> Block:
        last = turn.prefix[-1]
        tokens, parents = torch.tensor([[1 - last, last, 0, 1]]), torch.tensor([[-1, -1, 1, 0]])
        return Block(tokens, parents, None)

    def commit(self, verdict: Verdict, kept: Pass) -> None: ...

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> None: ...


SHAPE = Shape(
    vocab_size=2,
    hidden_size=4,
    intermediate_size=6,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=4,
    attention_bias=False,
    rms_norm_eps=1e-6,
    rope=Rope(10000.0),
    taps=(0, 1),
    block_size=2,
    mask_token_id=1,
    windows=(None,),
    num_target_layers=2,
    markov_rank=2,
    markov_head_type="rnn",
    enable_confidence_head=True,
    confidence_head_with_markov=True,
    draft_vocab_size=2,
    shifted=True,
    length=2,
)


def dspark(target: ToyTarget) -> DSpark:
    """Random weights; at this threshold blocks end before the first slot, the second, or not at all."""
    generator = torch.Generator().manual_seed(13)
    tensors = {
        name: torch.randn(*size, generator=generator, dtype=torch.float64)
        for name, size in sorted(table(SHAPE).items())
    }
    return DSpark(SHAPE, tensors, threshold=0.7)


PRESENCE, REPETITION = policy.presence_penalty(0.7), policy.repetition_penalty(1.5)
EVERY = (
    Setting(
        "feature drafter", lambda target: ToyDrafter(target, 2), leviathan, (), (0, 1), 3, drafts=ToyDrafter.__module__
    ),
    Setting("draft model", ar(2), leviathan, (policy.temperature(0.5), PRESENCE), (1,), 3),
    Setting("one draft at a time", ar(1), leviathan, (PRESENCE,), (1,), 4),
    Setting("draft model with a stop token", ar(2), leviathan, (policy.temperature(3.0),), (0, 1), 4, (1,)),
    Setting("draft model, block verification", ar(2), block, (PRESENCE,), (1, 0), 3),
    Setting("tree of point masses", lambda target: FixedTree(), point_mass, (REPETITION,), (1,), 4, drafts=""),
    Setting("dspark with truncation", dspark, leviathan, (PRESENCE,), (0, 1), 3, drafts=DSpark.__module__),
)
# Too long to be enumerated: every draft is kept, since the draft model is the target, or as many as come.
MANY = (
    Setting("draft model, blocks kept whole", lambda target: AR(ToyTarget(2, seed=3), 5), leviathan, (), (1,), 60),
    Setting("draft model, blocks of five", ar(5), block, (policy.frequency_penalty(0.05),), (1,), 60),
)


def loaded(settings: Sequence[Setting]) -> list[Setting]:
    """Those that an edit of this process can change, and no other: all of them run the loop on a toy target."""
    common = (Session.__module__, ToyTarget.__module__)
    return [s for s in settings if touched(m for m in (s.rule.__module__, s.drafts, *common) if m)]


SETTINGS, LONG = loaded(EVERY), loaded(MANY)
