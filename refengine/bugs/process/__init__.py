"""Jobs on edited source, each in a sandboxed child of its own: `pool.py` asks, `job.py` answers."""
