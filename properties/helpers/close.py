"""How near a network's numbers come to a recording of the official code."""

from torch import Tensor


def assert_close(ours: Tensor, theirs: Tensor) -> None:
    """1e-5 of a standard deviation of at least 1; the recordings' own float32 error is 2e-6 to 4e-6."""
    assert ours.shape == theirs.shape
    assert float((ours - theirs).abs().max()) <= 1e-5 * max(1.0, float(theirs.std()) if theirs.numel() > 1 else 1.0)
