"""The statistics held to what they state: false alarms and power of simulated audits.

Read `simulated.py`, `calibration.py`, `finding.py`.
"""
