"""The rules of `exact`, batched in torch: the same file, argument and site names, float64 on CPU or CUDA.

Read `coins.py` (every random decision), `block.py` and `row.py` (what rules judge, and what they do to rows), `sums.py`
(the one order of addition), `path.py`, `policy.py`, `check.py` (what is refused), then `rules/`; `kernels/` has the
rules compiled.
"""
