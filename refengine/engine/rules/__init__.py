"""Verification rules, one file each, the batched twins of `refengine.exact.rules`.

Every rule is `rule(p, block, coins) -> Round` with p float [B, n + 1, V], root first. It takes the decisions of the
exact text in the same order and at the same sites, for all lanes at once: lanes that have nothing to decide are idle.
"""
