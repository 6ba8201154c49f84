"""engine = exact, for all real rows over every vocabulary: the text of `refengine.engine.rules`, run on z3 terms.

One lane is judged: at every decision that the exact text takes, the batched text must ask at the same site, once, for
odds in the same proportion, and return the same round. What else a batch holds may be anything: the rows and coins of
the other lane, of places without a draft and of decisions that the exact text does not take.

Why every vocabulary. A row is shown at the drafted tokens and at one more, which stands for any other; what it holds
there is unknown, and no path may depend on it. So what is shown of it is shown of every token. Of a row's mass only
facts are used that every sum has (`masses.py`). `proofs/rocq/EveryVocabulary.v` says this as a theorem about texts that
look at a vocabulary in these ways only; that the rules are such texts is so by construction, because the axis has no
length and every other word is refused (`vocabulary.py`, `tensor.py`).

Read `terms.py` (numbers), `masses.py`, `powers.py`, `tensor.py` (torch's words on them), `functions.py` (those that
are no methods), `indexing.py`, `words.py` (Python's), `modes.py` (what a rule can be asked with), `expected.py` (the
exact text), `lanes.py` (what is asked), `levels.py` (the sum of a row), `picks.py` (a token of it), `heads.py` (its
nucleus), `mutated.py` (the text that is run).
`python -m proofs.batched` asks all of it. What z3 would not see of a text is refused by `proofs/engine_texts`.
"""
