"""The one runner of independent jobs, for whatever takes long: on one machine's processes, or on many through Ray.

Read `run.py` (a job, a place to run jobs, and the loop that gives them out), `processes.py` and `cluster.py` (the
places), `ranges.py` (counter ranges: draws that are disjoint), `campaign.py` (journal, resume, sums), `options.py` (how
a command says where) and `steps.py` (the steps of a report).
"""
