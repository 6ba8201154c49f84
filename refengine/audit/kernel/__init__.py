"""The audit of a function of rows and drafts, in the order in which an audit runs.

`request.py` and `plan.py`; `child/` (what runs beside the audited function);
`exact_depth.py`, `exact_law.py`, `shared_coins.py`, `place.py`, `explain_law.py`;
`campaign.py` (sampling), `history.py`, `explain_counts.py`, `diagnosis.py`;
`witness.py`, `replay.py`, `audit.py`; `at_length.py` (as a campaign).
"""
