"""Take the hypotheses of the theorems away, one at a time: every one of them must be missed.

A `Hypothesis` of a section, or a premise of a theorem, is replaced by `True`, so that names and introductions still
fit, and the file is compiled again. A file that still compiles never used that hypothesis: the theorem says less than
it could. Files are compiled beside the compiled ones that they import. Standard library only.

What became of each is kept in `hypotheses.json`: the proof that failed without it. An answer holds for the text of its
file and of all that this file imports (comments aside); where that has changed since, it is stale and asked again.

Usage: `python3 -m proofs.hypotheses` from the root, to ask about all that have no fresh answer (half an hour for all;
it resumes); with `--sample N`, to see that each has a fresh answer and to ask N of them again, drawn anew for every
commit (part of `make prove`).
Both first hold the theorems to the files of instances: one that has hypotheses and is named in none of them may be
about nothing, and an instance may not assume anything itself. That it is applied there, the gate holds.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from proofs.gate.build import BUILD, absent, compiled
from proofs.statements import Drop, every, sentence_end, unapplied
from refengine.selfcheck.claims.coq_text import SOURCES, blank_comments
from refengine.selfcheck.claims.hypotheses import RECORD, digest_of, fresh, gone
from refengine.source_tree import commit_seed

STATEMENT = re.compile(r"^\s*(?:Theorem|Corollary|Lemma|Example|Definition|Let) ([\w']+)", re.M)
SECONDS = 300  # a proof that searches for longer without its hypothesis has missed it
JOBS = int(os.environ.get("JOBS", "2"))
ENDLESS = f"a proof that finds no end in {SECONDS} s"


def missed_by(drop: Drop) -> str:
    """The name of the statement that fails without it, "" where the file compiles all the same."""
    text = (SOURCES / f"{drop.file}.v").read_text()
    without = f"{text[: drop.start]} True {text[drop.end :]}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{drop.file}.v"
        file.write_text(without)
        command = ["coqc", "-w", "none", "-Q", str(BUILD), "Proofs", str(file)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return ENDLESS
    return failing(without, drop.start, run.stderr) if run.returncode else ""


def failing(text: str, start: int, stderr: str) -> str:
    """The statement at coqc's error; raises ValueError where `True` at `start` was not even read as a hypothesis."""
    found = re.search(r"line (\d+), characters (\d+)-", stderr)
    if found is None:
        raise ValueError(f"coqc says nothing of a line: {stderr.strip()}")
    code = blank_comments(text)
    at = len("".join(code.splitlines(keepends=True)[: int(found[1]) - 1])) + int(found[2])
    if "Syntax error" in stderr or at < start + sentence_end(code[start:]):
        raise ValueError(f"not a hypothesis: {stderr.strip()}")
    statements: list[str] = STATEMENT.findall(code[:at])
    return statements[-1]


def keep(answers: dict[str, str]) -> None:
    """Write the record: the answers by file, in the order of the text."""
    record: dict[str, dict[str, Any]] = {}
    for drop in every():
        if drop.key() in answers:
            entry = record.setdefault(drop.file, {"digest": digest_of(drop.file), "missed_by": {}})
            entry["missed_by"][drop.key()] = answers[drop.key()]
    RECORD.write(record)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Ask Coq of hypotheses without an answer.", prog="python3 -m proofs.hypotheses"
    )
    parser.add_argument("--sample", type=int, help="Ask so many again, drawn by the commit, and write nothing down.")
    sampling = parser.parse_args().sample
    if missing := absent():
        print(missing)
        return 3
    if not [*BUILD.glob("*.vo")] and (refused := compiled(jobs=JOBS)):
        print(f"violated: Coq refuses a file: {refused}")
        return 1
    answers, chosen = fresh(), every()
    wrong = unapplied()
    if sampling is not None:
        stale = [drop.key() for drop in chosen if drop.key() not in answers]
        ask = "run python3 -m proofs.hypotheses, which asks them (half an hour for all), and commit hypotheses.json"
        wrong += gone()
        wrong += [f"{len(stale)} hypotheses have no fresh answer, {stale[0]} first: {ask}"] if stale else []
        chosen = random.Random(commit_seed()).sample(chosen, sampling)
    else:
        chosen = [drop for drop in chosen if drop.key() not in answers]
        keep(answers)
    with ThreadPoolExecutor(JOBS) as pool:
        for number, (drop, by) in enumerate(zip(chosen, pool.map(missed_by, chosen), strict=True), 1):
            answers[drop.key()] = by
            print(f"[{number}/{len(chosen)}] {drop.key()} MISSED BY {answers[drop.key()] or 'NOTHING'}", flush=True)
            if sampling is None:
                keep(answers)
    wrong += [f"superfluous: {key}" for key, by in answers.items() if not by]
    print("violated: " + "; ".join(wrong) if wrong else f"{len(answers)} hypotheses, each of them missed")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
