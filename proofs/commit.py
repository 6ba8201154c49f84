"""The number that chance is drawn from where a check takes a sample: another one for every commit. Standard library."""

import subprocess

from refengine.source_tree import ROOT


def seed() -> int:
    """The id of the commit that is checked out, as a number; 0 where there is no git, as in an unpacked archive."""
    try:
        run = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return 0
    return int(run.stdout.strip(), 16) if run.returncode == 0 else 0
