"""The theorems that claims and the index by paper cite, and the sentences that cite them.

A sentence is read together with what it cites and with the axioms that this may use: `accepted.txt` holds all of it, so
that nothing changes alone; of a claim that cites no theorem, of a claim's source, tests and row of CLAIMS.md, and of
the prose of README, a digest. What else CLAIMS.md says stands there whole, and so does what `granted.toml` grants; of
the tests that are cited a digest (`tests.py`). What the bridge evaluates is read as what is cited is. That a sentence
says no more than what it cites is left to that reader. The standard library alone.
"""

import json
import re
import textwrap
import tomllib
from typing import Any

from proofs.gate import tests, text
from proofs.gate.accepted import Entry, questions
from refengine.selfcheck.claims.coq_text import SOURCES, axioms, listed, sentences, stated
from refengine.source_tree import PROOFS

THEOREM = re.compile(r"`([A-Z]\w*\.[\w']+)`")
ROW = re.compile(r"^\|(?!-)(.+)\|$", re.M)  # source, what it says, theorems
SHOWN = re.compile(r"^\| `(\w+\.[\w.]+)` \|.*$")  # a claim's row of CLAIMS.md
COMMENT = re.compile(r"\(\*\*(.*?)\*\)", re.S)


def claims() -> list[dict[str, Any]]:
    """Each with the title of its document."""
    files = [tomllib.loads(file.read_text("utf-8")) for file in sorted((PROOFS / "claims").glob("*.toml"))]
    return [{"document": file["title"], **claim} for file in files for claim in file["claim"]]


def index() -> str:
    return (PROOFS / "README.md").read_text("utf-8")


def cited() -> list[list[str]]:
    """Every `File.statement` that a claim or the index by paper rests on: those of one claim together."""
    named = [[name] for name in THEOREM.findall(index()) if not name.endswith((".v", ".md"))]
    return named + [claim.get("coq", []) for claim in claims()]


def to_be_read() -> set[str]:
    """What is cited, the theorems of Main, which readers are sent to, and what the bridge evaluates."""
    named = {name for group in cited() for name in group} | {f"Main.{name}" for name in stated("Main")}
    return named | questions(["Bridge"]).keys()


def page() -> tuple[dict[str, str], list[str]]:
    """What CLAIMS.md shows: the row of each claim, and every other line."""
    lines = (PROOFS / "CLAIMS.md").read_text("utf-8").splitlines()
    rows = {row[1]: line for line in lines if (row := SHOWN.match(line))}
    return rows, [line for line in lines if line and not SHOWN.match(line)]


def grants() -> dict[str, Entry]:
    """What the proofs are granted: each axiom with the files that may use it, of the rest a digest."""
    by_part = {part: json.dumps(granted, sort_keys=True) for part, granted in text.granted().items()}
    entries = {f"granted/{part}": Entry(tests.digest(whole)) for part, whole in by_part.items()}
    says = [f"{axiom}: {', '.join(files)}" for axiom, files in text.granted()["axioms"].items()]
    return entries | {"granted/axioms": entries["granted/axioms"]._replace(says=filled(says))}


def abbreviations() -> dict[str, Entry]:
    """The notations of each file, whole: a statement is printed in such words, and Coq does not say what they mean."""
    files = {file: sentences((SOURCES / f"{file}.v").read_text("utf-8")) for file in listed()}
    said = {file: [s.text for s in found if s.word() == "Notation"] for file, found in files.items()}
    return {f"notation/{file}": Entry(tests.digest(*lines), filled(lines)) for file, lines in said.items() if lines}


def filled(lines: list[str]) -> str:
    return "\n".join(textwrap.fill(line, 110, break_long_words=False, break_on_hyphens=False) for line in lines)


def read_beside() -> dict[str, Entry]:
    """What claims, rows of the index, the prose around both and the comments of Main say, the theorems that they say
    it by, what these are granted, and the tests."""
    found = grants() | abbreviations()
    rows, around = page()
    if missing := {claim["id"] for claim in claims()} - rows.keys():
        command = "python -m refengine.selfcheck.claims.claims --write"
        raise LookupError(f"CLAIMS.md has no row for {', '.join(sorted(missing))}: {command}")

    def put(name: str, says: list[str], names: list[str], besides: str = "") -> None:
        again = sum(other.partition("#")[0] == name for other in found)
        allowed = [f"axioms: {', '.join(axioms(names))}"] if axioms(names) else []
        text = filled([*says, *allowed, f"by: {', '.join(names)}"]) if names else ""
        found[name + f"#{again + 1}" * bool(again)] = Entry(tests.digest(text + besides), text)

    for claim in claims():
        besides = [f"{word}: {claim[word]}" for word in ("quote", "correct", "note") if word in claim]
        trusted = [f"trusted: {line}" for line in claim.get("trusted", [])]
        says = [claim["verdict"], claim["statement"], *besides, *trusted]
        put(f"claim/{claim['id']}", says, claim.get("coq", []), json.dumps(claim, sort_keys=True) + rows[claim["id"]])
    for row in ROW.findall(index()):
        names = THEOREM.findall(row)
        put(f"index/{names[0] if names else 'no_theorem'}", [row.strip()], names, row)
    comments = [" ".join(text.split()) for text in COMMENT.findall((SOURCES / "Main.v").read_text("utf-8"))]
    put("prose/README", [], [], " ".join(ROW.sub("", index()).split()))
    put("comment/Main", comments, [f"Main.{name}" for name in stated("Main")])
    found["prose/CLAIMS"] = Entry(tests.digest(*around), filled(around))
    asked = [test for claim in claims() for kind in ("smt", "exact", "statistical") for test in claim.get(kind, [])]
    return found | {name: Entry(digest) for name, digest in tests.digests([*asked, *tests.linking()]).items()}
