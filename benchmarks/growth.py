"""How cost grows with V, gamma, batch, tree and draws: processor time over that of the smallest size of its series.

    python -m benchmarks.growth [--out benchmarks/results/growth.json]

All sizes of a series take turns, and a ratio is the median over the turns, with its smallest and largest. The ratio
rule is the compiled one that the decoder takes, where there is one; a tree is complete and binary and its candidates
are points; draws are calls of the campaign of `audit kernel` on a simulated correct subject, evidence included, which
take one turn each.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.turns import in_turns, keep, spread
from refengine.engine.block import Block
from refengine.engine.coins import Philox
from refengine.engine.kernels import compiled, kernels
from refengine.engine.rules.leviathan import leviathan
from refengine.engine.rules.point_mass import point_mass
from refengine.selfcheck.instrument.simulated import Audits

VOCABULARIES, V = (2_000, 8_000, 32_000, 128_000), 32_000
GAMMAS, GAMMA = (1, 2, 4, 8, 16), 4
BATCHES, BATCH = (1, 4, 16, 64, 128), 8
NODES, TREE_V = (6, 14, 30, 62, 126), 8_000
DRAWS = (1_000, 4_000, 16_000)


def rows(lanes: int, places: int, vocabulary: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(lanes, places, vocabulary, generator=generator).mul_(2).softmax(-1)


def chain(lanes: int, gamma: int, vocabulary: int) -> Callable[[], object]:
    """The ratio rule on drafts of which about four of five are kept."""
    p = rows(lanes, gamma + 1, vocabulary)
    q = (p[:, :-1] * (0.5 * rows(lanes, gamma, vocabulary) * vocabulary).clamp(0.5, 2)).contiguous()
    q /= q.sum(-1, keepdim=True)
    tokens = torch.multinomial(q.flatten(0, 1), 1).view(lanes, gamma)
    block = Block(tokens, torch.arange(-1, gamma - 1).expand(lanes, gamma).contiguous(), q)
    rule = leviathan if kernels("cpu") is None else compiled(leviathan)
    return partial(rule, p, block, Philox(0, torch.arange(lanes)))


def tree(nodes: int) -> Callable[[], object]:
    """The rule for points on a complete binary tree whose candidates are the likeliest two after each node."""
    p = rows(1, nodes + 1, TREE_V)
    parents = torch.tensor([[(node - 2) // 2 if node > 1 else -1 for node in range(nodes)]])
    tokens = torch.stack([p[0, parents[0, node] + 1].topk(2).indices[node % 2] for node in range(nodes)])[None]
    return partial(point_mass, p, Block(tokens, parents, None), Philox(0, torch.tensor([0])))


def audit(audits: Audits, draws: int) -> Callable[[], object]:
    laws = {name: item.p for name, item in audits.told.items()}
    return lambda: audits.run(laws, 0, draws)


def series() -> dict[str, dict[int, Callable[[], object]]]:
    audits = Audits()
    return {
        "V": {v: chain(BATCH, GAMMA, v) for v in VOCABULARIES},
        "gamma": {gamma: chain(BATCH, gamma, V) for gamma in GAMMAS},
        "batch": {lanes: chain(lanes, GAMMA, V) for lanes in BATCHES},
        "tree": {nodes: tree(nodes) for nodes in NODES},
        "draws": {draws: audit(audits, draws) for draws in DRAWS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found: list[dict[str, Any]] = []
    for name, calls in series().items():
        seconds = in_turns(calls, turns=1 if name == "draws" else 5)
        first = next(iter(calls))
        for size in calls:
            ratios = [a / b for a, b in zip(seconds[size], seconds[first], strict=True)]
            found.append({"series": name, "size": size, "microseconds": round(1e6 * min(seconds[size]), 1)})
            found[-1] |= {key: round(value, 3) for key, value in spread(ratios).items()}
            print(json.dumps(found[-1]), flush=True)
        keep(given.out, {"growth": found})


if __name__ == "__main__":
    main()
