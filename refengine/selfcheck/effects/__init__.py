"""What a drafter gains: `overlap.py` (by depth), `training.py` (by training), `fused_taps.py` (by what it reads),
`confidence.py` (what its confidence head knows)."""
