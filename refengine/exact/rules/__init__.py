"""Verification rules, one file each. Every rule is `rule(p, block, chance) -> Round`."""
