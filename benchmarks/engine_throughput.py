"""Rows verified per second by the batched ratio rule, beside transformers' own function, in one run.

    python benchmarks/engine_throughput.py [--workers 2] [--seconds 3]

A row is one row of p: a lane with gamma drafts has gamma + 1. Both sides verify the same rows and drafts and draw their
own randomness; transformers' `_speculative_sampling` takes one request at a time, so it is called at its batch of one,
and it is handed logits, which is what it takes. Last line: the exact law of one round at V = 5, gamma = 4.
"""

import argparse
import itertools
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache

import torch
from torch import Tensor
from transformers.generation.utils import _speculative_sampling

from refengine.engine.block import Block
from refengine.engine.coins import Philox
from refengine.engine.rules.leviathan import leviathan
from refengine.exact.drafters import sampled_chain
from refengine.exact.law import losslessness, round_law
from refengine.exact.row import Row, row
from refengine.exact.rules.leviathan import leviathan as exact_leviathan

VOCABULARY, GAMMA = 8, 4
LANES = 1 << 13  # a chunk whose working set stays in a core's cache


def inputs(lanes: int) -> tuple[Tensor, Block]:
    """Random float32 rows, and drafts drawn from q."""
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(lanes, GAMMA + 1, VOCABULARY, generator=generator).softmax(-1)
    q = torch.randn(lanes, GAMMA, VOCABULARY, generator=generator).softmax(-1)
    tokens = torch.multinomial(q.flatten(0, 1), 1, generator=generator).view(lanes, GAMMA)
    return p, Block(tokens, torch.arange(-1, GAMMA - 1).expand(lanes, GAMMA), q)


def rate(verify: Callable[[int], None], rows: int, seconds: float, workers: int = 1) -> float:
    """Rows per second; `verify(k)` is the k-th call and verifies `rows` rows. Workers are threads."""
    verify(0)
    calls = itertools.count(1)
    start = time.perf_counter()

    def work(_: int) -> int:
        done = 0
        while time.perf_counter() - start < seconds:
            verify(next(calls))
            done += 1
        return done

    with ThreadPoolExecutor(workers) as pool:
        done = sum(pool.map(work, range(workers)))
    return done * rows / (time.perf_counter() - start)


def ours(seconds: float, workers: int) -> float:
    p, block = inputs(LANES)
    requests = torch.arange(LANES)

    def verify(call: int) -> None:
        leviathan(p, block, Philox(call, requests))

    return rate(verify, LANES * (GAMMA + 1), seconds, workers)


def theirs(seconds: float) -> float:
    lanes = 512
    p, block = inputs(lanes)
    assert block.q is not None
    logits, draft_logits = p.log(), block.q.log()

    def verify(call: int) -> None:
        b = slice(call % lanes, call % lanes + 1)
        _speculative_sampling(block.tokens[b], draft_logits[b], GAMMA, logits[b], False)

    return rate(verify, GAMMA + 1, seconds)


def exact_round() -> tuple[float, Fraction]:
    """Seconds for the exact law of one round, drafting included, and its distance from the target at gamma = 2."""
    draw = random.Random(0)

    @cache
    def target(prefix: tuple[int, ...]) -> Row:
        return row([draw.randrange(1, 16) for _ in range(5)])

    def draft(prefix: tuple[int, ...]) -> Row:
        return target((-1, *prefix))

    start = time.perf_counter()
    round_law(target, sampled_chain(draft, GAMMA), exact_leviathan, ())
    elapsed = time.perf_counter() - start
    return elapsed, losslessness(target, sampled_chain(draft, 2), exact_leviathan, (), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="threads that verify chunks side by side")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each side is measured")
    options = parser.parse_args()
    torch.set_num_threads(1)  # a chunk is too small to be worth splitting; the workers are the parallelism
    mine, other = ours(options.seconds, options.workers), theirs(options.seconds)
    cores = f"{options.workers} workers on {os.cpu_count()} cores"
    print(f"V = {VOCABULARY}, gamma = {GAMMA}; {cores}; torch {torch.__version__}")
    print(f"refengine leviathan, Philox, {LANES} lanes a call   {mine:14,.0f} rows/s")
    print(f"transformers _speculative_sampling, one lane a call {other:14,.0f} rows/s")
    print(f"ratio {mine / other:,.0f}")
    seconds, distance = exact_round()
    print(
        f"exact law of one round at V = 5, gamma = {GAMMA}: {seconds:.2f} s; TV from the target (gamma = 2): {distance}"
    )


if __name__ == "__main__":
    main()
