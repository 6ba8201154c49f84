"""Mistakes in arguments, made from the commands themselves: a command or an option that is new is tried too."""

import json
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from inspect import signature
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

import pytest
import torch
import typer
from safetensors.torch import save_file

from refengine.cli import app
from refengine.source_tree import FIXTURES

TARGET, DRAFTER = (str(FIXTURES / "tiny" / name) for name in ("target", "dspark"))
DECODE = ["--target", TARGET, "--drafter", DRAFTER, "1 2"]
SERVERS = ["--on", "http://localhost:1/v1", "--off", "http://localhost:2/v1"]
# What each command takes without a mistake; {} is a folder with the files below.
RIGHT: dict[str, list[str]] = {
    "report": ["--out", "{}/out"],
    "show": ["{}/report.json", "--page", "{}/page.html"],
    "rerun": ["{}/report.json"],
    "law": ["{}/law.json"],
    "decode": DECODE,
    "tiny": ["hf", "{}/tiny"],
    "drafters": [],
    "checkpoints": [],
    "rules": [],
    "bugs": [],
    "claims": [],
    "audit kernel": ["good:verify", "--path", "{}"],
    "audit process": ["true"],
    "audit trace": ["{}/rounds.safetensors"],
    "audit acceptance": ["{}/text", "--golden", "{}/text"],
    "audit library": ["documents"],
    "audit engine": ["transformers"],
    "audit endpoint": SERVERS,
    "audit generate": ["good:verify", "--off", "good:verify", "--path", "{}"],
    "checkpoint verify": [DRAFTER, "--target", TARGET],
    "checkpoint convert": ["{}/text", "{}/new.safetensors"],
    "checkpoint convert-mtp": [TARGET, "{}/new"],
    "checkpoint stitch-mtp": [TARGET, TARGET, "{}/new"],
    "checkpoint ngram": ["{}/text", "--target", TARGET, "--out", "{}/new.trie"],
    "fixtures export": ["{}/new"],
    "vectors list": [],
    "vectors export": ["{}/vectors.jsonl"],
    "vectors release": ["{}/new"],
    "vectors run": ["true"],
    "campaign engine": ["leviathan"],
    "campaign kernel": ["good:verify", "--path", "{}"],
    "campaign length": [],
    "challenge new": ["--seed", "s", "--out", "{}/new.json"],
    "challenge check": ["{}/text", "{}/text", "--seed", "s"],
    "challenge verify": ["{}/text"],
}
MADE = ("new", "tiny", "vectors")  # names of what a command makes
# Words that name nothing there is, in the place of the first word; or an option that does.
NAMELESS = {
    "audit kernel": ["nowhere:f"],
    "audit process": ["no-such-program"],
    "audit library": ["nothing"],
    "audit engine": ["nothing"],
    "audit generate": ["nowhere:f", "--off", "nowhere:g"],
    "tiny": ["nothing", "{}/new"],
    "campaign engine": ["nothing"],
    "campaign kernel": ["nowhere:f"],
    "claims": ["nothing of the kind"],
    "bugs": ["nothing of the kind"],
    "checkpoints": ["nothing of the kind"],
    "vectors run": ["--rule", "nothing", "true"],
    "challenge new": ["--rule", "nothing", "--seed", "s", "--out", "{}/new.json"],
    "decode": [*DECODE, "--rule", "nothing"],
    "drafters": ["--report", "{}/absent.json"],
}
# Options for which a number below zero is right.
ANY_SIGN = {"seed", "presence_penalty", "frequency_penalty"}
SEED_IS_COUNTED = {"decode", "tiny", "fixtures export", "campaign engine", "campaign kernel"}
WRITTEN = {"out", "junit", "sarif", "summary", "badge", "page", "save_golden"}  # files; `report --out` is a folder


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """(its words, itself) of every command below one."""
    if not hasattr(command, "commands"):
        yield " ".join(path), command
        return
    for name, below in command.commands.items():
        yield from commands(below, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


def types_of(command: Any) -> dict[str, type]:
    """Parameter -> the type of its value, or of one of its values."""
    function = command.callback
    hints = get_type_hints(getattr(function, "__wrapped__", function))
    return {name: innermost(hints[name]) for name in signature(function).parameters if name in hints}


def innermost(hint: Any) -> type:
    if isinstance(hint, type):
        return hint
    inner = [part for part in get_args(hint) if part is not type(None)]
    assert isinstance(hint, UnionType) or inner
    return innermost(inner[0])


def mistakes(name: str, command: Any) -> Iterator[list[str]]:
    """Every argument list of a command that must be refused."""
    words, right = name.split(), RIGHT[name]
    types = types_of(command)
    options = {p.name: max(p.opts, key=len) for p in command.params if p.param_type_name == "option"}
    own = name in ("audit process", "vectors run")  # what these do not know belongs to the program
    if not own:
        yield [*words, *right, "--no-such-option"]
    if any(p.required for p in command.params):
        yield words
    if name in NAMELESS:
        yield [*words, *NAMELESS[name]]
    for i, word in enumerate(right):  # every file or folder that is read, gone
        read = word in (TARGET, DRAFTER) or (word.startswith("{}/") and not Path(word).name.startswith(MADE))
        if read and not right[i - 1].startswith("--"):
            yield [*words, *right[:i], "{}/absent", *right[i + 1 :]]
    for parameter, option in options.items():
        kind = types.get(parameter)
        if kind in (int, float):
            yield [*words, option, "many", *right]
        if kind is float or parameter == "alpha":
            yield [*words, option, "nan", *right]
        if kind is int and (parameter not in ANY_SIGN or (parameter == "seed" and name in SEED_IS_COUNTED)):
            yield [*words, option, "-1", *right]
        if kind is float and parameter not in ANY_SIGN:
            yield [*words, option, "-1", *right]
        if isinstance(kind, type) and issubclass(kind, Enum):
            yield [*words, option, "no such choice", *right]
        if parameter in WRITTEN and kind is Path and name != "report":
            rest = without(option, right)
            yield [*words, option, "{}/absent/file", *rest]
            yield [*words, option, "{}/folder", *rest]
        if parameter == "path":
            yield [*words, option, "{}/text", *without(option, right)]
        if kind in (str, Path, int, float) and not next(p for p in command.params if p.name == parameter).multiple:
            yield [*words, option, "1", option, "1", *without(option, right)]


def without(option: str, words: list[str]) -> list[str]:
    """The words less an option and its value."""
    if option not in words:
        return words
    i = words.index(option)
    return words[:i] + words[i + 2 :]


# Whatever would import torch ends with 99, and so does a mistake that is taken for an order.
CHILD = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout

class Heavy:
    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "transformers", "scipy"):
            raise SystemExit(99)

sys.meta_path.insert(0, Heavy())
from refengine import cli
for words in json.load(sys.stdin):
    said = io.StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(io.StringIO()):
            cli.main(words)
    except SystemExit as ended:
        print(json.dumps([ended.code, said.getvalue().splitlines(), words]), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("a b\n")
    (tmp_path / "report.json").write_text('{"schema": 1}')
    (tmp_path / "law.json").write_text('{"rule": "leviathan", "p": [[1], [1]], "q": [[1]]}')
    (tmp_path / "good.py").write_text("def verify(p, q, draft, generator):\n    return [0]\n")
    rounds = {"p": torch.ones(1, 2, 1), "q": torch.ones(1, 1, 1)}
    tokens = {"draft": torch.zeros(1, 1, dtype=torch.long), "emitted": torch.zeros(1, 2, dtype=torch.long)}
    save_file({**rounds, **tokens}, tmp_path / "rounds.safetensors")
    return tmp_path


def test_every_command_is_tried() -> None:
    """Kills a command that the tests below do not know."""
    assert COMMANDS.keys() == RIGHT.keys()


def test_every_mistake_in_every_command_is_one_line_before_torch_is_imported(folder: Path) -> None:
    """Kills an argument that is looked at after seconds of imports, or not at all, and a mistake with a traceback, two
    lines or the exit code of a verdict."""
    given = [words for name, command in COMMANDS.items() for words in mistakes(name, command)]
    given = [[word.replace("{}", str(folder)) for word in words] for words in given]
    assert len(given) > 300
    command = [sys.executable, "-c", CHILD]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, cwd=folder, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(given)
    wrong = [
        (code, said, words)
        for code, said, words in answers
        if code != 2 or len(said) != 1 or not said[0].startswith("refengine: ")
    ]
    assert wrong == [], "\n".join(map(str, wrong[:40]))


def test_every_command_has_help_for_every_option() -> None:
    """Kills an option that the help names and does not explain."""
    silent = [
        (name, parameter.name)
        for name, command in COMMANDS.items()
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.help
    ]
    assert silent == []
