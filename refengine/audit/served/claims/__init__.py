"""What is claimed of a served path, one kind of claim a file.

`options.py` (the sampling parameters), `cells.py` (the parity matrix, metadata and seeds), `shared_rows.py` (what
sampled tokens are reported with), `scores.py`, `tilt.py` and `sampled.py` (laws, token for token), `together.py`
(what moves all laws a little), `schedules.py` (state and company; `schedule_requests.py` has what is asked,
`schedule_prompts.py` of which prompts, `schedule_faults.py` what of the answers is a fault), `coins_in_company.py`
(coins that a batch shares), `coins_by_arm.py` (coins that a neighbour without a seed or a server that wakes changes),
`edge.py` (of the context), `ends.py` (of a text), `ties.py` (which greedy partings are ties, and which far from one).
"""
