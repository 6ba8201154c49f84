"""The pytest plugin: the markers, a fixture that audits a sampler of yours, and a test for each claim about a server.

    def test_my_sampler_is_lossless(audit_sampler):
        audit_sampler("my_engine.sampling:verify", signature="verify")

    pytest --refengine-on http://localhost:8000/v1 --refengine-off http://localhost:8001/v1

The claims are found at collection, by asking the servers what they take; the first of their tests makes the audit.
Without servers, neither torch nor the auditor is imported at collection: both are paid for by the tests that use them.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

MARKERS = {
    "stat": "a large-sample test that states null, n, alpha and the total variation it would detect",
    "long": "the ten- to hundredfold version of a test",
    "gpu": "needs a CUDA device",
}


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("refengine", "a server with speculation beside one without")
    group.addoption("--refengine-on", metavar="URL", help="the server with speculation, up to /v1")
    group.addoption("--refengine-off", metavar="URL", help="the same model without")
    group.addoption("--refengine-model", metavar="NAME", help="as the servers call it, where they need it")
    group.addoption("--refengine-requests", metavar="N", type=int, default=3000, help="most that are sent; 3000")
    group.addoption("--refengine-allow-untested", action="store_true", help="skip untested claims, which fail without")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test for each claim about the servers, where some are named."""
    on, off = config.getoption("--refengine-on"), config.getoption("--refengine-off")
    if on is None and off is None:
        return
    if on is None or off is None:
        raise pytest.UsageError("--refengine-on and --refengine-off go together")
    if getattr(config, "workerinput", None) is not None:
        raise pytest.UsageError("the claims about a server are one audit, which is not split over processes: use -n 0")
    from refengine.audit.served.endpoint import opened_servers
    from refengine.errors import BadInput

    stack = ExitStack()
    config.add_cleanup(stack.close)
    requests, model = config.getoption("--refengine-requests"), config.getoption("--refengine-model")
    try:
        audit = stack.enter_context(opened_servers(on, off, requests, model))
    except BadInput as error:
        raise pytest.UsageError(str(error)) from None
    found: dict[str, Any] = {}
    items += [Claim.from_parent(session, name=name, audit=audit, found=found) for name in audit.names()]


class Claim(pytest.Item):
    """One claim. found: what the audit found, by name; empty before the first claim is asked about."""

    def __init__(self, audit: Any, found: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.audit, self.found = audit, found

    def runtest(self) -> None:
        if not self.found:
            self.found.update(self.audit.run())
        finding = self.found.get(self.name)
        if finding is None:
            pytest.skip("a side does not do it, or no answer showed anything of it")
        print(f"{finding.verdict}: {finding.claim} [{finding.method}]", *finding.notes, sep="\n")
        if finding.verdict == "violated":
            pytest.fail(f"{finding.diagnosis}\nwitness: {finding.witness}", pytrace=False)
        if finding.verdict == "not tested":
            allowed = self.config.getoption("--refengine-allow-untested")
            (pytest.skip if allowed else pytest.fail)(f"not tested: {finding.reason}")

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"refengine: {self.name}"


@pytest.fixture
def audit_sampler(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Audit "module:function" in a child process; the test fails when it is violated or could not be tested.

    Arguments: subject, signature ("verify" | "verify_batch" | "round"), and optionally `path` (a folder for the import
    path, by default pytest's root), `seed`, `alpha` (1e-6), `seconds` (50) and `calls` (how many are sampled, 200,000
    at most by default). With seconds to spare, a number of calls makes the test the same on every machine.
    """

    def audit(subject: str, signature: str = "verify", path: str | Path | None = None, **options: Any) -> None:
        from refengine.audit.kernel.audit import audit_kernel

        folder = str(path if path is not None else request.config.rootpath)
        findings = audit_kernel(subject, signature, folder, **options)
        failed = [f for f in findings if f.verdict != "consistent"]
        for finding in findings:
            print(f"{finding.verdict}: {finding.claim} [{finding.method}]")
        if failed:
            lines = [f"{f.verdict}: {f.claim} {f.diagnosis or f.reason} ({f.method})" for f in failed]
            pytest.fail("\n".join([f"{subject} is not shown to be lossless:", *lines]), pytrace=False)

    return audit
