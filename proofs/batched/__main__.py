"""Ask whether the batched text is the exact text: `python -m proofs.batched` (needs z3 and torch).

Exit 0: of every rule in every mode on every shape. 1: a difference. `--modes` lists the rules and modes alone.
`--mutants RULE [MODULE ...]` runs the mutants of the rule's batched file, or of modules that it uses, instead, and says
in which of them a difference is found.
"""

import sys
import time

from proofs.batched import heads, levels, picks
from proofs.batched.lanes import difference, difference_in, shapes
from proofs.batched.modes import modes, told
from proofs.batched.mutated import rule_with
from refengine.bugs.mutation.mutants import mutants
from refengine.exact.card import Card
from refengine.exact.rules import RULES


def main() -> int:
    if sys.argv[1:] == ["--modes"]:
        print(*(told(name, mode) for name, card in RULES.items() for mode in modes(card.rule)), sep="\n")
        return 0
    if sys.argv[1:2] == ["--mutants"]:
        if sys.argv[2] not in RULES:
            sys.exit(f"{sys.argv[2]} is no rule: one of {', '.join(RULES)}")
        return unseen(RULES[sys.argv[2]], sys.argv[3:])
    if found := levels.difference() or picks.difference() or heads.difference():
        print(f"violated: {found}")
        return 1
    for card in RULES.values():
        for mode in modes(card.rule):
            start, asked = time.process_time(), [*shapes(card, mode)]
            if found := difference_in(card, rule_with(card, {}), mode, asked):
                print(f"violated: {found}")
                return 1
            spent = f"{time.process_time() - start:.1f} s"
            print(f"{told(card.name, mode)}: engine = exact on {len(asked)} shapes, {spent}", flush=True)
    return 0


def unseen(card: Card, modules: list[str]) -> int:
    for module in modules or [f"refengine.engine.rules.{card.file}"]:
        for mutant in mutants(module):
            print(
                f"{'SEEN' if (found := seen(card, module, mutant.source)) else 'UNSEEN'} {mutant.key()} {found[:150]}"
            )
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
