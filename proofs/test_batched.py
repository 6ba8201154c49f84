"""engine = exact for all real rows over every vocabulary, and what would break it (proofs/batched)."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("z3", reason="not tested: z3-solver is not installed")

import torch

from proofs.batched import heads, levels, masses, picks, powers, terms
from proofs.batched.expected import expected, samenesses
from proofs.batched.lanes import NODES, Shape, difference, difference_in, shapes, trees
from proofs.batched.modes import modes, options, told
from proofs.batched.mutated import rule_with
from proofs.batched.tensor import Terms, entries
from proofs.batched.terms import ANY, Paths
from proofs.engine_texts.reached import reached
from proofs.smt import real
from proofs.translate.running import replaced
from refengine.bugs.mutation.mutants import mutants
from refengine.engine.rules import RULES as ENGINE
from refengine.exact.rules import RULES
from refengine.selfcheck.claims.claims import load
from refengine.source_edits.loader import source_path

pytestmark = pytest.mark.text

# (rule, module of refengine.engine, what stands there, what is put in its place)
MISTAKES = [
    ("leviathan", "rules.leviathan", "at_token(p[:, i], x)", "at_token(p[:, i + 1], x)"),
    ("leviathan", "path", "Round(tokens, path, accepted + 1)", "Round(tokens, path, accepted)"),
    ("leviathan", "row", "device=rows.device), place].double()", "device=rows.device), place]"),
    ("iid_candidates", "rules.iid_candidates", "q[:, j].double() * mass[:, None]", "q[:, j] * mass[:, None]"),
    (
        "iid_candidates",
        "rules.iid_candidates",
        "q[:, j].double() * mass[:, None]",
        "q[:, j].double()\n        supplied[:] = supplied * mass[:, None]",
    ),
    ("leviathan", "path", "path == NOTHING, NOTHING, block", "path == NOTHING, 0, block"),
    ("block", "rules.block", "drafted == kept", "torch.full_like(drafted, block.tokens.shape[1]) == kept"),
    ("block", "rules.block", "mass + d - n", "mass + d"),
    ("iid_candidates", "row", "torch.where(total(rest)[:, None] > 0, rest, p)", "rest"),
    ("without_replacement", "row", "torch.where(total(rest)[:, None] > 0, rest, p)", "rest"),
    ("leviathan", "block", "& (block.tokens != NOTHING)).any()", "& (block.tokens != NOTHING))[:, :2].any()"),
    ("leviathan", "block", "& (block.tokens != NOTHING)).any()", "& (block.tokens != NOTHING))[0].any()"),
    ("leviathan", "block", "(block.tokens[:, 1:] != NOTHING)).any()", "(block.tokens[:, 1:] != NOTHING))[:, :1].any()"),
    ("leviathan", "block", "(block.tokens[:, 1:] != NOTHING)).any()", "(block.tokens[:, 1:] != NOTHING))[0].any()"),
    ("leviathan", "rules.leviathan", "check_chain(block)", "block = block if block.sites else block"),
    ("leviathan", "rules.leviathan", "not live.any()", "not live.any() or (~live).sum(0) > block.tokens.shape[1] + 1"),
    ("leviathan", "rules.leviathan", "not live.any()", "not live.any() or (~live).cumsum(0)[-1] > 4"),
    ("leviathan", "rules.leviathan", "block.tokens.unbind(1)", "block.tokens.unbind(1)[:3]"),
    ("greedy", "path", "kept.sum(1)\n", "kept.sum(1)\n    last = last[torch.arange(len(last)).clamp(max=1)]\n"),
    ("typical", "rules.typical", "probability > threshold", "probability >= threshold"),
    ("typical", "rules.typical", "+ 1].double()", "+ 1].where((block.tokens != NOTHING)[:, :, None], 0.0)"),
    ("nucleus", "rules.nucleus", "head(p.double(), top_p)", "head(p, top_p)"),
    ("typical", "rules.typical", "threshold(at, epsilon, delta, INSIDE_LOG)", "threshold(at, epsilon, delta, 0.0)"),
    (
        "typical",
        "rules.typical",
        "threshold(at, epsilon, delta, INSIDE_LOG)",
        "threshold(at, delta, epsilon, INSIDE_LOG)",
    ),
    ("typical", "rules.typical", "torch.exp(-entropy)", "torch.exp(entropy)"),
    ("typical", "rules.typical", "delta: float = DELTA", "delta: float = EPSILON"),
    ("typical", "rules.typical", "likelihood[:, j + 1] >= ", "likelihood[:, j + 1] > "),
    ("typical_inclusive", "rules.typical", "probability >= threshold", "probability > threshold"),
    (
        "typical_inclusive",
        "rules.typical",
        "threshold(at, epsilon, delta, 0.0)",
        "threshold(at, epsilon, delta, INSIDE_LOG)",
    ),
    ("nucleus", "rules.nucleus", "head(p.double(), top_p)", "head(p.double(), 1 - top_p)"),
    ("nucleus", "rules.nucleus", "fast: bool = False", "fast: bool = True"),
    ("nucleus", "rules.nucleus", "row.argmax(-1) if fast else ", ""),
    ("nucleus", "rules.nucleus", "row.argmax(-1) if fast else ", "row.argmax(-1) if not fast else "),
    ("nucleus", "rules.nucleus", "kept.sum(1) > best.sum(1)", "kept.sum(1) >= best.sum(1)"),
    ("nucleus", "rules.nucleus", "row_after(filtered, tip)", "row_after(p, tip)"),
    ("nucleus", "rules.nucleus", '("agree", depth, leaf)', '("agree", depth)'),
    ("nucleus", "rules.nucleus", "value=ROOT).amax(1)", "value=0).amax(1)"),
]

# What is right over every vocabulary of two or three tokens, and wrong over a larger one.
ON_THREE_TOKENS = [
    ("leviathan", "row", "(p - q).clamp(min=0.0)", "(p - q).clamp(min=0.0)[..., :3]"),
    (
        "leviathan",
        "row",
        "(p - q).clamp(min=0.0)",
        "torch.where((p > q).sum(-1, keepdim=True) > 3, p, (p - q).clamp(min=0.0))",
    ),
    (
        "leviathan",
        "row",
        "total(rest)[:, None] > 0",
        "(total((rest > 0).double())[:, None] < 3.5) & (total(rest)[:, None] > 0)",
    ),
    (
        "leviathan",
        "row",
        "return torch.where(total(rest)",
        "k = min(rest.shape[-1], 4)\n    return torch.where(total(rest)",
    ),
    ("leviathan", "row", "rest = residual(p, q)", "rest = residual(p, q)\n    rest[:, 3:] = 0"),
    ("leviathan", "row", "x.clamp(min=0)[:, None])[:, 0]", "x.clamp(min=0, max=3)[:, None])[:, 0]"),
    (
        "leviathan",
        "row",
        "weights.gather(1, x.clamp(min=0)[:, None])",
        "weights.gather(1, (x.clamp(min=0) % 4)[:, None])",
    ),
    ("leviathan", "rules.leviathan", "live = live & (x != NOTHING)", "live = live & (x != NOTHING) & (x < 4)"),
    ("leviathan", "rules.leviathan", "live = live & (x != NOTHING)", "live = live & (x != NOTHING) & (x != 4)"),
    ("leviathan", "rules.leviathan", "coins.choose(left, ", "coins.choose(left.topk(3).values, "),
    ("leviathan", "rules.leviathan", "coins.choose(left, ", "coins.choose(left[:, torch.arange(3)], "),
    ("greedy", "rules.greedy", "row_after(p, at).argmax(-1)", "row_after(p, at)[..., :4].argmax(-1)"),
    (
        "agreement",
        "rules.agreement",
        "coins.choose(row_after(p, at), ",
        "coins.choose(row_after(p, at).cumsum(-1).clamp(max=1), ",
    ),
    ("point_mass", "rules.point_mass", "total(left)", "left[:, 0] + left[:, 1] + left[:, 2]"),
    ("point_mass", "rules.point_mass", "total(left)", "sum(left.unbind(1)[:4])"),
    # What is wrong of no place at all, of more of them than are asked about, of a number that vanishes in a sum.
    (
        "leviathan",
        "rules.leviathan",
        "left = row_at(p, depth)",
        "left = row_at(p, depth)\n    if kept.shape[1] == 0:\n        left = left * left",
    ),
    (
        "leviathan",
        "path",
        "torch.where(kept, kept",
        "torch.where(kept, (kept & ~kept[:, 1:][:, 1:][:, 1:][:, 1:][:, 1:].any(1)[:, None])",
    ),
    ("leviathan", "path", "torch.where(kept, kept", "torch.where(kept, (kept & ~kept[:, 6:].any(1)[:, None])"),
    (
        "leviathan",
        "row",
        "return weights.gather(1, x.clamp(min=0)[:, None])[:, 0]",
        "w = weights.gather(1, x.clamp(min=0)[:, None])[:, 0].double()\n"
        "    return w.where((w == 0) | (w + total(weights.double()) != total(weights.double())), 1)",
    ),
]
# The same of the sum itself: a remainder dropped, chunks, a row cut off, a tree of bounded height.
OTHER_SUMS = [
    ("if level.shape[-1] % 2 else level", "if False else level"),
    ("pad(level, (0, 1)) if level.shape[-1] % 2 else level", "level[..., : level.shape[-1] // 2 * 2]"),
    ("while level.shape[-1] > 1", "while level.shape[-1] > 4"),
    ("while level.shape[-1] > 1", "while level.shape[-1] > 1 and len(out) < 5"),
    ("while level.shape[-1] > 1:", "for _ in range(2):"),
    ("out[-1][..., 0] + out[-1][..., 1]", "out[-1][..., 0] + out[0][..., 1]"),
    ("out[-1][..., 0] + out[-1][..., 1]", "out[-1][..., 0]"),
    ("out.append(", "level = level[..., 0] if len(out) == 9 else level\n        out.append("),
    ("return pairs(weights)[1]", "return pairs(weights[..., :3])[1]"),
    ("return pairs(weights)[1]", "return weights.topk(3).values.sum(-1)"),
    ("return pairs(weights)[1]", "return pairs(weights)[0][0][..., 0][..., 0]"),
]

# The same of the head of a row: another order, another place, a token too many or too few, weights that are not added.
OTHER_HEADS = [
    ("before < p * cdf", "before <= p * cdf"),
    ("descending=True, stable=True", "descending=True, stable=False"),
    ("descending=True, stable=True", "stable=True"),
    ("cdf[..., :-1], (1, 0)", "cdf[..., :-1], (0, 1)"),
    ("torch.nn.functional.pad(cdf[..., :-1], (1, 0))", "cdf"),
    ("before < p * cdf[..., -1:]", "before < cdf[..., -1:]"),
    ("gather(-1, order).cumsum(-1)", "gather(-1, order)"),
    ("if p == 1:", "if p > 1 / 2:"),
    ("torch.ones_like(weights, dtype=torch.bool)", "torch.zeros_like(weights, dtype=torch.bool)"),
]

MODES = [(name, mode) for name, card in RULES.items() for mode in modes(card.rule)]
QUICK = ("leviathan", "greedy")  # seconds; `make prove` asks for the others too, which take minutes


@pytest.mark.parametrize(
    ("name", "mode"),
    [pytest.param(n, m, marks=() if n in QUICK else pytest.mark.long, id=told(n, m)) for n, m in MODES],
)
def test_the_batched_text_is_the_exact_text(name: str, mode: dict[str, Any]) -> None:
    """Kills: other odds, sites, rounds or a look at what may be anything, on any row of nonnegative numbers."""
    card = RULES[name]
    assert difference_in(card, rule_with(card, {}), mode, shapes(card, mode)) == ""


def test_every_rule_is_asked_about_in_every_mode() -> None:
    """Kills: a rule, a switch or a number of it that nothing is asked of, and defaults of one text alone."""
    assert {name for name, _ in MODES} == RULES.keys()
    for name, card in RULES.items():
        asked = [mode for asked, mode in MODES if asked == name]
        switches = [option for option, value in options(card.rule).items() if isinstance(value, bool)]
        assert options(rule_with(card, {})) == options(card.rule)
        assert all(mode.keys() == options(card.rule).keys() for mode in asked)
        assert len({tuple(mode[switch] for switch in switches) for mode in asked}) == len(asked) == 2 ** len(switches)


def test_what_is_asked_about_is_what_runs() -> None:
    """Kills: a listing in which another function, or an edited one, stands under the name of a rule that is right."""
    assert ENGINE.keys() == RULES.keys()
    for name, card in RULES.items():
        assert card.rule is getattr(import_module(f"refengine.exact.rules.{card.file}"), name)
        assert ENGINE[name] is getattr(import_module(f"refengine.engine.rules.{card.file}"), name)
    files = [f"rules.{card.file}" for card in RULES.values()]
    for module in ["coins", "sums", "policy", "row", "path", "block", *files]:
        name = f"refengine.engine.{module}"
        assert source_path(name) == Path(str(import_module(name).__file__))


@pytest.mark.parametrize(
    ("name", "module", "old", "new"),
    [*MISTAKES, *ON_THREE_TOKENS],
    ids=lambda text: str(text)[:40],
)
def test_a_mistake_in_the_text_makes_a_difference(name: str, module: str, old: str, new: str) -> None:
    """Kills: an equality that holds of everything; guards, masks, what a rule calls and large vocabularies included."""
    assert difference(RULES[name], mistaken(name, module, old, new))


# Texts that z3 is asked about by themselves: picks.py, levels.py, heads.py. Of the exact texts numbers alone are read.
BY_THEMSELVES = {"coins", "sums", "policy"}
# Files of several rules, and rules that between them show what each of their lines does; a rule's own file has its own.
READERS = {
    "row": ("leviathan", "point_mass", "iid_candidates"),
    "path": ("agreement", "leviathan", "typical"),
    "block": ("leviathan", "point_mass"),
    **{f"rules.{card.file}": tuple(r for r in RULES if RULES[r].file == card.file) for card in RULES.values()},
}
# Trees whose nodes are drawn are dear: a place without a draft, a child of the second sibling, one between siblings.
DRAWN = [
    Shape(((-1, -1), ()), 3, 0, (0, 1)),
    Shape(((-1, -1, 1), ()), 3, 0, (0, 1, 2)),
    Shape(((-1, 0, -1), (-1, -1, -1)), 3, 0, (0, 1, 2)),
]
# What may be left out: an end that comes early, what idle lanes hold, the sign of a power of two, any number here.
IDLE = {
    "row": {"`-torch.frexp(mass).exponent.double()` to `(torch.frexp(mass).exponent.double())`"},
    "rules.leviathan": {"`not live.any()` to `False`"},
    "rules.point_mass": {"`not judged.any()` to `False`", "`judged & ~accepted` to `(judged)`"},
    "rules.iid_candidates": {"`not judged.any()` to `False`", "`judged & ~accepted` to `(judged)`"},
    "rules.without_replacement": {"`not judged.any()` to `False`", "`judged & ~accepted` to `(judged)`"},
    "rules.agreement": {"`not live.any()` to `False`", "`torch.where(live, hit, at)` to `(hit)`"},
    "rules.block": {
        "`torch.where(there, num * at_token(p[:, i], x).double(), num)` to `(num * at_token(p[:, i], x).double())`",
        "`torch.where(there, den * at_token(q[:, i], x).double(), den)` to `(den * at_token(q[:, i], x).double())`",
        "`-torch.frexp(den).exponent.double()` to `(torch.frexp(den).exponent.double())`",
        "`kept > 0 and judged.any()` to `(kept > 0)`",
    },
    "rules.nucleus": {
        "`torch.where(live, leaf, ROOT)` to `(leaf)`",
        "`live = live & (node != NOTHING)` to `pass`",
        "`live & (node != NOTHING)` to `(live)`",
        "`not live.any()` to `False`",
        "`torch.where(live, node, at)` to `(node)`",
    },
}


def test_every_text_that_a_rule_comes_to_is_asked_about() -> None:
    """Kills: a guard that may be left out of a file of which nobody has asked it."""
    ours = {module.removeprefix("refengine.engine.") for module in reached() if ".engine." in module}
    assert ours == READERS.keys() | BY_THEMSELVES


@pytest.mark.long
@pytest.mark.parametrize("file", READERS)
def test_whatever_is_left_out_makes_a_difference(file: str) -> None:
    """Kills: a guard, a mask or a clamp that no question is about, as where a refusal leaves nothing of p."""
    module = f"refengine.engine.{file}"
    if file not in IDLE:  # else what is idle says that not everything is seen
        assert not seen_on_few_nodes(module, source_path(module).read_text())
    alike = {m.change for m in mutants(module) if left_out(m.change) and not seen_on_few_nodes(module, m.source)}
    assert alike == IDLE.get(file, set())


def left_out(change: str) -> bool:
    """A mistake by which a piece of the text is missing, but for a change of type: nothing is rounded here."""
    found = re.match("`(.*)` to `(.*)`", change)
    old, new = (part.replace(".double()", "") for part in found.groups()) if found else ("", "")
    kept = new[1:-1] if new.startswith("(") else new
    return new in ("pass", "True", "False") or (kept in old and len(kept) < len(old) > len(":-1"))


def seen_on_few_nodes(module: str, text: str) -> bool:
    try:
        for name in READERS[module.removeprefix("refengine.engine.")]:
            card, rule = RULES[name], rule_with(RULES[name], {module: text})
            dear = card.drawn and card.shape == "tree"
            every = ((mode, DRAWN if dear else shapes(card, mode, 2)) for mode in modes(card.rule))
            if any(difference_in(card, rule, mode, asked) for mode, asked in every):
                return True
    except Exception:  # a text that cannot be read, or that stops anywhere
        return True
    return False


def mistaken(name: str, module: str, old: str, new: str) -> Callable[..., Any]:
    module = f"refengine.engine.{module}"
    text = source_path(module).read_text()
    assert old in text
    return rule_with(RULES[name], {module: text.replace(old, new, 1)})


def test_the_mass_is_the_sum_of_a_row_of_any_length() -> None:
    """Kills: a sum that is right on the rows that a test has, and stands for every sum in the equality."""
    assert levels.difference() == ""


@pytest.mark.parametrize(("old", "new"), OTHER_SUMS, ids=lambda text: text[:40])
def test_another_sum_is_seen(old: str, new: str) -> None:
    """Kills: a reading of the loop over the levels that takes any loop for it."""
    text = source_path(levels.SUMS).read_text()
    assert old in text
    assert levels.difference(text.replace(old, new, 1))


# Edits of `first_above` and of what it uses that change nothing over real numbers: what they do to rounded ones is
# asked by tests alone.
ROUNDED = {"`(bar >= past_left) & (right > 0)` to `(bar >= past_left)`", "`>` to `>=`", "`0` to `(-1)`"}


def test_a_pick_is_that_of_the_exact_text() -> None:
    """Kills: a pick that goes down another side than the token of its uniform, or of another lane's."""
    assert picks.difference() == ""


def test_another_pick_is_seen() -> None:
    """Kills: an equality of picks that asks nothing: of every mutant of the text of a pick, but for what is rounded."""
    text = source_path(picks.SUMS).read_text()
    pick = text.partition("def first_above")[2]
    found = [m for m in mutants(picks.SUMS) if m.key()[1] in pick]
    assert {m.key()[2] for m in found if not picks.difference(m.source, 4)} <= ROUNDED
    assert len(found) > 30


def test_an_acceptance_is_that_of_the_exact_text() -> None:
    """Kills: `<=`, odds that are the other way round, and a product in the row's own precision."""
    assert picks.acceptance() == ""
    text, line = source_path(picks.COINS).read_text(), "return u * den.double() < num.double()"
    assert line in text
    for other in ("u * den.double() <= num.double()", "u * num.double() < den.double()", "u * den < num"):
        assert picks.acceptance(text.replace(line, f"return {other}"))


def test_the_head_is_that_of_the_exact_text_in_a_row_of_any_length() -> None:
    """Kills: a head that is right on the rows that a test has, and stands for every head in the equality."""
    assert heads.difference() == ""


@pytest.mark.parametrize(("old", "new"), OTHER_HEADS, ids=lambda text: text[:40])
def test_another_head_is_seen(old: str, new: str) -> None:
    """Kills: a head of which nothing is asked."""
    text = source_path(heads.POLICY).read_text()
    assert old in text
    assert heads.difference(text.replace(old, new, 1))


def test_the_largest_blocks_are_those_that_the_claim_names() -> None:
    """Kills: fewer blocks than the sentence says."""
    (claim,) = [claim for claim in load() if claim.id == "design.the_batched_text"]
    words = ("no", "one", "two", "three", "four")
    assert claim.statement.startswith(f"On every chain or tree of at most {words[NODES]} nodes,")


def test_the_paths_of_the_exact_text_are_all_there() -> None:
    """Kills: an equality on fewer paths than there are: chains are refused at every place or nowhere."""
    kept = sorted(len(path.round.path) for path in expected(RULES["leviathan"], {}, (-1, 0, 1), (0, 1, 2)))
    assert kept == [0, 1, 2, 3]
    (mode,) = modes(RULES["typical"].rule)
    kept = sorted(len(path.round.path) for path in expected(RULES["typical"], mode, (-1, 0), (0, 1)))
    assert kept == [0, 0, 1, 2]
    for mode in modes(RULES["nucleus"].rule):  # its draw is the candidate, or another token
        assert sorted(len(path.round.path) for path in expected(RULES["nucleus"], mode, (-1,), (0,))) == [0, 1]
    assert len(list(trees(3))) == 1 + 1 + 2 + 6
    assert len(list(samenesses(3))) == 5


def test_what_is_not_known_is_refused() -> None:
    """Kills: a word of torch that quietly means something else on terms."""
    tensor = Terms(entries((2, 2), lambda at: ANY), torch.float64, Paths())
    with pytest.raises(NotImplementedError, match="softmax has no meaning"):
        torch.softmax(tensor, 1)


def test_the_other_lane_decides_nothing() -> None:
    """Kills: numbers of the other lane taken for unknown ones of this lane."""

    def crossed(p: Terms, block: object, coins: object) -> object:
        return rule(p[torch.tensor([1, 0])], block, coins)

    rule = rule_with(RULES["leviathan"], {})
    found = difference_in(RULES["leviathan"], crossed, {}, [Shape(((-1,), (-1,)), 1, 0, (0,))])
    assert "is decided by what may be anything" in found


KEPT = (  # of what was asked before, thousands of terms
    *((masses, "NAMES"), (powers, "POWERS"), (powers, "FUNCTIONS"), (powers, "HEADS")),
    *((terms, "UNKNOWNS"), (terms, "CLASSES"), (terms, "MADE"), (terms, "SIMPLE"), (real, "ANSWERED")),
)
WITHOUT_SITE = {"builtins.exit", "_sitebuiltins.Quitter"}  # no words of a process that imports nothing else


@pytest.mark.long
def test_what_judges_is_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a judge that lets everything pass, since a file that nobody reads was imported and put it there."""
    for module, name in KEPT:
        monkeypatch.setattr(module, name, {})
    assert {*replaced(("proofs.batched",))} <= WITHOUT_SITE
