"""The reader of what was read: whether what is cited still says what it said when somebody last read it.

A weaker theorem under its old name is proved, and so is one about a word that has come to mean less. So `accepted.txt`
holds what is cited and the theorems of Main, as Coq tells them when every section is closed, and the name of each word
of ours that they are said in, to the end. Behind a name stands a digest of all that Coq knows of it (`Set Printing
All`), for what a text does not show: types of variables, coercions, arguments that are left out. Translated.v is read
through and not written down: `proofs.translate` holds it to the program. The standard library alone.
"""

import difflib
import hashlib
import re
import subprocess
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from proofs.gate import text
from proofs.gate.kernel import asked
from refengine.selfcheck.claims.coq_text import SOURCES, STATEMENTS, listed, sentences

FILE = Path(__file__).resolve().parent / "accepted.txt"
COMMAND = "python3 -m proofs.gate --accept"
HEAD = f"What is cited and what it is said in, read as {{coq}} told it. `{COMMAND}` writes it again."
EXACT = "Set Printing All.\nSet Printing Width 1000.\nSet Printing Depth 100000."
READABLE = "Unset Printing Implicit Defensive.\nSet Printing Width 110.\nSet Printing Depth 100000."
QUALIFIED = re.compile(r"(?<![\w.'])[A-Z]\w*\.[A-Za-z_][\w']*")
AROUND = re.compile(r"From [\w.]+ Require|Import |(?:Local )?Open Scope")
THE_PROGRAM = "Translated."


class Entry(NamedTuple):
    """What was read of a name: the digest of all of it and, of a statement, its text."""

    digest: str
    says: str = ""


def told(
    build: Path, wanted: Collection[str], files: Sequence[str], known: Mapping[str, Entry], sources: Path = SOURCES
) -> dict[str, Entry]:
    """What Coq says of `wanted`, and of each word of `files` that it is said in. RuntimeError where it stops.

    The text of what is `known` by its digest is not asked again.
    """
    lines = questions(sources, files)
    whole, digests, todo = dict[str, str](), dict[str, str](), {*wanted}
    while todo:
        if todo - whole.keys():  # the first time all that is known, which is all in the end where nothing has changed
            ask = {name: line for name, line in lines.items() if name in todo or (name in known and not whole)}
            whole |= {name: _said(answer) for name, answer in asked(build, files, ask, EXACT).items()}
        digests |= {name: hashlib.sha256(whole[name].encode()).hexdigest()[:16] for name in todo}
        said = {word for name in todo for word in QUALIFIED.findall(whole[name])}
        todo = said & lines.keys() - digests.keys()
    digests = {name: digest for name, digest in sorted(digests.items()) if not name.startswith(THE_PROGRAM)}
    found = {name: known[name] for name, digest in digests.items() if name in known and known[name].digest == digest}
    stated = [name for name in sorted(digests.keys() - found) if lines[name].startswith("Check")]
    texts = asked(build, files, _among_their_own(stated, lines, sources), READABLE) if stated else {}
    return {name: found.get(name, Entry(digest, _said(texts.get(name, "")))) for name, digest in digests.items()}


def questions(sources: Path, files: Sequence[str]) -> dict[str, str]:
    """What Coq is asked about each name that files give when their sections are closed: of a proof what it proves."""
    lines = {}
    for file in files:
        for sentence in sentences((sources / f"{file}.v").read_text()):
            if sentence.word() not in ("Let", "Notation"):
                verb = "Check @" if sentence.word() in STATEMENTS else "Print "
                lines |= {f"{file}.{name}": f"{verb}Proofs.{file}.{name}." for name in text.declared(sentence)}
    return lines


def _among_their_own(names: Sequence[str], lines: Mapping[str, str], sources: Path) -> dict[str, str]:
    """The questions, each asked among the notations of the file that the name stands in."""
    asking = {}
    for file in dict.fromkeys(name.split(".")[0] for name in names):
        around = [s.text for s in sentences((sources / f"{file}.v").read_text()) if AROUND.match(s.text)]
        mine = [name for name in names if name.startswith(f"{file}.")]
        asking |= {name: lines[name] for name in mine}
        opening = " ".join([f"Module Asked_{file}.", *around, f"From Proofs Require Import {file}."])
        asking[mine[0]] = f"{opening}\n{asking[mine[0]]}"
        asking[mine[-1]] += f"\nEnd Asked_{file}."
    return asking


def _said(answer: str) -> str:
    """An answer without the name that was asked about and without what only a reader of texts needs."""
    answer = answer.partition("\n\nArguments")[0]
    return textwrap.dedent(re.sub(r"\A@?[\w.']+\s*(?::|=) ?", " " * 7, answer)).strip("\n")


def written(entries: Mapping[str, Entry]) -> str:
    version = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=True).stdout.split()
    head = HEAD.format(coq=f"Coq {version[version.index('version') + 1]}")
    blocks = (f"{n} {e.digest}\n{textwrap.indent(e.says, '  ')}".rstrip() for n, e in sorted(entries.items()))
    return "\n".join([head, "", *blocks, ""])


def read(file: Path = FILE) -> dict[str, Entry]:
    found = re.findall(r"^([\w.']+) ([0-9a-f]{16})\n((?:  .*\n)*)", file.read_text(), re.M)
    return {name: Entry(digest, textwrap.dedent(says).strip("\n")) for name, digest, says in found}


def unread(before: Mapping[str, Entry], now: Mapping[str, Entry]) -> Iterator[str]:
    """What nobody has read as it is now, with what has changed; the last line says what to do."""
    changed = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    for name in changed:
        old, new = before.get(name, Entry("")), now.get(name, Entry(""))
        if not new.digest:
            yield f"{name} was read, and is neither cited now nor said in what is"
        elif old.says != new.says:
            lines = difflib.ndiff(old.says.splitlines(), new.says.splitlines())
            yield "\n  ".join([f"{name} is not what was read:", *(s.rstrip() for s in lines if s[0] != "?")])
        elif not old.digest:
            yield f"{name} is said in what is cited, and was not read"
        else:
            what = "reads as it did, and is about something else" if new.says else "means something else than it did"
            yield f"{name} {what}: see `git diff` of proofs/rocq/{name.split('.')[0]}.v"
    if changed:
        yield f"read it again, with the claims that cite it; then {COMMAND}, and commit {FILE.name}"


def stands_for(build: Path, cheat: str) -> list[str]:
    """What tells the statement of a cheat from the one that its first comment says it stands for."""
    name = re.search(r"It stands for ([\w.']+)\. ", cheat)
    if name is None:
        return []
    now = told(build, ["Cheat.anything"], ["Cheat"], {}, build)["Cheat.anything"]
    return list(unread({name[1]: read()[name[1]]}, {name[1]: now}))
