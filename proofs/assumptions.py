"""Ask Coq what every theorem rests on, and fail on an axiom that AXIOMS does not list for that file.

Usage: python3 assumptions.py BUILD, where BUILD holds the compiled files and _CoqProject. Standard library only.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def allowed() -> dict[str, set[str]]:
    """File -> the axioms that its theorems may use."""
    table: dict[str, set[str]] = {}
    for line in (HERE / "AXIOMS").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            file, axiom = line.split()
            table.setdefault(file, set()).add(axiom)
    return table


def theorems(build: Path) -> list[tuple[str, str]]:
    """(file, name) of every Theorem and Corollary, in the order of _CoqProject."""
    files = [line[:-2] for line in (build / "_CoqProject").read_text().splitlines() if line.endswith(".v")]
    found = []
    for file in files:
        text = (build / f"{file}.v").read_text()
        found += [(file, name) for name in re.findall(r"^(?:Theorem|Corollary) ([\w']+)", text, re.MULTILINE)]
    return found


def ask(build: Path, names: list[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    """The axioms under each theorem, from one run of coqc."""
    script = [f"From Proofs Require {file}." for file in dict.fromkeys(file for file, _ in names)]
    for file, name in names:
        script.append(f'Goal True. idtac "@@ {file} {name}". Abort. Print Assumptions Proofs.{file}.{name}.')
    (build / "Assumptions.v").write_text("\n".join(script) + "\n")
    run = subprocess.run(
        ["coqc", "-w", "none", "-Q", ".", "Proofs", "Assumptions.v"], cwd=build, capture_output=True, text=True
    )
    if run.returncode:
        sys.exit(f"violated: coqc could not print the assumptions\n{run.stderr}")
    answers: dict[tuple[str, str], list[str]] = {}
    for chunk in run.stdout.split("@@ ")[1:]:
        head, _, body = chunk.partition("\n")
        file, name = head.split()
        answers[file, name] = re.findall(r"^([\w.']+)(?: :|$)", body, re.MULTILINE) if "Axioms:" in body else []
    return answers


def main() -> None:
    build, permitted = Path(sys.argv[1]), allowed()
    names = theorems(build)
    answers = ask(build, names)
    bad = [f"{file}.{name}" for file, name in names if (file, name) not in answers]
    for (file, name), axioms in answers.items():
        used = [axiom for axiom in axioms if axiom != "Axioms"]
        print(f"{file}.{name}: {'closed' if not used else 'rests on ' + ', '.join(used)}")
        bad += [f"{file}.{name} uses {axiom}" for axiom in used if axiom not in permitted.get(file, set())]
    if bad:
        sys.exit("violated: " + "; ".join(bad))
    print(f"{len(names)} theorems, {sum(not a for a in answers.values())} of them closed under the global context")


if __name__ == "__main__":
    main()
