"""A protocol of speculation with scheduling ahead, a prefix cache, preemption and a budget of tokens, checked whole.

`model.py` is the protocol: states and what can happen in them; `check.py` visits every state and finds the shortest way
to one that breaks an invariant; `errors.py` has published errors, each an edit of one line of the model; `log.py` reads
what an engine did and names the first event that the protocol does not allow. `python -m proofs.protocol` runs it.
"""
