"""How a request reaches a side, and where its answers are kept.

`http.py` (a server that speaks OpenAI's protocol), `functions.py` (a Python function), `journal.py` (what was
answered).
"""
