"""Foreign code in a child process with limits of time and memory.

Read `framing.py` (messages on a pipe), `forkserver.py` (children are forks of one interpreter), `child.py`;
`command.py` runs a foreign program to its end.
"""
