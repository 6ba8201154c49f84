"""engine = exact, for all real rows of bounded size: the batched text of `refengine.engine.rules`, run on z3 terms.

One lane is judged: at every decision that the exact text takes, the batched text must ask at the same site, once, for
odds in the same proportion, and return the same round. What else a batch holds may be anything: the rows and coins of
the other lane, of places without a draft and of decisions that the exact text does not take. Read `terms.py` (numbers),
`tensor.py` (torch's words on them), `lanes.py` (what is asked). `python -m proofs.batched` asks all of it.
"""
