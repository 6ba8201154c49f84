"""How large the questions are: (tokens of the vocabulary, most nodes of a block) of every rule that is asked about."""

from proofs.batched.lanes import Shape, shapes
from refengine.exact.card import Card

SIZES = {
    "leviathan": ((2, 2), (3, 3)),
    "block": ((2, 2), (3, 3)),
    "greedy": ((2, 2), (3, 3)),
    "agreement": ((2, 2), (3, 3)),
    "point_mass": ((2, 2), (3, 3)),
    "iid_candidates": ((2, 3), (3, 2)),
    "without_replacement": ((2, 3), (3, 2)),
}


def asked_of(card: Card) -> list[tuple[int, Shape]]:
    """Small ones first, so that a difference shows soon."""
    return [(size, shape) for size, most in SIZES[card.name] for shape in shapes(card, most)]
