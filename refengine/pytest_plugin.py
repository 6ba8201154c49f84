"""The pytest plugin: a fixture that audits a sampler of yours.

    def test_my_sampler_is_lossless(audit_sampler):
        audit_sampler("my_engine.sampling:verify", signature="verify")

It registers nothing else: no marker, no option, no hook. It imports neither torch nor the auditor at collection: both
are paid for by the tests that use them.
"""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def audit_sampler(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Audit "module:function" in a child process; the test fails when it is violated or could not be tested.

    subject    "module:function"; what it prints is shown as pytest shows what a test prints
    signature  "verify" | "verify_batch" | "round"
    path       a folder for the import path, by default pytest's root
    seed       of every draft and generator; 0
    alpha      the probability that a correct sampler fails the test; 1e-6
    calls      how many are sampled; by default 10,000 to 50,000 by signature. 500 take some seconds and show a total
               variation of 0.4, 3,000 one of 0.2. A number of calls gives the same verdict on every machine.
    seconds    a time limit; none unless given where calls are, else ten minutes
    out        a file for the report, which `refengine rerun` makes again; written whether the test fails or not
    """

    def audit(
        subject: str,
        signature: str = "verify",
        *,
        path: str | Path | None = None,
        seed: int = 0,
        alpha: float = 1e-6,
        calls: int | None = None,
        seconds: float | None = None,
        out: str | Path | None = None,
    ) -> None:
        __tracebackhide__ = True
        folder = str(path if path is not None else request.config.rootpath)
        failure = _failure(subject, signature, folder, seed, alpha, calls, seconds, Path(out) if out else None)
        if failure:
            pytest.fail(failure, pytrace=False)

    return audit


def _failure(
    subject: str,
    signature: str,
    path: str,
    seed: int,
    alpha: float,
    calls: int | None,
    seconds: float | None,
    out: Path | None,
) -> str:
    """What a test fails with; "" where the sampler is consistent."""
    from refengine.audit.kernel.request import Request
    from refengine.errors import BadInput

    try:
        asked = Request(subject, signature, path, seed, alpha, seconds, calls)
        asked.check_that_it_exists()
        from refengine.audit.kernel.audit import audited
        from refengine.commands.told import told

        found = audited(asked)
        if out is not None:
            from refengine.commands.told import save

            save([found.finding], out)
    except BadInput as error:
        return f"refengine: {error}"
    if found.printed:
        print(found.printed)
    if found.finding.verdict == "consistent":
        print(f"{subject} is consistent: {found.finding.method}; {found.advice}")
        return ""
    head = f"{subject} is not shown to be lossless: {found.finding.verdict}"
    beside = [found.advice] if found.advice and found.finding.verdict == "not tested" else []
    return "\n".join([head, *told(found.finding), *beside, again(subject, signature, path, seed, calls, out)])


def again(subject: str, signature: str, path: str, seed: int, calls: int | None, out: Path | None) -> str:
    """The command that makes the finding again."""
    import shlex

    if out is not None:
        return f"again: {shlex.join(['refengine', 'rerun', str(out)])}"
    options = ["--signature", signature, "--path", path, "--seed", str(seed)]
    options += ["--calls", str(calls)] if calls else []
    return f"again: {shlex.join(['refengine', 'audit', 'kernel', subject, *options])}"
