"""The claims: every statement of the sources, its verdict, and the evidence that stands behind it.

They are data, one TOML file per source in `proofs/claims/`. Loading them checks them against the repository: every
Coq theorem and every test that a claim names must exist. `proofs/CLAIMS.md` is the same data as tables; it is written
by `python -m refengine.selfcheck.claims.claims --write`, and a test fails when it is stale.

A wheel carries the claims, the theorems and the records, and no tests: there, claims are shown with the names of tests.
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from refengine.errors import BadInput
from refengine.report.finding import Verdict
from refengine.selfcheck.claims import hypotheses, mutants_of_tests
from refengine.selfcheck.claims.chains import CHAINS, chains_of, links, texts
from refengine.selfcheck.claims.coq_text import axioms, listed, stated
from refengine.selfcheck.claims.mutants_of_rules import status
from refengine.source_tree import IN_SOURCE_TREE, ROOT

WRITE = "python -m refengine.selfcheck.claims.claims --write"
HEADER = f"<!-- Generated from proofs/claims/*.toml by `{WRITE}`. Edit those files. -->"


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One statement with its verdict and its evidence.

    id           unique over all sources, `<prefix of the file>.<name>`
    source       where it is made: a paper with its theorem, a document with its section
    statement    the claim, so that it could be false
    quote        the source's own words, where `statement` is narrower than they are or is easily read as more
    note         what a reader should know beside it, and what the source does not say
    verdict      consistent | violated | not tested
    correct      what is true instead; required exactly where the claim is violated
    reason       why it was not tested; required exactly then
    coq          theorems of proofs/rocq, as `File.theorem`
    smt          z3 and sympy tests under proofs/, as `path::test`
    exact        tests that compute exactly (enumeration, Fractions, equality of integers or tensors)
    statistical  tests that sample
    trusted      what the evidence takes for granted
    rules        chains (`chains.py`) of the rules it is about, beyond those that its theorems speak of
    """

    id: str
    source: str
    statement: str
    verdict: Verdict
    quote: str = ""
    note: str = ""
    correct: str = ""
    reason: str = ""
    coq: tuple[str, ...] = ()
    smt: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    statistical: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    def chains(self) -> tuple[str, ...]:
        """The chains that tie this claim to the code that runs."""
        return tuple(chain for chain in CHAINS if chain in self.rules or chain in chains_of(self.coq))

    def tests(self) -> tuple[str, ...]:
        """Every test that a failing claim would turn red."""
        return self.smt + self.exact + self.statistical

    def link(self) -> str:
        """What its own tests see of mistakes in its rules; "" where it is about no rule or has no such tests."""
        return mutants_of_tests.status(self.smt + self.exact, self.chains())

    def beside(self) -> list[tuple[str, str]]:
        """What stands below the statement, each with its word: quotation, correction, reason, note."""
        quote = f'"{self.quote}"' if self.quote else ""
        texts = (("Source", quote), ("Correct", self.correct), ("Not tested", self.reason), ("Note", self.note))
        return [(word, text) for word, text in texts if text]

    def summary(self) -> dict[str, Any]:
        """The row of a table: the claim, what is true instead or why it was not tested, and its evidence by line."""
        told = "".join(f"\n{word}: {text}" for word, text in self.beside())
        assumed = [f"({file}: {line})" for file, line in hypotheses.status(self.coq).items()]
        evidence = "\n".join((*self.coq, *assumed, *self.tests()))
        tied = "\n".join(f"{chain}: {' = '.join(texts(chain))}; {status(chain)}" for chain in self.chains())
        row = {"id": self.id, "verdict": self.verdict, "claim": self.statement + told}
        return {**row, "evidence": evidence, "chain": f"{tied}\n{self.link()}".strip()}

    def record(self) -> dict[str, Any]:
        """All fields and the chains behind the claim, as plain JSON."""
        chains = {chain: {"links": links(chain), "status": status(chain)} for chain in self.chains()}
        return {
            **msgspec.to_builtins(self),
            "chains": chains,
            "own tests": self.link(),
            "hypotheses": hypotheses.status(self.coq),
        }


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of claims: a title for the reader, then the claims in the order of the source.

    prefix  what the ids of its claims begin with, where that is not the file's name
    """

    title: str
    prefix: str = ""
    claim: tuple[Claim, ...]


def sources(root: Path = ROOT) -> dict[str, Source]:
    """The files of claims by name, unchecked; raises BadInput where there are none or one does not parse."""
    files = sorted((root / "proofs" / "claims").glob("*.toml"))
    if not files:
        raise BadInput(f"no claims in {root / 'proofs/claims'}: the source tree has them, and so has the wheel")
    found = {}
    for file in files:
        try:
            found[file.stem] = msgspec.toml.decode(file.read_bytes(), type=Source)
        except msgspec.MsgspecError as error:
            raise BadInput(f"{file.name}: {error}") from None
    return found


def load(root: Path = ROOT) -> list[Claim]:
    """Every claim, in file order; raises BadInput naming all that is wrong with them."""
    by_file = sources(root)
    wrong = list(problems(by_file, root))
    if wrong:
        raise BadInput("claims: " + "; ".join(wrong))
    return [claim for source in by_file.values() for claim in source.claim]


def problems(by_file: dict[str, Source], root: Path = ROOT) -> Iterator[str]:
    """What is wrong with the claims, one line each."""
    count = Counter(claim.id for source in by_file.values() for claim in source.claim)
    yield from (f"{name} is the id of {n} claims" for name, n in count.items() if n > 1)
    theorems = coq_theorems(root)
    for file, source in by_file.items():
        for claim in source.claim:
            yield from (f"{claim.id}: {line}" for line in _problems(claim, source.prefix or file, theorems, root))


def _problems(claim: Claim, prefix: str, theorems: set[str], root: Path) -> Iterator[str]:
    if not claim.id.startswith(f"{prefix}."):
        yield f"the id does not begin with {prefix}, the prefix of its file"
    if (claim.verdict == "violated") != bool(claim.correct):
        yield "the correct statement is given exactly for violated claims"
    if (claim.verdict == "not tested") != bool(claim.reason):
        yield "a reason is given exactly for claims that are not tested"
    if claim.verdict != "not tested" and not (claim.coq or claim.tests()):
        yield f"{claim.verdict} without evidence"
    yield from (f"there is no theorem {name}" for name in claim.coq if name not in theorems)
    if root != ROOT or IN_SOURCE_TREE:  # a wheel has no tests
        yield from (f"there is no test {name}" for name in claim.tests() if not exists(name, root))
    yield from (f"there is no chain {name}" for name in claim.rules if name not in CHAINS)


def coq_theorems(root: Path = ROOT) -> set[str]:
    """`File.theorem` for everything that is stated in the files of proofs/rocq that are compiled, comments aside."""
    sources = root / "proofs" / "rocq"
    return {f"{file}.{name}" for file in listed(sources) for name in stated(file, sources)}


def exists(test: str, root: Path = ROOT) -> bool:
    """Whether the test function `path::name` stands in the source; `[case]` may follow."""
    path, _, name = test.partition("::")
    return name.partition("[")[0] in _test_functions(root / path)


@cache
def _test_functions(file: Path) -> frozenset[str]:
    if not file.is_file():
        return frozenset()
    nodes = ast.walk(ast.parse(file.read_text("utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test"))


def markdown(by_file: dict[str, Source]) -> str:
    """proofs/CLAIMS.md: one table per source."""
    everything = [claim for source in by_file.values() for claim in source.claim]
    tally = Counter(claim.verdict for claim in everything)
    lines = [
        HEADER,
        "# Claims",
        "",
        f"{len(everything)} claims: {tally['consistent']} consistent, {tally['violated']} violated, "
        f"{tally['not tested']} not tested.",
        "",
        "Where a claim is violated the correct statement stands below it. A claim that leaves out a hypothesis without "
        "which it is false is violated, and the correct statement names it. A number that only a released file can "
        "show is not tested, whatever others report of it (`fixtures/schemas`); arithmetic that starts from published "
        'numbers is judged, and the numbers are named under "trusted". Where a rule or the loop is said to preserve a '
        "law, it is trusted everywhere that coins are uniform and independent, and that the pass of verification "
        "computes the rows of plain decoding. Coq theorems are `File.theorem` of "
        "`proofs/rocq`; they are checked by `make prove`, and where coqc is absent they are not tested. Below them "
        "stand the axioms that their files may use (`proofs/gate/granted.toml`); where none stands they rest on none. "
        "Tests are checked by `make test`, most of z3's by `make prove` and large samples by `make stat`. "
        "The digest of each sentence, with the theorems, axioms and tests that it cites, stands in "
        "`proofs/gate/accepted.txt`: who changes one of these changes that file too, where a reader sees it.",
        *_chains(),
    ]
    for source in by_file.values():
        lines += ["", f"## {source.title}", "", *_table(source.claim)]
    return "\n".join(lines) + "\n"


def _chains() -> Iterator[str]:
    """What stands behind the names in the column "chain"."""
    yield from ("", "## Chains", "")
    yield (
        "A claim whose theorems speak of a rule rests on that rule's chain: Coq's definition, evaluated on instances, "
        "has the law of the exact text, which has the law of the engine, and, where a drafter of the decoder uses it, "
        "this is what the decoder's law is computed with. `refengine claims` shows whether a chain is linked: whether "
        "every mutant of both texts is seen."
    )
    yield from ("", "| chain | link | tests |", "|---|---|---|")
    for chain in CHAINS:
        for link, tests in links(chain).items():
            yield f"| `{chain}` | {link} | {_names(tests)} |"


def _table(claims: Sequence[Claim]) -> Iterator[str]:
    yield "| id | source | statement | verdict | Coq | SMT, symbolic | exact | statistical | chain | trusted |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for claim in claims:
        cells = [f"`{claim.id}`", claim.source, _statement(claim), f"**{claim.verdict}**"]
        cells += [_theorems(claim.coq), *map(_names, (claim.smt, claim.exact, claim.statistical))]
        cells.append("<br>".join(claim.chains()))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in [*cells, "; ".join(claim.trusted)]) + " |"


def _statement(claim: Claim) -> str:
    return "<br>".join([claim.statement, *(f"*{word}:* {text}" for word, text in claim.beside())])


def _theorems(theorems: Sequence[str]) -> str:
    allowed = f"<br>*axioms:* {', '.join(f'`{axiom}`' for axiom in axioms(theorems))}" if axioms(theorems) else ""
    return _names(theorems) + allowed


def _names(names: Sequence[str]) -> str:
    return "<br>".join(f"`{name.removeprefix('proofs/')}`" for name in names)


def link(claims: Sequence[Claim]) -> None:
    """Run the tests of every claim against mistakes in the rules that it is about."""
    wanted: dict[str, set[str]] = {}
    for claim in claims:
        for module in mutants_of_tests.texts(claim.chains()):
            wanted.setdefault(module, set()).update(claim.smt + claim.exact)
    mutants_of_tests.run({module: sorted(tests) for module, tests in sorted(wanted.items())})


def main() -> None:
    """Check the claims, write CLAIMS.md with --write, run their tests against mistakes with --link."""
    parser = argparse.ArgumentParser(
        description="Check the claims.", prog="python -m refengine.selfcheck.claims.claims"
    )
    parser.add_argument("--write", action="store_true", help="Write CLAIMS.md.")
    parser.add_argument("--link", action="store_true", help="Run the tests of claims about rules on mistakes in them.")
    asked = parser.parse_args()
    claims = load()
    if asked.link:
        link(claims)
    if asked.write:
        (ROOT / "proofs" / "CLAIMS.md").write_text(markdown(sources()), "utf-8")
    print(f"{len(claims)} claims, all of their theorems and tests exist")


if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        sys.exit(f"refengine: {error}")
