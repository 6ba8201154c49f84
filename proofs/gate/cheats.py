"""The negative controls: every file of proofs/cheats states `anything`: false, not proved, or less than it stands for.

Its first comment names the readers that refuse it, and what it tries. `text` reads it as if it were the last file of
proofs/rocq; `compile` is Coq itself, or that there is no such statement in the end; `assumptions`, `premises`,
`names`, `words`, `recursion` and `coqchk` are asked whatever the others said: each is held to cheats of its own.
All cheats are compiled beside each other under their own names, so that coqchk imports what they import only once.
`applied` reads the cheat as a file of instances: what assumes something is refused where no proof applies it to all.
`accepted` compares `anything` with what was read of the name that the cheat stands for.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from itertools import compress
from pathlib import Path
from typing import Any

from proofs.gate import accepted, kernel, text, words
from proofs.gate.applied import not_reached, proofs_of
from proofs.gate.build import BUILD, clean
from proofs.gate.recursion import fixpoints, recursing
from refengine.selfcheck.claims.coq_text import Sentence, listed, sentences, stated
from refengine.source_tree import PROOFS

FOLDER = PROOFS / "cheats"
CLAIMED = "anything"
PROCESSES = 4  # that are asked about the cheats: it takes Coq longer to import than to answer


def every() -> list[Path]:
    return sorted(FOLDER.glob("*.v"))


def named(cheat: Path) -> set[str]:
    """The readers that its first comment names."""
    found = re.match(r"\(\*\* Refused by ([\w, ]+)\. ", cheat.read_text("utf-8"))
    assert found is not None, f"{cheat.name} does not begin with the readers that refuse it"
    return set(found[1].split(", "))


def by_text(cheat: Path) -> bool:
    """Whether the first reader refuses it, after all files of proofs/rocq; no prover is needed."""
    return bool(list(text.refusals("Cheat", cheat.read_text("utf-8"), {**_ours()}))) or CLAIMED not in _stated(cheat)


@cache
def _ours() -> dict[str, set[str]]:
    return text.meanings()


@cache
def _borrowed() -> set[str]:
    return words.borrowed(BUILD, listed())


def _stated(cheat: Path) -> list[str]:
    try:
        return stated(cheat.stem, FOLDER)
    except ValueError:
        return []


def compiled_as(cheat: Path) -> str:
    """The name of its file among ours, which begin with a capital."""
    return cheat.stem.capitalize()


@contextmanager
def beside_ours() -> Iterator[Path]:
    """A folder with all that is compiled of ours, for cheats to be compiled in."""
    with tempfile.TemporaryDirectory() as folder:
        for compiled in BUILD.glob("*.vo"):
            (Path(folder) / compiled.name).symlink_to(compiled)
        yield Path(folder)


def compiles(build: Path, cheat: Path) -> bool:
    file = compiled_as(cheat)
    shutil.copyfile(cheat, build / f"{file}.v")
    command = ["coqc", "-q", "-w", "none", "-Q", ".", "Proofs", f"{file}.v"]
    return not subprocess.run(command, cwd=build, env=clean(), capture_output=True).returncode


def by_kernel(build: Path, compiled: Sequence[Path]) -> dict[Path, set[str]]:
    """The readers behind Coq that refuse each of these compiled ones, all but coqchk; `compile` where there is nothing
    for them to read. One process answers, unless it stops: then one for either half."""
    asking = [_questions(cheat) for cheat in compiled]
    try:
        heard = kernel.put(build, [*map(compiled_as, compiled)], [one for several in asking for one in several])
    except RuntimeError:
        if len(compiled) == 1:
            if _is_stated(build, compiled_as(compiled[0])):
                raise
            return {compiled[0]: {"compile"}}
        half = len(compiled) // 2
        return by_kernel(build, compiled[:half]) | by_kernel(build, compiled[half:])
    count = len(asking[0])
    return {cheat: _refusing(build, cheat, heard[i * count : (i + 1) * count]) for i, cheat in enumerate(compiled)}


def _names(cheat: Path) -> list[str]:
    """What it states, and what it claims, which the reader of statements may not find."""
    return sorted(f"{compiled_as(cheat)}.{name}" for name in {CLAIMED, *_stated(cheat)})


def _questions(cheat: Path) -> list[kernel.Question]:
    file, names, whole = compiled_as(cheat), _names(cheat), cheat.read_text("utf-8")
    return [
        kernel.resting([[f"{file}.{CLAIMED}"]], text.granted()["axioms"]),
        kernel.quantifying(names),
        accepted.standing_for(file, whole),
        proofs_of(names, names),
        recursing([f"{file}.{name}" for name in fixpoints(whole)], {}),
    ]


def _refusing(build: Path, cheat: Path, heard: Sequence[Any]) -> set[str]:
    resting, told, differs, proofs, recurs = heard
    answers = {
        "assumptions": resting,
        "premises": kernel.hidden_premises(told, text.granted()["inhabited"], build),
        "applied": not_reached(told, [f"{compiled_as(cheat)}.{CLAIMED}"], _names(cheat), proofs),
        "words": _misread(build, compiled_as(cheat)),
        "accepted": differs,
        "recursion": recurs,
    }
    return {reader for reader, wrong in answers.items() if wrong}


def by_coqchk(build: Path, files: Sequence[str]) -> set[str]:
    """Those of the compiled files that coqchk refuses: asked about all at once, and where it does not say which, about
    the halves."""
    wrong = kernel.checked(build, files)
    named = {file for file in files if any(f"Proofs.{file}." in line for line in wrong)}
    if not wrong or (named and not wrong[0].startswith(kernel.REFUSED)):
        return named
    if len(files) == 1:
        return {*files}
    half = len(files) // 2
    return by_coqchk(build, files[:half]) | by_coqchk(build, files[half:])


def _is_stated(build: Path, file: str) -> bool:
    try:
        return bool(kernel.asked(build, [file], {"it": f"Check Proofs.{file}.{CLAIMED}."}))
    except RuntimeError:
        return False


def _misread(build: Path, file: str) -> list[str]:
    """What the reader of coqc's notes refuses."""
    seen = {**_ours()}
    list(text.refusals(file, (build / f"{file}.v").read_text(), seen))
    try:
        return list(words.misread(build, file, {file: set(), **seen}, _borrowed()))
    except ValueError as error:  # not to be read
        return [str(error)]


def by_names() -> set[Path]:
    """The cheats that give a name which a library has given already, or leave one open that means something."""
    given = {cheat: set(_read(cheat, text.declared)) for cheat in every()}
    open_ = {cheat: set(_read(cheat, text.variables)) for cheat in every()}
    words = set().union(*given.values(), *open_.values()).difference(text.DECLARING)  # `Let Fixpoint` gives no Fixpoint
    taken = kernel.given_by_libraries(BUILD, sorted(words))
    ours = text.names()
    here = {cheat: dict.fromkeys(names, ("Cheat",)) for cheat, names in open_.items()}
    misled = {cheat for cheat, names in here.items() if [*text.misleading(names, ours, taken)]}
    return misled | {cheat for cheat, names in given.items() if names & taken}


def _read(cheat: Path, reads: Callable[[Sentence], Iterator[str]]) -> Iterator[str]:
    try:
        found = sentences(cheat.read_text("ascii"))
    except ValueError:  # not ASCII, or not to be read
        return
    yield from (name for sentence in found for name in reads(sentence))


def let_through(pool: ThreadPoolExecutor) -> list[str]:
    """The cheats that other readers refuse than those that they name."""
    wrong, taken = [], pool.submit(by_names)
    with beside_ours() as build:
        found = {cheat: {"compile"} for cheat in every()}
        compiled = list(compress(every(), pool.map(partial(compiles, build), every())))
        stops = [cheat for cheat in compiled if "compile" in named(cheat)]  # with Coq: a process for each
        others = [cheat for cheat in compiled if cheat not in stops]
        asking = [*([cheat] for cheat in stops), *(others[i::PROCESSES] for i in range(PROCESSES))]
        for refused in pool.map(partial(by_kernel, build), asking):
            found |= refused
        unchecked = by_coqchk(build, [*map(compiled_as, compiled)])
    for cheat, refused in found.items():
        also = {"text": by_text(cheat), "names": cheat in taken.result(), "coqchk": compiled_as(cheat) in unchecked}
        refused |= {reader for reader, refuses in also.items() if refuses}
        if refused != named(cheat) or not refused:
            wrong.append(f"the cheat {cheat.name} is refused by {sorted(refused)}, not by {sorted(named(cheat))}")
    return wrong
