"""The rounds of a decode, written down as `refengine audit trace` reads them.

    refengine fixtures export pair
    python examples/python/trace.py pair right.safetensors
    refengine audit trace right.safetensors
    python examples/python/trace.py pair wrong.safetensors --mistake
    refengine audit trace wrong.safetensors

The first record is consistent. With --mistake verification divides by the drafter's row at twice the temperature that
the drafts were drawn at, as where an engine tempers the drafter's logits in one place and not in the other.

An engine of your own needs `written` alone: rows as probabilities after temperature and filters, in float32, for each
round the drafts and what came out.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from refengine.decoder import generate, load_drafter, load_target
from refengine.engine.block import Block, Round
from refengine.engine.coins import Coins, Philox
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.leviathan import leviathan

GAMMA, TOKENS, TEMPERATURE = 3, 48, 0.7
PROMPTS = ((7, 9, 11), (20, 21, 22, 23), (40, 5, 5, 40))

OneRound = tuple[Tensor, Tensor, list[int], list[int]]  # p [n + 1, V], q [n, V], n drafts, 1 .. n + 1 emitted tokens


def mistaken(p: Tensor, block: Block, coins: Coins) -> Round:
    """Verification against other rows than the drafts were drawn from; drawn and recorded they are rightly."""
    flat = block.q.sqrt()
    return leviathan(p, Block(block.tokens, block.parents, flat / flat.sum(-1, keepdim=True)), coins)


def rounds(pair: Path, rule, number: int) -> Iterator[OneRound]:
    """The first rounds of as many texts as are needed."""
    target = load_target(pair / "target", torch.float32)
    drafter = load_drafter(pair / "drafter", target, gamma=GAMMA)
    policy, seed = pipeline(temperature(TEMPERATURE)), 0
    while number:
        prompt, coins = PROMPTS[seed % len(PROMPTS)], Philox(seed, torch.tensor([0]))
        played = generate(target, drafter, rule, policy, prompt, TOKENS, coins).rounds[:number]
        for one in played:
            yield one.p, one.block.q[0], one.block.tokens[0].tolist(), list(one.verdict.tokens)
        seed, number = seed + 1, number - len(played)


def written(file: Path, record: list[OneRound], gamma: int) -> None:
    """The file that `refengine audit trace` reads: tokens padded with -1, rows behind a shorter draft left at 0."""
    n, vocabulary = len(record), record[0][0].shape[-1]
    p, q = torch.zeros(n, gamma + 1, vocabulary), torch.zeros(n, gamma, vocabulary)
    draft, emitted = torch.full((n, gamma), -1), torch.full((n, gamma + 1), -1)
    for i, (rows, drawn, drafts, tokens) in enumerate(record):
        p[i, : len(rows)], q[i, : len(drawn)] = rows, drawn
        draft[i, : len(drafts)], emitted[i, : len(tokens)] = torch.tensor(drafts), torch.tensor(tokens)
    save_file({"p": p, "q": q, "draft": draft, "emitted": emitted}, file)


def main() -> None:
    asked = argparse.ArgumentParser(description="Write the rounds of a decode for `refengine audit trace`.")
    asked.add_argument("pair", type=Path, help="a folder of `refengine fixtures export`")
    asked.add_argument("file", type=Path, help="the record, a safetensors file")
    asked.add_argument("--rounds", type=int, default=600)
    asked.add_argument("--mistake", action="store_true", help="verify against other rows than the drafts' own")
    given = asked.parse_args()
    rule = mistaken if given.mistake else leviathan
    written(given.file, list(rounds(given.pair, rule, given.rounds)), GAMMA)


if __name__ == "__main__":
    main()
