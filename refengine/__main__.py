"""The installed command, and `python -m refengine`: a Ctrl-C while the command line is imported is one line too, and so
is a file of the user's that hides a module which is imported here."""

import sys


def main() -> None:
    try:
        from refengine.cli import main as command
    except KeyboardInterrupt:
        print("refengine: interrupted", file=sys.stderr)
        sys.exit(130)  # as refengine.cli ends when it is interrupted
    except Exception as error:  # 1 would say that something is violated
        import traceback

        at = traceback.extract_tb(error.__traceback__)[-1]
        said = traceback.format_exception_only(error)[-1].strip()
        print(f"refengine: cannot start: {said} ({at.filename}:{at.lineno})", file=sys.stderr)
        sys.exit(2)
    command()


if __name__ == "__main__":
    main()
