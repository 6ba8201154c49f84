"""Findings, and what is made of them: canonical JSON, one HTML page, a journal that resumes, a re-run that compares.

Read `finding.py`, `report.py`, `canonical.py`, `step.py`, `journal.py`, `run_record.py`, `rerun.py`, `changes.py`; then
what is shown to people: `html.py`, `plots.py`, `tables.py`, `letter.py`, `causes.py`, `terminal.py`; to build servers:
`exchange.py`.
"""
