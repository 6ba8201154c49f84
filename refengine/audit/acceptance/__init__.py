"""What an engine says about its own speculation, held to what is due: drafts kept by position.

Read `rounds.py` (what is said of some rounds), `sources/` (a file for each format, found by listing the folder),
`due.py` (what is due: a golden profile, or the sum of min(p, q) of a known law), `texts.py` (that sum at every draft),
`meaning.py` (what too many and too few would mean), `audit.py`.
"""
