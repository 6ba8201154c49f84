"""Tie or defect: two greedy texts part, and one number says whether rounding explains it.

Two passes over one text differ by rounding. Where the two tokens that they chose are closer, in a row that neither of
them made, than honest passes were seen to differ there, the parting is a tie; where they are not, something else than
rounding chose. Used of our own decoder (logits, noise measured in the model) and of servers (log probabilities, noise
measured between answers).
"""

MARGIN = 2.0  # times the largest distance that was measured: what is measured is a few passes, what is bounded is every


def allowed(noise: float, floor: float = 0.0) -> float:
    """The largest margin that is a tie.

    noise  the largest distance between two honest passes of what the margin is a difference of
    floor  what it is at least, where few passes were measured
    """
    return max(floor, MARGIN * noise)


def tied(margin: float, noise: float, floor: float = 0.0) -> bool:
    """Whether a margin, of either sign, is a tie."""
    return abs(margin) <= allowed(noise, floor)
