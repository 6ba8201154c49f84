"""Targets: `transformers.py` (any causal language model), `recurrent.py` (with recurrent layers), `toy.py` (tables)."""
