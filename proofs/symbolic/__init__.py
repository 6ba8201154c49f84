"""Formulas of the sources, checked symbolically (sympy), exactly (Fractions) and by seeded Monte-Carlo.

One file for a formula, and one for each document: `test_<document>_document.py`. `tolerance.py` says how far a mean of
draws may be off, `speed.py` and `exposure.py` have the models that several files use.
"""
