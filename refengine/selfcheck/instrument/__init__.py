"""The statistics compared with what they state: false alarms and power of simulated audits.

Read `simulated.py`, `calibration.py`, `finding.py`; `ties.py` asks the same of the rule that tells ties from defects.
"""
