"""What a drafter gains: `overlap.py` (by depth), `training.py` (by training), `over_seeds.py` with
`trained_variants.py` (by how it is trained), `confidence.py` with `confidence_rounds.py` (what its confidence head
knows).
"""
