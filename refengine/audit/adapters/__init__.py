"""Libraries that are audited by name: one folder each, found by listing this one.

A folder's `__init__.py` defines `ADAPTER`. It imports nothing that may be absent: an audit imports its library when it
runs, in a child process, and `version` raises Absent where there is none.

A library that decodes whole texts is an engine too (`refengine audit engine`), which may be installed under another
Python. Its folder then has a `worker.py`, which runs there and imports nothing of ours: `speak.py` says what it
defines, `engine.py` is our side, `server.py` starts its server. One whose kernels alone can run here has `kernels`
instead: `interpreted.py` is our side, `alone.py` what its worker loads them with.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TypeAlias

from refengine.errors import BadInput
from refengine.report.finding import Finding

Audit: TypeAlias = Callable[[], Iterable[Finding]]  # picklable: a report runs audits in processes
# (python, folder, way or "", port) -> its command, and the model's name in a request
Serving: TypeAlias = Callable[[str, Path, str, int], tuple[list[str], str]]


class Absent(Exception):
    """The library cannot be audited here; the message says why."""


@dataclass(frozen=True)
class Engine:
    """A library that decodes texts of a tiny model, with speculation and without.

    package    its distribution, whose version is named
    format     what `refengine tiny` calls the layout that its models have
    converter  the command that makes the converter into that layout available
    ways       how it speculates in the process, as its worker calls them
    served     how its server does; the server without is called ""
    serve      how its server is started; None where it has none
    """

    package: str
    format: str
    converter: str
    ways: tuple[str, ...]
    served: tuple[str, ...] = ()
    serve: Serving | None = field(default=None, repr=False)


TREE = "greedy tree"  # a way of kernels whose claim is about trees; the others have a signature of `audit kernel`


@dataclass(frozen=True)
class Kernels:
    """Verification kernels that are fed rows of ours, without a model and without a GPU.

    package  the distribution, whose version is named
    ways     what its worker calls them -> a signature of `audit kernel`, or TREE
    mixed    whether a call takes lanes of different length, some of them at temperature 0
    coins    the ways that are handed their coins
    """

    package: str
    ways: Mapping[str, str]
    mixed: bool = False
    coins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Adapter:
    """A library that is audited by name.

    name     the folder, and what `refengine audit library` calls it
    install  the command that makes it available
    version  the installed version; raises Absent
    audits   part -> its audit in this Python; the findings of an absent library are `not tested`, with the reason
    engine   how it decodes whole texts, where it does
    kernels  how it verifies drafts, where that alone is audited
    """

    name: str
    install: str
    version: Callable[[], str]
    audits: Mapping[str, Audit] = field(default_factory=dict, repr=False)
    engine: Engine | None = None
    kernels: Kernels | None = None

    def audit(
        self, begun: Callable[[str, float], None] = lambda part, share: None, only: str = ""
    ) -> Iterator[Finding]:
        """The parts whose names begin so; `begun` is called with a part's name and the share that is done."""
        parts = [(part, run) for part, run in self.audits.items() if part.startswith(only)]
        for number, (part, run) in enumerate(parts):
            begun(f"{self.name}: {part}", number / len(parts))
            yield from run()

    @property
    def worker(self) -> Path:
        """The file that runs under the engine's own Python."""
        return Path(__file__).parent / self.name / "worker.py"


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


def engines() -> dict[str, tuple[Adapter, Engine]]:
    """The adapters of engines, by name."""
    return {name: (adapter, adapter.engine) for name, adapter in adapters().items() if adapter.engine is not None}


def kernels() -> dict[str, tuple[Adapter, Kernels]]:
    """The adapters of kernels, by name."""
    return {name: (adapter, adapter.kernels) for name, adapter in adapters().items() if adapter.kernels is not None}


def check_way(name: str, begins: str) -> None:
    """Raises BadInput where an engine has no way of speculating whose name begins so."""
    if name in kernels():
        ways = [*kernels()[name][1].ways]
    else:
        engine = engines()[name][1]
        ways = [*engine.ways, *(f"server, {way}" for way in engine.served)]
    if not any(way.startswith(begins) for way in ways):
        raise BadInput(f"{name} has no way that is called {begins}...: {'; '.join(ways)}")


def check_engine(name: str) -> None:
    """Raises BadInput where neither an engine nor kernels have that name."""
    if name not in (known := {**engines(), **kernels()}):
        raise BadInput(f"no engine is called {name!r}: one of {', '.join(known)}")


def formats() -> dict[str, tuple[Adapter, Engine]]:
    """The engines by the name of their layout."""
    return {engine.format: (adapter, engine) for adapter, engine in engines().values()}


def check_format(layout: str) -> None:
    """Raises BadInput where no engine has that layout."""
    if layout not in (known := formats()):
        raise BadInput(f"no layout is called {layout!r}: one of {', '.join(sorted(known))}")
