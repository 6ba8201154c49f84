"""That the engine's texts have no words of which the equality on z3's terms says nothing: where they run, on how many
lanes, with what numbers, and what is changed in place or while a file is imported."""

import ast
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("z3", reason="not tested: z3-solver is not installed")

import torch
import z3

from proofs.batched.tensor import Terms, entries
from proofs.batched.terms import Paths, Stray
from proofs.engine_texts import reached as following
from proofs.engine_texts.counting import counting
from proofs.engine_texts.defining import undefined
from proofs.engine_texts.reached import reached
from proofs.engine_texts.telling import telling
from refengine.engine.rules import RULES
from refengine.source_tree import PACKAGE

pytestmark = pytest.mark.text

REACHED = reached()
ENGINE = [module for module in REACHED if module.startswith("refengine.engine.")]
# What it has of the exact texts.
SHARED = {"Site: TypeAlias = tuple[str | int, ...]", "TOP_P = Fraction(4, 5)"}
SHARED |= {"EPSILON, DELTA, INSIDE_LOG = (0.09, 0.3, 1e-05)"}
# Where a text goes along the vocabulary: levels.py, picks.py and heads.py watch what it does there.
ALONG = {
    "refengine.engine.sums": {"level.shape[-1] > 1", "level.shape[-1] % 2", "even.shape[-1] // 2", "goes_right.add"},
    "refengine.engine.policy": {"p == 1", "logits.sort", "logits.sort(descending=True, stable=True).indices"},
}


@pytest.mark.parametrize("file", [f for room in ("exact", "engine") for f in sorted((PACKAGE / room).rglob("*.py"))])
def test_no_text_binds_a_word_of_the_language(file: Path) -> None:
    """Kills: `__builtins__ = ...`, by which `enumerate` is another function in that file alone."""
    tree = ast.parse(file.read_text("utf-8"))
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    given = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
    assert {name for name in stored | given if name.startswith("__")} <= {"__all__"}


def test_every_text_of_the_engine_is_followed() -> None:
    """Kills: a list of files, beside which a rule's words may be moved to another one that nobody reads: a function, or
    a number above two, of an exact text."""
    rooms = [f"rules.{name}" for name in {rule.__module__.rsplit(".", 1)[-1] for rule in RULES.values()}]
    assert {f"refengine.engine.{room}" for room in (*rooms, "row", "path", "block", "sums", "policy")} <= {*REACHED}
    beyond = {line for module in REACHED if module not in ENGINE for line in REACHED[module].splitlines()}
    assert {line for line in beyond if not line.startswith(("from fractions ", "from typing "))} == SHARED, (
        "of the exact texts these numbers alone: no function"
    )


@pytest.mark.parametrize(
    "text",
    [
        "from refengine.engine.policy import Gone\ndef rule(p): return Gone",
        "import refengine.engine.row as torch\ndef rule(p): return torch.gather",
        "from refengine.engine import row\ndef rule(p): return row.gather(p)",
        "SEEN = []\ndef rule(p): SEEN.append(p)",
        "SEEN = (seen() for seen in ())\ndef rule(p): return SEEN",
        "def rule(p, seen=[]): return p",
        "def rule(p): rule.shape = p",
        "COUNT = 0\ndef rule(p):\n    global COUNT\n    COUNT = COUNT - 1",
        "@cache\ndef rule(p): return p",
        "class Seen:\n    given = []\ndef rule(p): return Seen.given",
    ],
)
def test_what_is_no_definition_or_lasts_is_refused(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kills: a module that is handed whole, and what one call leaves for the next: z3 asks about the first calls."""
    (tmp_path / "rule.py").write_text(text)
    plain = following.source_path
    monkeypatch.setattr(following, "source_path", lambda m: tmp_path / "rule.py" if m == "rule" else plain(m))
    with pytest.raises(following.Unreadable):
        following.follow("rule", "rule", {})


@pytest.mark.parametrize("module", ENGINE)
def test_no_text_has_a_number_above_two(module: str) -> None:
    """Kills: a loop over the first four nodes, which is right on the three that the equality is asked about."""
    tree = ast.parse(REACHED[module])
    numbers = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) in (int, float)}
    assert numbers <= {0, 1, 2}


@pytest.mark.parametrize("module", ENGINE)
def test_no_text_reckons_with_the_numbers_of_nodes(module: str) -> None:
    """Kills: `depth // 2` or the fourth of anything, which is right on the blocks of few nodes that are asked about."""
    found = counting(REACHED[module])
    assert found == ALONG.get(module, set()), "say it otherwise: it may be right on few nodes alone"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "depth // 2",
            "depth % 2",
            "depth ** 2",
            "depth >> 1",
            "2 * depth",
            "depth - 2",
            "1 - depth",
            "depth - 1 - 1",
        ),
        *("depth == 2", "depth > 1", "depth < -1", "p.shape[1] + p.shape[1]", "nodes.remainder(2)", "nodes.lt(2)"),
        *("torch.floor_divide(nodes, 2)", "torch.arange(n).sub(1).sub(1)", "torch.get_num_threads()"),
        *("[j + j for j in range(n)]", "up - 1 if (up := depth) else 0"),
    ],
)
def test_what_reckons_with_them_is_seen(text: str) -> None:
    """Kills: a reader that lets a number of its own, or a word by which torch reckons, through."""
    assert counting(f"up = depth - 1\nfew = {text}")


@pytest.mark.parametrize(
    "text",
    [
        *("from torch import get_num_threads", "import torch.backends.mkl", "import os"),
        *("from typing import _type_repr as told", "from typing import _cleanups as seen"),
    ],
)
def test_a_word_of_the_process_is_seen(text: str) -> None:
    """Kills: a branch for a number of threads, or for what a tensor prints as: a name that is imported alone is one of
    its module's words too; and a list of another module, which lasts from one call to the next."""
    assert counting(text)


def test_a_number_that_is_handed_on_is_seen() -> None:
    """Kills: a depth that is moved once in each of several functions, until it is that of a node nobody asked about."""
    given = Terms(entries((1,), lambda at: 1), torch.int64, Paths())
    assert (given - 1).decided().tolist() == [0]
    for reckoned in (lambda x: x - 1 - 1, lambda x: (x - x) - x, lambda x: x + x, lambda x: x * 2, lambda x: -x):
        with pytest.raises(NotImplementedError, match="may be wrong of those"):
            reckoned(given)
    with pytest.raises(NotImplementedError, match="may be wrong of those"):
        torch.where(given > 0, (given - 1)[:, None], 0)[:, 0] - 1


def test_a_large_number_that_is_made_is_seen() -> None:
    """Kills: `(w + 2**32) - 2**32`, which is w among the reals and w without its last bits in floats."""
    given = Terms(entries((1,), lambda at: z3.Real("w")), torch.float64, Paths())
    two = torch.ones_like(given) + torch.ones_like(given)
    assert two.array[0] == 2
    for made in (
        lambda: two * two,
        lambda: two + 1,
        lambda: given - given + two + 1,
        lambda: -(two + given) - 1 + given,
    ):
        with pytest.raises(NotImplementedError, match="above two"):
            made()
    with pytest.raises(LookupError, match="no row's"):
        torch.exp(two)


def test_a_lane_that_is_looked_at_alone_is_seen() -> None:
    """Kills: `live[:2].any()`, by which a text stops when the first two of three lanes have ended."""
    given = Terms(entries((3, 2), lambda at: 1), torch.int64, Paths())
    assert given[:, 0].decided().tolist() == given[torch.arange(3), 0].decided().tolist() == [1, 1, 1]
    for looked in (lambda x: x[:2], lambda x: x[0], lambda x: x[1:, 0], lambda x: x[-1, 0]):
        with pytest.raises(NotImplementedError, match="some lanes"):
            looked(given)


@pytest.mark.parametrize("module", ENGINE)
def test_no_text_can_tell_where_it_runs(module: str) -> None:
    """Kills: a branch for float32 rows, for a device, for torch's own tensors or for a number of lanes, of which the
    equality asks about one."""
    assert telling(REACHED[module]) == set(), "say it otherwise: it may do something else where z3 does not look"


@pytest.mark.parametrize(
    "text",
    [
        "q = torch.maximum(q, p) if p.dtype == torch.float32 else q",
        "best = (row.half() if isinstance(row, Tensor) else row).argmax(-1)",
        "if p.device.type == 'cuda': pass",
        "if 'cuda' in str(p.device): pass",
        "if len(p) > width: pass",
        "if block.tokens.shape[0] == width: pass",
        "lanes, n = p.shape\nif lanes > n: pass",
        "few = p.ndim == 2",
        "few = range(len(p))",
        "if torch.is_tensor(p): refused = refused & (depth < 2)",
        "few = depth < 2 ** (2**2)",
        "few = 1 if block.tokens.shape[-2] < 2 else 0",
        "lanes, *_ = p.shape[:1]\nif lanes > 2: pass",
        "try:\n    p.world\nexcept AttributeError:\n    p = q",
        "live = torch.arange(len(p), device=p.device) < 2",
        "lanes = torch.arange(len(p), device=p.device)\nlive = live & (lanes == 2)",
        "lanes, n = p.shape\nlive = torch.arange(lanes, device=p.device)[:, None] < 2",
        "live &= accepted",
        "p.sub_(q)",
        "for j, x in enumerate(block.tokens.unbind(1)[: 2 + 2]): pass",
        "likelihood = torch.ones((lanes, 2), dtype=torch.float16, device=p.device)",
        "left = p.half()",
        "match p:\n    case Tensor(): pass",
        "left = torch.where(**{'condition': p})",
        "for j, x in enumerate(block.tokens.unbind(1)[: int('6')]): pass",
        "few = range(len('abcdef'))",
        "few = depth < len([0, 0, 0, 0])",
        "few = torch.full_like(at, len(p)) > at",
        "late = torch.ones((1, len(p)), dtype=torch.bool, device=p.device).cumsum(1).unbind(0)[0]",
        "large = torch.ones((1, 2, 2, 2, 2), dtype=torch.bool, device=p.device).reshape(1, -1).sum(1)",
        "large = torch.ones(1, 2, 2, 2, 2, dtype=torch.bool, device=p.device).reshape(1, -1).sum(1)",
        "nodes, root = pairs(p)\nnodes = nodes[1:]",
        "_, *nodes = pairs(p)[0]",
        "lanes, n = p.shape\nfew = torch.full((n,), lanes, device=p.device)",
        "live = torch.arange(1, len(p), device=p.device)",
        "if p.__class__ is Tensor: p = q",
        "if 'cuda' in f'{p}': p = q",
        "if __file__: p = q",
        "at = torch.full((len(p),), ROOT)",
        "at = torch.full((len(p),), ROOT, device='cpu')",
        "DEEP = float('250')\ndef rule(p): return p",
        "class Deep:\n    at = int('250')\ndef rule(p): return p",
    ],
)
def test_what_tells_where_it_runs_is_seen(text: str) -> None:
    """Kills: a reader that lets everything through."""
    assert telling(text)


# What `sums.total` does not add up: marks, which are counted, and what policies and typical acceptance add.
COUNTED = {"kept", "best", "block.tokens != NOTHING", "level", "above"}
ADDED = {"weights.gather(-1, order)", "torch.special.xlogy(rows, rows + inside_log)"}
ADDS = {"sum", "cumsum", "nansum", "mean", "einsum", "matmul", "mm", "mv", "dot", "inner", "logsumexp", "trapezoid"}


@pytest.mark.parametrize("module", sorted({*ENGINE} - {"refengine.engine.sums"}))
def test_rows_are_added_up_in_one_order(module: str) -> None:
    """Kills: the mass of a row by torch's sum, which z3 takes for that of `sums.total`, and whose order of additions
    depends on the device, the layout and the batch."""
    others = added(REACHED[module]) - (COUNTED | ADDED)
    assert others == set(), "rows are added up by `sums.total`; what is counted are marks, under the names in COUNTED"


@pytest.mark.parametrize("text", ["left.sum(1)", "torch.sum(left, 1)", "left @ ones", "torch.einsum('ij->i', left)"])
def test_what_adds_otherwise_is_seen(text: str) -> None:
    """Kills: a reader of one way to add."""
    assert added(text)


def added(text: str) -> set[str]:
    """What a text adds up."""
    found = set[str]()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(ast.Attribute(of, attr)) if attr in ADDS:
                found.add(ast.unparse(of))
            case ast.BinOp(op=ast.MatMult()):
                found.add(ast.unparse(node))
    return found


DEFINING = [file for file in sorted((PACKAGE / "engine").rglob("*.py")) if file.name != "__init__.py"]  # those are held


@pytest.mark.parametrize("file", DEFINING, ids=lambda file: file.stem)
def test_a_file_of_the_engine_only_defines_its_words(file: Path) -> None:
    """Kills: a file that puts another function in a rule's place as it is imported: what runs is not what z3 read."""
    assert undefined(file.read_text(), filled=file.parent.name == "kernels") == set()


@pytest.mark.parametrize(
    "text",
    [
        "RULES['block'] = RULES['leviathan']",
        "if debug:\n    from refengine.engine.row import without as residual",
        "class Quiet:\n    if debug:\n        from refengine.engine.row import without as residual",
        "_done = setattr(row, 'residual', without)",
        "@taught(row)\ndef rule(): pass",
        "@taught\ndef rule(): pass",
        "def rule(p=setattr(row, 'residual', without)): pass",
        "class Quiet:\n    vars(row).update(residual=without)",
        "row.__dict__.update(residual=without)",
        "class Wide:\n    def __class_getitem__(cls, n): row.residual = without\nMANY = Wide[50]",
        "class Wide(metaclass=Other): ...",
        "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None",
        "def cache(f): row.residual = without\n@cache\ndef rule(): pass",
        "from refengine.engine.row import partial\nWIDE = partial()",
        "from functools import reduce as cache",
        "from functools import wraps\nwraps = taught",
        "@dataclass\nclass Textless:\n    def __post_init__(self): row.residual = without\nNONE = Textless()",
        "@dataclass\nclass Textless:\n    def __add__(self, other): row.residual = without\nNONE = Textless() + 1",
        "@dataclass\nclass Textless:\n    x: object = field(default_factory=taught)\nNONE = Textless()",
        "class Base:\n    def __init__(self): row.x = 1\nclass Textless(Base):\n    x: int\nNONE = Textless()",
        "class Textless:\n    @property\n    def x(self): row.residual = without\nNONE = Textless().x",
        "class Kind(Enum):\n    WHOLE: int = 1\n    def __init__(self, n): row.residual = without",
        "from enum import Enum as Protocol\nclass Kind(Protocol):\n    WHOLE = 1",
        "class Wide:\n    __class_getitem__: object = taught\nMANY = Wide[50]",
        "from refengine.engine.row import row_at as __getattr__",
        "def __dir__(): row.residual = without",
        "import unittest.__main__",
        "from numba import njit\n@njit('f8(f8)')\ndef rule(p): return p",
    ],
)
def test_a_file_that_does_more_is_seen(text: str) -> None:
    """Kills: a reader that lets a branch, a mark or a call through, by which a word means something else."""
    assert undefined(text)


ROW = "from refengine.engine import row\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{ROW}def check(p):\n    row.residual = lambda p, q: p",
        f"{ROW}def check(p):\n    words = row\n    words.residual = total",
        f"{ROW}def check(p, kept=[row]):\n    return p",
        "def check(p):\n    from refengine.engine import row\n    row.residual = total",
        "KNOWN = {}\ndef check(p):\n    KNOWN['residual'] = total",
        "KNOWN = {}\ndef check(p):\n    known = KNOWN\n    known['residual'] = total",
        "KNOWN = {}\ndef check(p):\n    KNOWN.update(residual=total)",
        "KNOWN = {}\ndef check(p):\n    KNOWN.setdefault('of', {})['residual'] = total",
        "class Check:\n    def rows(self, p):\n        del KNOWN['residual']",
        "import sys\ndef check(p):\n    sys.modules['torch'] = p",
        "import torch\ndef check(p):\n    torch.set_default_dtype(torch.float16)",
        "def check(p):\n    frame = p.run.gi_frame",
        "def check(p):\n    total.__code__ = p",
        "def check(p):\n    getattr(total, '__glo' 'bals__')['residual'] = p",
        "def check(p, word):\n    return getattr(total, word)",
        "def check(p):\n    vars(p)",
        "def check(p):\n    setattr(p, 'residual', total)",
        f"{ROW}def words(p):\n    return row.KNOWN\ndef check(p):\n    words(p)['residual'] = total",
        "from importlib import import_module\ndef check(p):\n    import_module('refengine.engine.row')",
        "from torch import Tensor\ndef check(p):\n    for kind in (Tensor,):\n        kind.argmax = p",
        "from torch import Tensor\ndef put(kind):\n    return kind\ndef check(p):\n    put(Tensor)",
        "KNOWN = {}\ndef check(p):\n    (known,) = [KNOWN]\n    known['total'] = p",
        "KNOWN = {}\ndef check(p):\n    known = KNOWN if p else {}\n    known['total'] = p",
        "KNOWN = {}\ndef check(p):\n    few = [KNOWN for KNOWN in ()]\n    KNOWN['total'] = p",
        "KNOWN = {}\ndef check(p):\n    put = KNOWN.update\n    put(total=p)",
        "KNOWN = {}\ndef check(p):\n    return [*map(KNOWN.update, [{'total': p}])]",
        "def check(p):\n    look = getattr\n    look(p, 'words')['total'] = p",
        "def check(p):\n    from sys import modules as known\n    known.get('torch')['total'] = p",
        "def check(p):\n    match p:\n        case object(__globals__=known):\n            known['total'] = p",
        "KNOWN = {}\ndef check(p):\n    if (known := KNOWN):\n        known['total'] = p",
        "from functools import update_wrapper\ndef check(p):\n    update_wrapper(p, p, assigned=('__code__',))",
        "class Check:\n    def rows(self, p):\n        self.kind = p\n        self.kind.argmax = p",
        "def check(p):\n    p[:, 0] = 1",
        "def check(p):\n    rows = p.view(-1)\n    rows[0] = 1",
        "import torch\ndef check(p):\n    torch.use_deterministic_algorithms(True)",
        "def check(p):\n    from unittest import mock\n    mock.patch('refengine.engine.row.residual', total).start()",
        "from unittest import mock\ndef check(p):\n    return mock.patch('torch.where', p).start()",
        "from inspect import getmembers\ndef check(p):\n    dict(getmembers(lambda: 0))",
        "from typing import ForwardRef\ndef check(p):\n    ForwardRef('total')",
        "import torch\ndef check(p):\n    torch.load('rows')",
        "import torch\ndef check(p):\n    getattr(torch, 'load')('rows')",
        "import torch.hub\ndef check(p):\n    return torch.hub",
        f"{ROW}def check(p):\n    row.torch.load('rows')",
        "from refengine.engine.row import torch\ndef check(p):\n    return torch.load('rows')",
        "def check(self, p):\n    self.residual = p",
        "class Check:\n    def rows(self, p):\n        for self in p:\n            self.residual = p",
        "class Check:\n    def rows(self, p):\n        return lambda self: [0 for self.residual in p]",
        "class Check:\n    def rows(self, p):\n        match p:\n            case self: self.residual = p",
        "class Check:\n    def rows(*, self):\n        self.residual = 1",
        "from refengine.engine.row import total as self\nclass Check:\n    def rows(p):\n        self.residual = p",
        "import random\ndef check(p):\n    random.Random(1).shuffle(p)",
        "KNOWN = {}\ndef check(p):\n    KNOWN.__init__(total=p)",
        "def check(p):\n    p._words = 1",
        "def check(p):\n    return p._words",
        "def check(p):\n    def noted(rows: (p := 1)) -> None: ...",
        "KNOWN = {}\ndef check(p):\n    def noted(rows: KNOWN.update(total=p)) -> None: ...",
        f"{ROW}def check(p):\n    @taught(row)\n    def noted(rows): ...",
        "def check(p: Tensor) -> (total := max): ...",
        "def check(p):\n    p.copy_(p.roll(1, -1))",
        "def check(p):\n    put = p.zero_",
        "def check(p):\n    p.double().unbind(1)[0][0] = 1",
        "def check(p):\n    p.untyped_storage().fill_(0)",
        "def check(p):\n    p *= 2",
        "def check(p):\n    torch.mul(p, 0, out=p)",
        "KNOWN = {}\ndef check(p):\n    known = KNOWN\n    known |= {'total': p}",
        "KNOWN = {}\ndef check(p):\n    list(KNOWN.values())[0].update(total=p)",
        "COUNT = 0\ndef check(p):\n    global COUNT",
        "NOTED = (total := max)",
        "from torch import set_default_dtype\ndef check(p):\n    set_default_dtype(p)",
    ],
)
def test_a_function_that_may_change_what_is_not_its_own_is_seen(text: str) -> None:
    """Kills: a word of the rules that is another one once something was asked for, from a file that no rule reads."""
    assert undefined(text)


@pytest.mark.parametrize(
    "text",
    [
        "def check(p):\n    out = p.clone()\n    out[0] = 1\n    return out",
        "def check(p, out):\n    out[0] = 1",
        "def check(p):\n    known = {}\n    known.setdefault(p, []).append(1)",
        "class Coins:\n    def toss(self):\n        self.count += 1",
        "def check(p):\n    return p.softmax(-1).sort(descending=True), torch.sort(p), p.double().add(p)",
        "def check(p):\n    p.clone()[0] = 1\n    rows = torch.zeros(3)\n    rows[0] = 1\n    rows.view(-1)[0] = 2",
        "def check(xs):\n    order = sorted(xs)\n    order.pop()\n    return [*xs].pop()",
        "def check(table, x):\n    table.get(x).append(x)",
        "START = (0,)\ndef check(x):\n    out = [*START]\n    out[0] = x\n    return out",
        f"{ROW}def check(p):\n    return row.residual(p, p), getattr(p, 'device', None)",
        "KNOWN = {}\ndef check(p):\n    return len(KNOWN), sorted(KNOWN), [x for x in KNOWN]",
        "import torch\ndef check(p):\n    rows = torch.zeros(3)\n    rows += 1\n    return rows.fill_(1)",
        "def check(p: list[int | None], kind: 'Tensor') -> tuple[int, ...]:\n    def inner(x: int) -> int: ...",
    ],
)
def test_what_a_function_makes_it_may_change(text: str) -> None:
    """Kills: a reader that refuses a table of a function's own."""
    assert undefined(text) == set()


def test_two_values_at_one_place_may_be_anything() -> None:
    """Kills: a text that relies on which of two values stays where both are put, which torch does not say."""
    world = Paths()
    there = lambda *values: Terms(np.array([values], dtype=object), torch.int64, world)  # noqa: E731
    rows = there(0, 0, 0).scatter(1, there(0, 0, 1, 1), there(5, 6, 7, 7))
    assert isinstance(rows.array[0, 0], Stray)
    assert list(rows.array[0, 1:]) == [7, 0]


def test_a_rule_stands_in_one_file_of_the_engine() -> None:
    """Kills: a right function that another file lists under a rule's name, in place of the one that is imported."""
    files = [
        import_module(f"refengine.engine.rules.{file.stem}") for file in (PACKAGE / "engine/rules").glob("[!_]*.py")
    ]
    found = [(name, made) for file in files for name, made in vars(file).items() if name in RULES]
    assert {name for name, made in found if made is not RULES[name]} == set()
    assert {name for name, made in found} == {*RULES}
