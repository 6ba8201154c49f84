"""Targets: `transformers.py` (any causal language model), `bitwise.py` (the same, one sequence of bits for each row),
`recurrent.py` (with recurrent layers), `toy.py` (tables); `together.py` runs rows of several requests in one pass."""
