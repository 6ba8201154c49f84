"""The definition: every rule once, scalar, over exact rationals, on the standard library alone."""
