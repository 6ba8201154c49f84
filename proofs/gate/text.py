"""The first reader: only listed commands, only listed notations, no name twice. It needs no Coq.

Whatever can add an assumption, switch a check off, run foreign code or change how a statement reads is a command (they
all begin with a capital), an attribute or an option; so what is listed here is what may stand, not what may not.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from refengine.selfcheck.claims.coq_text import SOURCES, STATEMENTS, TOKEN, Sentence, listed, sentences

HERE = Path(__file__).resolve().parent
PROJECT = ("-Q . Proofs", "-arg -w", "-arg none")
DECLARING = (*STATEMENTS, "Definition", "Fixpoint", "Inductive", "Structure", "Record", "Instance", "Let", "Canonical")
WHOLE = {
    # No `Defined`: what a script computes would be what a word means.
    *("Proof.", "Qed.", "Set Implicit Arguments.", "Unset Strict Implicit."),
    *("Unset Printing Implicit Defensive.", "Import Order.TTheory GRing.Theory Num.Theory."),
    *("Local Open Scope ring_scope.", "Open Scope R_scope."),
}
REQUIRE = re.compile(r"From Proofs Require Import [\w ]+\.")
HINT = re.compile(r"#\[local\] Hint Resolve [\w' ]+ : core\.")
TACTIC = re.compile(r"[a-z(\[]|\d+\s*:|\d+-\d+\s*:|[-+*{}]")
NAMED = re.compile(r"(?:Section|End|Ltac|Implicit Types?) .*|Arguments [\w' {}\[\]]+\.")  # of arguments no scope
# Coq begins a word behind a digit too.
BEGINS = r"(?<![A-Za-z_'])"
# What the kernel would have to believe, or only believes at the end; a function that calls itself without a name, which
# `recursion.py` does not see; propositions whose proofs are all alike, on which the kernel has holes; a tactic that
# gives a name to what nobody was shown.
BLIND = re.compile(rf"native_c|<<:|_no_check|{BEGINS}(?:co)?fix\b|SProp|_sind\b|{BEGINS}(?:transparent_)?abstract\b")
HIDING = re.compile(r"[^ -~\n]| {49}|.{241}|\n{5}")  # a sign, or a gap behind which something stands, that no eye sees
COMPUTED = re.compile(rf"{BEGINS}ltac2?\s*:")  # a term that a tactic writes: what it says does not stand there
ASSUMING = re.compile(r"->|\bforall\b")  # what no Let and no short notation says: Coq writes it out in a statement
MEANING = (
    "Definition",
    "Fixpoint",
    "Inductive",
    "Structure",
    "Record",
    "Let",
    "Notation",
)  # what statements are read by

# Letters that look alike in many a font; two names may not differ in these alone.
ALIKE = (("rn", "m"), ("vv", "w"), ("__", "_"), ("I", "l"), ("1", "l"), ("0", "O"))
HEADED = (*DECLARING, "Section", "End", "Hypothesis", "Variable", "Variables", "Notation")


@cache
def granted() -> Any:
    return tomllib.loads((HERE / "granted.toml").read_text())


def project(sources: Path = SOURCES) -> Iterator[str]:
    """What is wrong with the list of files: an option, a file twice, one that is not there or not listed."""
    lines = (sources / "_CoqProject").read_text().splitlines()
    if tuple(lines[: len(PROJECT)]) != PROJECT:
        yield f"_CoqProject does not begin with {PROJECT}"
    for line in lines[len(PROJECT) :]:
        if not re.fullmatch(r"(?!Cheat\.)[A-Z][A-Za-z]*\.v", line):  # the negative controls are compiled as Cheat
            yield f"_CoqProject: {line!r} is no file whose name begins with a capital, by which its words are known"
    files = [f"{name}.v" for name in listed(sources)]
    there = sorted(str(file.relative_to(sources)) for file in sources.rglob("*") if file.is_file())
    yield from alike(files)
    if sorted([*files, "_CoqProject"]) != there:
        yield f"_CoqProject and its folder differ in {sorted({*files, '_CoqProject'} ^ {*there})}, or list a file twice"


def refusals(file: str, text: str, before: dict[str, set[str]]) -> Iterator[str]:
    """What one file may not say; `before` has the names that each file before it gives, and receives this file's."""
    if gap := HIDING.search(text):
        line = text.count("\n", 0, gap.start()) + 1
        yield f"{file}, line {line}: letters beyond ASCII, control signs, and wide gaps or lines hide what stands there"
    try:
        found = sentences(text)
    except ValueError as error:
        yield f"{file}: {error}"
        return
    yield from (f"{file}: {line}" for line in (*disguised(text), *not_shown(file, found)))
    sections, given, seen = 0, set[str](), set[str]()
    for sentence in found:
        imported = re.match(r"From Proofs Require Import ([^.]*)\.", sentence.text)
        for other in imported[1].split() if imported else []:
            if other not in before:
                yield f"{file}: it imports {other}, which is not listed before it"
            seen |= before.get(other, set())
        sections += (sentence.word() == "Section") - (sentence.word() == "End")
        start = text[max(sentence.start - 1, 0) : sentence.start + len(sentence.word()) + 2]
        if sentence.word() in HEADED and not re.fullmatch(rf"\n?{sentence.word()} \S", start):
            yield f"{file}: what is declared begins a line, and one space follows: {sentence.text[:100]}"
        if BLIND.search(sentence.text) or not allowed(file, sentence, inside=sections > 0):
            listing = "as proofs/gate/text.py and granted.toml list them"
            yield f"{file}: not a command of this house, {listing}: {sentence.text[:100]}"
        new, bound = set(declared(sentence)), set(variables(sentence))
        yield from (f"{file}: {name} is given a second time" for name in sorted((new | bound) & (seen | given)))
        if sentence.word() in MEANING:
            elsewhere = set().union(*before.values()) - seen - {*granted()["twice"]["names"]}
            yield from (f"{file}: {name} means something else in another file" for name in sorted(new & elsewhere))
        # What a section or a `Let` keeps to itself may be given again elsewhere.
        given |= set() if sentence.word() == "Let" or (sentence.word() == "Notation" and sections) else new
    if sections:
        yield f"{file}: a section is left open"
    yield from (f"{file}: {line}" for line in alike([*given, *sorted(set().union(*before.values()))]))
    before[file] = given | seen


def disguised(text: str) -> Iterator[str]:
    """What Coq reads as code and an eye as a comment, or the other way round."""
    open_comments = 0
    for token in TOKEN.findall(text):
        if open_comments and token == "(*":
            yield "a comment in a comment"
        if token[0] == '"' and re.search(r"\(\*|\*\)", token):
            yield f"a string that looks like the edge of a comment: {token[:60]}"
        open_comments += (token == "(*") - (token == "*)")
    if "(*)" in text:
        yield "a sign that opens a comment: (*)"


def not_shown(file: str, found: list[Sentence]) -> Iterator[str]:
    """What variables are of by their names alone: a word that is neither granted nor a variable of an open section."""
    known = granted()["implicit"]
    words = [{*known["everywhere"], *known.get(file, ())}]
    for sentence in found:
        match sentence.word():
            case "Section":
                words.append(set())
            case "End":
                words = words[:1] + words[1:-1]
            case "Implicit":
                types = re.sub(r"(?:^|\()[\w' ]+? :", " ", sentence.text.split(" ", 2)[2])
                for word in sorted(set(re.findall(r"[A-Za-z_][\w']*", types)).difference(*words)):
                    yield f"statements do not show that a variable is of {word}, write so there: {sentence.text[:60]}"
            case _:
                words[-1].update(variables(sentence))


def alike(names: Collection[str]) -> Iterator[str]:
    """Names that a reader may take for one another."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(folded(name), name)
        if other != name:
            yield f"{other} and {name} look alike"


@cache
def folded(name: str) -> str:
    for one, other in ALIKE:
        name = name.replace(one, other)
    return name


def allowed(file: str, sentence: Sentence, inside: bool) -> bool:
    """Whether a sentence may stand: a tactic, or a command that adds no assumption and leaves words as they are."""
    text, word = sentence.text, sentence.word()
    if TACTIC.match(text) or text in WHOLE or REQUIRE.fullmatch(text) or HINT.fullmatch(text) or NAMED.fullmatch(text):
        return True
    if word == "From":
        return text in granted()["libraries"]["imports"]
    if COMPUTED.search(text) and text not in granted()["tactics"]["terms"]:
        return False
    if word in ("Instance", "Canonical") and sentence.name() not in granted()["instances"].get(file, ()):
        return False
    counts = {w: len(re.findall(rf"{BEGINS}{w}\b", text)) for w in ("where", "with", "match")}
    if counts["where"] or (word in DECLARING and counts["with"] > counts["match"]):  # a second name behind `with`
        return False
    if word == "Inductive" and sentence.name() not in granted()["inductives"].get(file, ()):
        return False
    if word == "Let":  # outside of a section it is a Definition, and by a script it means what nobody was shown
        said = (":=" in text or text in granted()["lets"]["proved"].get(file, ())) and not ASSUMING.search(text)
        return inside and said and bool(sentence.name()) and sentence.name() not in (*DECLARING, "CoFixpoint")
    if word in ("Structure", "Record", "Inductive") and text.count(":=") > 1:  # a member that stands for something
        return False
    if word in ("Variable", "Variables", "Hypothesis"):
        return inside and ":>" not in text and (word != "Hypothesis" or bool(re.match(r"Hypothesis [\w']+ : ", text)))
    if word == "Notation":
        short = re.match(r"Notation [\w']+ ", text) and not ASSUMING.search(text)
        return bool(short) or text in granted()["notations"].get(file, ())
    if word in ("Structure", "Record", "Inductive") and ":>" in text:
        return text in granted()["coercions"]["records"]
    return word in DECLARING and bool(sentence.name())


def declared(sentence: Sentence) -> Iterator[str]:
    """The names that a sentence gives: its own, its constructors' and its fields'."""
    text, word = sentence.text, sentence.word()
    if word in (*DECLARING, "Notation"):
        yield from [sentence.name()] if sentence.name() else []
    if word == "Fixpoint":
        yield from re.findall(r" with ([\w']+)[^.]*? :=", text)
    body = text.partition(":=")[2]
    if word == "Inductive":
        yield from re.findall(r"(?:^|\|) ?([A-Za-z_][\w']*)", body)
    if word in ("Structure", "Record"):
        yield from re.findall(r"(?:^|[{;]) ?([A-Za-z_][\w']*)", body)


def variables(sentence: Sentence) -> Iterator[str]:
    """The names that a section leaves open, hypotheses aside."""
    if sentence.word() in ("Variable", "Variables"):
        for group in re.findall(r"(?:^|\()([\w' ]+?) :", sentence.text.partition(" ")[2]):
            yield from group.split()


def read(sources: Path = SOURCES) -> list[str]:
    """Every refusal of every listed file."""
    before: dict[str, set[str]] = {}
    texts = {name: (sources / f"{name}.v").read_text() for name in listed(sources)}
    return [*project(sources), *(line for name, text in texts.items() for line in refusals(name, text, before))]


def meanings(sources: Path = SOURCES) -> dict[str, set[str]]:
    """The names that each file sees, its own among them."""
    before: dict[str, set[str]] = {}
    for name in listed(sources):
        list(refusals(name, (sources / f"{name}.v").read_text(), before))
    return before


def misleading(
    left_open: Mapping[str, Collection[str]], ours: Collection[str], libraries: Collection[str]
) -> Iterator[str]:
    """Variables, by name the files, that a reader may take for a word of ours or a library's; one letter is no word."""
    for name in sorted({*left_open} - {*granted()["bound"]["everywhere"]}):
        files = {*left_open[name]} - {*granted()["variables"].get(name, ())}
        if files and (name in libraries or (len(name) > 1 and name in ours)):
            yield f"{name} means something already, and is a variable in {', '.join(sorted(files))}"


def names(sources: Path = SOURCES) -> list[str]:
    """Every name that our files give, once: a library may not have given it already."""
    return [*by_file(declared, sources)]


def by_file(reads: Callable[[Sentence], Iterator[str]], sources: Path = SOURCES) -> dict[str, set[str]]:
    """What is read in the sentences of our files (what they declare, or leave open), by name the files."""
    files_of = dict[str, set[str]]()
    for file in listed(sources):
        for sentence in sentences((sources / f"{file}.v").read_text()):
            for name in reads(sentence):
                files_of.setdefault(name, set()).add(file)
    return files_of
