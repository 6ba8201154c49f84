"""What the translator refuses: words and forms in which Python does something else than Gallina would."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from proofs.test_translate import read_instead
from proofs.translate import forms, running, words
from proofs.translate import rules as translate
from proofs.translate.rules import translated, written
from proofs.translate.scope import Scope
from proofs.translate.statements import statements
from proofs.translate.terms import Untranslated
from refengine.source_tree import PROOFS


@pytest.mark.parametrize(
    ("file", "text", "instead", "why"),
    [
        ("rules/leviathan", '("accept", i)', '("accept", 0)', "two turns"),
        ("rules/leviathan", '("emit", i)', '("emit", gamma)', "two turns"),
        ("rules/leviathan", '("emit", gamma)', '("emit", gamma + 1)', "not its place"),
        ("rules/block", '("accept", kept - 1)', '("accept", gamma - 1)', "two turns"),
        ("rules/block", '("accept", kept - 1)', '("accept", kept)', "that of line"),
        ("rules/agreement", '("emit", len(path))', '("emit", len(tokens))', "not its place"),
        ("rules/iid_candidates", '("accept", len(path), j)', '("accept", len(path), x)', "two turns"),
        ("rules/point_mass", '("emit", len(path))', '("emit", 0)', "not its place"),
        ("rules/without_replacement", '("accept", len(path), j)', '("emit", len(path), j)', "no site of such"),
        ("rules/nucleus", '("agree", depth, leaf)', '("agree", depth, j)', "two turns"),
        ("rules/nucleus", '("agree", depth, leaf)', '("agree", leaf, leaf)', "two turns"),
        ("rules/nucleus", '("agree", depth, leaf)', '("emit", depth, leaf)', "not its place"),
        ("rules/nucleus", "leaves = [j for j", "leaves = [j - j for j", "two turns"),
        ("rules/nucleus", "    best: tuple", "    leaves = [*leaves, 0]\n    best: tuple", "two turns"),
        ("rules/nucleus", '("emit", len(best))', '("emit", len(leaves))', "not its place"),
        ("loop", "here = Shifted(chance, len(prefix))", "here = chance", "two turns"),
        ("loop", "Shifted(chance, len(prefix))", "Shifted(chance, len(prompt))", "not at their places"),
        ("loop", "Shifted(chance, len(prefix))", "Shifted(chance, len(out))", "not at their places"),
        ("loop", "prefix = prompt + out", "prefix = out", "not at their places"),
        ("loop", "len(prompt) + len(out)", "len(prompt)", "two turns"),
        ("loop", "len(prompt) + len(out)", "len(out) + len(out)", "not its place"),
        ("loop", "block, here).tokens", "block, Shifted(chance, len(prompt))).tokens", "no known use"),
        ("loop", "here = Shifted(chance, len(prefix))", "here: Chance = Shifted(chance, len(prompt))", "no known use"),
        ("rules/block", "w, gamma = ", "chance, w, gamma = chance, ", "chance is not the same"),
        ("loop", "        prefix = prompt", "        prompt = out\n        prefix = prompt", "not at their places"),
        ("loop", "        here = ", "        whole, prefix = prefix, prompt\n        here = ", "not at their places"),
        (
            "loop",
            "        block = ",
            "        prefix: tuple[int, ...] = prompt\n        block = ",
            "prefix is not the same",
        ),
        ("loop", "        here = ", "        if len(out) == 0:\n            here = ", "not at their places"),
        (
            "rules/leviathan",
            "gamma = ",
            "all_ = [chance.accept(1, 2, ('accept', gamma)) for i in p]\n    gamma = ",
            "turns",
        ),
        ("rules/leviathan", "        return Round(", "        done = Round(", "no known use"),
    ],
)
def test_a_coin_that_may_be_used_twice_is_refused(
    file: str, text: str, instead: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: one coin for two decisions, which the words of Python.v, where every decision has its own, prove right."""
    ours = translate.source(file)
    assert text in ours
    read_instead(monkeypatch, file, ours.replace(text, instead))
    with pytest.raises(Untranslated, match=rf"exact/{file}\.py, line .*{why}"):
        written()


@pytest.mark.parametrize(
    ("begins", "why"),
    [
        ("chance = Shifted(chance, len(block.tokens))", "not at their places"),
        ("prefix = block.tokens\n    here = Shifted(chance, len(prefix))", "not at their places"),
    ],
)
def test_coins_that_are_moved_by_a_rule_are_refused(begins: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a rule that begins a round of its own, so that two rounds share their coins."""
    ours = translate.source("rules/leviathan").replace("import Chance\n", "import Chance, Shifted\n")
    read_instead(monkeypatch, "rules/leviathan", ours.replace("gamma = ", f"{begins}\n    gamma = "))
    with pytest.raises(Untranslated, match=why):
        written()


# (file, what stands there, what is put in its place): what a name stands for, what is no statement of the rule, and
# what Gallina would take for something else.
UNCHECKED = "\n\ndef check_chain(block: Block) -> None:\n    for x in block.tokens:\n        continue\n"
ELSEWHERE = [
    ("rules/leviathan", "def leviathan(", "@remembered\ndef leviathan("),
    ("rules/leviathan", "CARD = ", "residual = lambda p, q: tuple(p)\nCARD = "),
    ("rules/leviathan", "CARD = Card(", "CARD = taught(residual)("),
    ("rules/leviathan", "CARD = Card(", "def residual(p, q):\n    return p\n\n\nCARD = Card("),
    ("rules/leviathan", "rule=leviathan", "rule=another"),
    ("rules/leviathan", "import Row, residual", "import Row, overlap as residual"),
    ("rules/point_mass", "CARD = Card(", "def sum(weights):\n    return 1\n\n\nCARD = Card("),
    ("row", "from fractions import Fraction", "from decimal import Decimal as Fraction"),
    ("block", "    def children(", "    @sometimes\n    def children("),
    ("rules/leviathan", "exact.row import Row, residual", "engine.row import Row, residual"),
    ("rules/leviathan", "gamma = len(", "gamma = (residual := len)("),
    ("rules/leviathan", "q = drawn(block, i)", "len, q = sum, drawn(block, i)"),
    ("rules/block", "sum(left), sum(left) + 1", "sum(left, Fraction(1)), sum(left) + 1"),
    ("rules/point_mass", "left = without(left, x)", "rest = without(left, x)"),
    ("rules/point_mass", "            left = without(left, x)", "            v4 = left = without(left, x)"),
    ("rules/without_replacement", "taken: list[int] = []", "taken: list[int] = tokens"),
    ("rules/without_replacement", "for earlier in taken:", "for earlier in taken:\n            taken.append(x)"),
    ("rules/greedy", "while True:", "k = 0\n    while True:"),
    ("rules/greedy", "if block.tokens[j] == best", "if block.tokens[j] == argmax(row_after(p, at))"),
    ("rules/greedy", "        hit = ", "        before = path if path else path\n        hit = "),
    ("rules/nucleus", "best: tuple[int, ...] = ()", "best: tuple[int, ...] = ()\n    ROOT = len(leaves)"),
    ("rules/typical", "    passing = [", "    inside_log = 0.0\n    passing = ["),
    ("loop", "    out: tuple[int, ...] = ()", "    again = rule\n    out: tuple[int, ...] = ()"),
    ("row", "zip(p, q, strict=True)", "zip(p, q)"),
    ("rules/typical", "epsilon: float = EPSILON", "epsilon: float = DELTA"),
    ("rules/typical", "0.09, 0.3, 1e-5", "0.09, 0.3, 0.0"),
    ("rules/typical", "if px > 0)", "if px > 1)"),
    ("rules/typical", "import math", "import cmath as math"),
    (
        "rules/typical",
        "INSIDE_LOG)\n        for x, parent in zip(block.tokens, block.parents, strict=True)",
        "INSIDE_LOG)\n        for x, parent in zip(block.tokens, block.parents)",
    ),
    (
        "rules/typical",
        "paths: dict[int, tuple[int, ...]] = {ROOT: ()}",
        "paths: dict[int, tuple[int, ...]] = {ROOT: []}",
    ),
    ("rules/typical", "likelihood = {ROOT: Fraction(1)}", "likelihood = paths"),
    ("rules/typical", "key=lambda j: (", "key=lambda j, i=0: ("),
    ("rules/nucleus", "fast: bool = False", "fast: bool = True"),
    ("rules/nucleus", "import top_p as keep_top_p", "import min_p as keep_top_p"),
    ("rules/nucleus", "nodes = ancestry(block, leaf)", "nodes = [*ancestry(block, leaf)]"),
    ("path", "block.parents[node]), node)", "block.parents[node]),)"),
    ("policy", "if mass >= p * total:", "if mass > p * total:"),
    ("policy", "key=lambda x: (-weights[x], x)", "key=lambda x: (-weights[x], -x)"),
    ("loop", "frozenset[int] = frozenset(),\n", "frozenset[int] = frozenset({0}),\n"),
    ("loop", "import Chance, Shifted", "import Chance\nfrom refengine.exact.chance import Record as Shifted"),
    ("row", "total = sum(weights, Fraction(0))", "total = sum(weights, Fraction(1))"),
    ("row", "total = sum(weights, Fraction(0))", "total = sum(weights, 0.0)"),
    ("row", "max(px - qx, Fraction(0))", "max(px - qx, 0.0)"),
    ("row", "Fraction(0) if x == token", "0.0 if x == token"),
    ("rules/block", "chance.accept(sum(left), sum(left)", "chance.accept(sum(left, 0.0), sum(left)"),
    ("row", "def row(", "class Wide:\n    def __class_getitem__(cls, x): ...\n\n\nMANY = Wide[50]\n\n\ndef row("),
    ("row", "w for x, w in enumerate(weights)", "w for x, w in enumerate(weights, start=1)"),
    ("row", "def row(", "max = min\n\n\ndef row("),
    ("block", "ROOT = -1", "ROOT = 0"),
    (
        "block",
        "tokens: tuple[int, ...]\n    path: tuple[int, ...]",
        "path: tuple[int, ...]\n    tokens: tuple[int, ...]",
    ),
    ("block", "def row_after(", "@cache\ndef row_after("),
    ("block", "ROOT <= parent < node", "ROOT <= parent <= node"),
    ("chance", "bool(u * den < num)", "bool(u * den <= num)"),
    ("chance", "start * DEPTHS + depth", "start + depth"),
    ("chance", "if bar < cdf:", "if bar <= cdf:"),
    ("chance", "else {num > 0: 1}", "else {True: 1}"),
    ("chance", "self.inner.accept(num, den, self._absolute(site))", "self.inner.accept(num, den, site)"),
    ("block", "    def children(", "    children = property(min)\n\n    def children("),
    ("block", "node: int) -> Row:", "node: int = setattr(Block, 'path', min)) -> Row:"),
    ("row", "def row(", "class Quiet:\n    globals().update(max=min)\n\n\ndef row("),
    ("vectors", "SCALE, VOCABULARY", "Fraction.__lt__ = Fraction.__le__\nSCALE, VOCABULARY"),
    ("__init__", 'for larger cases.\n"""\n', 'for larger cases.\n"""\nfrom refengine.exact import row as _row\n'),
    ("law", "out.get(result, 0) + weight", "weight"),
    ("card", "return self.rule.__name__", "return 'leviathan'"),
    # Two words that are one in Gallina: of the module and of the function, of Python.v and of the rule's own file, of a
    # comprehension and of what it stands in.
    (
        "row",
        "    return tuple(max(px",
        "    left = p\n    return rest(left, q)\n\n\ndef rest(p, q):\n    return tuple(max(px",
    ),
    ("rules/leviathan", "Round, check_chain, drawn\n", f"Round, drawn\n{UNCHECKED}"),
    (
        "row",
        "enumerate(weights))",
        "enumerate([w + w if token == x else w for token, w in enumerate(weights)]))",
    ),
    ("row", "w / total for w in weights", "w / total for w in [w - sum([w for each in weights]) for w in weights]"),
    (
        "rules/leviathan",
        "    gamma = len(block.tokens)\n",
        "    gamma = len(block.tokens)\n    same = (gamma == 0 or len(p) == 0) == (len(p) == 0 or len(p) == 0)\n",
    ),
    # A whole number, whose quotient by another one is rounded.
    ("row", "    return tuple(max(px", "    ones = [1 for px in p]\n    return tuple(max(px"),
    ("rules/__init__", "isinstance(card, Card)\n}", "isinstance(card, Card)\n}\nRULES['block'] = RULES['leviathan']"),
]


@pytest.mark.parametrize(("file", "text", "instead"), ELSEWHERE, ids=lambda text: str(text)[:30])
def test_a_word_is_what_the_translator_takes_it_for(
    file: str, text: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills: a mistake that stands beside the statements of a rule, and leaves the translation as it was."""
    ours = translate.source(file)
    assert text in ours
    read_instead(monkeypatch, file, ours.replace(text, instead, 1))
    with pytest.raises(Untranslated):
        written()


def test_a_word_of_the_module_is_no_variable_of_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a helper under a name that variables have another one for in Gallina, where its text was never read."""
    ours = translate.source("row")
    begins = re.search(r"def residual\(.*:\n", ours)
    assert begins is not None
    other = begins[0].replace("residual", "left")
    text = ours.replace(begins[0], f"{begins[0]}    return left(p, q)\n\n\n{other}")
    read_instead(monkeypatch, "row", text)
    assert "Definition py_left" in written()


# Everything that there is, and a text written by the loop.
EVERYTHING = """
import pkgutil, refengine, torch
from importlib import import_module
from refengine.decoder.targets.toy import ToyDrafter, ToyTarget
for module in pkgutil.walk_packages(refengine.__path__, "refengine."):
    if "__main__" not in module.name and not module.name.endswith(".worker"):
        import_module(module.name)
from refengine.decoder import generate
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.engine.rules.leviathan import leviathan
target = ToyTarget(5)
generate(target, ToyDrafter(target, 3), leviathan, pipeline(temperature(0.8)), (1, 2), 9, Philox(1, torch.tensor([0])))
"""
LEVIATHAN = "from refengine.exact.rules import leviathan as file\n"
as_written = cache(running.as_written)  # it is the same for all
FORKING = """
import json, os, sys
from proofs.translate import running
running.modules_of(("refengine.engine", "refengine.engine.rules"))
for line in sys.stdin:
    if os.fork() == 0:
        try:
            done, packages = json.loads(line)
            exec(done, {})
            running.told(packages)
            sys.stdout.flush()
        except Exception as error:
            print(repr(error), flush=True)  # no JSON
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def forking() -> Iterator[subprocess.Popen[str]]:
    """A child that does what it is sent in a fork of itself, each in a new one, and says there what names mean then."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", FORKING], cwd=PROOFS.parent, text=True, **pipes) as child:
        yield child


@pytest.mark.parametrize(
    ("done", "seen"),
    [
        ("import refengine.decoder, refengine.engine.policy", []),
        pytest.param(EVERYTHING, [], marks=pytest.mark.long),
        ("from refengine.exact import row; row.residual = lambda p, q: p", ["exact.row.residual"]),
        (
            "from refengine.exact.rules import block, leviathan; block.residual = leviathan.drawn",
            ["exact.rules.block.residual"],
        ),
        ("from refengine.exact.block import Block; Block.path = Block.children", ["exact.block.Block.path"]),
        (
            "from refengine.exact import chance; chance.choose_below = print; chance.DEPTHS = 1",
            ["exact.chance.DEPTHS", "exact.chance.choose_below"],
        ),
        (f"{LEVIATHAN}file.len = sum", ["exact.rules.leviathan.len"]),
        (f"{LEVIATHAN}vars(file).update(min=max)", ["exact.rules.leviathan.min"]),
        (f"{LEVIATHAN}file.leviathan.__defaults__ = (None,)", ["exact.rules.leviathan.leviathan"]),
        (f"{LEVIATHAN}file.leviathan.__code__ = file.drawn.__code__", ["exact.rules.leviathan.leviathan"]),
        (f"{LEVIATHAN}file.CARD.__dict__['rule'] = file.drawn", ["exact.rules.leviathan.CARD"]),
        ("from refengine.exact.block import Block; Block.__eq__ = lambda a, b: True", ["exact.block.Block.__eq__"]),
        ("from refengine.exact.chance import Shifted; Shifted.choose = print", ["exact.chance.Shifted.choose"]),
        ("from refengine.exact import loop; loop.generate.__defaults__ = ({0},)", ["exact.loop.generate"]),
        ("import builtins; builtins.sum = lambda values, start=0: start", ["builtins.sum"]),
        ("from fractions import Fraction; Fraction.__lt__ = Fraction.__le__", ["fractions.Fraction.__lt__"]),
        ("from refengine.engine import row; row.total = len", ["engine.row.total"]),
        ("import torch; torch.where = torch.maximum", ["torch.where"]),
        ("import torch; torch.Tensor.argmax = torch.Tensor.argmin", ["Tensor.argmax of Tensor"]),
        ("from refengine.engine.rules import leviathan; leviathan.int = round", ["engine.rules.leviathan.int"]),
    ],
    ids=lambda text: str(text)[-30:],
)
def test_what_is_read_is_what_runs(done: str, seen: list[str], forking: subprocess.Popen[str]) -> None:
    """Kills: a function, a default, a method or a word of the language that somebody puts in another's place, wherever
    it is imported from, and a name that a rule's own file does not give."""
    engine = ("refengine.engine", "refengine.engine.rules") if "torch" in done or "engine.engine" in done else ()
    packages = (*running.PACKAGES, *engine)
    assert forking.stdin is not None
    assert forking.stdout is not None
    forking.stdin.write(json.dumps([done, packages]) + "\n")
    forking.stdin.flush()
    here = json.loads(forking.stdout.readline())
    told = [name.removeprefix("refengine.") for name in running.differing(here, as_written(packages))]
    assert {*seen} <= {*told}
    assert bool(seen) == bool(told)


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
        "if path == [*path]:\n    return p",  # of a tuple, which no list is
        "if len(path) == 25:\n    return p",
        "if up:\n    return p",
        "return not left",
        "return 1 if up else 0",
        "path.append(up)",  # a place among nodes, which count from the root
        "return Round((x,), tuple(nodes))",
        "at = len(path)\nat = up",  # a place and a node
        "return p[up]",
        "return path[:up]",
        "at = [] if a else path\nreturn at[at[-1]]",
        "left = len(path) if a else up",
        "at = (*path, up)",
        "at = up\nfor x in path:\n    at = x\n    return path[at]",
        "return chance.choose(p, ('emit', len(x)))",  # an error: sites stand in no term
        "return chance.choose(p, ('emit', x))",
        "return chance.accept(left, right, ('accept', len(path) + left))",
    ],
)
def test_what_it_has_no_words_for_is_refused(text: str) -> None:
    """Kills: a translator that skips what it does not know."""
    types = {"p": "row", "q": "row", "x": "token", "a": "bool", "left": "num", "right": "num"}
    scope = Scope(set(), types | {"path": "seq nat", "up": "node", "nodes": "seq node"}, learned={})
    with pytest.raises(Untranslated, match=r"^line "):
        statements(scope, ast.parse(text).body, lambda: "raised", None)


@pytest.mark.parametrize(
    ("text", "passed_over"),
    [
        ("for j, *out[:] in enumerate(tokens): pass", "*out[:]"),
        ("at, out[1:] = 1, ()", "out[1:]"),
        ("at = [row for out.x in rows]", "out.x"),
        ("token = chance.choose(p, ('emit', at), **late)", "chance.choose(p, ('emit', at), **late)"),
        ("out.append(token, x=1)", "out.append(token, x=1)"),
        ("token = chance.choose(p, ('emit', 2 * at))", "2 * at"),
        ("token = chance.choose(p, ('emit', *(p.sort() or ())))", "*(p.sort() or ())"),
        ("p.sort()", "p.sort()"),
        ("return Round(tokens, tuple(path))", "tokens"),
        ("left = max(p, key=len)", "max(p, key=len)"),
        ("left = p[::2]", "::2"),
        ("at = left = 1", "at = left = 1"),
        ("at += 1.0", "1.0"),
        ("left = p[-1.0]", "1.0"),
        ("at = next((j async for j in p if j), None)", "(j async for j in p if j)"),
    ],
)
def test_a_part_that_the_translator_would_pass_over_is_refused(text: str, passed_over: str) -> None:
    """Kills: Python that runs and is in no theorem, because the translator reads another part of the same node."""
    (function,) = ast.parse(f"def rule():\n    {text}").body
    with pytest.raises(Untranslated, match=re.escape(f"{passed_over}: the translation would pass over this")):
        forms.check(function)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("for q in [p]:\n        left = q", "another meaning"),
        ("for at in tokens:\n        at = 1", "another meaning"),
        ("for at in tokens:\n        for at in [at]:\n            left = at", "another meaning"),
        ("for (at, q) in zip(tokens, [p], strict=True):\n        left = q", "another meaning"),
        ("for at in tokens:\n        true = at\n    left = true", "never have been"),
        ("order = reversed(tokens)", "read once"),
        ("order = [enumerate(tokens)]", "read once"),
        ("order = (x for x in tokens)", "read once"),
        ("for at in reversed(tokens) if tokens else reversed(p):\n        left = at", "read once"),
        ("left = []\n    left = (*left, at)", "it is a list"),
        ("left = []\n    return tokens + left", "it is a list"),
        ("return [at] + tokens", "it is a list"),
        ("left = at / true", "may be 0"),
        ("left = at / true if at < tokens else at", "may be 0"),
        ("if at == 0:\n        raise ValueError\n    left = true / tokens", "may be 0"),
    ],
)
def test_what_is_one_thing_in_python_and_two_in_gallina_is_refused(text: str, why: str) -> None:
    """Kills: a loop whose variable stands already, and lasts, an iterator that is empty the second time, and a quotient
    that is an error or 0."""
    (function,) = ast.parse(f"def rule(p, q, tokens):\n    {text}").body
    with pytest.raises(Untranslated, match=why):
        forms.check(function)


@pytest.mark.parametrize(
    "text",
    [
        *("[None for rows.max in [f]]", "a.b = 1", "a[0] = 1", "x, a.b = 1, 2"),
        "class Kind(Enum):\n    WHOLE: int = 1\n    def __init__(self, number): os._exit(0)",
        "class TypeVar:\n    def __init__(self, name): os._exit(0)\nT = TypeVar('T')",
        "def dataclass(cls): os._exit(0)\n@dataclass\nclass Kind: ...",
        "class Wide:\n    __class_getitem__: object = wide\nMANY = Wide[2]",
        "class Kind:\n    def __getattr__(self, name): os._exit(0)",
        "import unittest.__main__",
    ],
)
def test_a_file_that_changes_words_while_it_is_imported_is_refused(text: str) -> None:
    """Kills: another meaning of a word of the language, from the top of a file that no rule stands in."""
    with pytest.raises(Untranslated, match="it is not seen what this does"):
        words.bound(f"TIES = {text}" if text.startswith("[") else text, "row")


@pytest.mark.parametrize(
    "body",
    [
        *("sys._getframe().f_globals['max'] = min", "getattr(residual, '__globals__')['max'] = min"),
        *("getattr(type, '__setattr__')(Block, 'path', None)", "RULES['leviathan'] = residual", "RULES.clear()"),
        *("Block.path = None", "del Block.path", "kept = RULES\n    kept['block'] = row", "inspect.currentframe()"),
    ],
)
def test_a_function_that_changes_words_when_it_runs_is_refused(body: str) -> None:
    """Kills: a helper that is right the first time, and puts another function in the place of a rule's word."""
    with pytest.raises(Untranslated, match="what is no function's own may be changed by it"):
        words.bound(f"def row(weights):\n    {body}", "row")


def test_helpers_that_are_known_by_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: another meaning of `row_after` or `children` under rules that are proved with the old one."""
    text = (translate.EXACT / "block.py").read_text().replace("return p[node + 1]", "return p[node]")
    read_instead(monkeypatch, "block", text)
    with pytest.raises(Untranslated, match="row_after is not what"):
        written()


def test_a_break_and_a_continue_are_not_the_same() -> None:
    """Kills: a loop whose end is told what the next turn is told."""
    assert "out (" in translated("rules/block", "block", {"residual", "prefix_weights"})
    assert translated("row", "residual", set()).count("Num.max") == 1
