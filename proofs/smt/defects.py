"""The classes of real defects, each a rule or a drafter that is wrong in one way, in the interface of `exact`.

`name` is the class in the catalogue (`refengine bugs`), which has the edits of the running source, where it has one;
`source` is one place where the defect shipped. Classes that one round at given rows cannot show are in `outside`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from refengine.exact.block import Block, Drafter, Round, Rule, chain, drawn
from refengine.exact.chance import Chance, Site
from refengine.exact.drafters import DraftRow, fixed, iid_tree, sampled_chain, without_replacement_tree
from refengine.exact.row import Row, argmax, normalised, residual, without
from refengine.exact.rules.iid_candidates import iid_candidates
from refengine.exact.rules.leviathan import leviathan


@dataclass(frozen=True)
class Defect:
    """One way to be wrong: the drafter made from the draft's rows, and the rule. One draft, or one list of siblings."""

    name: str
    source: str
    drafter: Callable[[DraftRow], Drafter]
    rule: Rule


def ratio_rule(
    accept: Callable[[Row, Row, int, Chance, int], bool],
    resample: Callable[[Row, Row, int], Sequence[object]],
    emit: Callable[[int], Site] = lambda i: ("emit", i),
) -> Rule:
    """The ratio rule with its acceptance, its replacement weights or its coin exchanged."""

    def rule(p: Sequence[Row], block: Block, chance: Chance) -> Round:
        for i, x in enumerate(block.tokens):
            q = drawn(block, i)
            if not accept(p[i], q, x, chance, i):
                return Round((*block.tokens[:i], chance.choose(resample(p[i], q, x), emit(i))), tuple(range(i)))
        n = len(block.tokens)
        return Round((*block.tokens, chance.choose(p[n], ("emit", n))), tuple(range(n)))

    return rule


def right_accept(p: Row, q: Row, x: int, chance: Chance, i: int) -> bool:
    return chance.accept(p[x], q[x], ("accept", i))


def right_resample(p: Row, q: Row, x: int) -> Sequence[object]:
    return or_p(residual(p, q), p)


def or_p(weights: Sequence[Fraction], p: Row) -> Sequence[Fraction]:
    """Where a defect leaves nothing to draw from, real code falls back on the target's row (or crashes)."""
    return weights if sum(weights) > 0 else p


right_rule = ratio_rule(right_accept, right_resample)


def one_draft(q: DraftRow) -> Drafter:
    return sampled_chain(q, 1)


def argmax_reports_row(q: DraftRow) -> Drafter:
    """Proposes argmax q, but says that the token was drawn from q."""
    return lambda prefix, chance: chain((argmax(q(prefix)),), (q(prefix),), (("draft", 0),))


def drawn_elsewhere(q: DraftRow) -> Drafter:
    """Draws from one row and reports another: filters, temperature or precision applied on one side only."""
    return lambda prefix, chance: chain((chance.choose(q((*prefix, -1)), ("draft", 0)),), (q(prefix),), (("draft", 0),))


def dropped_when_unlikely(q: DraftRow) -> Drafter:
    """Draws x, then drops it where q(x) < 1/2."""

    def draft(prefix: tuple[int, ...], chance: Chance) -> Block:
        block = one_draft(q)(prefix, chance)
        return block if q(prefix)[block.tokens[0]] * 2 >= 1 else chain((), (), ())

    return draft


def next_row(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Judges every draft with the row of the position after it."""
    return leviathan((*p[1:], p[-1]), block, chance)


def stale_bonus(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Draws the bonus from the row before the last draft."""
    return leviathan((*p[:-1], p[-2]), block, chance)


def first_unverified(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Commits the first draft unseen and judges the others."""
    rest = replace(block, tokens=block.tokens[1:], parents=block.parents[:-1], q=block.q[1:], sites=block.sites[1:])
    judged = leviathan(p[1:], rest, chance)
    return Round((block.tokens[0], *judged.tokens), tuple(range(len(judged.tokens))))


def rejected_stays(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Writes the correction behind the refused draft instead of over it."""
    judged = leviathan(p, block, chance)
    return judged if judged.path else replace(judged, tokens=(block.tokens[0], *judged.tokens))


def relaxed(p: Row, q: Row, x: int, chance: Chance, i: int) -> bool:
    """Accepts whatever is within 1/4 of the likeliest token; lossy by design."""
    return all(4 * (y - p[x]) <= 1 for y in p)


def redrawn(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Agreement that throws the disagreeing draw away and draws again."""
    if chance.choose(p[0], ("agree", 0)) == block.tokens[0]:
        return Round((block.tokens[0], chance.choose(p[1], ("emit", 1))), (0,))
    return Round((chance.choose(p[0], ("emit", 0)),), ())


def not_renormalised(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Point-mass candidates, each judged against p itself although earlier ones were refused."""
    left = p[0]
    for j, x in enumerate(block.tokens):
        if chance.accept(p[0][x], 1, ("accept", 0, j)):
            return Round((x, chance.choose(p[j + 1], ("emit", 1))), (j,))
        left = without(left, x)
    return Round((chance.choose(or_p(left, p[0]), ("emit", 0)),), ())


def q_of_the_first_draw(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Candidates drawn without replacement, the second one still weighed against q instead of what was left of it."""
    r = p[0]
    for j, x in enumerate(block.tokens):
        q = drawn(block, j)
        if chance.accept(r[x], q[x], ("accept", 0, j)):
            return Round((x, chance.choose(p[j + 1], ("emit", 1))), (j,))
        r = normalised(or_p(residual(r, q), p[0]))
    return Round((chance.choose(r, ("emit", 0)),), ())


def duplicates_merged(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Independent candidates where a token drawn twice is judged once."""
    if block.tokens[0] != block.tokens[1]:
        return iid_candidates(p, block, chance)
    once = Block(block.tokens[:1], block.parents[:1], block.q[:1], block.sites[:1])
    return iid_candidates(p[:2], once, chance)


DEFECTS = (
    Defect(
        "accepts always",
        "transformers PR 28508; vllm-ascend 13730",
        one_draft,
        ratio_rule(lambda p, q, x, chance, i: True, right_resample),
    ),
    Defect(
        "ratio upside down",
        "a common slip",
        one_draft,
        ratio_rule(lambda p, q, x, chance, i: chance.accept(q[x], p[x], ("accept", i)), lambda p, q, x: p),
    ),
    Defect(
        "resample from target",
        "Spec-RL 14",
        one_draft,
        ratio_rule(right_accept, lambda p, q, x: p),
    ),
    Defect(
        "one-hot residual",
        "xllm PR 2175",
        one_draft,
        ratio_rule(right_accept, lambda p, q, x: without(p, x)),
    ),
    Defect(
        "one coin for two uses",
        "sglang PR 7231",
        one_draft,
        ratio_rule(right_accept, right_resample, emit=lambda i: ("accept", i)),
    ),
    Defect(
        "draft and verifier share coins",
        "llama.cpp PR 27694; coupled noise in vLLM",
        one_draft,
        ratio_rule(lambda p, q, x, chance, i: chance.accept(p[x], q[x], ("draft", i)), right_resample),
    ),
    Defect("greedy proposal, soft q", "transformers 33534, 47932", argmax_reports_row, right_rule),
    Defect("raw row as q", "transformers 47932; DeepSpec 31", drawn_elsewhere, right_rule),
    Defect("value-dependent truncation", "confidence truncation", dropped_when_unlikely, leviathan),
    Defect("row slip", "TensorRT-LLM PR 15098", one_draft, next_row),
    Defect("bonus from the row before", "vllm 44006; min_p on the bonus only, 42744", one_draft, stale_bonus),
    Defect("first draft unverified", "lattice 243", one_draft, first_unverified),
    Defect("rejected token stays", "lucidrains 3 (disputed)", one_draft, rejected_stays),
    Defect(
        "lossy by design: relaxed-acceptance",
        "TensorRT-LLM PR 3865",
        one_draft,
        ratio_rule(relaxed, right_resample),
    ),
    Defect(
        "lossy by design: synthetic-acceptance",
        "vllm 41035",
        one_draft,
        ratio_rule(lambda p, q, x, chance, i: chance.accept(1, 2, ("accept", i)), right_resample),
    ),
    Defect(
        "siblings not renormalised",
        "trees of candidates drawn without replacement",
        lambda q: without_replacement_tree(q, (2,)),
        q_of_the_first_draw,
    ),
    Defect("agreement draws again after a mismatch", "Medusa, nucleus mode", one_draft, redrawn),
    Defect(
        "candidates without renormalisation",
        "trees of deterministic candidates",
        lambda q: fixed(lambda prefix: ((0, 1), (-1, -1))),
        not_renormalised,
    ),
    Defect("equal candidates merged", "trees of sampled candidates", lambda q: iid_tree(q, (2,)), duplicates_merged),
)
