"""Other people's code, held to the law it promises. Read `common.py`, then the room of the question.

`sandbox/` (a child process with limits), `inputs/` (the rows that are passed), `interception/` (random calls, exactly),
`kernel/` (functions of rows), `served/` (speculation on compared with off), `acceptance/` (what an engine says of its
drafts), `trace.py` (records of an engine's rounds), `adapters/` (installed libraries, by name).

A false alarm is chased from what the finding says back to what was seen. "exact law" in its method: `kernel/replay.py`
makes the witness again, `kernel/exact_depth.py` decides that an enumerated law is believed, `kernel/exact_law.py`
compares it with the null, `kernel/child/enumerate.py` runs the subject through `interception/`. "sequential evidence":
`kernel/campaign.py` spends the calls, `kernel/history.py` turns tokens into draws (a state that depends on the current
draft or the coming length would accuse correct rules), `evidence/e_process.py` bets. The diagnosis:
`kernel/diagnosis.py` or `kernel/explain_law.py`.
"""
