"""How a command ends that does not end by itself: signals, files and machines that do not serve, mistypings, our bugs.

Each is one line on standard error and an exit code; a traceback is printed of our own bugs alone.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from refengine.cli.output import BAD_INPUT, INTERNAL, one_line
from refengine.errors import BadInput

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 128 + signal.SIGINT
AGAIN_SECONDS = 0.05
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
UNWRITABLE = {*FULL, errno.EPIPE, errno.EBADF, errno.EIO}  # standard output: a reader that left, or it is closed
EXHAUSTED = {*FULL, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}  # what a machine has
NO_SCRATCH = "No usable temporary directory"  # as the standard library says it


@contextmanager
def unwinding() -> Iterator[list[signal.Signals]]:
    """SIGTERM and SIGHUP unwind as a Ctrl-C does, so that servers and programs that were started end too. Yields those
    that came."""
    came: list[signal.Signals] = []

    def unwind(number: int, frame: object) -> NoReturn:
        came.append(signal.Signals(number))
        raise KeyboardInterrupt

    here = threading.current_thread() is threading.main_thread()  # no other may set what a signal does
    before = {number: signal.getsignal(number) for number in SIGNALS if here}
    ours = [number for number, does in before.items() if does in (signal.SIG_DFL, signal.default_int_handler)]
    for number in ours:
        signal.signal(number, unwind)
    try:
        with dropped_again(came):
            yield came
    finally:
        for number in ours:
            signal.signal(number, before[number])


@contextmanager
def dropped_again(came: list[signal.Signals]) -> Iterator[None]:
    """A signal is sent once more, after a moment, where its exception was raised in a callback of C or a destructor and
    is dropped: numba's compiler calls back with what it has compiled, say, and then misses it."""
    before, main, timers = sys.unraisablehook, threading.get_ident(), list[threading.Timer]()

    def dropped(unraisable: Any) -> None:
        if came and unraisable.exc_type is KeyboardInterrupt:
            timers.append(threading.Timer(AGAIN_SECONDS, signal.pthread_kill, (main, came[-1])))
            timers[-1].start()
        else:
            before(unraisable)

    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:
            timer.cancel()


def ended(came: Sequence[signal.Signals]) -> NoReturn:
    """By the signals that came, or by a Ctrl-C that was not ours to see."""
    number = came[0] if came else signal.SIGINT
    said = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    print(f"refengine: {said}", file=sys.stderr)
    sys.exit(128 + number)


def ended_by(error: Exception, words: Sequence[str]) -> NoReturn:
    """By an exception: one line where it is no fault of ours. words: the command line."""
    if isinstance(error, BadInput):
        refuse(str(error))
    if isinstance(error, OSError):
        ended_by_the_system(error, words)
    if isinstance(error, ModuleNotFoundError) and (error.name or "refengine").partition(".")[0] != "refengine":
        refuse(f"{error.name} is needed and not installed here: pip install refengine installs it")
    if hasattr(error, "format_message") and hasattr(error, "show"):  # a usage error of the command-line library
        usage(error)
    internal()


def ended_by_the_system(error: OSError, words: Sequence[str]) -> NoReturn:
    """A file that was typed, a machine without room and a closed output are not our fault; everything else is."""
    file = "" if error.filename is None else f"{error.filename}: "
    if file and typed(str(error.filename), words):
        refuse(f"{file}{error.strerror}")
    if file or error.errno not in UNWRITABLE:
        if error.errno in EXHAUSTED or NO_SCRATCH in str(error):
            refuse(f"this machine does not let it go on: {file}{error.strerror}")
        internal()
    print(f"refengine: cannot write to stdout: {error.strerror}", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in its buffer fails no more
    sys.exit(BAD_INPUT)


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
