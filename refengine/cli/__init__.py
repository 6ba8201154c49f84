"""The command line, one file for a group of commands. It decides nothing but exit codes: `commands/` does the work.

Read `reporting.py` (the options of whatever reports findings), `output.py` (what is printed, and the exit codes),
`checks.py` (options that several commands have, and what is wrong with their values), `endings.py` (signals,
bad input, our own bugs). `audit` exits 0 consistent, 1 violated, 2 bad input, 3 not tested, 70 internal error, and the
last line on stdout is `VERDICT consistent|violated|not-tested ...`. `report` exits 0 when the report is complete, our
own reference cells are consistent and every negative control came out violated: a third party's defect does not fail
it.
"""

import io
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from refengine.cli import audit, audit_served, campaign, challenge, checkpoint, engines, vectors
from refengine.cli.decoder import decode, drafters
from refengine.cli.endings import INTERRUPTED, ended, ended_by, refuse, unwinding
from refengine.cli.lists import bugs, checkpoints, claims, rules
from refengine.cli.output import CONSISTENT
from refengine.cli.reporting import refuse_to_replace
from refengine.cli.reports import law, report, rerun, show
from refengine.errors import BadInput
from refengine.files import hold_standard_streams

Command = Callable[..., Any]
HELP = {"help_option_names": ["--help", "-h"]}
ITS_OWN_OPTIONS = {"ignore_unknown_options": True, "help_option_names": ["--help"]}  # the others are the program's


class Once(typer.core.TyperCommand):
    """A command that refuses an option that is given twice: the first would be forgotten in silence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = self.make_parser(ctx).parse_args(args=list(args))[2]
        once = [option for option in given if option.param_type_name == "option" and not option.multiple]
        for option, count in Counter(once).items():
            if count > 1:
                raise BadInput(f"{max(option.opts, key=len)} is given {count} times")
        left = super().parse_args(ctx, args)
        refuse_to_replace(ctx)
        return left


def group(about: str, commands: dict[str, Command]) -> typer.Typer:
    """Commands by the names they are called by."""
    made = typer.Typer(no_args_is_help=True, add_completion=False, help=about, context_settings=HELP)
    for name, command in commands.items():
        settings = ITS_OWN_OPTIONS if command in (audit.process, vectors.run) else None
        made.command(name, cls=Once, context_settings=settings)(command)
    return made


TOP: dict[str, Command] = {
    "report": report,
    "show": show,
    "rerun": rerun,
    "law": law,
    "decode": decode,
    "tiny": engines.tiny,
    "drafters": drafters,
    "checkpoints": checkpoints,
    "rules": rules,
    "bugs": bugs,
    "claims": claims,
}
AUDIT: dict[str, Command] = {
    "kernel": audit.kernel,
    "process": audit.process,
    "trace": audit.trace,
    "acceptance": audit.acceptance,
    "library": audit.library,
    "engine": engines.engine,
    "endpoint": audit_served.endpoint,
    "generate": audit_served.generate,
}
CHECKPOINT: dict[str, Command] = {
    "verify": checkpoint.verify,
    "convert": checkpoint.convert,
    "convert-mtp": checkpoint.convert_mtp,
    "stitch-mtp": checkpoint.stitch_mtp,
    "ngram": checkpoint.ngram,
}
FIXTURES: dict[str, Command] = {"export": engines.export}
VECTORS: dict[str, Command] = {
    "list": vectors.table,
    "export": vectors.export,
    "release": vectors.release,
    "run": vectors.run,
}
CAMPAIGN: dict[str, Command] = {"engine": campaign.engine, "kernel": campaign.kernel, "length": campaign.length}
CHALLENGE: dict[str, Command] = {"new": challenge.new, "check": challenge.check, "verify": challenge.verify}

app = group("The referee of speculative decoding.", TOP)
app.add_typer(group("Hold an implementation to the law it promises.", AUDIT), name="audit")
app.add_typer(group("Check or convert a released drafter checkpoint.", CHECKPOINT), name="checkpoint")
app.add_typer(group("Tiny models whose law is known, for servers to be tried with.", FIXTURES), name="fixtures")
app.add_typer(group("Draws by the billion, in shards, on one machine or many.", CAMPAIGN), name="campaign")
app.add_typer(group("Conformance vectors for implementations in any language.", VECTORS), name="vectors")
app.add_typer(group("Fresh vectors from a committed seed, and their transcripts.", CHALLENGE), name="challenge")


def tell_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(version("refengine"))
        raise typer.Exit


@app.callback()
def top(
    asked: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """The referee of speculative decoding."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; every outcome has its own exit code."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # which kernels it lacks is no finding
    hold_standard_streams()
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 (it was closed when we started)
    if sys.stdout is None:
        refuse("cannot write to stdout: it is closed")
    for stream, errors in ((sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)  # a sign that the terminal's encoding has not is no fault of ours
    try:
        os.getcwd()
    except OSError:
        refuse("the current folder is gone: change to one that exists")
    with unwinding() as came:
        run(arguments, came)


def run(arguments: Sequence[str] | None, came: list[signal.Signals]) -> NoReturn:
    """Run a command. came: the signals that ended it."""
    try:
        command = typer.main.get_command(app)
        code = command.main(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # the command-line library swallows the exception
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else CONSISTENT)
    except (KeyboardInterrupt, typer.Abort):
        ended(came)
    except Exception as error:
        if came:  # what was cut short fails in words of its own
            ended(came)
        ended_by(error, sys.argv[1:] if arguments is None else arguments)
