"""What the options of `refengine decode` do: those that shape the target's rows, in which order, and all others."""

import itertools
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from refengine.cli import app
from refengine.commands import decode as command
from refengine.commands.decode import decode, policy, stop_tokens
from refengine.commands.decode_request import Request, check
from refengine.decoder import generate, load_drafter, load_target
from refengine.decoder.drafters.dspark_schedule import Load
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


COMMUTE = [
    ("repetition_penalty", "temperature"),
    ("presence_penalty", "frequency_penalty"),
    ("temperature", "top_k"),
    ("top_k", "min_p"),
]


@pytest.mark.parametrize("pair", itertools.combinations(ORDER, 2), ids="-".join)
def test_two_options_are_done_in_the_stated_order(pair: tuple[str, str]) -> None:
    """Kills two options that have changed places: of every two the cases tell the orders apart, or there is but one."""
    source, told_apart = random.Random(0), False
    ranges = {**dict.fromkeys(ORDER, (0.3, 1.0)), "repetition_penalty": (1.1, 2.0), "temperature": (1.2, 3.0)}
    for _ in range(40):
        logits = torch.tensor([source.uniform(-2, 2) for _ in range(8)], dtype=torch.float64)
        given = {name: source.randint(2, 6) if name == "top_k" else source.uniform(*ranges[name]) for name in pair}
        said = policy(asked(**{"temperature": 1.0, **given}))(logits, PROMPT, PREFIX)
        assert torch.equal(said, stated({"temperature": 1.0, **given})(logits, PROMPT, PREFIX))
        swapped = [OPTIONS[name][1](given[name]) for name in reversed(pair)]
        told_apart |= not torch.allclose(steps.pipeline(*swapped)(logits, PROMPT, PREFIX), said)
    assert told_apart == (pair not in COMMUTE), "give the options wider `ranges`, or list two that commute in COMMUTE"


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


# By field of a request: the words that say it, and what they say. Nothing is said that holds without a word.
SAID_AS: dict[str, tuple[list[str], Any]] = {
    "target": (["--target", str(FIXTURES / "tiny" / "other")], FIXTURES / "tiny" / "other"),
    "drafter": (["--drafter", "ngram"], Path("ngram")),
    "prompt": (["3 4"], "3 4"),
    "max_new_tokens": (["--max-new-tokens", "7"], 7),
    "temperature": (["--temperature", "0.5"], 0.5),
    "top_k": (["--top-k", "3"], 3),
    "top_p": (["--top-p", "0.25"], 0.25),
    "min_p": (["--min-p", "0.125"], 0.125),
    "repetition_penalty": (["--repetition-penalty", "1.5"], 1.5),
    "presence_penalty": (["--presence-penalty", "0.75"], 0.75),
    "frequency_penalty": (["--frequency-penalty", "-0.25"], -0.25),
    "rule": (["--rule", "block"], "block"),
    "gamma": (["--gamma", "3"], 3),
    "seed": (["--seed", str(2**63 + 1)], 2**63 + 1),
    "dtype": (["--dtype", "bfloat16"], "bfloat16"),
    "device": (["--device", "cuda:1"], "cuda:1"),
    "ngram": (["--ngram", "some.trie"], Path("some.trie")),
    "load": (["--load", "1:1,2:3"], "1:1,2:3"),
    "slots": (["--bitwise", "--slots", "77"], 77),
    "chat": (["--chat"], True),
    "markov": (["--markov", "off"], False),
}
UNSAID = {"target": SAID_AS["target"], "drafter": SAID_AS["drafter"], "prompt": SAID_AS["prompt"]}


def heard(monkeypatch: pytest.MonkeyPatch, said: dict[str, tuple[list[str], Any]]) -> Request:
    """The request that `refengine decode` makes of words."""
    requests: list[Request] = []
    monkeypatch.setattr(command, "decode", lambda request: (requests.append(request), ("", {}))[1])
    monkeypatch.setattr("refengine.cli.checks.checkpoint_folder", lambda folder: None)
    outcome = CliRunner().invoke(app, ["decode", *itertools.chain(*(words for words, _ in said.values()))])
    assert outcome.exit_code == 0, outcome.output
    (request,) = requests
    return request


@pytest.mark.parametrize("name", [field.name for field in fields(Request)])
def test_what_is_said_is_what_is_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills an option of the command line that is dropped on its way, or is another's; alone, and with all others."""
    plain = Request(**{field: value for field, (_, value) in UNSAID.items()})
    assert name in {*UNSAID, *SAID_AS}, f"{name} is a field of Request: say in SAID_AS how a user says it"
    assert name in UNSAID or getattr(plain, name) != SAID_AS[name][1]
    asked_for = heard(monkeypatch, {**UNSAID, name: SAID_AS[name]})
    assert asked_for == replace(plain, **{name: SAID_AS[name][1]})
    assert heard(monkeypatch, SAID_AS) == Request(**{field: value for field, (_, value) in SAID_AS.items()})


def test_bitwise_alone_has_its_own_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a switch that switches nothing."""
    assert heard(monkeypatch, {**UNSAID, "slots": (["--bitwise"], None)}).slots == 1024


def test_what_is_asked_for_reaches_the_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a precision, a device, slots or a choice of the drafter's that the command keeps to itself."""
    reached: list[Any] = []
    monkeypatch.setattr(command, "load_target", lambda *given: (reached.append(given), NETWORK)[1])

    def drafter(path: Path, target: Any, **options: Any) -> None:
        reached.append((path, target, options))
        raise BadInput("far enough")

    monkeypatch.setattr(command, "load_drafter", drafter)
    with pytest.raises(BadInput, match="far enough"):
        decode(Request(**{field: value for field, (_, value) in SAID_AS.items()}))
    folder, path = SAID_AS["target"][1], SAID_AS["drafter"][1]
    options = {"gamma": 3, "ngram": Path("some.trie"), "load": Load(((1, 1.0), (2, 3.0))), "markov": False}
    assert reached == [(folder, torch.bfloat16, "cuda:1", 77), (path, NETWORK, options)]


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
