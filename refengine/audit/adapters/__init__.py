"""Libraries that are audited by name: one folder each, found by listing this one.

A folder's `__init__.py` defines `ADAPTER`. It imports nothing that may be absent: an audit imports its library when it
runs, in a child process, and `version` raises Absent where there is none.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import TypeAlias

from refengine.report.finding import Finding

Audit: TypeAlias = Callable[[], Iterable[Finding]]  # picklable: a report runs audits in processes


class Absent(Exception):
    """The library cannot be audited here; the message says why."""


@dataclass(frozen=True)
class Adapter:
    """A library that is audited by name.

    name     the folder, and what `refengine audit library` calls it
    install  the command that makes it available
    version  the installed version; raises Absent
    audits   part -> its audit; the findings of an absent library are `not tested`, with the reason
    """

    name: str
    install: str
    version: Callable[[], str]
    audits: Mapping[str, Audit] = field(repr=False)

    def audit(self, begun: Callable[[str, float], None] = lambda part, share: None) -> Iterator[Finding]:
        """Every part; `begun` is called with its name and the share that is done."""
        for number, (part, run) in enumerate(self.audits.items()):
            begun(f"{self.name}: {part}", number / len(self.audits))
            yield from run()


def package_version(name: str, install: str) -> str:
    """The version of an installed Python package. Raises Absent."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        raise Absent(f"{name} is not installed: {install}") from None


def adapters() -> dict[str, Adapter]:
    """Every adapter by its name, in the order of the folders."""
    found = {}
    for folder in sorted(entry.name for entry in pkgutil.iter_modules(__path__) if entry.ispkg):
        adapter: Adapter = importlib.import_module(f"{__name__}.{folder}").ADAPTER
        found[adapter.name] = adapter
    return found
