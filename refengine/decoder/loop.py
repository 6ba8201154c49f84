"""The loop on real networks: draft, verify, commit, until a stop or the length limit. One request at a time;
`batch.py` plays several in one pass.

`Session` is the loop in steps, so that whoever enumerates, compares or interrupts it plays the very rounds that
`generate` plays. Sites carry absolute places, so no round can reuse another round's coin.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from refengine.decoder.protocols import Drafter, Pass, Rows, State, Target, Tokens, Turn, Verdict
from refengine.decoder.rows import chain_rows, tree_rows
from refengine.engine.block import NOTHING, ROOT, Block, Round
from refengine.engine.check import check_row, check_rows
from refengine.engine.coins import Coins, Shifted
from refengine.engine.policy import NothingLeft, Pipeline, Policy
from refengine.engine.policy import rows as policy_rows
from refengine.engine.rules.leviathan import leviathan
from refengine.engine.rules.point_mass import point_mass
from refengine.engine.rules.without_replacement import without_replacement

Rule: TypeAlias = Callable[[Tensor, Block, Coins], Round]  # p [1, n + 1, V] root first, the block, the coins


def fitting(p: Tensor, block: Block, coins: Coins) -> Round:
    """The round of the rule that fits the block."""
    return fits(block)(p, block, coins)


def fits(block: Block) -> Rule:
    """The rule that fits how a block came about: deterministic, a chain drawn from q, or a tree whose siblings were
    drawn from q without replacement."""
    if block.q is None:
        return point_mass
    chain = torch.arange(-1, block.tokens.shape[1] - 1, device=block.tokens.device)
    branches = (block.parents != chain) & (block.tokens != NOTHING)
    return without_replacement if bool(branches.any()) else leviathan


@dataclass(frozen=True)
class Stop:
    """Where the output ends: right after a stop token, or as soon as its text holds a stop string."""

    tokens: frozenset[int] = frozenset()
    strings: tuple[str, ...] = ()
    decode: Callable[[Tokens], str] | None = None

    def __post_init__(self) -> None:
        if self.strings and self.decode is None:
            raise ValueError("stop strings need `decode`, which turns tokens into text")

    def reached(self, out: Tokens) -> bool:
        """Whether output that has just grown by one token ends here."""
        if out[-1] in self.tokens:
            return True
        return self.decode is not None and any(string in self.decode(out) for string in self.strings)


@dataclass(frozen=True)
class Played:
    """One round: the block, the target's rows p [n + 1, V], the verdict, and what was emitted of it."""

    block: Block
    p: Tensor
    verdict: Verdict
    emitted: Tokens


@dataclass(frozen=True)
class Result:
    """tokens: what was generated, a stop token included. rounds: how. The first token comes before the first round.

    Tensors are made in inference mode: who wants to write into one, or a gradient, takes a clone.
    """

    tokens: Tokens
    rounds: tuple[Played, ...]


@torch.inference_mode()
def generate(
    target: Target,
    drafter: Drafter,
    rule: Rule,
    policy: Policy,
    prompt: Sequence[int],
    max_new_tokens: int,
    coins: Coins,
    stop: Stop = Stop(),
) -> Result:
    """Decode speculatively. Raises ValueError on a bad prompt, and on rows that no rule can judge (NaN, wrong sums)."""
    session = Session(target, drafter, rule, policy, max_new_tokens, stop)
    session.begin(tuple(prompt), coins)
    while not session.done:
        session.play(coins)
    return Result(session.out, tuple(session.rounds))


@torch.inference_mode()
def plain(
    target: Target, policy: Policy, prompt: Sequence[int], max_new_tokens: int, coins: Coins, stop: Stop = Stop()
) -> Tokens:
    """The same without speculation, one token per pass: what `generate` must equal, in law and greedily."""
    passed = begin(target, tuple(prompt), (), judged=1)
    out: Tokens = ()
    while len(out) < max_new_tokens:
        about = passed.logits[-1], tuple(prompt), out
        token = policy.token(*about) if isinstance(policy, Pipeline) else None  # greedily there is nothing to choose
        if token is None:
            token = target_token(policy(*about), coins, len(prompt) + len(out))
        out = (*out, token)
        if stop.reached(out) or len(out) == max_new_tokens:
            break
        passed = target.run(chain_rows(out[-1:], len(prompt) + len(out) - 1, target.device))
        target.keep((0,))
    return out


@dataclass
class Session:
    """A request in progress. `out` is what was emitted; `done` when it has ended."""

    target: Target
    drafter: Drafter
    rule: Rule
    policy: Policy
    max_new_tokens: int
    stop: Stop = Stop()
    prompt: Tokens = ()
    out: Tokens = ()
    done: bool = False
    rounds: list[Played] = field(default_factory=list)
    barren: frozenset[int] = frozenset()  # nodes of the block under judgement after which the policy leaves no token

    def begin(self, prompt: Tokens, coins: Coins) -> None:
        """Run the prompt and draw the first token, which comes from the law like every other."""
        self.begun(self.target.run(self.open(prompt), self.drafter.taps), coins)

    def play(self, coins: Coins) -> None:
        """One round. Raises ValueError after the end: the caches no longer hold prefix[:-1] then."""
        turn, block, rows = self.propose(coins)
        passed = self.target.run(rows, self.drafter.taps)
        p = self.weigh(block, passed)
        verdict = one_lane(self.rule(p[None], block, turn.coins))
        self.commit(block, passed, p, verdict)

    # --- begin and play in halves, for whoever runs the rows of several requests in one pass -------------------------

    def open(self, prompt: Tokens) -> Rows:
        """The rows that `begun` wants to see run."""
        self.prompt, self.out, self.rounds, self.done = prompt, (), [], self.max_new_tokens <= 0
        return opening(self.target, prompt, judged=1)

    def begun(self, passed: Pass, coins: Coins) -> None:
        """The prompt was run."""
        self.target.keep(range(len(self.prompt)))
        self.drafter.start(self.prompt, passed)
        if not self.done:
            row = self.policy(passed.logits[-1], self.prompt, ())
            self._emit((target_token(row, coins, len(self.prompt)),))

    def propose(self, coins: Coins) -> tuple[Turn, Block, Rows]:
        """What is drafted, and the rows that judge it: the anchor, and the nodes of the block."""
        if self.done:
            raise ValueError("this request has ended: no round can be played after its last token")
        prefix = self.prompt + self.out
        turn = Turn(self.prompt, prefix, self.policy, Shifted(coins, len(prefix)))
        block = self.drafter.propose(turn)
        tokens, parents = nodes(block)
        return turn, block, tree_rows(prefix[-1], tokens, parents, len(prefix) - 1, self.target.device)

    def weigh(self, block: Block, passed: Pass) -> Tensor:
        """The target's rows p [n + 1, V] that judge the block.

        Plain decoding asks for no row after a token that ends the text, nor after one that the policy bans. Where such
        a row has nothing left it is uniform here: nothing that is drawn from it can be emitted (`commit`).
        """
        tokens, parents = nodes(block)
        p = policy_rows(self.policy, passed.logits, self.prompt, self.out, tokens, parents)
        nothing = ~p.any(1)
        self.barren = frozenset(node for node, empty in enumerate(nothing.tolist(), ROOT) if empty)
        if self.barren:
            p = p.masked_fill(nothing[:, None], 1 / p.shape[-1])
        check_rows(p[None], block)
        return p

    def commit(self, block: Block, passed: Pass, p: Tensor, verdict: Verdict) -> None:
        """The block was judged: emit, and keep the anchor and the accepted path."""
        before = len(self.out)
        emitted = self._emit(verdict.tokens)
        for length, node in enumerate((ROOT, *verdict.path)[: len(emitted)], before):
            if node in self.barren:
                raise NothingLeft(f"the policy bans every token after {len(self.prompt)} + {length} tokens")
        self.rounds.append(Played(block, p, verdict, emitted))
        if not self.done:
            kept = (0, *(node + 1 for node in verdict.path))
            self.target.keep(kept)
            self.drafter.commit(verdict, passed.select(kept))

    # -----------------------------------------------------------------------------------------------------------------

    def rebuild(self, prompt: Tokens, out: Tokens) -> None:
        """The state after `out`, recomputed from scratch."""
        self.prompt, self.out, self.rounds, self.done = prompt, out, [], False
        cached = (prompt + out)[:-1]
        self.drafter.start(cached, begin(self.target, cached, self.drafter.taps, judged=1))

    def state(self) -> State:
        """All live state, target's and drafter's."""
        parts = (("target", self.target), ("drafter", self.drafter))
        return {f"{name}.{key}": value for name, part in parts for key, value in part.state().items()}

    def restore(self, prompt: Tokens, out: Tokens, state: State) -> None:
        """Continue from a snapshot that `state` took after `out`."""
        self.prompt, self.out, self.rounds, self.done = prompt, out, [], False
        self.target.restore({k.removeprefix("target."): v for k, v in state.items() if k.startswith("target.")})
        self.drafter.restore({k.removeprefix("drafter."): v for k, v in state.items() if k.startswith("drafter.")})

    def _emit(self, tokens: Tokens) -> Tokens:
        """Append up to the first stop or the limit; returns what was appended."""
        for count, token in enumerate(tokens, 1):
            self.out = (*self.out, token)
            self.done = self.stop.reached(self.out) or len(self.out) == self.max_new_tokens
            if self.done:
                return tokens[:count]
        return tokens


def begin(target: Target, tokens: Tokens, taps: Sequence[int], judged: int | None = None) -> Pass:
    """A new request: run and keep all of `tokens`. judged: see `Rows`."""
    passed = target.run(opening(target, tokens, judged), taps)
    target.keep(range(len(tokens)))
    return passed


def opening(target: Target, tokens: Tokens, judged: int | None) -> Rows:
    """The rows of a prompt; the target forgets everything else. Raises ValueError where it is no prompt."""
    if not tokens:
        raise ValueError("the prompt is empty: decoding needs at least one token to condition on")
    if bad := [token for token in tokens if not 0 <= token < target.vocabulary]:
        raise ValueError(f"prompt token {bad[0]} is outside the vocabulary of {target.vocabulary} tokens")
    target.reset()
    return chain_rows(tokens, 0, target.device, judged)


def target_token(row: Tensor, coins: Coins, position: int) -> int:
    """A token from the target's own row [V], with the coin of its absolute position."""
    check_row(row)
    return int(coins.choose(row[None], ("emit", position)))


def nodes(block: Block) -> tuple[Tokens, Tokens]:
    """Tokens and parents of a one-lane block."""
    return tuple(block.tokens[0].tolist()), tuple(block.parents[0].tolist())


def one_lane(verdict: Round) -> Verdict:
    """The first lane of a batched round, padding removed."""
    tokens, path = verdict.tokens[0].tolist(), verdict.path[0].tolist()
    length = int(verdict.length[0])
    return Verdict(tuple(tokens[:length]), tuple(path[: length - 1]))
