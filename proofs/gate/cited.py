"""The theorems that claims and the index by paper cite, and the sentences that cite them.

A sentence is read together with what it cites: `accepted.txt` holds both, so that neither changes alone; of a claim
that cites no theorem, of a claim's source and tests, and of the prose of README, a digest. That a sentence says no more
than what it cites is left to that reader. The standard library alone.
"""

import hashlib
import json
import re
import textwrap
import tomllib
from typing import Any

from proofs.gate.accepted import Entry
from refengine.selfcheck.claims.coq_text import SOURCES, stated
from refengine.source_tree import PROOFS

THEOREM = re.compile(r"`([A-Z]\w*\.[\w']+)`")
ROW = re.compile(r"^\|(?!-)(.+)\|$", re.M)  # source, what it says, theorems
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
    """What is cited, and the theorems of Main, which readers are sent to."""
    return {name for group in cited() for name in group} | {f"Main.{name}" for name in stated("Main")}


def read_beside() -> dict[str, Entry]:
    """What claims, rows of the index, the prose around it and the comments of Main say, and the theorems that they say
    it by."""
    found = dict[str, Entry]()

    def put(name: str, says: list[str], names: list[str], besides: str = "") -> None:
        again = sum(other.partition("#")[0] == name for other in found)
        text = "\n".join(textwrap.fill(line, 110) for line in [*says, f"by: {', '.join(names)}"]) if names else ""
        whole = text + besides
        found[name + f"#{again + 1}" * bool(again)] = Entry(hashlib.sha256(whole.encode()).hexdigest()[:16], text)

    for claim in claims():
        besides = [f"{word}: {claim[word]}" for word in ("quote", "correct", "note") if word in claim]
        trusted = [f"trusted: {line}" for line in claim.get("trusted", [])]
        says = [claim["verdict"], claim["statement"], *besides, *trusted]
        put(f"claim/{claim['id']}", says, claim.get("coq", []), json.dumps(claim, sort_keys=True))
    for row in ROW.findall(index()):
        names = THEOREM.findall(row)
        put(f"index/{names[0] if names else 'no_theorem'}", [row.strip()], names, row)
    comments = [" ".join(text.split()) for text in COMMENT.findall((SOURCES / "Main.v").read_text("utf-8"))]
    put("prose/README", [], [], " ".join(ROW.sub("", index()).split()))
    put("comment/Main", comments, [f"Main.{name}" for name in stated("Main")])
    return found
