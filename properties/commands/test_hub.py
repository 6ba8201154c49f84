"""Repositories by their names: what is downloaded from a hub that speaks the protocol, pinned, hashed and refused."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants, file_download

from properties.helpers.checkpoints.hub import COMMIT, Hub, entry, point_to, serving
from refengine.commands.hub import Snapshot, fetch, on_the_hub
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

NAME = "someone/tiny"
WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with the tiny target, beside which lie a pickle and a program; and an empty cache."""
    folder = shutil.copytree(FIXTURES / "tiny" / "target", tmp_path / "repository")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "modeling.py").write_text("raise SystemExit")
    with serving(Hub({NAME: folder})) as served:
        point_to(monkeypatch, served.url, tmp_path / "cache")
        monkeypatch.setattr(file_download.time, "sleep", lambda _: None)  # between attempts
        yield served


def promised(hub: Hub, name: str) -> str:
    found = entry(hub.repositories[NAME] / name)
    return f"sha256:{found['lfs']['oid']}" if "lfs" in found else f"sha1:{found['oid']}"


def test_a_name_is_downloaded_pinned_hashed_and_then_cached(hub: Hub) -> None:
    """Kills a revision that is not the commit, a pickle or a program that comes along, and a second download."""
    found = fetch(NAME)
    assert found.pinned == f"{NAME}@{COMMIT}"
    assert set(found.files) == {"config.json", "generation_config.json", WEIGHTS}
    assert {file.name for file in found.folder.iterdir()} == set(found.files)
    assert found.files == {name: promised(hub, name) for name in found.files}
    assert (found.folder / WEIGHTS).read_bytes() == (hub.repositories[NAME] / WEIGHTS).read_bytes()
    assert f"{NAME}@{COMMIT}" in found.line()
    assert promised(hub, WEIGHTS) in found.line()
    before = len(hub.asked)
    assert fetch(found.pinned) == found
    assert [asked for asked in hub.asked[before:] if asked[0] == "GET" and "/api/" not in asked[1]] == []


def test_a_cached_commit_needs_no_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a cache that is of no use offline, and an offline refusal that does not say that it is one."""
    found = fetch(NAME)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    point_to(monkeypatch, "http://127.0.0.1:9", constants.HF_HUB_CACHE)
    assert fetch(found.pinned) == found
    with pytest.raises(BadInput, match="someone/else is not in the cache, and HF_HUB_OFFLINE is set"):
        fetch("someone/else")


def test_a_broken_connection_is_taken_up_where_it_broke(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a file that is whole by its name alone: half of it, or its end twice."""
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)
    hub.cut = 1
    found = fetch(NAME)
    ranges = [asked[2] for asked in hub.asked if asked[1].startswith("/cdn/") and asked[0] == "GET"]
    size = (hub.repositories[NAME] / WEIGHTS).stat().st_size
    assert ranges[1] == f"bytes={size // 2 // 4096 * 4096}-"
    assert found.files[WEIGHTS] == promised(hub, WEIGHTS)


def test_a_connection_that_always_breaks_is_one_line(hub: Hub) -> None:
    """Kills an endless loop, a traceback, and half a file that the next call takes for a whole one."""
    hub.cut, hub.other = 1000, {WEIGHTS: b""}
    with pytest.raises(BadInput, match=f"^{NAME} could not be downloaded from {hub.url}: .+$"):
        fetch(NAME)
    hub.cut, hub.other = 0, {}
    assert fetch(NAME).files[WEIGHTS] == promised(hub, WEIGHTS)


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_content_of_another_hash_is_refused_and_forgotten(hub: Hub, name: str) -> None:
    """Kills a download that is held to its size alone, of a large file (SHA-256) and of a small one (SHA-1)."""
    data = (hub.repositories[NAME] / name).read_bytes()
    hub.other = {name: data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]}
    with pytest.raises(
        BadInput, match=f"{NAME}@{COMMIT}: {name} has the sha.* and the hub promised .*: it was removed"
    ):
        fetch(NAME)
    hub.other = {}
    assert fetch(NAME).files[name] == promised(hub, name)


def test_a_cache_that_rotted_is_refused(hub: Hub) -> None:
    """Kills a hash that is looked at only when a file comes in."""
    found = fetch(NAME)
    blob = (found.folder / WEIGHTS).resolve()
    data = blob.read_bytes()
    blob.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(BadInput, match=f"{WEIGHTS} has the sha256 .* it was removed"):
        fetch(found.pinned)


def test_what_cannot_be_had_is_one_line_each(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a cause that is called by another's name: each line says what to do."""

    def line(name: str) -> str:
        with pytest.raises(BadInput) as caught:
            fetch(name)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert line("someone/else") == (
        f"someone/else is no folder here and no repository on {hub.url}, or a private one (HF_TOKEN)"
    )
    assert line(f"{NAME}@v9") == f"{NAME} at v9 has no revision v9 on {hub.url}"
    absent = "0" * 40
    assert line(f"{NAME}@{absent}") == f"{NAME} at {absent} has no revision {absent} on {hub.url}"
    hub.gated = True
    assert line(NAME) == f"{NAME} is gated on {hub.url}: accept its terms there, and set HF_TOKEN"
    hub.gated, hub.down = False, True
    assert line(NAME).startswith(f"{NAME} is not in the cache, and {hub.url} gave nothing: ")
    hub.down, hub.moved = False, "f" * 40
    assert f"answered {NAME} at {COMMIT} with files of another commit" in line(NAME)
    hub.moved = COMMIT
    (hub.repositories[NAME] / WEIGHTS).unlink()
    point_to(monkeypatch, hub.url, f"{constants.HF_HUB_CACHE}-2")
    assert f"{NAME}@{COMMIT} has no safetensors file: pickles are not downloaded" in line(NAME)
    point_to(monkeypatch, "http://127.0.0.1:9", f"{constants.HF_HUB_CACHE}-3")
    assert line(NAME).startswith(f"{NAME} is not in the cache, and http://127.0.0.1:9 gave nothing: ")


def test_names_are_told_from_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a folder that is looked for on the hub, and a path that is."""
    monkeypatch.chdir(tmp_path)
    assert on_the_hub("someone/tiny")
    assert on_the_hub("someone/tiny@main")
    (tmp_path / "someone" / "tiny").mkdir(parents=True)
    for name in ("someone/tiny", "/someone/tiny", "./someone/tiny", "tiny", "a/b/c", "prompt_lookup", "someone/"):
        assert not on_the_hub(name), name
    with pytest.raises(BadInput, match="expected org/name"):
        fetch("tiny")
    assert Snapshot("a/b", "c", tmp_path, {}).pinned == "a/b@c"
