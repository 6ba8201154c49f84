"""The rules of refengine/exact and its loop, translated from their own syntax trees into the words of rocq/Python.v.

`python3 -m proofs.translate --write` writes rocq/Translated.v; without it, the file on disk is held to what is written
now (part of `make prove`). The files rocq/Running*.v prove of a translated rule that it is the rule that the theorems
are about. Whatever is not listed here is refused, so a rule is translated wholly or not at all; and so is a rule in
which two decisions may share a coin, or a module in which a name may stand for something else than it seems to. Read
`terms.py`, `scope.py`, `calls.py`, `expressions.py`, `statements.py`, `forms.py`, `importing.py` (what a file may do
while it is imported), `sites.py`, `words.py`, `rules.py`, `running.py` (what runs is what was read). Standard library
alone.
"""
