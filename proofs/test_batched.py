"""engine = exact for all real rows of bounded size, and what would break it (proofs/batched)."""

import pytest

pytest.importorskip("z3", reason="not tested: z3-solver is not installed")

import torch

from proofs.batched.lanes import Shape, difference, expected, trees
from proofs.batched.mutated import rule_with
from proofs.batched.sizes import SIZES, asked_of
from proofs.batched.tensor import Terms, entries
from proofs.batched.terms import ANY, Paths
from refengine.engine.rules import RULES as BATCHED
from refengine.exact.rules import RULES
from refengine.source_edits.loader import source_path

# (rule, module of refengine.engine, what stands there, what is put in its place)
MISTAKES = [
    ("leviathan", "rules.leviathan", "live = live & (x != NOTHING)", "live = live"),
    ("leviathan", "rules.leviathan", "refused = refused | (live & ~accepted)", "refused = live & ~accepted"),
    ("leviathan", "rules.leviathan", "refused | (live & ~accepted)", "refused | ~accepted"),
    ("leviathan", "rules.leviathan", "live = live & accepted", "live = accepted"),
    ("leviathan", "rules.leviathan", "check_chain(block)", "pass"),
    ("leviathan", "rules.leviathan", "at_token(p[:, i], x)", "at_token(p[:, i + 1], x)"),
    ("leviathan", "row", "(p - q).clamp(min=0.0)", "(p - q)"),
    ("leviathan", "row", "torch.where(total(rest)[:, None] > 0, rest, p)", "p"),
    ("leviathan", "path", "Round(tokens, path, accepted + 1)", "Round(tokens, path, accepted)"),
    ("leviathan", "path", "path == NOTHING, NOTHING, block", "path == NOTHING, 0, block"),
    ("leviathan", "block", "& (block.tokens != NOTHING)).any()", ").any()"),
    ("block", "rules.block", "live & (kept <= drafted)", "live"),
    ("block", "rules.block", "drafted == kept", "torch.full_like(drafted, block.tokens.shape[1]) == kept"),
    ("block", "rules.block", "torch.where(whole, d, mass + d - n)", "mass + d - n"),
    ("block", "rules.block", "mass + d - n", "mass + d"),
    ("block", "rules.block", "torch.where(below, den * scale, 1.0)", "den * scale"),
    ("block", "rules.block", "live = live & ~accepted", "pass"),
    (
        "block",
        "rules.block",
        "torch.where(accepted[:, None], torch.where((whole | (mass == 0))[:, None], row, rest), last_row)",
        "torch.where((whole | (mass == 0))[:, None], row, rest)",
    ),
    ("greedy", "rules.greedy", "torch.where(hit == NOTHING, at, hit)", "hit"),
    ("greedy", "path", "(block.parents == at[:, None]) & ", ""),
    ("agreement", "rules.agreement", "torch.where(live, y, last)", "y"),
    ("agreement", "rules.agreement", "torch.where(live, child(block, at, y), NOTHING)", "child(block, at, y)"),
    ("agreement", "path", "kept | (torch", "(torch"),
    ("point_mass", "rules.point_mass", "torch.where(refused[:, None], without(left, x), left)", "without(left, x)"),
    ("point_mass", "rules.point_mass", " & (x != NOTHING)", ""),
    ("point_mass", "rules.point_mass", "(block.parents[:, j] == at) & ", ""),
    ("point_mass", "rules.point_mass", "accepted = judged & ", "accepted = "),
    ("iid_candidates", "rules.iid_candidates", "rest_mass, mass).where(~accepted, 1.0)", "rest_mass, mass)"),
    ("without_replacement", "rules.without_replacement", ".where(~taken, 0.0)", ""),
    ("without_replacement", "rules.without_replacement", "taken = taken & ~accepted[:, None]", "pass"),
]


QUICK = ("leviathan", "greedy")  # seconds; `make prove` asks for the others too, which take minutes


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in SIZES])
def test_the_batched_text_is_the_exact_text(name: str) -> None:
    """Kills: other odds, sites, rounds or a look at what may be anything, on any row of nonnegative numbers."""
    assert difference(RULES[name], BATCHED[name], asked_of(RULES[name])) == ""


@pytest.mark.parametrize(("name", "module", "old", "new"), MISTAKES, ids=lambda text: str(text)[:40])
def test_a_mistake_in_the_text_makes_a_difference(name: str, module: str, old: str, new: str) -> None:
    """Kills: an equality that holds of everything; guards, masks and what a rule calls included."""
    module = f"refengine.engine.{module}"
    text = source_path(module).read_text()
    assert old in text
    mistaken = text.replace(old, new, 1)
    assert difference(RULES[name], rule_with(RULES[name], module, mistaken), asked_of(RULES[name]))


def test_every_lossless_rule_is_asked_about() -> None:
    """Kills: a new rule that nobody puts the question to."""
    assert SIZES.keys() == {name for name, card in RULES.items() if card.lossless}


def test_the_paths_of_the_exact_text_are_all_there() -> None:
    """Kills: an equality on fewer paths than there are: chains are refused at every place or nowhere."""
    kept = sorted(len(path.round.path) for path in expected(RULES["leviathan"], 3, (-1, 0, 1)))
    assert kept == [0, 1, 2, 3]
    assert len(list(trees(3))) == 1 + 1 + 2 + 6


def test_what_is_not_known_is_refused() -> None:
    """Kills: a word of torch that quietly means something else on terms."""
    tensor = Terms(entries((2, 2), lambda at: ANY), torch.float64, Paths())
    with pytest.raises(NotImplementedError, match="softmax has no meaning"):
        torch.softmax(tensor, 1)


def test_the_other_lane_decides_nothing() -> None:
    """Kills: numbers of the other lane taken for unknown ones of this lane."""

    def crossed(p: Terms, block: object, coins: object) -> object:
        return BATCHED["leviathan"](p[torch.tensor([1, 0])], block, coins)  # type: ignore[arg-type]

    found = difference(RULES["leviathan"], crossed, [(2, Shape(((-1,), (-1,)), 1, 0))])
    assert "is decided by what may be anything" in found
