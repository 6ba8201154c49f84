"""What the options of `refengine decode` do: those that shape the target's rows, in which order, and all others."""

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from refengine.commands import decode as command
from refengine.commands.decode import decode, policy, stop_tokens
from refengine.commands.decode_request import Request, check
from refengine.decoder import generate, load_drafter, load_target
from refengine.decoder.loop import fitting
from refengine.decoder.protocols import Tokens
from refengine.engine import policy as steps
from refengine.engine.coins import Philox
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

PROMPT, PREFIX = (0, 1), (2, 2, 3)
LOGITS = torch.tensor([2.0, -0.5, 2.6, 1.9, 1.5, -1.0, 1.2, 0.4], dtype=torch.float64)
OPTIONS: dict[str, tuple[float, Callable[[Any], steps.Step]]] = {
    "repetition_penalty": (1.3, steps.repetition_penalty),
    "presence_penalty": (0.4, steps.presence_penalty),
    "frequency_penalty": (0.3, steps.frequency_penalty),
    "temperature": (0.7, steps.temperature),
    "top_k": (6, steps.top_k),
    "top_p": (0.9, steps.top_p),
    "min_p": (0.35, steps.min_p),
}


def asked(**options: Any) -> Request:
    return Request(FIXTURES / "tiny" / "target", FIXTURES / "tiny" / "ar", "1", **options)


def row(chosen: steps.Policy, prompt: Tokens = PROMPT, prefix: Tokens = PREFIX) -> list[float]:
    return chosen(LOGITS, prompt, prefix).tolist()


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_its_step(name: str) -> None:
    """Kills an option that is taken and has no effect, or another option's."""
    value, step = OPTIONS[name]
    alone = row(policy(asked(**{name: value})))
    assert alone == row(steps.pipeline(step(value)))
    assert alone != row(policy(asked()))


ORDER = tuple(OPTIONS)  # as the list of steps states it
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "repetition_penalty": st.floats(0.5, 2.0),
    "presence_penalty": st.floats(-1.0, 1.0),
    "frequency_penalty": st.floats(-1.0, 1.0),
    "temperature": st.floats(0.0, 3.0),
    "top_k": st.integers(1, 8),
    "top_p": st.floats(0.1, 1.0),
    "min_p": st.floats(0.0, 1.0),
}
ASKED = st.fixed_dictionaries({}, optional=VALUES)


def stated(given: dict[str, Any]) -> steps.Policy:
    """The steps of what is given, one after the other as ORDER has them."""
    made = {
        name: steps.greedy() if (name, value) == ("temperature", 0.0) else OPTIONS[name][1](value)
        for name, value in given.items()
    }
    return steps.pipeline(*(made[name] for name in ORDER if name in made))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    options=ASKED,
    logits=st.lists(st.floats(-3.0, 3.0), min_size=8, max_size=8),
    prompt=st.lists(st.integers(0, 7), max_size=3).map(tuple),
    prefix=st.lists(st.integers(0, 7), max_size=4).map(tuple),
)
def test_any_options_are_done_in_the_stated_order(
    options: dict[str, Any], logits: list[float], prompt: Tokens, prefix: Tokens
) -> None:
    """Kills filters before the temperature, penalties after it, top-p of a mass that min-p or top-k has cut or not."""
    asked_for, given_logits = policy(asked(**options)), torch.tensor(logits, dtype=torch.float64)
    assert torch.equal(asked_for(given_logits, prompt, prefix), stated(options)(given_logits, prompt, prefix))


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_p": 1.1},
        {"min_p": float("nan")},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": float("inf")},
        {"presence_penalty": float("nan")},
        {"frequency_penalty": float("-inf")},
    ],
)
def test_a_wrong_number_is_named(wrong: dict[str, float]) -> None:
    """Kills a row of NaN, and an error that does not say which option."""
    ((name, _),) = wrong.items()
    with pytest.raises(BadInput, match=f"^--{name.replace('_', '-')} "):
        check(asked(**wrong))


# --- all others ------------------------------------------------------------------------------------------------------

TARGET = FIXTURES / "tiny" / "target"
NETWORK = load_target(TARGET, torch.float32)


def said_by(request: Request) -> tuple[str, dict[str, Any]]:
    """What the command says, its target being loaded once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(command, "load_target", lambda folder, *_: NETWORK)
        return decode(request)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    drafter=st.sampled_from(
        [("prompt_lookup", 1), ("ngram", 3), ("lookahead", 1), (FIXTURES / "tiny" / "dspark", None)]
    ),
    options=ASKED,
    prompt=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    length=st.integers(1, 12),
    seed=st.integers(0, 2**64 - 1),
)
def test_what_the_command_says_is_what_the_loop_says(
    drafter: tuple[Any, int | None], options: dict[str, Any], prompt: list[int], length: int, seed: int
) -> None:
    """Kills an option that is cut, dropped or another's on its way to the loop, and counts of other rounds than were
    played."""
    path, gamma = drafter
    text, figures = said_by(
        Request(TARGET, path, " ".join(map(str, prompt)), length, gamma=gamma, seed=seed, **options)
    )
    plan, coins = stated({"temperature": 1.0, **options}), Philox(seed, torch.tensor([0]))
    said = generate(NETWORK, load_drafter(path, NETWORK, gamma=gamma), fitting, plan, prompt, length, coins)
    assert text == " ".join(map(str, said.tokens))
    rounds, emitted = len(said.rounds), sum(len(played.emitted) for played in said.rounds)
    assert (figures["tokens"], figures["rounds"]) == (1 + emitted, rounds)
    assert figures["drafted"] == sum(played.block.tokens.shape[1] for played in said.rounds)
    assert figures["accepted"] == sum(len(played.verdict.path) for played in said.rounds)
    assert figures["tokens per pass"] == (round(emitted / rounds, 3) if rounds else None)


def test_every_stop_token_of_the_target_stops(tmp_path: Path) -> None:
    """Kills all stop tokens but one: every pair of the tokens of a text, said in either order."""
    folder = shutil.copytree(TARGET, tmp_path / "target")
    request = Request(folder, Path("prompt_lookup"), "2 3 2 4", 24, seed=3)
    whole = said_by(request)[0].split()
    assert len(set(whole)) > 3
    for pair in itertools.permutations(sorted(set(whole))[:4], 2):
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": list(map(int, pair))}))
        assert said_by(request)[0].split() == whole[: 1 + min(map(whole.index, pair))]


SAID = st.none() | st.integers(0, 7) | st.lists(st.integers(0, 7), max_size=3)
FIELDS = st.fixed_dictionaries({}, optional={"eos_token_id": SAID})


@settings(max_examples=60, deadline=None, derandomize=True)
@given(generation=st.none() | FIELDS, config=FIELDS, inner=st.none() | FIELDS)
def test_stop_tokens_are_those_of_the_first_place_that_says_any(
    tmp_path_factory: pytest.TempPathFactory, generation: Any, config: dict[str, Any], inner: Any
) -> None:
    """Kills a place that is not looked at because an earlier one is there, and a list of which one token is read."""
    folder = tmp_path_factory.mktemp("eos")
    whole = config if inner is None else {**config, "text_config": inner}
    (folder / "config.json").write_text(json.dumps(whole))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    said = [
        place["eos_token_id"]
        for place in (generation, config, inner)
        if place and place.get("eos_token_id") is not None
    ]
    wanted = said[0] if said else []
    assert list(stop_tokens(folder)) == (wanted if isinstance(wanted, list) else [wanted])
