"""The negative controls: every file of proofs/cheats states `anything`: false, not proved, or less than it stands for.

Its first comment names the readers that refuse it, and what it tries. `text` reads it as if it were the last file of
proofs/rocq; `compile` is Coq itself, or that there is no such statement in the end; `assumptions`, `premises`,
`names`, `words`, `recursion` and `coqchk` are asked whatever the others said: each is held to cheats of its own.
`applied` reads the cheat as a file of instances: what assumes something is refused where no proof applies it to all.
`accepted` compares `anything` with what was read of the name that the cheat stands for.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from proofs.gate import accepted, kernel, text, words
from proofs.gate.applied import not_reached, proofs_of
from proofs.gate.build import BUILD, clean
from proofs.gate.recursion import fixpoints, recursing
from refengine.selfcheck.claims.coq_text import Sentence, listed, sentences, stated
from refengine.source_tree import PROOFS

FOLDER = PROOFS / "cheats"
CLAIMED = "anything"


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


def by_kernel(cheat: Path) -> set[str]:
    """The readers behind Coq that refuse it, or `compile` where there is nothing for them to read."""
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        for compiled in BUILD.glob("*.vo"):
            (build / compiled.name).symlink_to(compiled)
        shutil.copyfile(cheat, build / "Cheat.v")
        command = ["coqc", "-q", "-w", "none", "-Q", ".", "Proofs", "Cheat.v"]
        if subprocess.run(command, cwd=build, env=clean(), capture_output=True).returncode:
            return {"compile"}
        claimed = f"Cheat.{CLAIMED}"  # which the reader of statements may not find
        names = sorted({claimed, *(f"Cheat.{name}" for name in _stated(cheat))})
        questions = [
            kernel.resting([[claimed]], text.granted()["axioms"]),
            kernel.quantifying(names),
            accepted.standing_for(cheat.read_text("utf-8")),
            proofs_of(names, names),
            recursing([f"Cheat.{name}" for name in fixpoints(cheat.read_text("utf-8"))], {}),
        ]
        try:
            resting, told, differs, proofs, recurs = kernel.put(build, ["Cheat"], questions)
        except RuntimeError:
            if _is_stated(build, claimed):
                raise
            return {"compile"}
        answers = {
            "assumptions": resting,
            "premises": kernel.hidden_premises(told, text.granted()["inhabited"], build),
            "applied": not_reached(told, [claimed], names, proofs),
            "coqchk": kernel.checked(build, ["Cheat"]),
            "words": _misread(build),
            "accepted": differs,
            "recursion": recurs,
        }
    return {reader for reader, wrong in answers.items() if wrong}


def _is_stated(build: Path, claimed: str) -> bool:
    try:
        return bool(kernel.asked(build, ["Cheat"], {"it": f"Check Proofs.{claimed}."}))
    except RuntimeError:
        return False


def _misread(build: Path) -> list[str]:
    """What the reader of coqc's notes refuses."""
    seen = {**_ours()}
    list(text.refusals("Cheat", (build / "Cheat.v").read_text(), seen))
    try:
        return list(words.misread(build, "Cheat", {"Cheat": set(), **seen}, _borrowed()))
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
    for cheat, refused in zip(every(), pool.map(by_kernel, every()), strict=True):
        also = {"text": by_text(cheat), "names": cheat in taken.result()}
        refused |= {reader for reader, refuses in also.items() if refuses}
        if refused != named(cheat) or not refused:
            wrong.append(f"the cheat {cheat.name} is refused by {sorted(refused)}, not by {sorted(named(cheat))}")
    return wrong
