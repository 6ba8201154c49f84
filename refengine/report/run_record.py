"""run.json: what report.json leaves out because it differs from run to run: when, where, how long."""

import datetime
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from refengine.files import write_atomic
from refengine.report.canonical import canonical
from refengine.report.journal import Line


def save_run(path: Path, lines: Sequence[Line], *, started: datetime.datetime, key: str) -> None:
    """Write run.json atomically. Seconds are those of the run that made a step, resumed or not."""
    finished = datetime.datetime.now(datetime.UTC)
    record = {
        "run": key,
        "started": started.astimezone(datetime.UTC).isoformat(timespec="seconds"),
        "finished": finished.isoformat(timespec="seconds"),
        "command": sys.argv,
        "machine": {
            "host": platform.node(),
            "system": platform.platform(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        },
        "steps": [
            {"name": line.step, "seconds": line.seconds, "findings": len(line.made), "how": line.how} for line in lines
        ],
    }
    write_atomic(path, canonical(record))
