"""The fourth reader: what coqc wrote down of the names in a file while it compiled it (`File.glob`).

Every name that a file gives is one that its text shows, and every notation a granted one: a `where`, or the second of
two types given together, gives words too. What is said is said in those words of the libraries that were looked at:
`{in s, ...}` and `==>` hide a premise, `void` has no members. And no statement binds a word that means something
already, ours where the file sees it or a library's: `forall dist, dist p` says nothing of distributions; nor one that a
`Hypothesis` of the file has, for which a premise would pass. The standard library alone.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path

from proofs.gate import text
from refengine.selfcheck.claims.coq_text import STATEMENTS, Sentence, blank_comments, sentences

GIVEN = re.compile(r"(\w+) (\d+):\d+ \S+ (\S+)")
REFERRED = re.compile(r"R(\d+):\d+ (\S+) \S+ (\S+) (\w+)")
WORD = re.compile(r"[A-Za-z_][\w']*(?:\.[A-Za-z_][\w']*)*")
GLOBAL = {"abbrev", "class", "constr", "def", "defax", "ind", "inst", "meth", "proj", "rec", "thm"}
SAYING = {*STATEMENTS, *text.MEANING, "Hypothesis", "Variable", "Variables"} - {"Let"}  # coqc calls its name a variable


def borrowed(build: Path, files: list[str]) -> set[str]:
    """The words of the libraries that our files use, of those that are compiled."""
    found = set()
    for notes in (build / f"{file}.glob" for file in files if (build / f"{file}.glob").is_file()):
        for _, place, name, kind in REFERRED.findall(notes.read_text()):
            if kind in GLOBAL and not place.startswith("Proofs."):
                found.add(name.rpartition(".")[2])
    return found


def misread(build: Path, file: str, meanings: Mapping[str, set[str]], words: set[str]) -> Iterator[str]:
    """What one file gives or binds otherwise than its text shows; `meanings` has the names that each file sees."""
    source = (build / f"{file}.v").read_text()
    head, *lines = (build / f"{file}.glob").read_text().splitlines()
    if head != f"DIGEST {hashlib.md5(source.encode()).hexdigest()}":
        yield f"{file}: its .glob is of another text"
        return
    found = sentences(source)
    starts = [sentence.start for sentence in found]
    hypotheses = {sentence.name() for sentence in found if sentence.word() == "Hypothesis"}
    seen = words | meanings[file]
    bound = {*text.granted()["bound"]["everywhere"], *text.granted()["bound"].get(file, ())}
    entries = [match.groups() for line in lines if (match := GIVEN.fullmatch(line))]
    references = [match.groups() for line in lines if (match := REFERRED.fullmatch(line))]
    known = {int(at) for _, at, _ in entries} | {int(at) for at, _, _, _ in references}
    code = blank_comments(source, strings=True)
    for sentence, end in zip(found, [*starts[1:], len(source)], strict=True):
        if sentence.word() in SAYING:
            own = set(text.declared(sentence))
            for word in WORD.finditer(code, sentence.start, end):
                keyword = code[word.start() - 1] in "[%"  # [seq f x | x <- s], (a < b)%nat
                if word[0] in seen - bound - own and word.start() not in known and not keyword:
                    yield f"{file}: {word[0]} is not what it is elsewhere in {_short(sentence)}"
    for at, place, name, kind in references:
        sentence = found[bisect_right(starts, int(at)) - 1]
        foreign = not place.startswith("Proofs.") and kind != "lib"
        if foreign and sentence.word() in {*SAYING, "Let"} and name not in text.granted()["words"].get(place, ()):
            yield f"{file}: {name} of {place} is said for the first time in {_short(sentence)}"
    for kind, at, name in entries:
        sentence = found[bisect_right(starts, int(at)) - 1]
        name = name.split(":")[0] if kind == "binder" else name.rpartition(".")[2]
        if kind == "not":
            if sentence.text not in text.granted()["notations"].get(file, ()):
                yield f"{file}: a notation in {_short(sentence)}"
        elif kind in ("binder", "var"):
            saying = sentence.word() in SAYING or (sentence.word() == "Let" and kind == "binder")
            if saying and name in seen - bound:
                yield f"{file}: {name} means something already, and is bound in {_short(sentence)}"
            if kind == "binder" and name in hypotheses and sentence.word() in {*STATEMENTS, "Let"}:
                yield f"{file}: {name} is a Hypothesis here, and bound in {_short(sentence)}: give it another name"
        elif kind != "sec" and name not in text.declared(sentence):
            yield f"{file}: {name} is given by {_short(sentence)}, which does not show it"


def _short(sentence: Sentence) -> str:
    return sentence.text[:80]
