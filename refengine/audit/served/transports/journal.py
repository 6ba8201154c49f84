"""Answers kept on disk as they come, so that an audit that was stopped goes on where it was and counts nothing twice.

One JSON line an answer with its request, under the request's digest and the number of times that it was made. The
first line says whose journal it is. A line that was cut off by a crash is dropped.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from refengine.audit.served.ask import Answer, Ask, Refused, Subject
from refengine.errors import BadInput


class Journal:
    """The answers of all sides of one audit, by (side, digest, number). audit: who is asked."""

    def __init__(self, file: Path, audit: str = "") -> None:
        self.file = file
        self.known: dict[str, Any] = {}
        self.lock = Lock()
        try:
            content = file.read_bytes() if file.exists() else b""
            for line in content.split(b"\n"):
                try:
                    entry = json.loads(line)
                    self.known[entry["key"]] = entry
                except (ValueError, KeyError, TypeError):
                    continue
            if content and "audit" not in self.known:
                raise BadInput(f"{file} is no journal of an audit: name a new file")
            with file.open("ab") as end:
                end.write(b"" if content.endswith(b"\n") or not content else b"\n")
        except OSError as error:
            raise BadInput(f"the journal {file} cannot be kept: {error.strerror}") from None
        if (whose := self.known.get("audit", {}).get("audit", audit)) != audit:
            raise BadInput(f"the journal {file} is that of another audit ({whose}): name a new file")
        if not content:
            self.keep({"key": "audit", "audit": audit})

    def keep(self, entry: dict[str, Any]) -> None:
        with self.lock, self.file.open("ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")


class Journalled:
    """A subject whose answers are kept; what a journal has is not asked again."""

    def __init__(self, subject: Subject, side: str, journal: Journal) -> None:
        self.subject, self.side, self.journal = subject, side, journal
        self.made: Counter[str] = Counter()
        self.lock = Lock()

    def send(self, ask: Ask) -> Answer:
        digest = hashlib.sha256(json.dumps(ask.summary(), sort_keys=True).encode()).hexdigest()[:24]
        with self.lock:
            self.made[digest] += 1
            key = f"{self.side}/{digest}/{self.made[digest]}"
        entry = self.journal.known.get(key)
        if entry is None:
            entry = {"key": key, "request": ask.summary()}
            try:
                entry["answer"] = msgspec.to_builtins(self.subject.send(ask))
            except Refused as error:
                entry["refused"] = str(error)
            self.journal.keep(entry)
        if "refused" in entry:
            raise Refused(entry["refused"])
        return msgspec.convert(entry["answer"], Answer)
