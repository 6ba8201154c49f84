"""Rows of several requests in one pass, each request with its own length and its own number of rows.

    past of request 0 | 0 0 0 | its rows | 0 0
    past of request 1         | its rows

What is added to make the lengths equal is seen by nobody. That leaves rounding: a pass of another shape runs other
kernels, so rows of the padded pass agree with rows that are run alone only within it. `bitwise.py` has none of that.
"""

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import pad

from refengine.decoder.networks.cache import Cache
from refengine.decoder.protocols import Pass, Rows, Target
from refengine.decoder.targets.base import called, widened
from refengine.decoder.targets.bitwise import BitwiseTarget, in_lanes
from refengine.decoder.targets.in_place import InPlaceCache
from refengine.decoder.targets.transformers import Outputs, TransformersTarget

Ask: TypeAlias = tuple[Target, Rows]  # a request's own target, which shares its model with the others', and its rows


def run_together(asks: Sequence[Ask], taps: Sequence[int] = ()) -> list[Pass]:
    """What `target.run(rows, taps)` does, for all of them in one pass where the targets share a model.

    Targets that know no common pass (recurrent layers, toys) run one after the other.
    """
    for kind, run in ((BitwiseTarget, in_lanes), (TransformersTarget, padded)):
        mine = [(target, rows) for target, rows in asks if isinstance(target, kind)]
        if len(asks) == len(mine) > 0 and len({id(target.model) for target, _ in mine}) == 1:
            return run(mine, taps)  # type: ignore[arg-type]
    return [target.run(rows, taps) for target, rows in asks]


def padded(asks: Sequence[tuple[TransformersTarget, Rows]], taps: Sequence[int] = ()) -> list[Pass]:
    """One pass over B requests: rows [B, n] of the longest, after caches of the longest."""
    some = asks[0][0]
    new = max(len(rows.tokens) for _, rows in asks)
    old = max(target.kept + len(target.tentative) for target, _ in asks)
    tokens = torch.stack([_longer(rows.tokens, new) for _, rows in asks])
    positions = torch.stack([_longer(rows.positions, new) for _, rows in asks])
    seen = [target.seen(rows) for target, rows in asks]
    sees = torch.stack([_spread(sees, old, new) for sees, _ in seen])
    far = [_spread(distance, old, new) for _, distance in seen if distance is not None]
    sees = sees | (torch.arange(old + new, device=some.device) == old + torch.arange(new, device=some.device)[:, None])
    cache = InPlaceCache()
    cache.append(_beside([target.past for target, _ in asks], old))
    masks = some.sight.masks(sees, torch.stack(far) if far else None, some.dtype)
    out = called(some.model, tokens, positions, cache, masks, bool(taps))
    passes = []
    for lane, (target, rows) in enumerate(asks):
        count = len(rows.tokens)
        mine = slice(lane, lane + 1), slice(None), slice(old, old + count)
        target.cache.append(tuple((k[mine], v[mine]) for k, v in cache.pairs()))
        hidden = {j: out.hidden_states[j][lane, :count] for j in taps}
        passes.append(target.ran(rows, Outputs(widened(out.logits[lane, :count]), hidden)))
    return passes


def _longer(x: Tensor, length: int) -> Tensor:
    return pad(x, (0, length - len(x)))


def _spread(x: Tensor, old: int, new: int) -> Tensor:
    """[n, m + n] as [new, old + new]: what stands after the request's m rows moves on to column `old`."""
    rows, past = x.shape[0], x.shape[1] - x.shape[0]
    left, right = x[:, :past], x[:, past:]
    return torch.cat((pad(left, (0, old - past, 0, new - rows)), pad(right, (0, new - rows, 0, new - rows))), -1)


def _beside(pasts: Sequence[Cache], old: int) -> Cache:
    """Keys and values [B, G, old, d] of requests that have fewer; of new requests nothing but what is added."""
    known = next((past for past in pasts if past), ())

    def stacked(layer: int, which: int) -> Tensor:
        empty = known[layer][which][:, :, :0]
        each = [past[layer][which] if past else empty for past in pasts]
        return torch.cat([pad(x, (0, 0, 0, old - x.shape[2])) for x in each])

    return tuple((stacked(layer, 0), stacked(layer, 1)) for layer in range(len(known)))
