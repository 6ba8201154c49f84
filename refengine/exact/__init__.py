"""The definition: every rule once, scalar, over exact rationals, on the standard library alone.

Read `chance.py` (every random decision), `row.py`, `block.py` and `path.py` (what a rule judges), `rules/` with
`card.py` (what is said of a rule), `law.py` (exact laws, by walking every path), `loop.py`, `policy.py`. Inputs are
made by `drafters.py`, `tables.py` and `vectors.py`. `merged.py` and `unknowns.py` give the same laws for larger cases.
"""
