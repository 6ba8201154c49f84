"""refengine: the referee of speculative decoding."""

__version__ = "0.1.0"
