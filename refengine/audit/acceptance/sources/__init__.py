"""What engines write about their speculation: one file for each format, found by listing this folder.

A file defines `SOURCE`. The first whose `matches` is true of a text reads it; `read` raises BadInput with one line that
begins with the name of the file.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from refengine.audit.acceptance.rounds import Told
from refengine.errors import BadInput


@dataclass(frozen=True)
class Source:
    """name: of the format, for people. read: (text, name of the file) -> what is told of each model.

    since: how what was told by an earlier text of a running server is taken off, where the format counts for ever
    """

    name: str
    matches: Callable[[str], bool]
    read: Callable[[str, str], list[Told]]
    since: Callable[[str, str, str], str] | None = None


def sources() -> Iterator[Source]:
    for module in sorted(entry.name for entry in pkgutil.iter_modules(__path__)):
        yield importlib.import_module(f"{__name__}.{module}").SOURCE


def read(file: Path, since: Path | None = None) -> list[Told]:
    """What a file tells; of a running server, since an earlier scrape. Raises BadInput."""
    text = text_of(file)
    for source in sources():
        if source.matches(text):
            if since is not None:
                if source.since is None:
                    raise BadInput(f"--since is an earlier scrape of counters, and {file} is {source.name}")
                text = source.since(text, text_of(since), f"{file} since {since}")
            return source.read(text, str(file))
    known = ", ".join(source.name for source in sources())
    raise BadInput(f"{file} tells nothing of speculation that is known here: it is none of {known}")


def text_of(file: Path) -> str:
    """Raises BadInput."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from None
