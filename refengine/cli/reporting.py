"""The options of whatever reports findings, once for all commands: what is printed, and which files are written."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import CallbackParam

from refengine.errors import BadInput

if TYPE_CHECKING:
    from refengine.report.finding import Finding

WRITTEN = f"{__name__}.written"  # in a command's context: the option by the file that it writes


def writable(context: typer.Context, option: CallbackParam, file: Path | None) -> Path | None:
    """A file that can be written when the work is done, and that no other option names; else that is said before it
    begins."""
    if file is None:
        return None
    name, folder = max(option.opts, key=len), file.absolute().parent
    if file.is_dir() or not folder.is_dir():
        raise BadInput(f"{name} {file} is a folder, or is in none")
    if file.is_file() or not file.exists():  # a device takes them all
        if not os.access(folder, os.W_OK | os.X_OK):
            raise BadInput(f"{name} {file} cannot be written: its folder is read-only here")
        first = context.meta.setdefault(WRITTEN, {}).setdefault(os.path.realpath(file), name)
        if first != name:
            raise BadInput(f"{first} and {name} both name {file}: the second would replace the first")
    return file


def refuse_to_replace(context: typer.Context) -> None:
    """Raises BadInput where a file that a command reads is one that it would write."""
    written = context.meta.get(WRITTEN, {})
    for option in context.command.params:
        given = context.params.get(option.name or "")
        for file in given if isinstance(given, list | tuple) else [given]:
            name = written.get(os.path.realpath(file)) if isinstance(file, Path) else None
            if name not in (None, max(option.opts, key=len)):
                raise BadInput(f"{name} {file} is read too: it would be replaced")


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]
FindingsAsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON alone; a verdict line goes to standard error.")
]
Out = Annotated[Path | None, typer.Option(callback=writable, help="Write a report.json, which `rerun` makes again.")]
Junit = Annotated[Path | None, typer.Option(callback=writable, help="Write JUnit XML: a test case for each finding.")]
Sarif = Annotated[Path | None, typer.Option(callback=writable, help="Write SARIF: a result for each finding.")]
Summary = Annotated[Path | None, typer.Option(callback=writable, help="Write Markdown: a summary of a CI job.")]
Badge = Annotated[Path | None, typer.Option(callback=writable, help="Write JSON of an endpoint badge (shields.io).")]
AllowUntested = Annotated[bool, typer.Option("--allow-untested", help="Exit 0 although claims are not tested.")]


@dataclass(frozen=True)
class Reporting:
    """How a command says what it found. A field is an option, of the commands that name it with `reports`."""

    allow_untested: AllowUntested = False
    as_json: FindingsAsJson = False
    out: Out = None
    junit: Junit = None
    sarif: Sarif = None
    summary: Summary = None
    badge: Badge = None

    def write(self, findings: "Sequence[Finding]", line: str) -> None:
        """line: that of the verdict."""
        from refengine.commands.told import markdown, save
        from refengine.files import write_atomic
        from refengine.report.exchange import badge, junit, sarif

        if self.out is not None:
            save(findings, self.out)
        if self.junit is not None:
            write_atomic(self.junit, junit(findings))
        if self.sarif is not None:
            write_atomic(self.sarif, sarif(findings))
        if self.summary is not None:
            write_atomic(self.summary, markdown(findings, line))
        if self.badge is not None:
            write_atomic(self.badge, badge(line))


RECORD = ("as_json", "out")
AUDIT = (*RECORD, "junit", "sarif", "summary", "badge")
SUITE = ("allow_untested", *AUDIT)  # of many claims


def reports(names: tuple[str, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command: these options stand behind its own, and what is given for them is its `reporting`."""
    options = [parameter for name, parameter in signature(Reporting).parameters.items() if name in names]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            command(reporting=Reporting(**{name: given.pop(name) for name in names}), **given)

        own = [parameter for name, parameter in signature(command).parameters.items() if name != "reporting"]
        vars(called)["__signature__"] = signature(command).replace(parameters=[*own, *options])
        return called

    return with_options
