"""The generated pages of the site, a hook of mkdocs: one per rule from its card, one per drafter from its row, one per
package from its docstrings. Nothing is written twice: what a page says is read from what it describes."""

import ast
import inspect
import json
import pkgutil
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from refengine.bugs.catalogue import all_bugs
from refengine.commands import law
from refengine.decoder import drafters
from refengine.exact.card import Card, Loss
from refengine.exact.rules import RULES
from refengine.exact.vectors import vectors
from refengine.selfcheck.claims.chains import chains_of
from refengine.selfcheck.claims.claims import load
from refengine.selfcheck.drafters import rows
from refengine.selfcheck.drafters.row import CHECKS, Row

PACKAGES = ("exact", "engine", "evidence", "report", "decoder", "audit", "strategies", "pytest_plugin")
EXAMPLE = {"p": [["1/2", "1/3", "1/6"], ["1/4", "1/4", "1/2"]], "q": [["1/6", "1/2", "1/3"]]}
FENCE = "```"


def on_config(config: Any) -> Any:
    """The navigation of what is generated, and of the findings that are there."""
    findings = sorted(Path(config.docs_dir).glob("findings/*.md"))
    config.nav += [
        {"Rules": [{name: f"rules/{name}.md"} for name in RULES]},
        {"Drafters": [{name: f"drafters/{name}.md"} for name in rows_by_name()]},
        *([{"Findings": [f"findings/{file.name}" for file in findings]}] if findings else []),
        {"API": [{name: f"api/{name}.md"} for name in PACKAGES]},
    ]
    return config


def on_files(files: Files, config: Any) -> Files:
    """The pages themselves."""
    pages = {f"rules/{name}.md": rule_page(card) for name, card in RULES.items()}
    pages |= {f"drafters/{name}.md": drafter_page(name, row, file) for name, (row, file) in rows_by_name().items()}
    pages |= {f"api/{name}.md": api_page(name) for name in PACKAGES}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """What docstrings have in brackets, `state[token]`, is no reference but where it names something of ours; what they
    have in two columns is a list."""

    def restored(found: re.Match[str]) -> str:
        names = found[1].startswith(("refengine", "torch", "numpy")) or "optional" in found[0]
        return found[0] if names else f"[{found[2]}][{found[1]}]"

    html = re.sub(r'<autoref [^>]*?identifier="([^"]*)"[^>]*>(.*?)</autoref>', restored, html)
    return re.sub(r"<p>(.*?)</p>", in_columns, html, flags=re.DOTALL)


def in_columns(paragraph: re.Match[str]) -> str:
    """A paragraph as it is; one whose lines are a name, blanks and what it means, as a list of these."""
    items: list[list[str]] = []
    for line in paragraph[1].splitlines():
        if entry := re.fullmatch(r"(\S.*?) {2,}(\S.*)", line):
            items.append([*entry.groups()])
        elif line.startswith("  ") and items:
            items[-1][1] += f" {line.strip()}"
        else:
            return paragraph[0]
    listed = "".join(f"<li><code>{name}</code>: {meaning}</li>" for name, meaning in items)
    return f"<ul>{listed}</ul>" if len(items) > 1 else paragraph[0]


def rows_by_name() -> dict[str, tuple[Row, str]]:
    """Every row of the table of drafters, with the name of the drafter's file."""
    named = [file.name for file in pkgutil.iter_modules(rows.__path__)]
    found = {name: (row, file) for file in named for name, row in import_module(f"{rows.__name__}.{file}").ROWS.items()}
    return dict(sorted(found.items()))


def table(head: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    cells = [head, ("---",) * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells)


def plain(text: str) -> str:
    """Text that is no markup: rows in brackets are no links."""
    return re.sub(r"([\[\]*_<>])", r"\\\1", text)


def rule_page(card: Card) -> str:
    parts = {
        "What it is for": facts(card),
        "The exact text": f"{FENCE}python\n{exact_text(card)}\n{FENCE}",
        "Its law on an example": example(card),
        "Claims and theorems": claims(card),
        "Conformance vectors": vectors_of(card),
        "Who ships it, and what went wrong": shipped(card),
    }
    return f"# {card.name}\n\n" + "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items())


def facts(card: Card) -> str:
    drawn = {
        None: "in any way, or not at all",
        "iid": "from q, siblings independently",
        "distinct": "from q, no two alike",
    }
    loss = card.law if isinstance(card.law, Loss) else None
    emitted = f"not the target: TV {loss.tv} where every row has the weights {loss.p}" if loss else f"the {card.law}"
    lines = [
        ("source", card.source),
        ("candidates", card.shape),
        ("drawn", drawn[card.drawn]),
        ("what is emitted follows", emitted),
    ]
    return table(("of the rule", "what it is"), lines)


def exact_text(card: Card) -> str:
    """The file down to its last function; below stands the card."""
    text = Path(inspect.getfile(card.rule)).read_text()
    last = max(node.end_lineno or 0 for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return "\n".join(text.splitlines()[:last])


def example(card: Card) -> str:
    """What `refengine law` says of one draft, with the target's rows different before and after it."""
    asked = {"rule": card.name, **EXAMPLE}
    found = law.answer(law.question(asked))
    lines = [(tokens, mass) for tokens, mass in found["law"].items()]
    facts = (
        f"Tokens a round: {found['expected tokens']}. Total variation from the target: {found['TV from the target']}."
    )
    return f"{FENCE}json\n{json.dumps(asked)}\n{FENCE}\n\n{facts}\n\n{table(('emitted', 'probability'), lines)}"


def claims(card: Card) -> str:
    about = [claim for claim in load() if card.name in (*claim.rules, *chains_of(claim.coq))]
    if not about:
        return "No claim is about this rule alone."
    lines = [
        (
            f"`{c.id}`",
            plain(c.source),
            plain(f"{c.statement} {c.correct}"),
            c.verdict,
            ", ".join(f"`{t}`" for t in c.coq),
        )
        for c in about
    ]
    return table(("claim", "source", "statement", "verdict", "theorems in `proofs/rocq`"), lines)


def vectors_of(card: Card) -> str:
    own = [vector for vector in vectors() if vector["rule"] == card.name]
    if not own:
        return "None: what is lossy by design compares floats, or draws for every leaf."
    return f"There are {len(own)}. The first:\n\n{FENCE}json\n{json.dumps(own[0])}\n{FENCE}"


def shipped(card: Card) -> str:
    using = [name for name, (row, _) in rows_by_name().items() if card.name in (*row.rules, *row.lossy)]
    module = card.rule.__module__
    met = [bug for bug in all_bugs() if any(edit.module == module for edit in bug.edits)]
    links = ", ".join(f"[{name}](../drafters/{name}.md)" for name in using) or "none of the table"
    lines = [(f"`{bug.id}`", plain(bug.title), plain(bug.source)) for bug in met]
    defects = (
        table(("defect", "what it was", "where it was reported"), lines) if met else "No defect of it is catalogued."
    )
    return f"Drafters whose candidates it judges: {links}.\n\n{defects}"


def drafter_page(name: str, row: Row, file: str) -> str:
    about = inspect.getdoc(import_module(f"{drafters.__name__}.{file}")) or ""
    rules = ", ".join(f"[{rule}](../rules/{rule}.md)" for rule in row.rules)
    lossy = ", ".join(f"[{rule}](../rules/{rule}.md)" for rule in row.lossy) or "none"
    lines = [
        ("read from", f"`fixtures/{row.folder}`" if row.folder else "the text itself"),
        ("on the target", f"`fixtures/{row.target}`"),
        ("loaded with", ", ".join(f"{key} = {value}" for key, value in row.options.items()) or "no options"),
        ("lossless under", rules),
        ("lossy modes", lossy),
        ("source", f"`refengine/decoder/drafters/{file}.py`"),
    ]
    checks = [(check, what, row.not_tested.get(check, "run")) for check, what in CHECKS.items()]
    kinds = Counter(plant.part for plant in row.plants)
    plants = [(f"`{plant.name}`", plant.part, f"`{plant.edit.module}`") for plant in row.plants]
    return "\n\n".join(
        (
            f"# {name}",
            about,
            "## What is read",
            table(("of the drafter", "what it is"), lines),
            "## What it is put through",
            table(("check", "what holds", "run, or why not"), checks),
            f"## Bugs that are planted in it ({kinds['drafter']} in the drafter, {kinds['target']} in its target)",
            table(("bug", "planted in", "module"), plants),
        )
    )


def api_page(package: str) -> str:
    """The docstrings of every module below a package."""
    made = import_module(f"refengine.{package}")
    names = [made.__name__]
    if hasattr(made, "__path__"):
        names += [module.name for module in pkgutil.walk_packages(made.__path__, f"{made.__name__}.")]
    return f"# refengine.{package}\n\n" + "\n\n".join(f"::: {name}" for name in names)
