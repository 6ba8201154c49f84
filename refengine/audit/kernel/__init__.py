"""The audit of a function of rows and drafts, in the order in which an audit runs.

`request.py`, `signatures.py`, `program.py`, then in the child `calls.py`, `enumerate.py`, `worker.py`;
`exact_depth.py`, `exact_law.py`, `explain_law.py`; `campaign.py` (sampling), `history.py`, `diagnosis.py`;
`witness.py`, `replay.py`, `audit.py`.
"""
