"""The rules of `exact`, batched in torch: the same file, argument and site names, float64 on CPU or CUDA.

Read `coins.py` (every random decision), `block.py` and `row.py` (what rules judge, what they do to rows), `path.py`,
`policy.py`, then `rules/`.
"""
