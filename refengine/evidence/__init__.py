"""Evidence against the conditional null: e-processes that bet on listed defects and on what they learn.

Read `rows.py` and `naming.py`, what is bet on in `bets/`, then `e_process.py` (draws from known rows). The same for
other data: `e_process_of_rounds.py` (no two rounds alike), `e_process_of_tokens.py` (each token its own row),
`e_process_of_shares.py` (a share), and for two samplers `e_process_of_pairs.py`, `e_process_of_prefixes.py`,
`e_process_of_scores.py`. Then `alpha.py`, `fit.py`, `distance.py`, `power.py`, `ties.py`.
"""
