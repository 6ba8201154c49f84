"""The pytest plugin: the markers, and a fixture that audits a sampler of yours.

    def test_my_sampler_is_lossless(audit_sampler):
        audit_sampler("my_engine.sampling:verify", signature="verify")

It imports neither torch nor the auditor at collection: both are paid for by the tests that use them.
"""

from collections.abc import Callable
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
