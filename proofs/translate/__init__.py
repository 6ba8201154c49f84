"""The rules of refengine/exact and its loop, translated from their own syntax trees into the words of rocq/Python.v.

`python3 -m proofs.translate --write` writes rocq/Translated.v; without it, the file on disk is held to what is written
now (part of `make prove`). The files rocq/Running*.v prove of a translated rule that it is the rule that the theorems
are about. Whatever is not listed here is refused, so a rule is translated wholly or not at all; and so is a rule in
which two decisions may share a coin, or a module in which a name may stand for something else than it seems to.

Names. Python has one variable for each name of a function, Gallina one for each binder, and the nearest counts. The two
are the same since each name has one meaning wherever it is read: it is assigned before (`scope.py`: what a loop or a
branch makes ends with it), no loop has the variable of another (`forms.py`), none of a row's comprehension stands
already (`expressions.py`), and no variable has the name of a word or of what the translation makes up (`words.py`).
What a function returns, and is given, is left to Coq's types.

Read `terms.py`, `scope.py`, `calls.py`, `expressions.py`, `statements.py`, `forms.py`, `importing.py` (what a file may
do while it is imported), `libraries.py` (which words of others it may say), `constants.py`, `reaching.py` (what its
functions may change), `sites.py`, `words.py`, `rules.py`, `running.py` (what runs is what was read). All of it needs
the standard library alone.
"""
