"""What is claimed of a served path, one kind of claim a file.

`options.py` (the sampling parameters), `takes.py` (which of them, and which ways to ask, both sides take), `compare.py`
(two answers side by side), `cells.py` (one right answer: plain text and the parity matrix), `own.py` (a side against
itself), `shared_rows.py` (what sampled tokens are reported with), `scores.py`, `tilt.py` and `sampled.py` (laws, token
for token), `stops_sampled.py` (stops among them), `together.py` (what moves all laws a little), `schedules/` (seeds,
state and company), `edge.py` (of the context), `found_ids.py` (tokens that end a text, and two that are nearly coins),
`ties.py` (which greedy partings are ties, and which far from one).
"""
