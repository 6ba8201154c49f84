"""A separate draft model against transformers' assisted generation: its logits, its drafts, and what is accepted."""

import json
from functools import cache
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target, plain
from refengine.decoder.drafters.ar import AR
from refengine.decoder.loop import Session, Stop, begin, nodes
from refengine.decoder.protocols import Target, Tokens, Turn
from refengine.engine.policy import greedy, pipeline
from refengine.engine.rules.leviathan import leviathan
from refengine.source_tree import GOLDEN

pytestmark = [pytest.mark.peer("ar")]

GOLDEN = GOLDEN / "hf_assisted_A"
LOGITS = 1e-5  # of a logit standard deviation of at least 1


@cache
def recording() -> tuple[dict[str, Tensor], Target, AR]:
    target = load_target(GOLDEN / "target", torch.float32)
    gamma = json.loads((GOLDEN / "golden.json").read_text())["config"]["n"]
    drafter = load_drafter(GOLDEN / "drafter", target, gamma=gamma)
    assert isinstance(drafter, AR)
    return load_file(GOLDEN / "golden.safetensors"), target, drafter


def drafted(ids: Tokens) -> tuple[Tokens, Tensor]:
    """What is drafted greedily after `ids`, and the logits it comes from."""
    _, target, drafter = recording()
    logits: list[Tensor] = []

    def policy(rows: Tensor, prompt: Any, out: Any) -> Tensor:
        logits.append(rows)
        return pipeline(greedy())(rows, prompt, out)

    drafter.start(ids[:-1], begin(target, ids[:-1], drafter.taps))
    block = drafter.propose(Turn(ids, ids, policy, COINS))
    return nodes(block)[0], torch.stack(logits)


def test_logits_of_both_models() -> None:
    """Kills a draft model that is read wrongly: logits are off long before a greedy draft is."""
    golden, target, _ = recording()
    ids = tuple(golden["ids"][0].tolist())
    assert float(golden["draft.logits"].std()) >= 1
    ours, theirs = begin(target, ids, ()).logits, golden["target.logits"][0]
    assert float((ours - theirs).abs().max()) < LOGITS * float(theirs.std())
    _, logits = drafted(ids)
    assert float((logits[0] - golden["draft.logits"][0, -1]).abs().max()) < LOGITS * float(logits[0].std())


@pytest.mark.parametrize("trace", range(4))
def test_every_round_of_assisted_generation(trace: int) -> None:
    """Kills a draft that starts one token early or late, and a draft model that keeps what was rejected."""
    golden = recording()[0]
    ids = tuple(golden[f"trace.{trace}.ids"][0].tolist())
    columns = ("prefix_len", "drafts", "accepted")
    rounds = zip(*(golden[f"trace.{trace}.{name}"].tolist() for name in columns), strict=True)
    wanted = iter(golden[f"trace.{trace}.draft_logits"])
    for length, proposed, accepted in rounds:
        theirs = tuple(token for token in proposed if token >= 0)
        if not theirs:
            continue
        ours, logits = drafted(ids[:length])
        assert ours[: len(theirs)] == theirs
        assert float((logits[: len(theirs)] - next(wanted)[: len(theirs)]).abs().max()) < LOGITS * float(logits.std())
        assert theirs[:accepted] == ids[length : length + accepted]


@pytest.mark.parametrize("trace", range(4))
def test_the_output_of_assisted_generation(trace: int) -> None:
    """Kills a loop that emits anything but the target's greedy tokens, or goes on after the stop token."""
    golden, target, drafter = recording()
    prompt = tuple(golden[f"trace.{trace}.prompt"][0].tolist())
    ids = tuple(golden[f"trace.{trace}.ids"][0].tolist())
    stop = Stop(frozenset({int(golden[f"trace.{trace}.eos"])} - {-1}))
    session = Session(target, drafter, leviathan, pipeline(greedy()), 28, stop)
    session.begin(prompt, COINS)
    while not session.done:
        session.play(COINS)
    assert prompt + session.out == ids
    assert session.out == plain(target, pipeline(greedy()), prompt, 28, COINS, stop)
