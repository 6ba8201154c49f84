"""The conformance vectors as a release of data: one JSON file with a version and a digest, its schema, checksums."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from refengine.errors import BadInput
from refengine.exact.vectors import LOSSLESS, vectors
from refengine.files import make_folder, write_atomic
from refengine.report.canonical import canonical

FORMAT = "refengine conformance vectors"
# Whoever changes a vector changes both lines: a version names one text. docs/vectors.md says what its numbers mean.
VERSION = "1.0.0"
DIGEST = "c213d217daa11d3b9c77e1ab4a4346fe4be48105fc289e898423c341acd4736a"
SCHEMA = Path(__file__).with_name("vectors.schema.json")


def digest_of(value: Any) -> str:
    """SHA-256 of a value's canonical JSON: sorted keys, no spaces, one newline at the end."""
    return hashlib.sha256(canonical(value, indent=None).encode()).hexdigest()


def check_rules(rules: Iterable[str]) -> None:
    """Refuse a rule that has no vectors."""
    unknown = set(rules) - set(LOSSLESS)
    if unknown:
        raise BadInput(f"unknown rule {sorted(unknown)[0]!r}: one of {', '.join(LOSSLESS)}")


def question(vector: dict[str, Any]) -> dict[str, Any]:
    """A vector without what must come out."""
    return {key: value for key, value in vector.items() if key not in ("emitted", "path")}


def release() -> dict[str, Any]:
    """What vectors.schema.json describes."""
    given = list(vectors())
    return {"format": FORMAT, "version": VERSION, "digest": digest_of(given), "vectors": given}


def write_release(folder: Path) -> list[Path]:
    """Write the release into a folder: the vectors, their schema and `sha256sum -c SHA256SUMS`."""
    make_folder(folder)
    texts = {f"vectors-{VERSION}.json": canonical(release()), SCHEMA.name: SCHEMA.read_text()}
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    texts["SHA256SUMS"] = "".join(f"{value}  {name}\n" for name, value in sums.items())
    for name, text in texts.items():
        write_atomic(folder / name, text)
    return [folder / name for name in texts]
