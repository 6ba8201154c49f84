"""Other people's code, compared with the law that it promises. Read `common.py`, then the room of the question.

`sandbox/` (a child process with limits), `inputs/` (the rows that are passed), `interception/` (random calls, exactly),
`kernel/` (functions of rows), `served/` (speculation on compared with off), `acceptance/` (what an engine says of its
drafts), `trace.py` (records of an engine's rounds), `adapters/` (installed libraries, by name). `magnitude.py` says how
large a violation is, `at_length.py` adds up the draws of a campaign, `in_few_words.py` has the words of a verdict line.

A false alarm is chased from the finding back to the call. Where the finding's method says "exact law":
`kernel/replay.py` makes the witness again, `kernel/exact_depth.py` decides whether an enumerated law is believed,
`kernel/exact_law.py` compares it with the null, `kernel/child/enumerate.py` runs the subject through `interception/`.
Where it says "sequential evidence": `kernel/campaign.py` spends the calls, `kernel/history.py` turns tokens into draws
(a draw that depends on the current draft or on the coming length would accuse correct rules), `evidence/e_process.py`
bets on them. `kernel/diagnosis.py` or `kernel/explain_law.py` names the class of the defect.
Of a trace, the evidence is `evidence/e_process_of_rounds.py`'s on the rounds of `trace.py`.

Of a server it is told by the beginning of the finding's name. How much an answer counts says `served/belief.py`; the
journal (`--journal`) has every request with its answer.

parity, greedy, chat          `served/claims/options.py` has what was asked, `served/claims/cells.py` and
                              `served/claims/compare.py` what was compared; `served/claims/ties.py` and
                              `served/noise.py` say what was a tie
metadata                      `served/faults.py`
state, seed, n, independence  `served/claims/schedules/requests.py` has what was asked,
                              `served/claims/schedules/faults.py` what was held against it
law                           `served/claims/sampled.py`, `served/claims/together.py`
logprobs                      `served/claims/shared_rows.py`

An honest manner that was accused becomes an entry of `ODD` in the tests' server (`helpers/served` of `properties`).
"""
