"""Ask whether the batched text is the exact text: `python -m proofs.batched` (needs z3 and torch).

Exit 0: of every rule on every shape. 1: a difference. `--mutants RULE [MODULE ...]` runs the mutants of the
rule's batched file, or of modules that it uses, instead, and says in which of them a difference is found.
"""

import sys
import time

from proofs.batched import levels
from proofs.batched.lanes import difference
from proofs.batched.mutated import rule_with
from proofs.batched.sizes import SIZES, asked_of
from refengine.bugs.mutation.mutants import mutants
from refengine.exact.card import Card
from refengine.exact.rules import RULES


def main() -> int:
    if sys.argv[1:2] == ["--mutants"]:
        if sys.argv[2] not in SIZES:
            sys.exit(f"{sys.argv[2]} is not asked about: only {', '.join(SIZES)}")
        return unseen(RULES[sys.argv[2]], sys.argv[3:])
    if found := levels.difference():
        print(f"violated: {found}")
        return 1
    for name in SIZES:
        start, shapes = time.process_time(), asked_of(RULES[name])
        if found := difference(RULES[name], rule_with(RULES[name], {}), shapes):
            print(f"violated: {found}")
            return 1
        print(f"{name}: engine = exact on {len(shapes)} shapes, {time.process_time() - start:.1f} s", flush=True)
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
        return levels.difference(text)
    try:
        return difference(card, rule_with(card, {module: text}), asked_of(card))
    except Exception as error:
        return f"not run: {error!r}"


if __name__ == "__main__":
    sys.exit(main())
