"""The command line. Every command is a few lines over the library; nothing is decided here but exit codes.

`audit` exits 0 consistent, 1 violated, 2 bad input, 3 not tested, 70 internal error, and the last line on stdout is
`VERDICT consistent|violated|not-tested ...`. `report` exits 0 when the report is complete, our own reference cells are
consistent and every negative control came out violated: a third party's defect is content, not failure.
"""

import errno
import io
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from refengine.cli import audit, campaign, challenge, checkpoint, engines, fixtures, vectors
from refengine.cli.decoder import decode, drafters
from refengine.cli.lists import bugs, checkpoints, claims, rules
from refengine.cli.output import BAD_INPUT, CONSISTENT, INTERNAL, one_line, refuse_to_replace
from refengine.cli.reports import law, report, rerun, show
from refengine.errors import BadInput
from refengine.files import hold_standard_streams

INTERRUPTED = 130
Command = Callable[..., Any]
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE, errno.EBADF, errno.EIO)  # a full disk, no reader
EXHAUSTED = (*UNWRITABLE[:3], errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)  # of the machine
NO_SCRATCH = "No usable temporary directory"  # as the standard library says it
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
    "endpoint": audit.endpoint,
    "generate": audit.generate,
}
CHECKPOINT: dict[str, Command] = {
    "verify": checkpoint.verify,
    "convert": checkpoint.convert,
    "convert-mtp": checkpoint.convert_mtp,
    "stitch-mtp": checkpoint.stitch_mtp,
    "ngram": checkpoint.ngram,
}
FIXTURES: dict[str, Command] = {"export": fixtures.export}
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


@contextmanager
def unwinding() -> Iterator[list[signal.Signals]]:
    """SIGTERM and SIGHUP unwind as a Ctrl-C does, so that servers and programs that were started end too. Yields those
    that came."""
    came: list[signal.Signals] = []

    def unwind(number: int, frame: object) -> NoReturn:
        came.append(signal.Signals(number))
        raise KeyboardInterrupt

    here = threading.current_thread() is threading.main_thread()  # no other may set what a signal does
    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if here and signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, unwind)
    try:
        yield came
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def run(arguments: Sequence[str] | None, came: list[signal.Signals]) -> NoReturn:
    """Run a command. came: the signals that ended it."""
    try:
        command = typer.main.get_command(app)
        code = command.main(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # the command-line library swallows the exception
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else CONSISTENT)
    except BadInput as error:
        refuse(str(error))
    except (KeyboardInterrupt, typer.Abort):
        print(f"refengine: {f'ended by {came[0].name}' if came else 'interrupted'}", file=sys.stderr)
        sys.exit(128 + came[0] if came else INTERRUPTED)
    except OSError as error:
        if error.filename is not None and typed(str(error.filename), sys.argv[1:] if arguments is None else arguments):
            refuse(f"{error.filename}: {error.strerror}")
        file_s = error.filename is not None
        if (error.errno in EXHAUSTED and (file_s or error.errno not in UNWRITABLE)) or NO_SCRATCH in str(error):
            refuse(f"this machine does not let it go on: {error.strerror}{f' ({error.filename})' * file_s}")
        if error.errno not in UNWRITABLE or file_s:
            internal()
        print(f"refengine: cannot write to stdout: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in its buffer fails no more
        sys.exit(BAD_INPUT)
    except ModuleNotFoundError as error:
        if (error.name or "refengine").partition(".")[0] == "refengine":
            internal()
        refuse(f"{error.name} is needed and not installed here: pip install refengine installs it")
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "show"):  # a usage error of the command-line library
            usage(error)
        internal()


def typed(file: str, words: Sequence[str]) -> bool:
    """Whether a file was named on the command line, or lies in a folder that was."""
    named = [os.path.abspath(word.partition("=")[2] if word.startswith("--") else word) for word in words if word]
    return any(os.path.commonpath([os.path.abspath(file), word]) == word for word in named if word != "/")


def refuse(why: str) -> NoReturn:
    print(f"refengine: {one_line(why)}", file=sys.stderr)
    sys.exit(BAD_INPUT)


def usage(error: Any) -> NoReturn:
    """What is mistyped in one line, and where the help is."""
    message = error.format_message()
    if not message.strip():  # the help of a group was printed
        sys.exit(BAD_INPUT)
    refuse(f"{message.rstrip('.')}; see refengine {' '.join([*path_of(getattr(error, 'ctx', None)), '--help'])}")


def path_of(context: Any) -> list[str]:
    """The words of a command below the program."""
    return [*path_of(context.parent), context.info_name] if context is not None and context.parent else []


def internal() -> NoReturn:
    """Our own bug: the traceback, and what to do with it."""
    import traceback

    traceback.print_exc()
    print("refengine: internal error; the lines above belong into a bug report", file=sys.stderr)
    sys.exit(INTERNAL)
