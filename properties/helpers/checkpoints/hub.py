"""A double of the Hugging Face hub: the answers that its client asks for, over real HTTP, and the ways they go wrong.

A large file is answered as the hub does: a redirect with the commit, the size and the SHA-256 in headers of their own,
to another host that takes ranges. A small one is answered at once, with git's SHA-1 as its ETag.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from properties.helpers.listening import Quiet, listening

COMMIT = hashlib.sha1(b"the commit").hexdigest()
LARGE = (".safetensors", ".bin")


@dataclass
class Hub:
    """What is served, and what goes wrong with it.

    gated   answered as a repository whose terms were not accepted
    cut     how often the body of a large file ends after half of what was asked for
    other   bytes that are served instead of a file's own, its size and hash being promised all the same
    moved   the commit that files are answered with, instead of the one that was asked for
    down    every answer is a server's error
    asked   method, path and range of all requests
    """

    repositories: dict[str, Path]
    url: str = ""
    gated: bool = False
    cut: int = 0
    other: dict[str, bytes] = field(default_factory=dict)
    moved: str = COMMIT
    down: bool = False
    asked: list[tuple[str, str, str]] = field(default_factory=list)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git_sha1(data: bytes) -> str:
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


def entry(file: Path) -> dict[str, Any]:
    """A file in the listing of a tree."""
    data = file.read_bytes()
    found = {"type": "file", "path": file.name, "size": len(data), "oid": git_sha1(data)}
    if file.suffix in LARGE:
        found["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 134}
    return found


def point_to(monkeypatch: pytest.MonkeyPatch, url: str, cache: str | Path) -> None:
    """What HF_ENDPOINT and HF_HUB_CACHE do before the library is imported."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub at `hub.url` for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer()

        def do_GET(self) -> None:
            self.answer()

        def answer(self) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append((self.command, path, self.headers.get("Range", "")))
            parts = path.strip("/").split("/")
            if hub.down:
                return self.say(503, b"")
            if parts[0] == "api":
                return self.api(parts[2:])
            if parts[0] == "cdn":
                return self.blob(hub.repositories["/".join(parts[1:3])] / parts[3])
            return self.resolve("/".join(parts[:2]), parts[3], parts[4])

        def refused(self, repository: str, revision: str) -> bool:
            if repository not in hub.repositories:
                self.say(401, b"Invalid username or password.", {"X-Error-Code": "RepoNotFound"})
            elif hub.gated:
                self.say(403, b"Access is restricted.", {"X-Error-Code": "GatedRepo"})
            elif revision not in ("main", COMMIT):
                self.say(404, b"Invalid rev id", {"X-Error-Code": "RevisionNotFound"})
            else:
                return False
            return True

        def api(self, parts: list[str]) -> None:
            repository, kind, revision = "/".join(parts[:2]), parts[2], parts[3]
            if self.refused(repository, revision):
                return
            listed = [entry(file) for file in sorted(hub.repositories[repository].iterdir())]
            whole = {"id": repository, "sha": COMMIT, "siblings": [{"rfilename": one["path"]} for one in listed]}
            self.say(200, json.dumps(listed if kind == "tree" else whole).encode())

        def resolve(self, repository: str, revision: str, name: str) -> None:
            if self.refused(repository, revision):
                return
            data = (hub.repositories[repository] / name).read_bytes()
            told = {"X-Repo-Commit": hub.moved}
            if Path(name).suffix in LARGE:
                told |= {"X-Linked-Etag": f'"{sha256(data)}"', "X-Linked-Size": str(len(data))}
                self.say(302, b"", told | {"Location": f"{cdn}/{repository}/{name}"})
            else:
                self.say(200, hub.other.get(name, data), told | {"ETag": f'"{git_sha1(data)}"'})

        def blob(self, file: Path) -> None:
            data = hub.other.get(file.name, file.read_bytes())
            first = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
            rest, told = data[first:], {"ETag": f'"{sha256(file.read_bytes())}"'}
            if first:
                told["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
            self.say(206 if first else 200, rest, told, cut=hub.cut > 0)
            hub.cut -= hub.cut > 0

        def say(self, status: int, body: bytes, told: dict[str, str] | None = None, cut: bool = False) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(told or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body[: len(body) // 2] if cut else body)
            if cut:
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(2)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = Quiet(("127.0.0.1", 0), Handler)
    with listening(server) as hub.url:
        cdn = f"http://localhost:{server.server_port}/cdn"  # another host
        yield hub
