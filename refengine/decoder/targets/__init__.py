"""Targets: `transformers.py` (any causal language model), `bitwise.py` (the same, one sequence of bits for each row),
`recurrent.py` (with recurrent layers), `toy.py` (tables). They share `base.py` (sizes and the call of a model),
`in_place.py` (a cache with room) and `lent.py` (what drafters borrow). `together.py` runs rows of several requests in
one pass.
"""
