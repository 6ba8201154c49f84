"""The translation of the rules into Coq's words: it is of the text that runs, and refuses what it has no words for."""

import ast
import random
from importlib import import_module

import pytest

from proofs import bridge
from proofs.bridge import coq_list, coq_number, coq_tokens
from proofs.commit import seed
from proofs.gate.build import absent, compiled
from proofs.translate import rules as translate
from proofs.translate.function import Function
from proofs.translate.rules import FILE, translated, written
from proofs.translate.terms import Untranslated
from refengine.bugs.mutation.mutants import mutants
from refengine.exact.block import ROOT, Block
from refengine.exact.law import law
from refengine.exact.row import Row, row

RULES = [name for file, name in translate.WANTED if file == f"rules/{name}"]


def test_the_file_is_of_the_text_that_runs() -> None:
    """Kills: a proof about the rules as they once were: run `python3 -m proofs.translate --write`."""
    assert FILE.read_text() == written()


@pytest.mark.parametrize("name", RULES)
def test_every_mutant_is_translated_differently_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a part of a rule that the translator does not look at, in which a mistake would be proved right.

    What is not seen is the sites, of which the words of Python.v know nothing.
    """
    texts = {m.number: m.source for m in mutants(f"refengine.exact.rules.{name}")}
    ours, unseen = written(), []
    for mutant in mutants(f"refengine.exact.rules.{name}"):
        monkeypatch.setattr(
            translate,
            "source",
            lambda file, text=texts[mutant.number], n=name: (
                text if file == f"rules/{n}" else (translate.EXACT / f"{file}.py").read_text()
            ),
        )
        try:
            same = written() == ours
        except Untranslated:
            same = False
        if same and not about_sites(mutant.key()):
            unseen.append(mutant.key())
    assert unseen == []


def about_sites(key: tuple[str, ...]) -> bool:
    return '("accept"' in " ".join(key) or '("emit"' in " ".join(key)


@pytest.mark.parametrize(
    "text",
    [
        "while x: pass",
        "for i in range(3):\n    pass\nelse:\n    pass",
        "with a: pass",
        "p[x] = 1",
        "a = lambda: 1",
        "left, right = right, left",
        "return p // q",
        "return p ** 2",
        "if a:\n    b = 1\nc = 2",
        "return chance.guess(p)",
        "return [x for x in p if x]",
    ],
)
def test_what_it_has_no_words_for_is_refused(text: str) -> None:
    """Kills: a translator that skips what it does not know."""
    function = Function(set(), {"p": "row", "q": "row", "x": "token", "a": "bool", "left": "num", "right": "num"})
    with pytest.raises(Untranslated, match=r"^line "):
        function.block(ast.parse(text).body, lambda: "raised", None)


def test_helpers_that_are_known_by_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: another meaning of `row_after` or `children` under rules that are proved with the old one."""
    text = (translate.EXACT / "block.py").read_text().replace("return p[node + 1]", "return p[node]")
    monkeypatch.setattr(
        translate, "source", lambda file: text if file == "block" else (translate.EXACT / f"{file}.py").read_text()
    )
    with pytest.raises(Untranslated, match="row_after is not what"):
        written()


def test_a_break_and_a_continue_are_not_the_same() -> None:
    """Kills: a loop whose end is told what the next turn is told."""
    assert "out (" in translated("rules/block", "block", {"residual", "prefix_weights"})
    assert translated("row", "residual", set()).count("Num.max") == 1


def case(name: str, chance: random.Random) -> tuple[list[Row], Block]:
    """A small block for a rule, a tree where it judges trees, and the target's rows: zeros and equal rows included."""
    tree = name not in ("leviathan", "block")
    nodes = chance.randint(0, 4)
    parents = [chance.randint(ROOT, j - 1) if tree else j - 1 for j in range(nodes)]
    tokens: list[int] = []
    for j in range(nodes):  # without replacement no sibling comes twice
        taken = {tokens[i] for i in range(j) if parents[i] == parents[j]} if name == "without_replacement" else set()
        tokens.append(chance.choice([x for x in range(3) if x not in taken] or [0]))
    if name == "without_replacement" and len({*zip(parents, tokens, strict=True)}) < nodes:
        return case(name, chance)
    q = [row([chance.randint(1, 3) for _ in range(3)]) for _ in range(nodes + 1)]
    rows = [row([chance.randint(0, 2) + (x == 0) for x in range(3)]) for _ in range(nodes + 1)]
    if chance.random() < 0.3:
        rows[0] = q[0]
    return rows, Block(tuple(tokens), tuple(parents), tuple(q[parent + 1] for parent in parents), (None,) * nodes)


def query(name: str, p: list[Row], block: Block) -> str:
    """The law of the tokens that the translated rule emits; an error has no law, so its mass is missing."""
    rows = [f"(fun x : vocab3 => nth (frac 0 1) {coq_list([coq_number(str(w)) for w in r])} (id3 x))" for r in p]
    q = [
        f"Some (fun x : vocab3 => nth (frac 0 1) {coq_list([coq_number(str(w)) for w in r or ()])} (id3 x))"
        for r in block.q
    ]
    tokens, parents = coq_list([f"T3 {x}" for x in block.tokens]), coq_tokens([parent + 1 for parent in block.parents])
    flat = f"(@FlatBlock {FIELD} vocab3 {tokens} {parents} {coq_list(q)})"
    program = f"@py_{name} {FIELD} vocab3 (fun _ => frac 0 1) {coq_list(rows)} {flat}"
    return f"@show vocab3 id3 {len(block.tokens) + 1} (fun f => {program} (fun o => f o.1))"


FIELD = "qc_realFieldType"


@pytest.mark.parametrize("name", RULES)
def test_the_translation_has_the_law_of_the_program(name: str) -> None:
    """Kills: a translator that is wrong about Python: both are run on blocks that are drawn anew for every commit."""
    if missing := absent():
        pytest.skip(missing)
    assert compiled("Bridge.vo") == compiled("Translated.vo") == ""
    chance = random.Random(f"{seed()} {name}")
    cases = [case(name, chance) for _ in range(6)]
    rule = getattr(import_module(f"refengine.exact.rules.{name}"), name)
    words = "From Proofs Require Import Python Translated."
    found = bridge.ask([query(name, p, block) for p, block in cases], words=words)
    for (p, block), coq in zip(cases, found, strict=True):
        assert coq == law(lambda chance, p=p, block=block: rule(p, block, chance).tokens), (p, block)
