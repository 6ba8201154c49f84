"""How large the questions are: the most nodes of a block of every rule that is asked about, over any vocabulary."""

from proofs.batched.lanes import Shape, shapes
from refengine.exact.card import Card

SIZES = {
    "leviathan": 3,
    "block": 3,
    "greedy": 3,
    "agreement": 3,
    "point_mass": 3,
    "iid_candidates": 3,
    "without_replacement": 3,
}


def asked_of(card: Card) -> list[Shape]:
    """Small ones first, so that a difference shows soon."""
    return list(shapes(card, SIZES[card.name]))
