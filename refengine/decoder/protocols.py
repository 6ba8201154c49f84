"""What the decode loop asks of a target and of a drafter, one request at a time.

Between two rounds one invariant holds everywhere: *every cache holds exactly the rows of `prefix[:-1]`*. The last token
of the prefix, the *anchor*, has been emitted but not run. A round is

    block = drafter.propose(turn)             candidates after the prefix
    passed = target.run(tree_rows(...))       row 0 is the anchor, row j + 1 is node j of the block
    verdict = rule(p rows, block, coins)      the tokens that are emitted
    target.keep(...), drafter.commit(...)     the anchor and the accepted path stay, every other row goes

Indices of *taps* follow transformers' `output_hidden_states`: hs[0] is the embedding output, hs[j] what decoder layer
j - 1 wrote, and hs[L] the last layer's output after the final norm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from refengine.decoder.targets.lent import Lent
from refengine.engine.block import Block
from refengine.engine.coins import Coins
from refengine.engine.policy import Policy, or_zeros
from refengine.exact.chance import Site

Tokens: TypeAlias = tuple[int, ...]

# Live state, flat and inspectable. Entries named `pool.*` may depend on how a prefix was reached (n-gram pools, Jacobi
# windows); every other entry is a function of the prefix alone, and is compared with a recompute from scratch.
# Values are tensors, tuples and ints. Tensors are never modified in place afterwards, so a state is a snapshot.
State: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """Rows of one forward pass, after the rows that are already cached.

    tokens     int64 [n]
    positions  int64 [n]         absolute positions
    visible    bool [n, t + n]   whether row i sees row j of the t tentative rows and these n; kept rows always
                                 None: a chain, each row sees all before it
    judged     logits are asked for of the last so many rows, and the others' may be left out; None: of all
    """

    tokens: Tensor
    positions: Tensor
    visible: Tensor | None = None
    judged: int | None = None


@dataclass(frozen=True)
class Pass:
    """What a forward pass says about its rows.

    tokens     int64 [n]
    positions  int64 [n]
    logits     float [n, V]         row i is about the token after row i; float32, or float64 where the target is.
                                    Of the last rows alone where no others were asked for (`Rows.judged`)
    taps       hs index -> [n, H]   the hidden states that were asked for
    """

    tokens: Tensor
    positions: Tensor
    logits: Tensor
    taps: Mapping[int, Tensor]

    def select(self, rows: Sequence[int]) -> "Pass":
        """The same pass, these rows alone."""
        index: slice | Tensor = slice(len(rows))  # which copies nothing
        if tuple(rows) != tuple(range(len(rows))):
            index = torch.tensor(rows, dtype=torch.long, device=self.tokens.device)
        taps = {j: tap[index] for j, tap in self.taps.items()}
        return Pass(self.tokens[index], self.positions[index], self.logits[index], taps)


class Target(Protocol):
    """A causal language model with its cache. Rows that were run are tentative until `keep` says which stay."""

    @property
    def vocabulary(self) -> int: ...

    @property
    def width(self) -> int:
        """H, the width of its hidden states."""
        ...

    @property
    def layers(self) -> int:
        """L, the number of its decoder layers."""
        ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def lends(self) -> Lent | None:
        """What drafters borrow of it; None where it has nothing to lend."""
        ...

    def reset(self) -> None:
        """Forget everything."""
        ...

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        """Run rows after everything cached; they stay as tentative rows, numbered on from those already there."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these tentative rows, in this order, as if no other had been run. `keep(())` takes a pass back."""
        ...

    def kv(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the kept rows of one layer, each [G, n, d], for drafters that attend to them."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


@dataclass(frozen=True)
class Turn:
    """What a drafter may know when it proposes: the request so far, the policy, and the coins at this position."""

    prompt: Tokens
    prefix: Tokens  # the prompt and everything emitted; its last token is the anchor
    policy: Policy
    coins: Coins  # depth 0 is the position after the anchor

    def row(self, logits: Tensor, path: Tokens = ()) -> Tensor:
        """The row [V] that the policy makes of logits [V] after the prefix and the drafted tokens `path`; all zeros
        where it leaves none of the tokens that can be drafted."""
        return or_zeros(self.policy)(logits, self.prompt, self.prefix[len(self.prompt) :] + path)

    def draw(self, q: Tensor, site: Site) -> int:
        """Draw a draft token at `site` from q [V]. The q-contract: report this very tensor as the node's q."""
        return int(self.coins.choose(q[None], site))


@dataclass(frozen=True)
class Verdict:
    """What a round emitted: the tokens, and the accepted nodes of the block, root first (one fewer)."""

    tokens: Tokens
    path: tuple[int, ...]


class Drafter(Protocol):
    """Proposes candidates. It may hold the target it drafts for, to borrow embeddings, heads or keys and values."""

    @property
    def taps(self) -> Sequence[int]:
        """The hidden states that it wants to see of every row the target keeps."""
        ...

    def start(self, tokens: Tokens, passed: Pass) -> None:
        """A new request of which the target has run `tokens` (all but the anchor); `passed` holds their rows.

        Also the recompute from scratch: after `start` the state is what any history with this prefix must have.
        """
        ...

    def propose(self, turn: Turn) -> Block:
        """Candidates after `turn.prefix`, one lane. May be empty. Leaves tentative rows behind as it likes."""
        ...

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        """The anchor and the accepted path were kept; `kept` holds their rows. Restores the invariant."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...
