"""The installed transformers: its verification function and its assisted generation.

Read `kernel.py` with `kernel_law.py` (the function, exactly); `tiny_models.py`, `generate_cells.py`, `generate_law.py`,
`generate.py` (generation, exactly, on tiny float64 models).
"""
