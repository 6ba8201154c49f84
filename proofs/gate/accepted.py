"""The reader of what was read: whether what is cited still says what it said when somebody last read it.

A weaker theorem under its old name is proved, and so is one about a word that has come to mean less. So `accepted.txt`
holds what is cited and the theorems of Main, as Coq tells them when every section is closed, and each word of ours that
they are said in, to the end, with what it stands for. Behind a name stands a digest of all that Coq knows of it (`Set
Printing All`), for what a text does not show: types of variables, coercions, arguments that are left out. Translated.v
is read through and not written down: `proofs.translate` holds it to the program. The sentences that cite are there too,
and the tests (`cited.py`): under names with a `/`. The standard library alone.
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
from proofs.gate.kernel import Question, asked, inside
from refengine.selfcheck.claims.coq_text import SOURCES, STATEMENTS, sentences

FILE = Path(__file__).resolve().parent / "accepted.txt"
COMMAND = "python3 -m proofs.gate --accept"
HEAD = f"What is cited and what it is said in, read as {{coq}} told it. `{COMMAND}` writes it again."
EXACT = "Set Printing All.\nSet Printing Width 1000.\nSet Printing Depth 100000."
READABLE = "Unset Printing Implicit Defensive.\nSet Printing Width 110.\nSet Printing Depth 100000."
QUALIFIED = re.compile(r"(?<![\w.'])(?:Proofs\.)?([A-Z]\w*\.[A-Za-z_][\w']*)")
AROUND = re.compile(r"From [\w.]+ Require|Import |(?:Local )?Open Scope")
OURS = re.compile(r"From Proofs |(?:Local )?Open Scope")
THE_PROGRAM = "Translated."


class Entry(NamedTuple):
    """What was read of a name: the digest of all of it, and the text of what Coq is asked about."""

    digest: str
    says: str = ""


def told(build: Path, wanted: Collection[str], files: Sequence[str], known: Collection[str] = ()) -> dict[str, Entry]:
    """What Coq says of `wanted`, and of each word of `files` that it is said in. RuntimeError where it stops.

    What was `known` is asked about at once, which is all where nothing has changed.
    """
    lines = questions(files)
    whole, digests, todo = dict[str, str](), dict[str, str](), lines.keys() & {*wanted}
    while todo:
        if todo - whole.keys():
            ask = {name: line for name, line in lines.items() if name in todo or (name in known and not whole)}
            whole |= {name: _said(answer) for name, answer in asked(build, files, ask, EXACT).items()}
        digests |= {name: _digest(whole[name]) for name in todo}
        said = {word for name in todo for word in QUALIFIED.findall(whole[name])}
        todo = said & lines.keys() - digests.keys()
    digests = {name: digest for name, digest in sorted(digests.items()) if not name.startswith(THE_PROGRAM)}
    texts = asked(build, files, _among_their_own(digests, lines), READABLE)
    return {name: Entry(digest, _said(texts[name])) for name, digest in digests.items()}


def values(build: Path, names: Collection[str], files: Sequence[str]) -> list[str]:
    """Those of the names that are proved and are no proposition: what is said in them depends on what the proof gave,
    which stands nowhere in what Coq tells of them."""
    proved = [name for name, line in questions(files).items() if name in names and line.startswith("Check @")]
    line = "Goal True. let t := type of @Proofs.{} in let s := type of t in idtac s. Abort."
    sorts = asked(build, files, {name: line.format(name) for name in proved})
    return [name for name in proved if sorts[name].split() != ["Prop"]]


def questions(files: Sequence[str]) -> dict[str, str]:
    """What Coq is asked about each name that files give when their sections are closed: of a proof what it proves."""
    lines = dict[str, str]()
    for file in files:
        for sentence in sentences((SOURCES / f"{file}.v").read_text()):
            if sentence.word() not in ("Let", "Notation"):
                verb = "Check @" if sentence.word() in STATEMENTS else "Print "
                lines |= {f"{file}.{name}": f"{verb}Proofs.{file}.{name}." for name in text.declared(sentence)}
    return lines


def _among_their_own(names: Collection[str], lines: Mapping[str, str]) -> dict[str, str]:
    """The questions, each asked among the notations of the file that the name stands in."""
    found = {file: sentences((SOURCES / f"{file}.v").read_text()) for file in {name.split(".")[0] for name in names}}
    around = {file: [s.text for s in found[file] if AROUND.match(s.text)] for file in found}
    libraries = {file: " ".join(text for text in around[file] if not OURS.match(text)) for file in found}
    asking = dict[str, str]()
    for words in sorted({*libraries.values()}):  # which are slow to import: once for all files that have the same
        among = dict[str, str]()
        for file in sorted(file for file in found if libraries[file] == words):
            ours = [text for text in around[file] if OURS.match(text)]
            opening = " ".join([f"Module Asked_{file}.", *ours, f"From Proofs Require Import {file}."])
            among |= inside(opening, {name: lines[name] for name in names if name.startswith(f"{file}.")})
        asking |= inside(f"Module Among_{len(asking)}. {words}", among)
    return asking


def _digest(whole: str) -> str:
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _said(answer: str) -> str:
    """An answer without the name that was asked about and without what only a reader of texts needs."""
    answer = answer.partition("\n\nArguments")[0]
    return textwrap.dedent(re.sub(r"\A@?[\w.']+\s*(?::|=) ?", " " * 7, answer)).strip("\n")


def written(entries: Mapping[str, Entry], head: str = "") -> str:
    head = head or HEAD.format(coq=f"Coq {coq_version()}")
    blocks = (f"{n} {e.digest}\n{textwrap.indent(e.says, '  ')}".rstrip() for n, e in sorted(entries.items()))
    return "\n".join([head, "", *blocks, ""])


def coq_version() -> str:
    told = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=True).stdout.split()
    return told[told.index("version") + 1]


def read(file: Path = FILE) -> dict[str, Entry]:
    found = re.findall(r"^([\w.'/#]+) ([0-9a-f]{16})\n((?:  .*\n)*)", file.read_text(), re.M)
    return {name: Entry(digest, textwrap.dedent(says).strip("\n")) for name, digest, says in found}


def strays(file: Path = FILE) -> Iterator[str]:
    """What the file holds beside what is read of it: an entry a second time, a line of another form."""
    text = file.read_text()
    if text != written(read(file), text.splitlines()[0]):
        yield f"{file.name} has lines that are not read: see `git diff` after `{COMMAND}-texts`"


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
            if "/" in name:  # a sentence: what it says has to follow from these
                cites = now.keys() & QUALIFIED.findall(new.says.rpartition("by: ")[2])
                yield from (f"{name} cites {cite}:\n{textwrap.indent(now[cite].says, '  ')}" for cite in sorted(cites))
        elif not old.digest:
            yield f"{name} {'is new' if '/' in name else 'is said in what is cited'}, and was not read"
        else:
            what = "reads as it did, and is about something else" if new.says else "means something else than it did"
            yield f"{name} {what}: see `git diff` of {where(name)}"
    if changed:
        texts = "-texts" * all("/" in name for name in changed)
        yield f"read it again, with the claims that cite it; then {COMMAND}{texts}, and commit {FILE.name}"


def where(name: str) -> str:
    """The file or folder that says what is accepted under a name."""
    kind, _, rest = name.partition("/")
    if kind == "test":
        return rest if rest.endswith((".py", ".toml")) else rest.rpartition("/")[0]
    if kind in ("notation", name):
        return f"proofs/rocq/{(rest or name).split('.')[0]}.v"
    return {"run": rest, "granted": "proofs/gate/granted.toml"}.get(kind, "proofs/claims")


def standing_for(file: str, cheat: str) -> Question:
    """That the statement of a cheat is another than the one that its first comment says it stands for."""
    name = re.search(r"It stands for ([\w.']+)\. ", cheat)

    def differs(answers: dict[str, str]) -> list[str]:
        now = {_digest(_said(answer)) for answer in answers.values()}
        return [f"{name[1]} says something else"] if name and now != {read()[name[1]].digest} else []

    return Question({"it": f"Check @Proofs.{file}.anything."} if name else {}, EXACT, differs)
