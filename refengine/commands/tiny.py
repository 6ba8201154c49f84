"""The tiny target and drafter of `fixtures export`, in the layout that an engine loads.

The engine's own converter runs under the engine's Python: `audit/adapters/NAME/worker.py` names it.
"""

import shutil
import tempfile
from pathlib import Path

from refengine.audit.adapters import Absent, check_format, formats
from refengine.audit.adapters.engine import START_SECONDS, Worker
from refengine.audit.served.ask import Failed
from refengine.audit.served.known.law import FILE
from refengine.commands.export_fixtures import export_fixtures
from refengine.errors import BadInput
from refengine.files import check_empty


def write_tiny(layout: str, folder: Path, python: str, seed: int = 0) -> None:
    """Write the pair and law.json. Raises BadInput where the layout or its converter is unknown there, or the folder
    has something in it."""
    check_format(layout)
    adapter, engine = formats()[layout]
    check_empty(folder)
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch) / "source", Path(scratch) / "made"
        export_fixtures(source, seed)
        made.mkdir()
        try:
            with Worker(adapter, engine, python) as worker:
                worker.ask(START_SECONDS, op="convert", source=str(source), folder=str(made))
        except Absent as absent:
            raise BadInput(f"the layout {layout} needs its converter: {engine.converter} ({absent})") from None
        except Failed as error:
            raise BadInput(f"the converter of {layout} does not get through: {error}") from None
        shutil.copy(source / FILE, made / FILE)
        try:
            shutil.copytree(made, folder, dirs_exist_ok=True)
        except OSError as error:
            raise BadInput(f"{folder} cannot be written: {error.strerror or error}") from None
