"""What looks like a text that is proved right and runs otherwise: the translator refuses it, whatever it looks like.

Each is some edits of one file of `refengine/exact`. A judge who was not told how the translator works found them.
"""

import pytest

from proofs.test_translate import read_instead
from proofs.translate import rules as translate
from proofs.translate.rules import written
from proofs.translate.terms import Untranslated

Edits = tuple[tuple[str, str], ...]
RESIDUAL = "    return tuple(max(px - qx, Fraction(0)) for px, qx in zip(p, q, strict=True))"
SIGNATURE = "def leviathan(p: Sequence[Row], block: Block, chance: Chance) -> Round:"
BONUS = '    bonus = chance.choose(p[gamma], ("emit", gamma))\n'
LAST = f"{BONUS}    return Round((*block.tokens, bonus), tuple(range(gamma)))"
PASSING = "row_after(p, parent)[x] > threshold(row_after(p, parent), epsilon, delta, INSIDE_LOG)"
ENDS = "    return Round(tuple(tokens), tuple(path))"
NEXT = "    return longest_passing(p, block, passing)\n\n\ndef typical_inc"
LISTS = "    lists = [[len(path)] for n in range(len(p))]\n"
CODE = "globals().update(residual=lambda p, q: tuple(p))"

# Another text runs than the one that is read.
OF_WORDS: dict[str, tuple[str, Edits]] = {
    "a function in a function": (
        "row",
        (
            ("def residual(", "def owed("),
            (
                RESIDUAL,
                f"{RESIDUAL}\n\n\ndef rows():\n    def residual(p: Row, q: Row):\n    {RESIDUAL}\n\n\nresidual = owed",
            ),
        ),
    ),
    "a class that is a rule": (
        "rules/leviathan",
        (("rule=leviathan", '**{"rule": leviathan}'),),
    ),
    "a class under the name of a table": (
        "row",
        (
            (
                "def overlap",
                f"class RULES:\n    def items():\n        {CODE}\n\n\nDONE = RULES.items()\n\n\ndef overlap",
            ),
        ),
    ),
    "a call in a mark": (
        "row",
        (
            (
                "def overlap",
                f"def now():\n    {CODE}\n\n\nclass Seen:\n    @property(now())\n    def x(): ...\n\n\ndef overlap",
            ),
        ),
    ),
    "a class under the name of a loss": (
        "row",
        (
            (
                "def overlap",
                f"class Loss:\n    @property\n    def x(self):\n        {CODE}\n\n\nDONE = Loss().x\n\n\ndef overlap",
            ),
        ),
    ),
    "a name that is given anew": (
        "loop",
        (("def plain(", "def quick(*told):\n    return ()\n\n\ngenerate = quick\n\n\ndef plain("),),
    ),
    "another name of a class": (
        "row",
        (
            (
                "def overlap",
                f"class A:\n    def items():\n        {CODE}\n\n\nRULES = A\nDONE = RULES.items()\n\n\ndef overlap",
            ),
        ),
    ),
    "a change while it runs": ("row", (("    exact = [Fraction(w)", f"    {CODE}\n    exact = [Fraction(w)"),)),
    "a call in an error": ("policy", (('ValueError(f"top_p lies in (0, 1], got {p}")', f"ValueError({CODE})"),)),
    "a helper with a mark": (
        "rules/leviathan",
        (("CARD = ", "def residual_variable(p: Row, q: Row): ...\n\n\nCARD = "), ("(residual(", "(residual_variable(")),
    ),
}
# One variable stands for two, or a value for another.
OF_VARIABLES: dict[str, tuple[str, Edits]] = {
    "a marked name": (
        "rules/leviathan",
        (("for i, x in", "for i, z_variable in"), ("[x], q[x]", "[z_variable], q[z_variable]")),
    ),
    "a part of a part": (
        "rules/leviathan",
        ((BONUS, BONUS.replace("bonus =", "(_,), bonus =").replace("choose", "choose,")),),
    ),
    "what a loop leaves": (
        "rules/typical",
        (
            ("    passing = [\n", "    for x in block.tokens:\n        inside_log = epsilon\n    passing = [\n"),
            (PASSING, PASSING.replace("INSIDE_LOG", "inside_log")),
            (NEXT, f"    inside_log = delta\n{NEXT}"),
        ),
    ),
    "what the other branch leaves": (
        "rules/agreement",
        (("Round(tuple(tokens)", "Round((*tokens, *nil)"), ("append(hit)\n", "append(hit)\n        nil = (y,)\n")),
    ),
    "a variable of two loops": (
        "rules/leviathan",
        (
            ("    for i, x in", "    spare = 0\n    for j in range(len(p)):\n        spare += 1\n    for i, x in"),
            ("        q = drawn", "        for j in range(i):\n            there = j\n        q = drawn"),
        ),
    ),
    "a list in a list": (
        "rules/iid_candidates",
        ((ENDS, f"{LISTS}    for n, one in enumerate(lists):\n        one.append(n)\n{ENDS}"),),
    ),
    "a list of the caller": (
        "rules/typical",
        (("    likelihood = {ROOT", "    passing.append(len(p) == 0)\n    likelihood = {ROOT"),),
    ),
    "a difference that is below zero": (
        "row",
        (("max(px - qx, Fraction(0)) for", "(px - qx) / (px - px) if px - qx < px - px else px - qx for"),),
    ),
    "a divisor that is given twice": (
        "row",
        (("    if total == 0:", "    total, other = sum(weights), 0\n    if total == 0:"),),
    ),
    "a fraction less a float": ("rules/typical", ((PASSING, f"{PASSING.replace(' >', ' -')} > 0"),)),
    "what another loop leaves": (
        "rules/typical",
        (
            (
                "    passing = [\n",
                "    n, seen = len(p), [epsilon]\n    while len(seen) < n:\n        inside_log = epsilon\n"
                "        seen.append(inside_log)\n    passing = [\n",
            ),
            (PASSING, PASSING.replace("INSIDE_LOG", "inside_log")),
            (NEXT, f"    inside_log = delta\n{NEXT}"),
        ),
    ),
    "a place that is taken for a node": (
        "rules/leviathan",
        (
            ("CARD = ", "def after(p: Sequence[Row], at: int) -> Row:\n    return row_after(p, at)\n\n\nCARD = "),
            ("check_chain, drawn", "check_chain, drawn, row_after"),
            ("residual(p[i], q)", "residual(after(p, i), q)"),
        ),
    ),
    "a tuple or a condition": (
        "rules/leviathan",
        (("        q = drawn", "        same = (block.tokens or i < len(p)) == (i < len(p))\n        q = drawn"),),
    ),
    "a float that is handed on": (
        "rules/typical",
        (
            (
                "def typical(",
                "def above(weights: Sequence[Fraction], level: Fraction) -> Row:\n"
                "    return tuple(w - level for w in weights)\n\n\ndef typical(",
            ),
            (PASSING, f"above(row_after(p, parent), {PASSING.partition('> ')[2]})[x] > 0"),
        ),
    ),
    "a float under another type": ("rules/typical", (("epsilon: float = EPSILON", "epsilon: Fraction = EPSILON"),)),
}
# Two decisions have one coin.
OF_SITES: dict[str, tuple[str, Edits]] = {
    "a count of two": (
        "rules/block",
        (
            ('("accept", gamma - 1)', '("accept", gamma - gamma, gamma - 1)'),
            ('("accept", kept - 1)', '("accept", kept - kept, kept)'),
        ),
    ),
    "a count that is given anew": (
        "rules/leviathan",
        (
            (
                LAST,
                LAST.replace("bonus = ", "bonus, n = ")
                .replace("gamma))\n", "gamma)), gamma\n")
                .replace('"emit", gamma', '"emit", n')
                .replace("    bonus,", "    n = len(p)\n    bonus,", 1)
                .replace("range(gamma)", "range(n)"),
            ),
        ),
    ),
    "a return that is never reached": (
        "rules/iid_candidates",
        (
            (
                '("emit", len(path))))\n',
                '("emit", len(p))))\n    if len(p) == 0:\n        raise ValueError\n        return path\n',
            ),
        ),
    ),
    "a path that begins anew": (
        "rules/agreement",
        (
            ("    path: list[int] = []\n", "    path: list[int] = []\n    ways: list[int] = []\n"),
            (
                "tuple(path))\n        path.append(hit)",
                "tuple(ways))\n        path = []\n        path.append(hit)\n        ways.append(hit)",
            ),
        ),
    ),
    "a prefix that begins anew": (
        "loop",
        (
            ("    while", "    fake: tuple[int, ...] = ()\n    while"),
            ("prompt + out\n", "prompt + fake\n        fake = ()\n"),
            ("            out = (*out, token)", "            fake = (*fake, token)\n            out = (*out, token)"),
        ),
    ),
    "a loop that asks too": (
        "loop",
        (
            (
                "block = drafter(prefix",
                'y = chance.choose(target(prefix), ("emit", len(out)))\n        block = drafter((*prefix, y)',
            ),
        ),
    ),
    "a second rule": (
        "loop",
        (
            ("    rule: Rule,\n", "    rule: Rule,\n    program: Rule,\n"),
            (
                "        for token in rule",
                "        again = program(target_rows(target, prefix, block), block, here)\n        for token in rule",
            ),
        ),
    ),
    "two in one statement": (
        "rules/leviathan",
        ((BONUS, BONUS.replace("bonus =", "bonus, other =").rstrip() + f", {BONUS.partition('= ')[2]}"),),
    ),
    "a limit that is given anew": (
        "rules/block",
        (
            ("    if gamma == 0", "    n = len(w)\n    if gamma == 0"),
            ('("accept", gamma - 1)', '("accept", n - 1)'),
            ("reversed(range(gamma))", "reversed(range(n))"),
            ("    left: Seq", "    n = gamma\n    left: Seq"),
        ),
    ),
    "two returns": (
        "rules/leviathan",
        (
            (
                BONUS,
                f"    n = len(p)\n{BONUS.replace('gamma))', 'n))')}    if n == 0:\n"
                "        return Round((bonus,), tuple(range(n)))\n",
            ),
        ),
    ),
    "a statement and the return": (
        "rules/leviathan",
        (("*block.tokens, bonus", f"*block.tokens, {BONUS.strip().partition('= ')[2]}"),),
    ),
    "a round that may be left empty": (
        "loop",
        (
            (
                "            out = (*out, token)",
                "            if token in stop:\n                break\n            out = (*out, token)",
            ),
        ),
    ),
    "chance first": (
        "rules/leviathan",
        ((SIGNATURE, SIGNATURE.replace("(p: ", "(chance: Chance, p: ").replace(", chance: Chance)", ")")),),
    ),
    "a parameter more": ("rules/leviathan", ((SIGNATURE, SIGNATURE.replace("Chance)", "Chance, extra=0)")),)),
    "a sum of whole numbers": ("row", (("sum(weights, Fraction(0))", "sum(weights)"),)),
    "a rule's name for another": ("rules/block", (("def block(", "def leviathan(p): return p\n\n\ndef block("),)),
    "a text that is cut": ("loop", (("out = (*out, token)", "out = (*out, token)[:max_new_tokens]"),)),
}
EVERY = {**OF_WORDS, **OF_VARIABLES, **OF_SITES}


@pytest.mark.parametrize("named", EVERY)
def test_what_looks_alike_is_refused(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a text that Gallina has right, or that a reader of sites takes for another, and that runs otherwise."""
    file, edits = EVERY[named]
    text = translate.source(file)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    compile(text, file, "exec")
    read_instead(monkeypatch, file, text)
    with pytest.raises(Untranslated, match=f"{file}\\.py"):
        written()
