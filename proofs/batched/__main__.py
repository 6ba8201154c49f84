"""Ask whether the batched text is the exact text: `python -m proofs.batched` (needs z3 and torch).

Exit 0: of every rule on every shape. 1: a difference. `--mutants RULE [MODULE ...]` runs the mutants of the
rule's batched file, or of modules that it uses, instead, and says in which of them a difference is found.
"""

import sys
import time

from proofs.batched.lanes import difference
from proofs.batched.mutated import rule_with
from proofs.batched.sizes import SIZES, asked_of
from refengine.bugs.mutation.mutants import mutants
from refengine.engine.rules import RULES as BATCHED
from refengine.exact.rules import RULES


def main() -> int:
    if sys.argv[1:2] == ["--mutants"]:
        return unseen(sys.argv[2], sys.argv[3:])
    for name in SIZES:
        start = time.process_time()
        found = difference(RULES[name], BATCHED[name], asked_of(RULES[name]))
        if found:
            print(f"violated: {found}")
            return 1
        print(f"{name}: engine = exact on {len(asked_of(RULES[name]))} shapes, {time.process_time() - start:.1f} s")
    return 0


def unseen(name: str, modules: list[str]) -> int:
    card = RULES[name]
    for module in modules or [f"refengine.engine.rules.{card.file}"]:
        for mutant in mutants(module):
            try:
                found = difference(card, rule_with(card, module, mutant.source), asked_of(card))
            except Exception as error:
                found = f"not run: {error!r}"
            print(f"{'SEEN' if found else 'UNSEEN'} {mutant.key()} {found[:150]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
