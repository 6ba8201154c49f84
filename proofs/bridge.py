"""Evaluate the Coq definitions of the rules on rational tables, to be compared with refengine.exact.

`ask(build, queries)` writes one .v file, lets coqc evaluate it with vm_compute, and returns for each query the law
of one round: a dict from token tuples to Fractions. The queries name definitions of rocq/Bridge.v, which are the very
definitions that the theorems are about. Standard library only.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE / "build" / "rocq"
INSTALL = "not tested: coqc absent; apt-get install coq libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics"

Tokens = tuple[int, ...]
Table = Mapping[Tokens, Sequence[Fraction]]
Law = dict[Tokens, Fraction]


def compiled() -> bool:
    """Compile rocq/Bridge.v and what it needs; False where there is no coqc."""
    if shutil.which("coqc") is None:
        return False
    BUILD.mkdir(parents=True, exist_ok=True)
    for source in [*sorted((HERE / "rocq").glob("*.v")), HERE / "rocq" / "_CoqProject"]:
        copy = BUILD / source.name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copyfile(source, copy)
    subprocess.run(
        ["coq_makefile", "-f", "_CoqProject", "-o", "Makefile.coq"], cwd=BUILD, check=True, capture_output=True
    )
    subprocess.run(["make", "-s", "-f", "Makefile.coq", "Bridge.vo"], cwd=BUILD, check=True, capture_output=True)
    return True


def coq_list(items: Sequence[str]) -> str:
    return "[:: " + "; ".join(items) + "]" if items else "[::]"


def coq_tokens(tokens: Sequence[int]) -> str:
    return coq_list([f"{x}%N" for x in tokens])


def coq_table(table: Table) -> str:
    """Rows by history."""
    rows = []
    for history, row in table.items():
        entries = [f"frac {f.numerator} {f.denominator}" for f in row]
        rows.append(f"({coq_tokens(history)}, {coq_list(entries)})")
    return "(" + coq_list(rows) + " : table)"


def coq_tree(vocabulary: int, tokens: Sequence[int], parents: Sequence[int], node: int = -1) -> str:
    """The children of `node` as a term of type tree; parents[j] = -1 marks a first candidate."""
    below = [j for j, parent in enumerate(parents) if parent == node]
    children = [f"(T{vocabulary} {tokens[j]}, {coq_tree(vocabulary, tokens, parents, j)})" for j in below]
    return f"(@Node vocab{vocabulary} {coq_list(children)})"


HEADER = """From Coq Require Import ZArith QArith Qcanon.
From mathcomp Require Import all_ssreflect all_algebra.
From Proofs Require Import Prob Tree Rational Bridge.
Definition id2 (x : vocab2) : nat := nat_of_ord x.
Definition id3 (x : vocab3) : nat := nat_of_ord x.
Definition T2 (i : nat) : vocab2 := nth (@Ordinal 2 0 isT) (tokens vocab2) i.
Definition T3 (i : nat) : vocab3 := nth (@Ordinal 3 0 isT) (tokens vocab3) i.
Set Printing Width 1000000.
"""


def ask(queries: Sequence[str], build: Path = BUILD) -> list[Law]:
    """The law of each query, in order. Raises RuntimeError with Coq's message where one does not evaluate."""
    lines = [f'Goal True. idtac "@@". Abort. Eval vm_compute in {query}.' for query in queries]
    (build / "Queries.v").write_text(HEADER + "\n".join(lines) + "\n")
    run = subprocess.run(
        ["coqc", "-w", "none", "-Q", ".", "Proofs", "Queries.v"], cwd=build, capture_output=True, text=True
    )
    if run.returncode:
        raise RuntimeError(run.stderr)
    return [parse(chunk) for chunk in run.stdout.split("@@")[1:]]


ENTRY = re.compile(r"\(\[::([^\]]*)\], \((\d+)(?:%Z)?, (\d+)(?:%\w+)?\)\)")


def parse(chunk: str) -> Law:
    """One printed law. A word has one entry, so a second one is an error."""
    law: Law = {}
    for word, numerator, denominator in ENTRY.findall(" ".join(chunk.split())):
        tokens = tuple(int(x) for x in re.findall(r"\d+", word))
        if tokens in law:
            raise RuntimeError(f"{tokens} is listed twice")
        law[tokens] = Fraction(int(numerator), int(denominator))
    return law
