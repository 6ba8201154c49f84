"""Ask Coq for the law of one round, by its own definitions, and hold bridge.json to the answers.

`ask(build, queries)` writes one .v file, lets coqc evaluate it with vm_compute, and returns for each query the law
of one round: a dict from token tuples to Fractions. The queries name definitions of rocq/Bridge.v, which are the very
definitions that the theorems are about. bridge.json keeps the answers, so that refengine.exact and refengine.engine
are held to them where there is no prover.

Usage, from the root of the repository: `python3 -m proofs.bridge`, to ask again and compare (part of `make prove`);
with `--write`, to generate the instances anew and write what Coq says. Standard library only, but for --write.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

from proofs.gate.build import BUILD, absent, compiled
from refengine.source_tree import PROOFS

FILE = PROOFS / "bridge.json"

Tokens = tuple[int, ...]
Law = dict[Tokens, Fraction]


def coq_list(items: Sequence[str]) -> str:
    return "[:: " + "; ".join(items) + "]" if items else "[::]"


def coq_tokens(tokens: Sequence[int]) -> str:
    return coq_list([f"{x}%N" for x in tokens])


def coq_number(text: str) -> str:
    number = Fraction(text)
    return f"(frac {number.numerator} {number.denominator})"


def coq_table(rows: Mapping[str, Sequence[str]]) -> str:
    """Rows by history."""
    entries = [f"({coq_history(h)}, {coq_list([coq_number(px) for px in row])})" for h, row in rows.items()]
    return "(" + coq_list(entries) + " : table)"


def coq_numbers(values: Mapping[str, str]) -> str:
    """Numbers by history."""
    return "(" + coq_list([f"({coq_history(h)}, {coq_number(value)})" for h, value in values.items()]) + " : numbers)"


def coq_history(text: str) -> str:
    """The history "0,2" as a list of token ids."""
    return coq_tokens([int(x) for x in text.split(",") if x])


def coq_histories(texts: Sequence[str]) -> str:
    return "(" + coq_list([coq_history(text) for text in texts]) + " : seq (seq nat))"


def coq_block(vocabulary: int, tokens: Sequence[int], parents: Sequence[int]) -> str:
    """A block as pairs of a token and where it hangs, 0 for the root."""
    nodes = [f"(T{vocabulary} {x}, {parent + 1}%N)" for x, parent in zip(tokens, parents, strict=True)]
    return "(" + coq_list(nodes) + f" : seq (candidate vocab{vocabulary}))"


def coq_tree(vocabulary: int, tokens: Sequence[int], parents: Sequence[int], node: int = -1) -> str:
    """The children of `node` as a term of type tree; parents[j] = -1 marks a first candidate."""
    below = [j for j, parent in enumerate(parents) if parent == node]
    children = [f"(T{vocabulary} {tokens[j]}, {coq_tree(vocabulary, tokens, parents, j)})" for j in below]
    return f"(@Node vocab{vocabulary} {coq_list(children)})"


HEADER = """From Coq Require Import ZArith QArith Qcanon.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Tree Medusa Rational Bridge.
Definition id2 (x : vocab2) : nat := nat_of_ord x.
Definition id3 (x : vocab3) : nat := nat_of_ord x.
Definition id4 (x : vocab4) : nat := nat_of_ord x.
Definition T2 (i : nat) : vocab2 := nth (@Ordinal 2 0 isT) (tokens vocab2) i.
Definition T3 (i : nat) : vocab3 := nth (@Ordinal 3 0 isT) (tokens vocab3) i.
Definition T4 (i : nat) : vocab4 := nth (@Ordinal 4 0 isT) (tokens vocab4) i.
Set Printing Width 1000000.
"""


def ask(queries: Sequence[str], build: Path = BUILD, words: str = "") -> list[Law]:
    """The law of each query, in order; `words` is what they need beyond HEADER.

    Raises RuntimeError with Coq's message where one does not evaluate.
    """
    lines = [f'Goal True. idtac "@@". Abort. Eval vm_compute in {query}.' for query in queries]
    with tempfile.TemporaryDirectory() as folder:  # one of its own: two that ask at once must not read each other
        (Path(folder) / "Queries.v").write_text(HEADER + words + "\n" + "\n".join(lines) + "\n")
        run = subprocess.run(
            ["coqc", "-w", "none", "-Q", str(build.resolve()), "Proofs", "Queries.v"],
            cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
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


def changed(instances: Sequence[dict[str, Any]], jobs: int = 1) -> list[str]:
    """The instances whose law on record is not what Coq gives now; so many processes share them."""
    shares = [instances[start::jobs] for start in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        laws = pool.map(lambda share: ask([instance["query"] for instance in share]), shares)
        told = [pair for share, found in zip(shares, laws, strict=True) for pair in zip(share, found, strict=True)]
    return [instance["name"] for instance, law in told if printed(law) != instance["law"]]


def printed(law: Law) -> dict[str, str]:
    """A law as JSON keeps it."""
    return {",".join(map(str, tokens)): str(mass) for tokens, mass in sorted(law.items())}


def write() -> None:
    """Generate the instances and ask Coq for every law."""
    from proofs.instances import instances
    from refengine.selfcheck.claims.coq_bridge import RECORD, definitions

    found = list(instances())
    laws = ask([instance["query"] for instance in found])
    RECORD.write(
        {i["name"]: {"digest": definitions(), **i, "law": printed(law)} for i, law in zip(found, laws, strict=True)}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold bridge.json to what Coq says.", prog="python3 -m proofs.bridge")
    parser.add_argument("--write", action="store_true", help="Write down what Coq says now.")
    asked = parser.parse_args()
    if missing := absent():
        print(missing)
        return 3
    if refused := compiled("Bridge.vo"):
        sys.exit(refused)
    if asked.write:
        write()
    wrong = changed(list(json.loads(FILE.read_text()).values()), int(os.environ.get("JOBS", "2")))
    print(f"violated: Coq gives another law now for {', '.join(wrong)}" if wrong else "bridge.json is what Coq says")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
