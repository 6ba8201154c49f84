"""Engines under a Python of their own: the conversation, honest and broken ones, what is absent, what is installed."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

import refengine.audit.adapters
import refengine.commands.audit_engine
from refengine.audit.adapters import Adapter, Engine, adapters, engines, formats, kernels
from refengine.audit.adapters.engine import EngineAudit, Side, Worker
from refengine.audit.served.ask import Ask, Failed, Refused
from refengine.cli import app
from refengine.commands.audit_engine import audit_engine
from refengine.commands.tiny import write_tiny
from refengine.errors import BadInput
from refengine.report.finding import Finding, Recipe
from refengine.source_tree import ROOT

WORDS = ["<unk>", "</s>", *(f"w{i}" for i in range(2, 12))]
LAW = '{"words": %s, "end": 1, "prompts": ["w7 w9 w11", "w2 w3 w4 w5", "w8 w5 w5 w8", "w10 w2"]}'
HONEST = "policy = dict(top_k=top_k, bias=logit_bias)"
STUB = """
import os, random, shutil

def convert(source, folder):
    import a_converter_that_nobody_has

def opened(folder):
    def generate(way, prompt, tokens, temperature, seed, top_k=0, logit_bias=None):
        {planted}
        if prompt == [3, 3]:
            os._exit(7)
        if prompt == [4, 4]:
            raise TypeError("complain() got an unexpected keyword argument 'x'")
        out, coins = [], random.Random(seed * 7919 + len(way))
        while len(out) < tokens and 1 not in out:
            text = prompt + out
            row = random.Random(str(text[-2:]))
            heavy = [row.gauss(0, 1) + float((policy["bias"] or {{}}).get(str(i), 0)) for i in range(12)]
            heavy[0] = heavy[1] = -9.0
            if temperature == 0:
                out.append(max(range(12), key=heavy.__getitem__))
                continue
            left = sorted(range(12), key=lambda i: -heavy[i])[: policy["top_k"] or 12]
            most = max(heavy)
            out.append(coins.choices(left, [2.718 ** ((heavy[i] - most) / temperature) for i in left])[0])
        return out
    return generate
"""
PLANTED = {
    "logit_bias": "policy = dict(top_k=top_k, bias=None if way else logit_bias)",
    "top_k": "policy = dict(top_k=0 if way else top_k, bias=logit_bias)",
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "law.json").write_text(LAW % str(WORDS).replace("'", '"'))
    return tmp_path


def stub(folder: Path, planted: str = HONEST) -> tuple[Adapter, Engine]:
    """An adapter whose folder is there and whose worker needs nothing but Python; pytest stands for its package."""
    (folder / "worker.py").write_text(STUB.format(planted=planted))
    engine = Engine("pytest", "stub", "pip install a-converter", ("draft model",))
    return Adapter(str(folder), "pip install a-stub", lambda: "1", engine=engine), engine


def found(folder: Path, planted: str, only: str) -> dict[str, Finding]:
    adapter, engine = stub(folder, planted)
    recipe = Recipe(function="refengine.commands.audit_engine:audit_engine")
    audit = EngineAudit(adapter, engine, sys.executable, folder, recipe, 700, only, 1e-6, lambda what, share: None)
    return {finding.id.split("draft-model/")[1]: finding for finding in audit.run("draft")}


def test_an_honest_engine_is_not_accused(folder: Path) -> None:
    """Kills a transport that loses an option, a seed or the end of a text on one side."""
    said = found(folder, HONEST, "parity/")
    assert {finding.verdict for finding in said.values()} == {"consistent"}
    assert "honoured" in str(said["parameters"].tables)


@pytest.mark.parametrize("option", PLANTED)
def test_an_option_that_speculation_ignores_is_found_by_name(folder: Path, option: str) -> None:
    """Kills an audit of engines whose two sides are the same way, or that asks for no options."""
    said = found(folder, PLANTED[option], f"parity/{option}")
    violated = [name for name, finding in said.items() if finding.verdict == "violated"]
    assert violated, {name: (f.verdict, f.reason, f.numbers) for name, f in said.items()}
    assert all(name.startswith(f"parity/{option}") for name in violated)


def test_a_worker_that_dies_is_a_failed_request_and_is_started_again(folder: Path) -> None:
    """Kills a crash of the engine that ends the audit, or is taken for a refusal."""
    adapter, engine = stub(folder)
    with Worker(adapter, engine, sys.executable, folder) as worker:
        side = Side(worker, "", tuple(WORDS), 1)
        before = side.send(Ask(("w7 w9",), 5))
        with pytest.raises(Failed, match="died of exit code 7"):
            side.send(Ask(("w3 w3",), 5))
        assert side.send(Ask(("w7 w9",), 5)) == before
        with pytest.raises(Failed, match="TypeError"):
            side.send(Ask(("w4 w4",), 5))


def test_what_an_engine_has_no_word_for_is_refused(folder: Path) -> None:
    """Kills an option that is silently dropped, and an error of the engine's own that passes for a refusal."""
    adapter, engine = stub(folder)
    with Worker(adapter, engine, sys.executable, folder) as worker:
        side = Side(worker, "", tuple(WORDS), 1)
        for ask in (
            Ask(("w7",), 5, options={"min_p": 0.2}),
            Ask(("w7",), 5, options={"logprobs": True}),
            Ask(("w7",), 5, chat=True),
            Ask(("no-word",), 5),
            Ask(("w7",), 5, temperature=1.0),
        ):
            with pytest.raises(Refused):
                side.send(ask)
        three = side.send(Ask(("w7",), 5, temperature=1.0, seed=3, options={"n": 3}))
    assert len({choice.text for choice in three.choices}) > 1


def test_the_end_is_no_part_of_a_text_whether_it_is_reported_or_not(folder: Path) -> None:
    """Kills an accusation of an engine that appends the end under speculation alone."""

    class Told:
        def __init__(self, tokens: list[int]) -> None:
            self.tokens = tokens

        def ask(self, **_: object) -> dict[str, list[int]]:
            return {"tokens": self.tokens}

    ask = Ask(("w7",), 5)
    with_it, without, cut = (
        Side(Told(tokens), "", tuple(WORDS), 1).send(ask).choices[0]  # type: ignore[arg-type]
        for tokens in ([4, 5, 1], [4, 5], [4, 5, 6, 7, 8])
    )
    assert (with_it.text, with_it.finish) == (without.text, without.finish) == ("w4 w5", "stop")
    assert cut.finish == "length"


def test_an_absent_engine_is_not_tested_and_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a missing package that is a crash, a success, or no line of help."""
    adapter, engine = engines()["mlx_lm"]
    gone = {"mlx_lm": (adapter, replace(engine, package="a-package-that-nobody-has"))}
    for module in (refengine.audit.adapters, refengine.commands.audit_engine):
        monkeypatch.setattr(module, "engines", lambda: gone)
    (finding,) = audit_engine("mlx_lm", sys.executable)
    assert finding.verdict == "not tested"
    assert adapter.install in finding.reason
    outcome = CliRunner().invoke(app, ["audit", "engine", "mlx_lm"])
    assert outcome.exit_code == 3
    assert outcome.output.splitlines()[-1].startswith("VERDICT not-tested")
    with pytest.raises(BadInput, match="one of mlx_lm"):
        audit_engine("no-engine", sys.executable)


def test_an_absent_converter_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills half a model that is left behind, and a format that says nothing of what it lacks."""
    monkeypatch.setattr(refengine.audit.adapters, "engines", lambda: {"stub": stub(folder)})
    with pytest.raises(BadInput, match="pip install a-converter") as said:
        write_tiny("stub", folder / "made", sys.executable)
    assert "\n" not in str(said.value)
    assert not (folder / "made").exists()
    with pytest.raises(BadInput, match="has something in it"):
        write_tiny("stub", folder, sys.executable)


def test_every_engine_has_its_worker_its_format_and_an_extra() -> None:
    """Kills a second list of engines, and an install line that names no extra of ours."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert len(formats()) == len(engines())
    for adapter, engine in engines().values():
        functions = {n.name for n in ast.parse(adapter.worker.read_text()).body if isinstance(n, ast.FunctionDef)}
        assert {"convert", "opened"} <= functions
        assert bool(engine.served) == (engine.serve is not None)
        if "refengine[" in adapter.install:
            extra = adapter.install.split("[")[1].split("]")[0]
            assert extra in extras, f"pyproject.toml has no extra {extra}"
    assert set(engines()) <= set(adapters())


def test_every_adapter_of_kernels_has_its_worker_and_an_extra() -> None:
    """Kills an install line that names no extra of ours, and ways that a worker does not know."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for adapter, entry in kernels().values():
        text = adapter.worker.read_text()
        assert "verifier" in {n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
        assert all(f'"{way}"' in text for way in entry.ways)
        assert set(entry.coins) <= set(entry.ways)
        assert adapter.install.split("[")[1].split("]")[0] in extras


@pytest.mark.parametrize("name", engines())
def test_an_installed_engine_is_greedy_as_without_speculation(name: str, tmp_path: Path) -> None:
    """Kills a converter or a worker that its engine's current release does not take."""
    adapter, engine = engines()[name]
    try:
        metadata.version(engine.package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{engine.package} is not installed")
    write_tiny(engine.format, tmp_path / "tiny", sys.executable)
    asked = {"op": "generate", "prompt": [7, 9, 11, 9], "tokens": 12, "temperature": 0.0, "seed": 0, "options": {}}
    with Worker(adapter, engine, sys.executable, tmp_path / "tiny") as worker:
        plain = worker.ask(way="", **asked)["tokens"]
        assert len(plain) > 3
        assert [worker.ask(way=way, **asked)["tokens"] for way in engine.ways] == [plain] * len(engine.ways)
