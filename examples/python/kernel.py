"""A batched rejection sampler in the style of vLLM's v1 engine, and the few lines by which it is audited.

    refengine audit kernel kernel:verify_batch --signature verify_batch --path examples/python
    refengine audit kernel kernel:mistaken --signature verify_batch --path examples/python

The first is consistent. The second has a mistake that nobody sees in the text: a refused draft is corrected as an
n-gram drafter's would be.

An engine packs the drafts of all requests one after another: request b drafted `draft[cu[b - 1]:cu[b]]` (from 0 where b
is 0), and row i of `q` and `p` judges `draft[i]`. To audit an engine of your own, replace `rejection_sample` by its
kernel and keep the adapter.
"""

import torch
from torch import Tensor

PLACEHOLDER = -1  # behind the last token that a request emits


def rejection_sample(
    draft: Tensor, cu: Tensor, q: Tensor, p: Tensor, bonus: Tensor, uniform: Tensor, recovered: Tensor
) -> Tensor:
    """What every request emits: int64 [B, longest draft + 1], padded with PLACEHOLDER.

    draft, uniform, recovered  [N]     drafted ids; one uniform each; what is emitted instead where one is refused
    cu                         [B]     drafts of the first requests together
    q, p                       [N, V]  rows of the drafter and of the target
    bonus                      [B]     what follows a draft that is accepted as a whole
    """
    ends = cu.tolist()
    starts = [0, *ends[:-1]]
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    place = torch.arange(len(draft))
    accepted = uniform * q[place, draft] < p[place, draft]
    out = torch.full((len(ends), longest + 1), PLACEHOLDER)
    for b, (start, end) in enumerate(zip(starts, ends, strict=True)):
        kept = int(accepted[start:end].long().cumprod(0).sum())
        out[b, :kept] = draft[start : start + kept]
        out[b, kept] = bonus[b] if start + kept == end else recovered[start + kept]
    return out


def residual(draft: Tensor, q: Tensor, p: Tensor) -> Tensor:
    """The law after a refused draft, up to its sum (Leviathan 2023, Alg. 1): [N, V]."""
    return (p - q).clamp(min=0)


def without_draft(draft: Tensor, q: Tensor, p: Tensor) -> Tensor:
    """Right where a draft was not drawn (n-gram); wrong beside the ratio test of one that was."""
    return p.scatter(-1, draft[:, None], 0.0)


def race(weights: Tensor, noise: Tensor) -> Tensor:
    """Of each row of weights [N, V] a token, as likely as it is heavy, by exponential noise [N, V]: no sum, no sort."""
    return torch.where(weights > 0, weights / noise, -1.0).argmax(-1)


def sampled(p: Tensor, q: Tensor, draft: Tensor, generator: torch.Generator, correction=residual) -> Tensor:
    """The adapter: rows as the audit hands them over, [B, gamma + 1, V] and so on, packed as the engine has them."""
    lanes, gamma, vocabulary = q.shape
    noise = torch.empty(2, lanes, vocabulary, dtype=torch.float64).exponential_(generator=generator)
    flat, rows = draft.reshape(-1), (q.reshape(-1, vocabulary).double(), p[:, :gamma].reshape(-1, vocabulary).double())
    # One row of noise serves all positions of a request, of which one token at most is recovered. The bonus has its
    # own: one for both would be right too, but the audit follows a race alone to its exact law, and samples the rest.
    recovered = race(correction(flat, *rows), noise[0].repeat_interleave(gamma, 0))
    bonus = race(p[:, gamma].double(), noise[1])
    uniform = torch.rand(lanes * gamma, dtype=torch.float64, generator=generator)
    return rejection_sample(flat, torch.arange(1, lanes + 1) * gamma, *rows, bonus, uniform, recovered)


def verify_batch(p: Tensor, q: Tensor, draft: Tensor, generator: torch.Generator) -> Tensor:
    return sampled(p, q, draft, generator)


def mistaken(p: Tensor, q: Tensor, draft: Tensor, generator: torch.Generator) -> Tensor:
    return sampled(p, q, draft, generator, without_draft)
