"""Libraries that are audited by name: one folder each."""
