"""Formulas of the sources, checked symbolically (sympy), exactly (Fractions) and by seeded Monte-Carlo."""
