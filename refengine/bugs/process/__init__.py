"""Jobs on edited source, each in a process of its own: `pool.py` asks, `fork_server.py` answers."""
