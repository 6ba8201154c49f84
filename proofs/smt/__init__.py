"""SMT (z3): the rules of `refengine.exact`, executed on symbolic rows."""
