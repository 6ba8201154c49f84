"""What `refengine audit library documents` holds printed programs to: the reference decoder. Runs in the audit's child.

Read `child.py`, `judges.py` (verifier, cache, networks), `judges_of_loops.py`, `judges_of_medusa.py`. The promises are
those of `audit/adapters/documents`, which names this package and does not import it: an audit does not need a decoder.
"""
