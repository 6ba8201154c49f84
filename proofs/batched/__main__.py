"""Ask whether the batched text is the exact text: `python -m proofs.batched` (needs z3 and torch).

Exit 0: of every rule on every shape. 1: a difference. `--mutants RULE [MODULE ...]` runs the mutants of the
rule's batched file, or of modules that it uses, instead, and says in which of them a difference is found.
"""

import sys
import time

from proofs.batched import levels
from proofs.batched.lanes import difference, shapes
from proofs.batched.mutated import rule_with
from refengine.bugs.mutation.mutants import mutants
from refengine.exact.card import Card
from refengine.exact.rules import RULES


def main() -> int:
    lossless = {name: card for name, card in RULES.items() if card.lossless}
    if sys.argv[1:2] == ["--mutants"]:
        if sys.argv[2] not in lossless:
            sys.exit(f"{sys.argv[2]} is not asked about: only {', '.join(lossless)}")
        return unseen(lossless[sys.argv[2]], sys.argv[3:])
    if found := levels.difference():
        print(f"violated: {found}")
        return 1
    for card in lossless.values():
        start, asked = time.process_time(), [*shapes(card)]
        if found := difference(card, rule_with(card, {}), asked):
            print(f"violated: {found}")
            return 1
        print(f"{card.name}: engine = exact on {len(asked)} shapes, {time.process_time() - start:.1f} s", flush=True)
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
        return difference(card, rule_with(card, {module: text}), [*shapes(card)])
    except Exception as error:
        return f"not run: {error!r}"


if __name__ == "__main__":
    sys.exit(main())
