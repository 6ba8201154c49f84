"""The theorems that claims and the index by paper cite, and the sentences that cite them.

A sentence is read together with what it cites: `accepted.txt` holds both, so that neither changes alone. That a
sentence says no more than its theorems is left to that reader. The standard library alone.
"""

import hashlib
import re
import textwrap
import tomllib
from typing import Any

from proofs.gate.accepted import Entry
from refengine.selfcheck.claims.coq_text import stated
from refengine.source_tree import PROOFS

THEOREM = re.compile(r"`([A-Z]\w*\.[\w']+)`")
ROW = re.compile(r"^\| (.+) \| (.+) \| (`[A-Z]\w*\..+) \|$", re.M)  # source, what it says, theorems


def claims() -> list[dict[str, Any]]:
    files = sorted((PROOFS / "claims").glob("*.toml"))
    return [claim for file in files for claim in tomllib.loads(file.read_text("utf-8"))["claim"]]


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
    """What each claim and each row of the index says, and the theorems that it says it by."""
    found = dict[str, Entry]()
    for claim in claims():
        if names := claim.get("coq"):
            besides = [f"{word}: {claim[word]}" for word in ("quote", "correct", "note") if word in claim]
            trusted = [f"trusted: {line}" for line in claim.get("trusted", [])]
            found[f"claim/{claim['id']}"] = _entry([claim["verdict"], claim["statement"], *besides, *trusted], names)
    for source, says, last in ROW.findall(index()):
        names = THEOREM.findall(last)
        found[f"index/{names[0]}"] = _entry([f"{source}: {says}"], names)
    return found


def _entry(lines: list[str], names: list[str]) -> Entry:
    text = "\n".join(textwrap.fill(line, 110) for line in [*lines, f"by: {', '.join(names)}"])
    return Entry(hashlib.sha256(text.encode()).hexdigest()[:16], text)
