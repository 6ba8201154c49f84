"""A causal language model each of whose rows has one sequence of bits, however it came to be computed.

A verify pass, single-token decoding and a batch have different shapes, different shapes run different kernels, and
their logits differ in the last bits. Here there is one shape. A pass is always `lanes` rows, each alone in its lane as
in single-token decoding, before a buffer of `slots` keys of its own in which slot t holds the key of position t on the
row's own path: of a tree's branch no less than of a chain. Slots that it does not see hold zeros and weigh exactly
nothing. Then the bits of a row are a function of the tokens on its path, of the weights, and of (lanes, slots), if only

    kernels are functions of their inputs and shapes     true of a CPU; of CUDA with deterministic algorithms
    a lane does not feel which one it is, or the others  asked of this very model when it is loaded (`lanes_that_hold`)

Where the second does not hold there is one lane, which has no others. What is dropped or padded costs time and is never
seen: keys are gathered for every pass from the rows that are cached, so rolling back is forgetting their numbers.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache, PreTrainedModel

from refengine.decoder.networks.cache import Cache, Pair, append, causal, keep, restore, state
from refengine.decoder.protocols import Pass, Rows, State
from refengine.decoder.targets.base import called, sizes, widened
from refengine.decoder.targets.lent import Lent
from refengine.decoder.targets.transformers import Sight
from refengine.errors import BadInput

LANES, SLOTS = 8, 1024
FILLING = 8  # rows: a multiple of it, of a width that is a multiple of it, fills whole vectors of up to 64 numbers
ASKED = 8  # passes in which rows have the same bits before lanes are believed
VARYING = ("dynamic", "longrope")  # rotary embeddings whose angles depend on the longest row of a pass


class BitwiseTarget:
    """Any causal LM of transformers whose layers are full or sliding attention, one request of several.

    Requests whose targets share a model may share passes (`in_lanes`), and their bits do not change by it.
    slots  how many tokens a request may have, drafts included; a part of what bits depend on
    Raises ValueError for layers of another kind, BadInput for a rotary embedding whose angles depend on other rows.
    """

    def __init__(self, model: PreTrainedModel, slots: int = SLOTS, lanes: int | None = None) -> None:
        config = model.config.get_text_config()
        self.sight = Sight.of(config)
        refuse_varying(config)
        self.model, self.dtype, self.device = model, model.dtype, model.device
        self.vocabulary, self.width, self.layers = sizes(model)
        self.lends, self.slots = Lent(model), slots
        self.reset()
        if getattr(model, "_can_set_experts_implementation", bool)():  # False where transformers has no such thing
            model.set_experts_implementation("batched_mm")  # as many rows for each expert, whatever they choose
        self.lanes = lanes_that_hold(self, LANES) if lanes is None else lanes

    def reset(self) -> None:
        self.past: Cache = ()  # keys and values [n, G, d] of every row, kept ones first
        self.kept = 0
        self.places = torch.empty(0, dtype=torch.long, device=self.device)  # positions of the tentative rows

    @property
    def cached(self) -> int:
        return self.kept + len(self.places)

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        return in_lanes([(self, rows)], taps)[0]

    def paths(self, rows: Rows) -> Tensor:
        """int64 [n, slots]: which cached row, or row of these behind them, stands at each position of a row's path.

        -1 where none does. Raises ValueError where two rows of a path claim one position, or one is out of the buffer.
        """
        new, old, device = len(rows.tokens), len(self.places), self.device
        visible = causal(new, old, device) if rows.visible is None else rows.visible
        places = torch.cat((self.places, rows.positions))
        if len(places) and int(places.max()) >= self.slots:
            raise BadInput(f"position {int(places.max())} is outside the {self.slots} slots of a bitwise target")
        slot = torch.where(visible, places, self.slots)  # what a row does not see goes to a spare slot
        counts = torch.zeros(new, self.slots + 1, dtype=torch.long, device=device).scatter_add(1, slot, visible.long())
        counts[:, : self.kept] += 1
        if bool((counts[:, :-1] > 1).any()):
            raise ValueError("two rows of one path stand at one position")
        table = torch.full((new, self.slots + 1), -1, dtype=torch.long, device=device)
        table = table.scatter(1, slot, torch.arange(self.kept, self.kept + old + new, device=device).expand(new, -1))
        table[:, : self.kept] = torch.arange(self.kept, device=device)
        return table[:, :-1]

    def keep(self, rows: Sequence[int]) -> None:
        index = torch.tensor([*range(self.kept), *(self.kept + row for row in rows)], device=self.device)
        self.past = keep(self.past, index)
        self.kept += len(rows)
        self.places = self.places[:0]

    def kv(self, layer: int) -> tuple[Tensor, Tensor]:
        k, v = self.past[layer]
        return k[: self.kept].transpose(0, 1), v[: self.kept].transpose(0, 1)

    def state(self) -> State:
        return {"kept": self.kept, "tentative": self.places, **state(self.past)}

    def restore(self, state: State) -> None:
        self.kept, self.places, self.past = state["kept"], state["tentative"], restore(state)


def in_lanes(asks: Sequence[tuple[BitwiseTarget, Rows]], taps: Sequence[int] = ()) -> list[Pass]:
    """The rows of all requests, one after the other, in as many passes of `lanes` rows as that takes."""
    some = asks[0][0]
    if len({(target.lanes, target.slots) for target, _ in asks}) != 1:
        raise ValueError("requests that share passes have as many lanes and slots as each other")
    olds, counts = [target.cached for target, _ in asks], [len(rows.tokens) for _, rows in asks]
    starts = [1 + sum(olds[:i]) for i in range(len(asks))]  # in the pool: zeros, cached rows of all, new rows of all
    firsts = [1 + sum(olds) + sum(counts[:i]) for i in range(len(asks))]
    numbers = [
        torch.where(path < old, path + start, path - old + first).where(path >= 0, 0)
        for path, old, start, first in zip((t.paths(rows) for t, rows in asks), olds, starts, firsts, strict=True)
    ]
    pool = _pooled([target.past for target, _ in asks])
    tokens, positions, table = (
        torch.cat(x) for x in ([r.tokens for _, r in asks], [r.positions for _, r in asks], numbers)
    )
    outs = []
    for at in range(0, len(tokens), some.lanes):
        here = slice(at, at + some.lanes)
        out, pool = one_pass(some, pool, tokens[here], positions[here], table[here])
        outs.append(out)
    logits, *hidden = (torch.cat(x) for x in zip(*outs, strict=True))
    passes = []
    for (target, rows), first, count in zip(asks, firsts, counts, strict=True):
        new, here = keep(pool, range(first, first + count)), slice(first - firsts[0], first - firsts[0] + count)
        target.past = tuple(append(*pairs) for pairs in zip(target.past, new, strict=True)) if target.past else new
        target.places = torch.cat((target.places, rows.positions))
        passes.append(Pass(rows.tokens, rows.positions, logits[here], {j: hidden[j][here] for j in taps}))
    return passes


def one_pass(
    target: BitwiseTarget, pool: Cache, tokens: Tensor, positions: Tensor, numbers: Tensor
) -> tuple[tuple[Tensor, ...], Cache]:
    """The pass, whose shape is always the same: n rows in the first of its lanes, nothing in the others.

    tokens, positions  int64 [n], n at most `lanes`
    numbers            int64 [n, slots]: which row of the pool, or of these behind it, stands at a slot; 0 for none
    Returns logits [n, V] with hs[0..L], each [n, H], and the pool with the n rows at its end.
    """
    count, idle = len(tokens), target.lanes - len(tokens)
    tokens, positions = pad(tokens, (0, idle)), pad(positions, (0, idle))
    numbers = pad(numbers, (0, 0, 0, idle))
    sees = numbers > 0
    sees[count:, 0] = True  # a lane without a row sees a key of zeros
    distance = positions[:, None] - torch.arange(target.slots, device=target.device)
    buffers = Buffers(pool, numbers, count)
    masks = target.sight.masks(sees[:, None], distance[:, None], target.dtype)
    out = called(target.model, tokens[:, None], positions[:, None], buffers, masks)
    return tuple(x[:count, 0] for x in (widened(out.logits), *out.hidden_states)), tuple(buffers.grown)


class Buffers(DynamicCache):
    """What a pass attends to: for every lane its own buffer [G, slots, d], gathered from the rows of all requests.

    pool     keys and values [m, G, d] of each layer, of which row 0 is zeros; () before there are any
    numbers  int64 [lanes, slots]
    count    how many lanes have a row; these are behind the pool's rows in `grown`
    """

    def __init__(self, pool: Cache, numbers: Tensor, count: int) -> None:
        super().__init__()
        self.pool, self.numbers, self.count = pool, numbers, count
        self.grown: list[Pair] = []

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> Pair:
        """Layers that have keys of their own come in order, with those of this pass: [lanes, G, 1, d]."""
        new = key_states[:, :, 0], value_states[:, :, 0]
        nothing = torch.zeros_like(new[0][:1]), torch.zeros_like(new[1][:1])
        k, v = append(self.pool[len(self.grown)] if self.pool else nothing, new)
        self.grown.append((k[: len(k) - len(self.numbers) + self.count], v[: len(v) - len(self.numbers) + self.count]))
        return self._gathered(k), self._gathered(v)

    def _gathered(self, rows: Tensor) -> Tensor:
        return rows[self.numbers].transpose(1, 2).contiguous()


def _pooled(pasts: Sequence[Cache]) -> Cache:
    """A row of zeros, and the rows of every request behind each other; () where there are none yet."""
    known = [past for past in pasts if past]
    if not known:
        return ()
    zeros = tuple((torch.zeros_like(k[:1]), torch.zeros_like(v[:1])) for k, v in known[0])
    return reduce(lambda some, more: tuple(append(*pairs) for pairs in zip(some, more, strict=True)), known, zeros)


def lanes_that_hold(target: BitwiseTarget, lanes: int) -> int:
    """`lanes`, if a row of this model has the same bits in every lane, whatever the other lanes hold; otherwise 1.

    Rows that see four others are run again and again, in lanes and beside rows that are drawn. Lanes that do not fill
    whole vectors are refused unasked: the sigmoid of what is left over is computed by other code, whose bits are other
    in one row of forty of a narrow model, so that no few rows would show it.
    """
    if lanes % FILLING:
        return 1
    target.lanes, device, source = lanes, target.device, torch.Generator().manual_seed(0)
    lane = torch.arange(lanes, device=device)
    tokens = torch.randint(target.vocabulary, (2 * lanes,), generator=source).to(device)
    seen = torch.randint(1, lanes + 1, (2 * lanes, 4), generator=source).to(device)
    alone = torch.zeros(lanes, target.slots, dtype=torch.long, device=device)
    alone[:, 0] = 1 + lane
    _, pool = one_pass(target, (), lane % target.vocabulary, lane * 0, alone)
    found: dict[int, Tensor] = {}
    for _ in range(ASKED):
        rows = torch.randperm(2 * lanes, generator=source)[:lanes]
        numbers = pad(seen[rows], (0, target.slots - 4))
        numbers[:, 4] = 1 + lanes + lane
        out, _ = one_pass(target, pool, tokens[rows], lane * 0 + 4, numbers)
        for row, bits in zip(rows.tolist(), torch.cat(out, -1), strict=True):
            if not torch.equal(found.setdefault(row, bits), bits):
                return 1
    return lanes


def refuse_varying(config: Any) -> None:
    """Raise BadInput for rotary embeddings that look at the longest row of a pass."""
    said = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    each = [said, *(x for x in said.values() if isinstance(x, dict))]
    for kind in (one.get("rope_type") or one.get("type") for one in each):
        if kind in VARYING:
            raise BadInput(
                f"{config.model_type}: angles of rope type {kind!r} depend on other rows of a pass: not bitwise"
            )
