"""`make bench`: every benchmark of speed in ten minutes, as one JSON file and one page.

    python -m benchmarks.all [--only NAME] [--out benchmarks/results]

Each part is a process with a share of the ten minutes; one that needs longer is ended and said to be cut off, and the
others run all the same. `bench.json` holds versions, device, what each part wrote, and processor and wall seconds of
each. `bench.html` draws how cost grows, how far exact laws reach, and calls to a verdict beside the fewest possible.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from markupsafe import Markup

from benchmarks.turns import where
from refengine.evidence.alpha import NATS
from refengine.files import write_atomic
from refengine.report.plots import PLOTS, growth

HERE = Path(__file__).parent
ENGINE_SIZES = ("--vocabularies", "32000", "--batches", "1", "64", "256")


@dataclass(frozen=True)
class Part:
    """A benchmark: its module and arguments, and the wall seconds that it may take."""

    name: str
    arguments: tuple[str, ...]
    seconds: int


PARTS = (
    Part("engine_throughput", ("--threads", "2", *ENGINE_SIZES), 120),
    Part("decoding", ("--threads", "2"), 180),
    Part("growth", (), 60),
    Part("frontier", ("--seconds", "2"), 120),
    Part("detection", (), 120),
)


def run(part: Part, folder: Path) -> dict[str, Any]:
    """What a part wrote, and what it took."""
    out, before, begun = folder / f"{part.name}.json", getrusage(RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", f"benchmarks.{part.name}", *part.arguments, "--out", str(out)]
    row: dict[str, Any] = {"command": " ".join(["python", *command[1:-2]])}
    try:
        ended = subprocess.run(command, cwd=HERE.parent, timeout=part.seconds, check=False)
        if ended.returncode:
            row["failed"] = f"exit code {ended.returncode}"
    except subprocess.TimeoutExpired:
        row["cut off"] = f"after {part.seconds} s"
    after = getrusage(RUSAGE_CHILDREN)
    row["processor seconds"] = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)
    row["wall seconds"] = round(time.monotonic() - begun, 1)
    if out.exists():
        row["found"] = json.loads(out.read_text())
    return row


# --- the page --------------------------------------------------------------------------------------------------------

COLUMNS = ("series", "x", "y", "low", "high")


def drawn(rows: list[tuple[Any, ...]], x_name: str, y_name: str) -> Markup:
    """Rows (series, x, y, low, high) as the report draws a growth."""
    columns: dict[str, list[Any]] = {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}
    return growth(columns | {"x name": [x_name], "y name": [y_name]})


def figures(parts: dict[str, Any]) -> Iterator[tuple[str, str, Markup]]:
    """(title, what it says, plot) of everything that there is something to draw of."""
    found = {name: part.get("found", {}) for name, part in parts.items()}
    growth = found.get("growth", {}).get("growth", [])
    for name in dict.fromkeys(row["series"] for row in growth):
        rows = [
            (name, row["size"], row["ratio"], row["smallest"], row["largest"])
            for row in growth
            if row["series"] == name
        ]
        yield (
            f"Cost by {name}",
            "Processor time over that of the smallest size, in one run.",
            drawn(rows, name, "ratio"),
        )
    tables = [row for row in found.get("frontier", {}).get("tables", []) if "seconds" in row and row["rounds"] == 3]
    for rule in dict.fromkeys(row["rule"] for row in tables):
        points = [(f"V = {row['V']}", row["gamma"], row["seconds"]) for row in tables if row["rule"] == rule]
        about = "Processor seconds of the law of three rounds, in Fractions, equal states merged."
        yield f"Exact law: {rule}", about, drawn([(*point, *point[2:] * 2) for point in points], "gamma", "seconds")
    networks = [row for row in found.get("frontier", {}).get("networks", []) if "seconds" in row]
    if networks:
        rows = [("ar", row["gamma"], *[row["seconds"]] * 3) for row in networks]
        yield "Exact law: networks", "Three rounds with a draft model.", drawn(rows, "gamma", "seconds")
    listed = [row for row in found.get("detection", {}).get("listed", []) if row["ended"] == "rejected"]
    if listed:
        columns = {name: [row[name] for row in listed] for name in ("calls", "fewest")}
        columns["nats_a_call"] = [NATS / row["fewest"] for row in listed]
        yield "Calls to a verdict", "Beside the fewest that any test needs (Wald).", PLOTS["power"](columns)


def lines(part: Any) -> Iterator[tuple[str, str]]:
    """Every figure of a part, as (name, text)."""
    for key, value in part.items():
        if isinstance(value, dict):
            yield from ((f"{key}: {name}", text) for name, text in lines(value))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for i, row in enumerate(value):
                yield f"{key} {i}", ", ".join(f"{name} {cell}" for name, cell in row.items())
        else:
            yield key, str(value)


def page(bench: dict[str, Any]) -> str:
    """One file that refers to nothing outside it."""
    figure = Markup("<section><h2>{}</h2><p>{}</p><figure>{}</figure></section>")
    shown = Markup("").join(figure.format(*one) for one in figures(bench["parts"]))
    row = Markup("<tr><td>{}</td><td>{}</td></tr>")
    tables = Markup("").join(
        Markup("<section class='wide'><h2>{}</h2><table>{}</table></section>").format(
            name, Markup("").join(row.format(*line) for line in lines(part))
        )
        for name, part in bench["parts"].items()
    )
    style = Markup(files("refengine.report").joinpath("templates/style.css").read_text())
    return Markup(
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>refengine: benchmarks</title>"
        "<style>{}</style><main><h1>Benchmarks</h1><p>{}</p><div class='plots'>{}</div>{}</main></html>\n"
    ).format(style, ", ".join(f"{key} {value}" for key, value in bench["versions"].items()), shown, tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[part.name for part in PARTS], action="append")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    bench: dict[str, Any] = {**where(), "cores": os.cpu_count(), "parts": {}}
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            if not given.only or part.name in given.only:
                print(f"--- {part.name}", flush=True)
                bench["parts"][part.name] = run(part, Path(folder))
    given.out.mkdir(parents=True, exist_ok=True)
    write_atomic(given.out / "bench.json", json.dumps(bench, indent=1) + "\n")
    write_atomic(given.out / "bench.html", page(bench))
    incomplete = [name for name, part in bench["parts"].items() if "found" not in part or "cut off" in part]
    print(f"{given.out / 'bench.html'}: {len(bench['parts'])} parts, incomplete: {', '.join(incomplete) or 'none'}")
    sys.exit(any("failed" in part for part in bench["parts"].values()))


if __name__ == "__main__":
    main()
