"""Verification rules, one file each: `rule(p, block, chance) -> Round`, and below it the rule's card.

Read `leviathan` first, then `block` (chains), `point_mass`, `iid_candidates` and `without_replacement` (trees),
`agreement` and `greedy`; `typical` and `nucleus` are lossy by design, and `truncation` is a way of drafting.
`RULES` is what stands in this folder: a rule is listed by being here.
"""

from importlib import import_module
from pkgutil import iter_modules

from refengine.exact.card import Card

RULES: dict[str, Card] = {
    card.name: card
    for file in iter_modules(__path__)
    for card in vars(import_module(f"{__name__}.{file.name}")).values()
    if isinstance(card, Card)
}
