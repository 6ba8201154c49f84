"""Ask whether the batched text is the exact text: `python -m proofs.batched [RULE ...]` (needs z3 and torch).

Exit 0: it is, of these rules in every mode on every shape; where none is named of all, and of what they choose by. 1: a
difference.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from proofs.batched import heads, levels, picks
from proofs.batched.lanes import difference, difference_in, shapes
from proofs.batched.modes import modes, told
from proofs.batched.mutated import rule_with
from refengine.bugs.mutation.mutants import mutants
from refengine.exact.card import Card
from refengine.exact.rules import RULES


def main() -> int:
    parser = argparse.ArgumentParser(
        description="engine = exact, for all real rows: minutes.", prog="python -m proofs.batched"
    )
    parser.add_argument("rules", nargs="*", metavar="RULE", help=f"of {', '.join(RULES)}; all where none is named")
    parser.add_argument("--modes", action="store_true", help="List the modes of these rules, and ask nothing.")
    mutated = "Ask the mutants of this module, or of a rule's own file, of the one RULE; say which of them is seen."
    parser.add_argument("--mutants", metavar="MODULE", nargs="?", const="", help=mutated)
    asked = parser.parse_args()
    if unknown := {*asked.rules} - RULES.keys():
        parser.error(f"{', '.join(sorted(unknown))}: no rule of {', '.join(RULES)}")
    cards = [RULES[name] for name in asked.rules or RULES]
    if asked.modes:
        print(*(told(card.name, mode) for card in cards for mode in modes(card.rule)), sep="\n")
        return 0
    if asked.mutants is not None:
        return unseen(cards[0], asked.mutants or f"refengine.engine.rules.{cards[0].file}")
    parts = not asked.rules and (levels.difference() or picks.difference() or heads.difference())
    if parts:
        print(f"violated: {parts}")
        return 1
    return different(cards)


def different(cards: Sequence[Card]) -> int:
    for card in cards:
        for mode in modes(card.rule):
            start, asked = time.process_time(), [*shapes(card, mode)]
            if found := difference_in(card, rule_with(card, {}), mode, asked):
                print(f"violated: {found}")
                return 1
            spent = f"{time.process_time() - start:.1f} s"
            print(f"{told(card.name, mode)}: engine = exact on {len(asked)} shapes, {spent}", flush=True)
    return 0


def unseen(card: Card, module: str) -> int:
    for mutant in mutants(module):
        found = seen(card, module, mutant.source)
        print(f"{'SEEN' if found else 'UNSEEN'} {mutant.key()} {found[:150]}")
    return 0


def seen(card: Card, module: str, text: str) -> str:
    """What tells a mutant from the text that it is of."""
    if module == levels.SUMS:
        return levels.difference(text) or picks.difference(text)
    if module == heads.POLICY:
        return heads.difference(text)
    try:
        return difference(card, rule_with(card, {module: text}))
    except Exception as error:
        return f"not run: {error!r}"


if __name__ == "__main__":
    sys.exit(main())
