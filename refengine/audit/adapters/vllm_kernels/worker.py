"""vLLM's verification kernels over rows of ours, by Triton's interpreter. Runs under vLLM's Python: `speak.py` says
what is here.

Executed are the files of KEPT, as they are installed. Ours are the bonus token of the first runner, which its sampler
draws elsewhere, `log1p`, which is a GPU's library, and the copy of a tensor onto the device.
"""

import importlib
import importlib.util
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

spec: Any = importlib.util.spec_from_file_location("refengine_alone", Path(__file__).parents[1] / "alone.py")
alone = importlib.util.module_from_spec(spec)
spec.loader.exec_module(alone)

import torch  # noqa: E402 (alone.py has set what its import reads)
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from torch import Tensor  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402

FIRST = "vllm.v1.sample.rejection_sampler"
SECOND = "vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils"
GUMBEL = "vllm.v1.worker.gpu.sample.gumbel"
GRAMMAR = "vllm.v1.worker.gpu.structured_outputs"
WARM_UP = {f"vllm.model_executor.warmup.{name}" for name in ("jit_warmup", "jit_warmup_triton_helper")}
KEPT = {FIRST, SECOND, GUMBEL, GRAMMAR, *WARM_UP}
GIVEN = {
    "vllm.logger": {"init_logger": logging.getLogger},
    "vllm.triton_utils": {
        "triton": triton,
        "tl": tl,
        "tldevice": alone.with_log1p(libdevice),
        "HAS_TRITON": True,
    },
    "vllm.utils.torch_utils": {"PIN_MEMORY": False, "async_tensor_h2d": lambda data, device: torch.as_tensor(data)},
}
SEEDS = 2**31
alone.with_todays_numpy()
alone.without_the_rest("vllm", KEPT, GIVEN)


def first_runner(
    rows: bool, p: Tensor, q: Tensor, draft: Tensor, seed: int, counts: list[int], greedy: list[bool]
) -> Any:
    """rejection_sample of the first runner; every other request has a generator of its own."""
    module, lanes = importlib.import_module(FIRST), range(len(counts))
    torch.manual_seed(seed)
    bonus = [int(p[b, n].argmax() if greedy[b] else torch.multinomial(p[b, n], 1)) for b, n in enumerate(counts)]
    metadata = SimpleNamespace(
        all_greedy=all(greedy),
        all_random=not any(greedy),
        temperature=torch.tensor([0.0 if g else 1.0 for g in greedy]),
        generators={b: torch.Generator().manual_seed((seed + b) % SEEDS) for b in lanes if b % 2},
    )
    out = module.rejection_sample(
        _packed(draft, counts).int(),
        counts,
        max(counts),
        torch.tensor(counts).cumsum(0).int(),
        _packed(q, counts) if rows else None,
        _packed(p, counts).log(),
        torch.tensor(bonus).int()[:, None],
        metadata,
    )
    return [[token for token in row if token >= 0] for row in out.tolist()]


def _packed(rows: Tensor, counts: list[int]) -> Tensor:
    return torch.cat([rows[b, :n] for b, n in enumerate(counts)]).contiguous()


class Requests:
    """Requests as the second runner holds them: rows one after another, state at other places than in the batch."""

    def __init__(self, counts: list[int], greedy: list[bool], seeds: list[int], positions: list[int]) -> None:
        lanes, self.counts = len(counts), counts
        self.slots = list(range(lanes, 0, -1))  # slot 0 belongs to no one
        self.cu = torch.tensor([0, *(n + 1 for n in counts)]).cumsum(0).int()
        self.mapping = torch.tensor(self.slots).int()
        self.row_slots = torch.cat([self.mapping[b : b + 1].repeat(n + 1) for b, n in enumerate(counts)])
        self.local = torch.cat([torch.arange(n + 1) for n in counts]).int()
        self.positions = torch.cat([torch.arange(n + 1) + at for n, at in zip(counts, positions, strict=True)])
        self.temperature = torch.full((lanes + 1,), 3.0)
        self.seeds = torch.full((lanes + 1,), 7)
        for b, slot in enumerate(self.slots):
            self.temperature[slot] = 0.0 if greedy[b] else (0.5 if b % 2 else 1.0)  # powers of two divide exactly
            self.seeds[slot] = seeds[b]

    def verified(self, target: Tensor, rows: Tensor | None, sampled: Tensor, block: bool) -> list[list[int]]:
        """target: log p after temperature; rows: the drafter's logits before it, by slot; sampled: ids by row."""
        out, number = importlib.import_module(SECOND).rejection_sample(
            target,
            rows,
            sampled,
            self.cu,
            self.positions,
            self.mapping,
            self.row_slots,
            self.local,
            self.temperature,
            self.seeds,
            max(self.counts),
            use_block_verification=block,
        )
        return [row[:n] for row, n in zip(out.tolist(), number.tolist(), strict=True)]


def second_runner(
    rows: bool,
    block: bool,
    grammar: bool,
    p: Tensor,
    q: Tensor,
    draft: Tensor,
    seed: int,
    counts: list[int],
    greedy: list[bool],
) -> Any:
    """rejection_sample of the second runner. grammar: what has p = 0 is forbidden, and such drafts are marked as the
    runner marks them."""
    lanes = len(counts)
    generator = torch.Generator().manual_seed(seed)
    seeds, positions = (torch.randint(high, (lanes,), generator=generator).tolist() for high in (SEEDS, 1 << 16))
    requests = Requests(counts, greedy, seeds, positions)
    target = torch.cat([p[b, : n + 1] for b, n in enumerate(counts)]).log()
    sampled = torch.cat([torch.cat([torch.zeros(1, dtype=torch.long), draft[b, :n]]) for b, n in enumerate(counts)])
    if grammar:
        sampled = sampled.masked_fill(_forbidden(requests, p, draft), -1)
    held = None
    if rows:
        held = torch.zeros(lanes + 1, max(counts), p.shape[-1])
        for b, slot in enumerate(requests.slots):
            held[slot, : counts[b]] = q[b, : counts[b]].log() * (requests.temperature[slot] or 1.0)
    return requests.verified(target, held, sampled.int(), block)


def _forbidden(requests: Requests, p: Tensor, draft: Tensor) -> Tensor:
    """The rows whose drafts are invalid by `grammar_invalid_drafts`, told as its scheduler does how many are valid."""
    allowed = []
    for b, n in enumerate(requests.counts):
        invalid = [i for i in range(n) if p[b, i, draft[b, i]] == 0]
        allowed.append(invalid[0] if invalid else n)
    names = [str(b) for b in range(len(requests.counts))]
    batch = SimpleNamespace(
        req_ids=names,
        num_reqs=len(names),
        num_draft_tokens=sum(requests.counts),
        num_draft_tokens_per_req=None,
        expanded_local_pos=requests.local,
        cu_num_logits=requests.cu,
    )
    rows = importlib.import_module(GRAMMAR).grammar_invalid_drafts(batch, names, allowed)
    return torch.zeros(len(requests.local), dtype=torch.bool) if rows is None else rows


class OwnDrafts:
    """A request of the second runner from its first round on: it drafts by gumbel_sample too, with one seed, and its
    position advances by what was emitted, so that noise which comes back shows."""

    def __init__(self, block: bool) -> None:
        self.block, self.position = block, 0

    def __call__(self, ask: Callable[[str, list[int]], Tensor], prefix: list[int], gamma: int, seed: int) -> list[int]:
        request = Requests([gamma], [False], [1], [self.position])
        (slot,), drafts, held = request.slots, [0], torch.zeros(2, gamma, 1)
        for step in range(gamma):
            logits = ask("draft", prefix + drafts[1:]).log()[None]
            held = held.repeat(1, 1, logits.shape[1]) if held.shape[2] == 1 else held
            token = importlib.import_module(GUMBEL).gumbel_sample(
                logits,
                torch.tensor([slot]).int(),
                request.temperature,
                request.seeds,
                torch.tensor([self.position + step]),
                apply_temperature=True,
                is_drafting=True,
                logits_cache=held,
                logits_cache_col=torch.tensor(step),
            )
            drafts.append(int(token))
        target = torch.stack([ask("target", prefix + drafts[1 : i + 1]) for i in range(gamma + 1)]).log()
        (tokens,) = request.verified(target, held, torch.tensor(drafts).int(), self.block)
        self.position += len(tokens)
        return tokens


VERIFY = {
    "first runner, draft rows": partial(first_runner, True),
    "first runner, no rows": partial(first_runner, False),
    "second runner, draft rows": partial(second_runner, True, False, False),
    "second runner, no rows": partial(second_runner, False, False, False),
    "second runner, grammar": partial(second_runner, True, False, True),
    "second runner, block, draft rows": partial(second_runner, True, True, False),
    "second runner, block, no rows": partial(second_runner, False, True, False),
}
ROUND = {"second runner, own drafts": False, "second runner, block, own drafts": True}


def verifier(way: str) -> Any:
    """The function behind a way. Raises ImportError where this version has none."""
    needed = {"first": [FIRST], "second": [SECOND, GUMBEL]}[way.split()[0]] + [GRAMMAR] * way.endswith("grammar")
    for name in needed:
        importlib.import_module(name)
    return VERIFY[way] if way in VERIFY else OwnDrafts(ROUND[way])
