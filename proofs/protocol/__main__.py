"""`python -m proofs.protocol`: the honest protocol whole, then every published error with its shortest schedule.

`python -m proofs.protocol LOG` holds an engine's log to it. Exit 1: an invariant is broken, an error is not found, or
an event is not allowed; 2: no log.
"""

import sys
from pathlib import Path

from proofs.protocol.check import check
from proofs.protocol.errors import ERRORS
from proofs.protocol.log import replay
from proofs.protocol.model import Sizes
from refengine.errors import BadInput


def main(arguments: list[str]) -> int:
    if arguments:
        try:
            allowed, refused = replay(Path(arguments[0]))
        except BadInput as error:
            print(error, file=sys.stderr)
            return 2
        print(f"{allowed} events are as the protocol has them")
        if refused is not None:
            print(f"line {refused.line} is not: {refused.event}; allowed were", *refused.allowed, sep="\n    ")
        return refused is not None
    failed = False
    for ahead in (False, True):
        found = check(Sizes(ahead=ahead))
        print(f"scheduling {'ahead' if ahead else 'in turn'}: {found.states:,} states, {found.broken or 'all right'}")
        failed |= bool(found.broken or found.stuck)
    for error in ERRORS:
        found = check(Sizes(ahead=error.ahead), error.model())
        print(f"\n{error.name} ({error.source})", *found.schedule or ["not found"], sep="\n    ")
        failed |= not found.broken
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
