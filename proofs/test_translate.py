"""The translation of the rules into Coq's words: it is of the text that runs, and has the law of what runs."""

import random
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from proofs import bridge
from proofs.bridge import coq_list, coq_number, coq_tokens
from proofs.gate.build import compiled
from proofs.translate import rules as translate
from proofs.translate.rules import FILE, needed, written
from proofs.translate.terms import Untranslated
from refengine.bugs.mutation.mutants import mutants
from refengine.exact.block import ROOT, Block, Rule
from refengine.exact.drafters import sampled_chain
from refengine.exact.law import law
from refengine.exact.loop import generate, plain
from refengine.exact.row import Row, row
from refengine.exact.rules import RULES as CARDS
from refengine.exact.rules.block import block as block_rule
from refengine.exact.rules.leviathan import leviathan
from refengine.selfcheck.claims.claims import coq_theorems
from refengine.source_tree import commit_seed

RULES = [name for _, name in translate.RULES]
FILES = [*dict.fromkeys(file for file, _ in translate.RULES), "loop"]


def test_the_file_is_of_the_text_that_runs() -> None:
    """Kills: a proof about the rules as they once were: run `python3 -m proofs.translate --write`."""
    assert FILE.read_text() == written()


def test_every_rule_is_translated() -> None:
    """Kills: a rule that nobody translates."""
    assert [*CARDS] == RULES
    assert needed("rules/block", "block") == [
        ("rules/block", "prefix_weights"),
        ("row", "residual"),
        ("rules/block", "block"),
    ]


def test_every_translated_rule_is_proved_to_be_that_of_the_theorems() -> None:
    """Kills: a rule that is translated, and of which no file Running*.v says anything."""
    proved = {name.partition(".")[2] for name in coq_theorems() if name.startswith("Running")}
    unproved = {f"{name}_runs" for name in RULES} - proved
    assert unproved == set(), "state and prove it in a file proofs/rocq/Running*.v, after the nearest rule's"


# One file in `make test`; `make prove` has them all.
def read_instead(monkeypatch: pytest.MonkeyPatch, file: str, text: str) -> None:
    """The translator reads that text in the place of one file, and every other as it stands."""
    stands = translate.EXACT
    monkeypatch.setattr(
        translate, "source", lambda other: text if other == file else (stands / f"{other}.py").read_text()
    )


@pytest.mark.parametrize(
    "file", [pytest.param(f, marks=() if f == "rules/greedy" else pytest.mark.long) for f in FILES]
)
def test_every_mutant_is_translated_differently_or_refused(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a part of a rule that the translator does not look at, in which a mistake would be proved right."""
    module = "refengine.exact." + file.replace("/", ".")
    ours, unseen = written(), []
    for mutant in mutants(module):
        read_instead(monkeypatch, file, mutant.source)
        try:
            same = written() == ours
        except Untranslated:
            same = False
        if same:
            unseen.append(mutant.key())
    assert unseen == []


def case(name: str, chance: random.Random, nodes: int) -> tuple[list[Row], Block]:
    """A small block for a rule, a tree where it judges trees, and the target's rows: zeros and equal rows included."""
    tree = name not in ("leviathan", "block")
    parents = [chance.randint(ROOT, j - 1) if tree else j - 1 for j in range(nodes)]
    tokens: list[int] = []
    for j in range(nodes):  # without replacement no sibling comes twice
        taken = {tokens[i] for i in range(j) if parents[i] == parents[j]} if name == "without_replacement" else set()
        tokens.append(chance.choice([x for x in range(3) if x not in taken] or [0]))
    if name == "without_replacement" and len({*zip(parents, tokens, strict=True)}) < nodes:
        return case(name, chance, nodes)
    q = [row([chance.randint(1, 3) for _ in range(3)]) for _ in range(nodes + 1)]
    rows = [row([chance.randint(0, 2) + (x == 0) for x in range(3)]) for _ in range(nodes + 1)]
    if chance.random() < 0.3:
        rows[0] = q[0]
    return rows, Block(tuple(tokens), tuple(parents), tuple(q[parent + 1] for parent in parents), (None,) * nodes)


def options(name: str, chance: random.Random) -> dict[str, Any]:
    """What a lossy rule is told: thresholds that some rows meet exactly, and that the second number never lowers."""
    match name:
        case "typical" | "typical_inclusive":
            return {"epsilon": chance.choice([0.25, 0.5]), "delta": 9.0}
        case "nucleus":
            return {"top_p": Fraction(chance.choice([2, 3, 4]), 4), "fast": chance.random() < 0.3}
    return {}


# What Translated.v has as variables, for the rules that look at them.
THRESHOLD = "(fun _ epsilon _ _ => epsilon)"
VARIABLES = {"typical": f"{THRESHOLD} (frac 1 100)", "typical_inclusive": THRESHOLD}


def query(name: str, p: list[Row], block: Block, told: dict[str, Any]) -> str:
    """The law of the tokens that the translated rule emits; an error has no law, so its mass is missing."""
    rows = [f"(fun x : vocab3 => nth (frac 0 1) {coq_list([coq_number(str(w)) for w in r])} (id3 x))" for r in p]
    q = [
        f"Some (fun x : vocab3 => nth (frac 0 1) {coq_list([coq_number(str(w)) for w in r or ()])} (id3 x))"
        for r in block.q
    ]
    tokens, parents = coq_list([f"T3 {x}" for x in block.tokens]), coq_tokens([parent + 1 for parent in block.parents])
    flat = f"(@FlatBlock {FIELD} vocab3 {tokens} {parents} {coq_list(q)})"
    words = [str(v).lower() if isinstance(v, bool) else coq_number(str(Fraction(v))) for v in told.values()]
    variables = VARIABLES.get(name, "")
    program = f"@py_{name} {FIELD} vocab3 (fun _ => frac 0 1) {variables} {coq_list(rows)} {flat} {' '.join(words)}"
    return f"@show vocab3 id3 {len(block.tokens) + 1} (fun f => {program} (fun o => f o.1))"


FIELD = "qc_realFieldType"


@pytest.mark.coq
def test_the_translation_has_the_law_of_the_program() -> None:
    """Kills: a translator that is wrong about Python: both are run on blocks that are drawn anew for every commit."""
    assert compiled("Bridge.vo") == compiled("Translated.vo") == ""
    chances = {name: random.Random(f"{commit_seed()} {name}") for name in RULES}
    sizes = [(name, chance.randint(0, 3)) for name, chance in chances.items() for _ in range(6)]
    sizes += [(name, 4) for name in random.Random(f"{commit_seed()}").sample(RULES, 3)]  # which take Coq seconds each
    cases = [(name, *case(name, chances[name], nodes), options(name, chances[name])) for name, nodes in sizes]
    found = bridge.ask([query(*one) for one in cases], words="From Proofs Require Import Python Translated.")
    for (name, p, block, told), coq in zip(cases, found, strict=True):
        rule = partial(CARDS[name].rule, p, block, **told)
        assert coq == law(lambda chance, rule=rule: rule(chance=chance).tokens), (name, p, block, told)


TABLE = "fun (h : seq vocab2) (x : vocab2) => nth (frac 0 1) (if odd (size h) then {odd} else {even}) (id2 x)"


def table(odd: Row, even: Row) -> str:
    """Rows that depend on how long the history is."""
    return f"({TABLE.format(odd=coq_list(coq_row(odd)), even=coq_list(coq_row(even)))})"


def coq_row(r: Row) -> list[str]:
    return [coq_number(str(w)) for w in r]


@pytest.mark.coq
@pytest.mark.parametrize("rule", [leviathan, block_rule], ids=lambda rule: rule.__name__)
def test_the_translation_of_the_loop_has_the_law_of_the_loop(rule: Rule) -> None:
    """Kills: a stop, a limit or a cut that Python reads otherwise: chains of two drafts, three tokens, prompts."""
    assert compiled("Bridge.vo") == compiled("RunningLoop.vo") == ""
    chance = random.Random(f"{commit_seed()} {rule.__name__}")
    queries, laws = [], []
    for prompt, stop in (((), frozenset()), ((0, 1), frozenset({1}))):
        odd_p, even_p, odd_q, even_q = (row([chance.randint(1, 3) for _ in range(2)]) for _ in range(4))
        target, q = table(odd_p, even_p), table(odd_q, even_q)
        ends = f"(fun x : vocab2 => id2 x \\in {coq_tokens(sorted(stop))})"
        said = coq_list([f"T2 {x}" for x in prompt])
        drafter = f"(@chain_drafter {FIELD} vocab2 (fun _ => {q}) (fun _ => xpred0) (fun _ => 2%N))"
        program = f"(@py_{rule.__name__} {FIELD} vocab2 (fun _ => frac 0 1))"
        nothing = f"(fun _ => frac 0 1 : {FIELD})"
        queries += [
            f"@show vocab2 id2 3 (@py_generate {FIELD} vocab2 {nothing} {target} {drafter} {program} {said} 3 {ends})",
            f"@show vocab2 id2 3 (@py_plain {FIELD} vocab2 {nothing} {target} {said} 3 {ends})",
        ]
        p_of = lambda h, odd=odd_p, even=even_p: odd if len(h) % 2 else even  # noqa: E731
        drafts = sampled_chain(lambda h, odd=odd_q, even=even_q: odd if len(h) % 2 else even, 2)
        laws += [
            law(lambda c, p=p_of, d=drafts, h=prompt, s=stop: generate(p, d, rule, h, 3, c, s)),
            law(lambda c, p=p_of, h=prompt, s=stop: plain(p, h, 3, c, s)),
        ]
    assert bridge.ask(queries, words="From Proofs Require Import Python Translated Running RunningLoop.") == laws
