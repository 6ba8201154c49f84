"""The installed command, and `python -m refengine`: a Ctrl-C while the command line is imported is one line too."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    try:
        from refengine.cli import main as command
    except KeyboardInterrupt:
        print("refengine: interrupted", file=sys.stderr)
        sys.exit(130)  # as refengine.cli ends when it is interrupted
    command()


if __name__ == "__main__":
    main()
