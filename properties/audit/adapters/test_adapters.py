"""Adapters: one folder each, one protocol, found by listing the folders."""

import pickle
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

import refengine.audit.adapters
from refengine.audit.adapters import Absent, Adapter, adapters
from refengine.cli import app

FOLDER = Path(refengine.audit.adapters.__file__).parent
EVERY = adapters().values()


def test_every_folder_is_an_adapter_under_its_name() -> None:
    """Kills a list of adapters beside the folders, and an adapter that the command line does not know."""
    folders = {file.parent.name for file in FOLDER.glob("*/__init__.py")}
    assert set(adapters()) == {adapter.name for adapter in EVERY} == folders
    listed = CliRunner().invoke(app, ["audit", "library"])
    assert all(name in listed.output for name in folders)
    unknown = CliRunner().invoke(app, ["audit", "library", "no-such-library"])
    assert "one of " + ", ".join(sorted(folders)) in str(unknown.exception)


@pytest.mark.parametrize("adapter", [a for a in EVERY if a.audits], ids=lambda adapter: adapter.name)
def test_an_absent_library_is_not_tested_and_says_how_to_install_it(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills a missing library that is a crash, or no finding at all, and audits that a process cannot be handed."""
    assert adapter.version()
    assert all(pickle.loads(pickle.dumps(run)) for run in adapter.audits.values())

    def gone(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", gone)
    with pytest.raises(Absent, match=adapter.install):
        adapter.version()
    findings = list(adapter.audit())
    assert len(findings) >= len(adapter.audits)
    assert {finding.verdict for finding in findings} == {"not tested"}
    assert all(adapter.install in finding.reason for finding in findings)
