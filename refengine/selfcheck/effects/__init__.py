"""What a drafter gains: `overlap.py` (by depth), `training.py` (by training), `over_seeds.py` (by how it is trained),
`confidence.py` (what its confidence head knows)."""
