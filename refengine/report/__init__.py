"""Findings, and what is made of them: canonical JSON, one HTML page, a journal that resumes, a re-run that compares.

Read `finding.py`, `report.py`, `canonical.py`, `journal.py`, `rerun.py`; then what draws: `html.py`, `plots.py`,
`tables.py`, `progress.py`, `terminal.py`.
"""
