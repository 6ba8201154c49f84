"""The bound that `refengine law` prints is the one that is proved."""

import re
from fractions import Fraction

from refengine.commands.rounding import block_off, iid_off, levels, pick_off, point_off, ratio_off, without_off
from refengine.selfcheck.claims.coq_text import SOURCES

NAMES = "ratio|pick|point|iid|without|block"
NUMBER = re.compile(rf"Example \w+ : ({NAMES})_off_at ([\d ]+?) ?(?:\(frac (\d+) (\d+)\) )?=\s+frac (\d+) (\d+)\.")


def test_the_number_is_coqs() -> None:
    """Kills a formula that differs from the theorem's: Coq has evaluated its own on twenty instances."""
    found = NUMBER.findall((SOURCES / "EndToEndInstances.v").read_text())
    assert len(found) == 20
    for name, sizes, *parts in found:
        vocabulary, height, third, fourth, *fifth = map(int, sizes.split())
        assert height == levels(vocabulary)
        proved = Fraction(int(parts[2]), int(parts[3]))
        if name in ("iid", "without", "block"):
            bound = {"iid": iid_off, "without": without_off, "block": block_off}[name]
            assert bound(vocabulary, third, Fraction(int(parts[0]), int(parts[1])), fourth, *fifth) == proved
        elif name == "ratio":
            assert ratio_off(vocabulary, Fraction(int(parts[0]), int(parts[1])), third, fourth) == proved
        elif name == "point":
            assert point_off(vocabulary, third, fourth, *fifth) == proved
        else:
            assert pick_off(vocabulary, third, fourth) == proved
