"""Hold every file of proofs/rocq to the gate, and the gate to every file of proofs/cheats.

Usage: `python3 -m proofs.gate` from the root (part of `make prove`). Exit 0: all is proved and every cheat is refused.
1: a file is refused, or a cheat is not. 3: not tested, there is no prover here. With `--accept` it writes down that
somebody has read what is cited as it is now, and asks nothing else; `--accept-texts` does so for sentences, tests and
grants alone, and needs no prover.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from proofs.gate import accepted, cheats, kernel, text, words
from proofs.gate.applied import applied_nowhere
from proofs.gate.build import BUILD, absent, compiled, read_otherwise
from proofs.gate.cited import cited, read_beside, to_be_read
from proofs.gate.recursion import recursions
from proofs.statements import INSTANCES, named_by, theorems
from refengine.selfcheck.claims.coq_text import listed, stated


def idle(told: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Theorems, and what is cited, that no instance applies to all that they assume.

    A lemma may be a step instead, of what is cited beside it and is applied; a theorem stands for itself.
    """
    groups = [*([name] for name in theorems()), *cited()]
    nowhere = applied_nowhere(BUILD, told, {name for group in groups for name in group}, INSTANCES)
    for group in groups:
        left = nowhere.intersection(group)
        steps = named_by({name.split(".")[1] for name in {*group} - left}) if left else set()
        yield from (
            f"{name} is applied nowhere to all that it assumes"
            for name in sorted(left)
            if name.split(".")[1] not in steps
        )


def to_be_accepted(before: Mapping[str, accepted.Entry]) -> dict[str, accepted.Entry]:
    """What is cited, and the sentences that cite it, as they are now."""
    return {**accepted.told(BUILD, to_be_read(), listed(), before), **read_beside()}


def wrong() -> Iterator[list[str]]:
    """What each reader refuses, one after the other; the later ones need what the earlier ones let through."""
    statements = [f"{file}.{name}" for file in listed() for name in stated(file)]
    names = {name for group in cited() for name in group}
    yield [*text.read(), *(f"{name} is cited and stated nowhere" for name in sorted(names - {*statements}))]
    jobs = int(os.environ.get("JOBS", "2"))
    refused = compiled(jobs=jobs)
    yield [f"Coq refuses a file: {refused}"] if refused else []
    yield [line for file in listed() if (line := read_otherwise(file))]
    told, recurring = lambda: told_of(statements), lambda: recursions(BUILD, listed())
    readers = (lambda: resting(statements), unread, told, shadowing, misread, recurring)
    with ThreadPoolExecutor(jobs) as pool:  # what takes longest begins first, and the cheats fill up
        found = pool.map(lambda reader: reader(), (lambda: kernel.checked(BUILD, listed()), *readers))
        against = cheats.let_through(pool)
        yield from found
        yield against
    count = len(statements)
    print(f"{count} statements of {len(listed())} files rest on what granted.toml grants, {len(names)} of them cited")
    print(f"{len(cheats.every())} cheats refused, each by the readers that it names")


def misread() -> list[str]:
    meanings, borrowed = text.meanings(), words.borrowed(BUILD, listed())
    return [line for file in listed() for line in words.misread(BUILD, file, meanings, borrowed)]


def resting(statements: Sequence[str]) -> list[str]:
    return kernel.assumptions(BUILD, statements, text.granted()["axioms"])


def unread() -> list[str]:
    before = accepted.read()
    now = to_be_accepted(before)
    opaque = {*accepted.values(BUILD, now, listed())} - {*text.granted()["values"]["names"]}
    said = [f"{name} is proved and is no proposition: a Definition says what it is" for name in sorted(opaque)]
    return [*accepted.strays(), *said, *accepted.unread(before, now)]


def told_of(statements: Sequence[str]) -> list[str]:
    told = kernel.quantified(BUILD, statements)
    if hidden := kernel.hidden_premises(told, text.granted()["inhabited"]):
        return hidden
    try:
        return list(idle(told))
    except (RuntimeError, ValueError) as error:
        return [f"the proofs of the instances cannot be read: {error}"]


def shadowing() -> list[str]:
    ours, open_ = text.names(), text.by_file(text.variables)
    given = kernel.given_by_libraries(BUILD, [*{*ours, *open_}])
    taken = given.intersection(ours) - {*text.granted()["shadows"]["names"]}
    taken |= kernel.given_by_libraries(BUILD, listed(), "Module")  # our other files would mean ours by it
    lines = [f"{name} is the name of something in a library" for name in sorted(taken)]
    return [*lines, *text.misleading(open_, ours, given)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold the proofs to the gate: minutes.", prog="python3 -m proofs.gate")
    read = parser.add_mutually_exclusive_group()
    read.add_argument("--accept", action="store_true", help="Somebody has read what is cited; over ten minutes.")
    read.add_argument("--accept-texts", action="store_true", help="The same of sentences, tests and grants; no prover.")
    asked = parser.parse_args()
    if asked.accept_texts:
        told = {name: entry for name, entry in accepted.read().items() if "/" not in name}
        accepted.FILE.write_text(accepted.written(told | read_beside(), accepted.FILE.read_text().splitlines()[0]))
        return 0
    if missing := absent():
        print(missing)
        return 3
    if asked.accept:
        if refused := compiled(jobs=int(os.environ.get("JOBS", "2"))):
            print(f"violated: Coq refuses a file: {refused}")
            return 1
        accepted.FILE.write_text(accepted.written(to_be_accepted(accepted.read())))
        return 0
    for lines in wrong():
        if lines:
            print("violated: " + "\nviolated: ".join(lines))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
